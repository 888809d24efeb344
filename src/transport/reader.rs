//! The receiving half of a connection: bytes to frames.
//!
//! ```text
//! +---------------+----------------+---------------+-- - -
//! | length: i32   | length bytes   | length: i32   | ...
//! +---------------+----------------+---------------+-- - -
//! ```

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use env::{BoxFuture, FrameReader, RecvError};
use model::Limits;
use tokio::io::AsyncReadExt;
use tokio::net::tcp::OwnedReadHalf;

use crate::budget::{Budget, Share};
use crate::buffers::{Buffers, Lent, own};

/// The length in front of each frame.
const LENGTH_BYTES: usize = 4;
/// Frames up to this are copied, so that the buffer is free while a request waits.
const COPIED_BYTES_MAX: usize = 4 << 10;
/// A begun frame up to this is moved to memory of its own while its rest is waited for.
const PARKED_BYTES_MAX: usize = 16 << 10;
/// Read on in the same buffer while so much of it is left.
const ROOM_BYTES_MIN: usize = Limits::RECEIVE_BUFFER_BYTES / 4;

pub(crate) struct Reader {
    half: OwnedReadHalf,
    buffers: Arc<Buffers>,
    budget: Budget,
    frame_bytes_max: usize,
    held: Held,
}

/// What came and is not yet a whole frame.
enum Held {
    /// In memory of its own: nothing at all, a little that waits for more, or a frame too large for a buffer.
    Own(BytesMut),
    /// In a buffer that others want too.
    Lent(Lent),
    /// A frame too large for a buffer, with its share of the budget.
    Large(BytesMut, Share),
}

/// A large frame gives its share of the budget back with its last slice.
struct Large {
    bytes: Bytes,
    _share: Share,
}

impl AsRef<[u8]> for Large {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Held {
    fn nothing() -> Self {
        Self::Own(BytesMut::new())
    }

    fn bytes(&mut self) -> &mut BytesMut {
        match self {
            Self::Own(bytes) | Self::Large(bytes, _) => bytes,
            Self::Lent(lent) => &mut lent.bytes,
        }
    }
}

impl FrameReader for Reader {
    fn recv<'a>(&'a mut self, frames: &'a mut Vec<Bytes>) -> BoxFuture<'a, Result<(), RecvError>> {
        Box::pin(async move {
            while !self.parse(frames)? {
                self.fill().await?;
            }
            Ok(())
        })
    }
}

impl Reader {
    pub(crate) fn new(
        half: OwnedReadHalf,
        buffers: Arc<Buffers>,
        budget: Budget,
        frame_bytes_max: usize,
    ) -> Self {
        Self { half, buffers, budget, frame_bytes_max, held: Held::nothing() }
    }

    /// Moves the complete frames out; false where there is none.
    ///
    /// # Errors
    /// A bad length in front of the first one: those before it are given out first.
    fn parse(&mut self, frames: &mut Vec<Bytes>) -> Result<bool, RecvError> {
        let before = frames.len();
        let bad = loop {
            match announced(self.held.bytes(), self.frame_bytes_max) {
                Ok(Some(size)) if self.held.bytes().len() >= size => frames.push(self.take_frame(size)),
                Ok(_) => break None,
                Err(error) => break Some(error),
            }
        };
        if self.held.bytes().is_empty() {
            self.held = Held::nothing();
        }
        match bad {
            Some(error) if frames.len() == before => Err(error),
            _ => Ok(frames.len() > before),
        }
    }

    /// The frame of `size` bytes, its length included, at the front.
    fn take_frame(&mut self, size: usize) -> Bytes {
        if matches!(self.held, Held::Large(..))
            && let Held::Large(mut bytes, share) = std::mem::replace(&mut self.held, Held::nothing())
        {
            bytes.advance(LENGTH_BYTES);
            return Bytes::from_owner(Large { bytes: bytes.freeze(), _share: share });
        }
        let bytes = self.held.bytes();
        if size <= COPIED_BYTES_MAX {
            let frame = Bytes::copy_from_slice(&bytes[LENGTH_BYTES..size]);
            bytes.advance(size);
            return frame;
        }
        let mut frame = bytes.split_to(size);
        frame.advance(LENGTH_BYTES);
        frame.freeze()
    }

    /// Waits for bytes and takes what is there.
    async fn fill(&mut self) -> Result<(), RecvError> {
        loop {
            if !self.is_readable().await? {
                self.park();
                self.half.readable().await.map_err(RecvError::Io)?;
            }
            let limit = self.make_room().await.map_err(RecvError::Io)?;
            match self.read_now(limit).await {
                None => {}
                Some(Ok(0)) if self.held.bytes().is_empty() => return Err(RecvError::Closed),
                Some(Ok(0)) => return Err(RecvError::Io(io::ErrorKind::UnexpectedEof.into())),
                Some(result) => return result.map(|_| ()).map_err(RecvError::Io),
            }
        }
    }

