//! One direction of a connection: frames on their way, in order.

use std::collections::VecDeque;
use std::io;
use std::task::{Poll, Waker};

use bytes::{Buf, Bytes};
use env::RecvError;

use crate::executor::{NodeKey, Time};

/// Bytes that the two kernels hold on the way before a sender waits.
const WINDOW_BYTES: usize = 256 << 10;
/// The length in front of each frame.
const LENGTH_BYTES: usize = 4;

pub(crate) struct Pipe {
    pub(crate) from: NodeKey,
    pub(crate) to: NodeKey,
    /// With the time when each arrives.
    frames: VecDeque<(Time, Bytes)>,
    bytes: usize,
    last_arrival: Time,
    /// The sender said that nothing follows.
    finished: bool,
    /// Nobody reads any more: sending is an error.
    pub(crate) is_unread: bool,
    /// The receiver's machine lost power and does not know this connection.
    pub(crate) is_forgotten: bool,
    is_reset: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Pipe {
    pub(crate) fn new(from: NodeKey, to: NodeKey) -> Self {
        Self {
            from,
            to,
            frames: VecDeque::new(),
            bytes: 0,
            last_arrival: 0,
            finished: false,
            is_unread: false,
            is_forgotten: false,
            is_reset: false,
            reader: None,
            writer: None,
        }
    }

    /// Whether something is on its way.
    pub(crate) fn is_busy(&self) -> bool {
        !self.frames.is_empty()
    }

    /// Puts the frame on its way if it may go.
    pub(crate) fn poll_send(
        &mut self,
        frame: &Bytes,
        arrives: Time,
        waker: &Waker,
    ) -> Poll<io::Result<Time>> {
        if self.is_reset {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        if self.is_unread || self.finished {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if self.is_busy() && self.bytes + frame.len() > WINDOW_BYTES {
            self.writer = Some(waker.clone());
            return Poll::Pending;
        }
        self.last_arrival = self.last_arrival.max(arrives);
        self.bytes += frame.len();
        self.frames.push_back((self.last_arrival, frame.clone()));
        Poll::Ready(Ok(self.last_arrival))
    }

    /// All frames that have arrived. While the link is cut nothing arrives.
    pub(crate) fn poll_recv(
        &mut self,
        frames: &mut Vec<Bytes>,
        frame_bytes_max: usize,
        now: Time,
        is_cut: bool,
        waker: &Waker,
    ) -> Poll<Result<(), RecvError>> {
        if self.is_reset {
            return Poll::Ready(Err(RecvError::Io(io::ErrorKind::ConnectionReset.into())));
        }
        let before = frames.len();
        while let Some((arrival, frame)) = self.frames.front()
            && *arrival <= now
            && !is_cut
        {
            if let Some(error) = refused(frame, frame_bytes_max) {
                return if frames.len() > before { Poll::Ready(Ok(())) } else { Poll::Ready(Err(error)) };
            }
            self.bytes -= frame.len();
            frames.extend(self.frames.pop_front().map(|(_, frame)| frame.slice(LENGTH_BYTES..)));
        }
        if frames.len() > before {
            self.wake_writer();
            return Poll::Ready(Ok(()));
        }
        if self.finished && !self.is_busy() && !is_cut {
            return Poll::Ready(Err(RecvError::Closed));
        }
        self.reader = Some(waker.clone());
        Poll::Pending
    }

    /// When the next frame arrives, and who waits for it.
    pub(crate) fn next_arrival(&self) -> Option<(Time, Waker)> {
        Some((self.frames.front()?.0, self.reader.clone()?))
    }

    /// Nothing follows what is on its way.
    pub(crate) fn finish(&mut self) {
        self.finished = true;
        self.wake_reader();
    }

    /// Both ends are told that the connection is broken.
    pub(crate) fn reset(&mut self) {
        self.is_reset = true;
        self.frames.clear();
        self.wake_reader();
        self.wake_writer();
    }

    /// What the receiver does not have yet is lost but for the first `kept` frames.
    pub(crate) fn lose(&mut self, kept: usize) {
        self.frames.truncate(kept);
        self.bytes = self.frames.iter().map(|(_, frame)| frame.len()).sum();
    }

    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    pub(crate) fn wake_reader(&mut self) {
        self.reader.take().into_iter().for_each(Waker::wake);
    }

    pub(crate) fn wake_writer(&mut self) {
        self.writer.take().into_iter().for_each(Waker::wake);
    }
}

/// Cuts what a sender gave into frames. A length that does not fit is left to the receiver, with all that follows it.
pub(crate) fn frames_of(mut bytes: Bytes) -> Vec<Bytes> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let length = bytes.first_chunk().map_or(-1, |length| i32::from_be_bytes(*length));
        let size = usize::try_from(length).map_or(usize::MAX, |length| LENGTH_BYTES.saturating_add(length));
        frames.push(bytes.split_to(size.min(bytes.len())));
    }
    frames
}

/// Why this is not a frame for a receiver that takes `frame_bytes_max`.
fn refused(frame: &Bytes, frame_bytes_max: usize) -> Option<RecvError> {
    let Some(first) = frame.first_chunk::<LENGTH_BYTES>() else {
        return Some(RecvError::Io(io::ErrorKind::UnexpectedEof.into()));
    };
    let length = i32::from_be_bytes(*first);
    if usize::try_from(length).is_ok_and(|length| length <= frame_bytes_max) {
        let is_whole = frame.len() - LENGTH_BYTES == length as usize;
        return (!is_whole).then(|| RecvError::Io(io::ErrorKind::UnexpectedEof.into()));
    }
    let mut head = [0; 8];
    frame.slice(..frame.len().min(head.len())).copy_to_slice(&mut head[..frame.len().min(8)]);
    Some(RecvError::Length { length, head })
}