    async fn is_readable(&self) -> Result<bool, RecvError> {
        let mut readable = pin!(self.half.readable());
        std::future::poll_fn(|cx| match readable.as_mut().poll(cx) {
            Poll::Ready(result) => Poll::Ready(result.map(|()| true).map_err(RecvError::Io)),
            Poll::Pending => Poll::Ready(Ok(false)),
        })
        .await
    }

    /// Gives the buffer back where there is little in it.
    fn park(&mut self) {
        if let Held::Lent(lent) = &self.held
            && lent.bytes.len() <= PARKED_BYTES_MAX
        {
            self.held = Held::Own(BytesMut::from(&lent.bytes[..]));
        }
    }

    /// Makes room for what comes; how many bytes may be read into it.
    async fn make_room(&mut self) -> io::Result<usize> {
        let bytes = self.held.bytes();
        let (had, room) = (bytes.len(), bytes.capacity() - bytes.len());
        // `parse` has refused a bad length before.
        let size = announced(bytes, self.frame_bytes_max).ok().flatten().unwrap_or(LENGTH_BYTES);
        if size > Limits::RECEIVE_BUFFER_BYTES {
            return self.make_room_large(size).await;
        }
        if room >= size - had && (room >= ROOM_BYTES_MIN || had >= ROOM_BYTES_MIN) {
            return Ok(room);
        }
        let mut lent = self.buffers.lend();
        lent.bytes.extend_from_slice(bytes);
        lent.bytes.reserve(size - had);
        let room = lent.bytes.capacity() - had;
        self.held = Held::Lent(lent);
        Ok(room)
    }

    /// Memory for a frame of `size`: a few times what has come, never what is only announced.
    async fn make_room_large(&mut self, size: usize) -> io::Result<usize> {
        if !matches!(self.held, Held::Large(..)) {
            let capacity = size.min(self.held.bytes().len().max(Limits::RECEIVE_BUFFER_BYTES));
            let share = self.budget.share(capacity).await?;
            self.held = Held::Large(own(self.held.bytes(), capacity), share);
        }
        let Held::Large(bytes, share) = &mut self.held else { return Ok(0) };
        let missing = size - bytes.len();
        if bytes.capacity() - bytes.len() < missing.min(bytes.len() / 4) {
            let capacity = size.min(4 * bytes.len());
            self.budget.grow(share, capacity).await?;
            *bytes = own(bytes, capacity);
        }
        Ok((bytes.capacity() - bytes.len()).min(missing))
    }

    /// Up to `limit` bytes, if there are any. 0 is the end.
    async fn read_now(&mut self, limit: usize) -> Option<io::Result<usize>> {
        let mut room = self.held.bytes().limit(limit);
        let mut read = pin!(self.half.read_buf(&mut room));
        std::future::poll_fn(|cx| match read.as_mut().poll(cx) {
            Poll::Ready(result) => Poll::Ready(Some(result)),
            Poll::Pending => Poll::Ready(None),
        })
        .await
    }
}

/// The size of the frame that starts here, its length field included; `None` where too little has come.
fn announced(bytes: &[u8], frame_bytes_max: usize) -> Result<Option<usize>, RecvError> {
    let Some(first) = bytes.first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
    let length = i32::from_be_bytes(*first);
    match usize::try_from(length) {
        Ok(bytes_after) if bytes_after <= frame_bytes_max => Ok(Some(LENGTH_BYTES + bytes_after)),
        _ => {
            let mut head = [0; 8];
            let there = bytes.len().min(head.len());
            head[..there].copy_from_slice(&bytes[..there]);
            Err(RecvError::Length { length, head })
        }
    }
}

#[cfg(test)]
mod tests {
    use env::Link;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpStream;

    use super::*;
    use crate::net::tests::link;

    const MAX: usize = 2 << 20;

    fn frame(length: usize, seed: usize) -> Vec<u8> {
        let mut bytes = (length as i32).to_be_bytes().to_vec();
        bytes.extend(body(length, seed));
        bytes
    }

    fn body(length: usize, seed: usize) -> impl Iterator<Item = u8> {
        (0..length).map(move |i| (i.wrapping_mul(31) + seed) as u8)
    }

    /// Sends the bytes in pieces of `step`, and closes.
    async fn send(mut peer: TcpStream, bytes: Vec<u8>, step: usize) {
        for piece in bytes.chunks(step) {
            peer.write_all(piece).await.unwrap();
            tokio::task::yield_now().await;
        }
    }

    async fn receive(link: &mut Link) -> (Vec<Bytes>, RecvError) {
        let mut frames = Vec::new();
        loop {
            if let Err(error) = link.reader.recv(&mut frames).await {
                return (frames, error);
            }
        }
    }

    async fn poll_once<T>(future: &mut BoxFuture<'_, T>) -> Poll<T> {
        std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await
    }

    /// Frames of these lengths come out as they went in, however the bytes are cut.
    async fn round_trip(lengths: &[usize], step: usize) {
        let (mut link, peer) = link(MAX).await;
        let bytes = lengths.iter().enumerate().flat_map(|(seed, length)| frame(*length, seed)).collect();
        let ((), (frames, end)) = tokio::join!(send(peer, bytes, step), receive(&mut link));
        assert!(matches!(end, RecvError::Closed), "{end:?}");
        assert_eq!(frames.len(), lengths.len());
        for (seed, (frame, length)) in frames.iter().zip(lengths).enumerate() {
            assert!(frame[..] == body(*length, seed).collect::<Vec<_>>(), "frame {seed} of {length} bytes");
        }
    }

    #[tokio::test]
    async fn frames_come_out_as_they_went_in_byte_by_byte() {
        round_trip(&[0, 1, 3, 4, 5, 200, 0, 17], 1).await;
    }

    #[tokio::test]
    async fn frames_of_all_sizes_come_out_as_they_went_in() {
        let buffer = Limits::RECEIVE_BUFFER_BYTES;
        let lengths = [
            10,
            COPIED_BYTES_MAX - 5,
            COPIED_BYTES_MAX - 3,
            buffer - 4,
            0,
            buffer - 3,
            buffer,
            3 * buffer + 1,
            70_000,
            70_000,
            70_000,
            70_000,
            MAX,
            1,
            1 << 20,
            20_000,
        ];
        for step in [5000, 65_536, 1 << 20] {
            round_trip(&lengths, step).await;
        }
    }

    #[tokio::test]
    async fn many_frames_of_one_size_come_out_as_they_went_in() {
        round_trip(&[16_384; 100], 100_000).await;
        round_trip(&vec![100; 5000], 100_000).await;
    }

    #[tokio::test]
    async fn all_complete_frames_at_hand_come_at_once() {
        let (mut link, mut peer) = link(MAX).await;
        let mut bytes = [frame(10, 0), frame(20, 1)].concat();
        bytes.extend_from_slice(&frame(30, 2)[..15]);
        peer.write_all(&bytes).await.unwrap();
        let mut frames = Vec::new();
        link.reader.recv(&mut frames).await.unwrap();
        assert_eq!(frames.iter().map(Bytes::len).collect::<Vec<_>>(), [10, 20]);
        drop(peer);
        let error = link.reader.recv(&mut frames).await.unwrap_err();
        assert!(matches!(error, RecvError::Io(e) if e.kind() == io::ErrorKind::UnexpectedEof));
    }

    /// A reader whose insides can be looked at.
    async fn reader() -> (Reader, TcpStream) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (half, write) = listener.accept().await.unwrap().0.into_split();
        write.forget();
        let budget = Budget::new(MAX, Arc::new(host::HostClock::new()));
        (Reader::new(half, Buffers::new(1), budget, MAX), peer)
    }

    #[tokio::test]
    async fn a_connection_that_waits_holds_no_buffer() {
        let (mut reader, mut peer) = reader().await;
        let mut frames = Vec::new();
        peer.write_all(&frame(10_000, 0)).await.unwrap();
        reader.recv(&mut frames).await.unwrap();
        assert!(matches!(&reader.held, Held::Own(bytes) if bytes.capacity() == 0));

        peer.write_all(&frame(10_000, 0)[..100]).await.unwrap();
        reader.half.readable().await.unwrap();
        let mut recv = reader.recv(&mut frames);
        assert!(poll_once(&mut recv).await.is_pending());
        drop(recv);
        assert!(matches!(&reader.held, Held::Own(bytes) if bytes.len() == 100));
    }

    #[tokio::test]
    async fn a_length_over_the_limit_or_negative_is_refused_with_its_first_bytes() {
        for (bytes, length) in
            [(&b"GET / HTTP/1.1\r\n"[..], 0x4745_5420), (&[0xff; 4], -1), (&[0, 0, 1, 1], 257)]
        {
            let (mut link, mut peer) = link(256).await;
            peer.write_all(&[&frame(3, 0), bytes].concat()).await.unwrap();
            drop(peer);
            let (frames, error) = receive(&mut link).await;
            assert_eq!(frames.len(), 1);
            let RecvError::Length { length: got, head } = error else { panic!("{error:?}") };
            assert_eq!(got, length);
            assert!(bytes.starts_with(&head[..4]));
        }
    }

    #[tokio::test]
    async fn a_frame_that_is_waited_for_may_be_given_up_and_asked_for_again() {
        let (mut link, mut peer) = link(MAX).await;
        let bytes = frame(300_000, 7);
        let mut frames = Vec::new();
        for piece in bytes.chunks(100_000) {
            assert!(frames.is_empty());
            peer.write_all(piece).await.unwrap();
            let mut recv = link.reader.recv(&mut frames);
            let _whole = poll_once(&mut recv).await;
        }
        while frames.is_empty() {
            link.reader.recv(&mut frames).await.unwrap();
        }
        assert!(frames[0].iter().copied().eq(body(300_000, 7)));
    }
}
