//! The receiving half of a connection: bytes to frames.
//!
//! ```text
//! +---------------+----------------+---------------+-- - -
//! | length: i32   | length bytes   | length: i32   | ...
//! +---------------+----------------+---------------+-- - -
//! ```
//!
//! A begun frame may be silent for half a minute where it holds what others want: a buffer, or a share of the budget.
//! Then its connection ends. One that holds only a little of its own waits as long as the connection may be idle.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use env::{BoxFuture, FrameReader, RecvError};
use model::Limits;
use tokio::io::AsyncReadExt;
use tokio::net::tcp::OwnedReadHalf;

use crate::budget::{Budget, Refused, Share};
use crate::buffers::{Buffers, Holding, Lent, own};

/// The length in front of each frame.
const LENGTH_BYTES: usize = 4;
/// Frames up to this are copied, so that the buffer is free while a request waits.
const COPIED_BYTES_MAX: usize = 4 << 10;
/// A begun frame up to this is moved to memory of its own while its rest is waited for.
const PARKED_BYTES_MAX: usize = 16 << 10;
/// Read on in the same buffer while so much of it is left.
const ROOM_BYTES_MIN: usize = Limits::RECEIVE_BUFFER_BYTES / 4;
/// A large frame's memory is so many times what has come of it.
const GROWTH: usize = 4;
/// How long nothing may come of a begun frame.
const SILENCE_MAX: Duration = Duration::from_secs(30);
const SILENT: &str = "nothing more came for 30 seconds";

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
                if matches!(self.held, Held::Large(..)) {
                    self.parse(frames)?;
                    break;
                }
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
            share.complete();
            return Bytes::from_owner(Holding { bytes: bytes.freeze(), _held: share });
        }
        let bytes = self.held.bytes();
        if size <= COPIED_BYTES_MAX {
            let frame = Bytes::copy_from_slice(&bytes[LENGTH_BYTES..size]);
            bytes.advance(size);
            return frame;
        }
        let mut frame = match &mut self.held {
            Held::Lent(lent) => lent.split_frame(size),
            held => held.bytes().split_to(size).freeze(),
        };
        frame.advance(LENGTH_BYTES);
        frame
    }

    /// Waits for bytes and takes what is there.
    async fn fill(&mut self) -> Result<(), RecvError> {
        loop {
            if !self.is_readable().await? {
                self.park();
                self.wait().await?;
            }
            let limit = self.make_room().await?;
            match self.read_now(limit).await {
                // Also where this task has had its share of turns, and would be told so for ever.
                None => tokio::task::yield_now().await,
                Some(Ok(0)) if self.held.bytes().is_empty() => return Err(RecvError::Closed),
                Some(Ok(0)) => return Err(RecvError::Io(io::ErrorKind::UnexpectedEof.into())),
                Some(result) => return result.map(|_| self.hear()).map_err(RecvError::Io),
            }
        }
    }

    /// Waits for bytes; not for ever where that keeps others waiting.
    async fn wait(&self) -> Result<(), RecvError> {
        let readable = async { self.half.readable().await.map_err(RecvError::Io) };
        let clock = self.budget.clock();
        let waited = match &self.held {
            Held::Own(_) => return readable.await,
            Held::Lent(_) => env::timeout(clock, clock.now().plus(SILENCE_MAX), readable).await,
            Held::Large(_, share) => {
                let readable_or_shed = async {
                    tokio::select! {
                        biased;
                        () = share.shed() => Err(Refused::Shed.into()),
                        result = readable => result,
                    }
                };
                env::timeout(clock, clock.now().plus(SILENCE_MAX), readable_or_shed).await
            }
        };
        waited.unwrap_or(Err(RecvError::GivenUp(SILENT)))
    }

    fn hear(&self) {
        if let Held::Large(bytes, share) = &self.held {
            share.hear(bytes.len());
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
    async fn make_room(&mut self) -> Result<usize, RecvError> {
        let is_large = matches!(self.held, Held::Large(..));
        let bytes = self.held.bytes();
        let (had, room) = (bytes.len(), bytes.capacity() - bytes.len());
        // `parse` has refused a bad length before.
        let size = announced(bytes, self.frame_bytes_max).ok().flatten().unwrap_or(LENGTH_BYTES);
        let missing = size.min(Limits::RECEIVE_BUFFER_BYTES).saturating_sub(had);
        if is_large || missing == 0 {
            return self.make_room_large(size).await;
        }
        if room >= missing && (room >= ROOM_BYTES_MIN || had >= ROOM_BYTES_MIN) {
            return Ok(room);
        }
        let mut lent = self.buffers.lend();
        if had >= lent.bytes.capacity() {
            return self.make_room_large(size).await;
        }
        lent.bytes.extend_from_slice(bytes);
        let room = lent.bytes.capacity() - had;
        self.held = Held::Lent(lent);
        Ok(room)
    }

    /// Memory for a frame of `size` that no buffer holds: a few times what has come, never what is only announced.
    async fn make_room_large(&mut self, size: usize) -> Result<usize, RecvError> {
        if !matches!(self.held, Held::Large(..)) {
            let bytes = self.held.bytes();
            let (share, capacity) = (self.budget.begin(size, bytes.len()), size.min(GROWTH * bytes.len()));
            share.grow(capacity).await?;
            self.held = Held::Large(own(bytes, capacity), share);
        }
        let Held::Large(bytes, share) = &mut self.held else { return Ok(0) };
        let missing = size - bytes.len();
        if bytes.capacity() - bytes.len() < missing.min(bytes.len() / GROWTH) {
            let capacity = size.min(GROWTH * bytes.len());
            share.grow(capacity).await?;
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

impl From<Refused> for RecvError {
    fn from(refused: Refused) -> Self {
        Self::GivenUp(match refused {
            Refused::Shed => "too many large requests come at once, and of this one little or nothing comes",
            Refused::NoRoom => "too many large requests come at once, or are being handled",
        })
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
    use tokio::task::JoinSet;

    use super::*;
    use crate::manual_clock::ManualClock;
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
        Scene::new(1, MAX).reader().await
    }

    /// Readers that share so many buffers and so many bytes for large frames, and their clock.
    struct Scene {
        clock: Arc<ManualClock>,
        buffers: Arc<Buffers>,
        budget: Budget,
    }

    impl Scene {
        fn new(buffers: usize, budget_bytes: usize) -> Self {
            let clock = Arc::new(ManualClock::default());
            let budget = Budget::new(budget_bytes, clock.clone());
            Self { clock, buffers: Buffers::new(buffers), budget }
        }

        async fn reader(&self) -> (Reader, TcpStream) {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (half, write) = listener.accept().await.unwrap().0.into_split();
            write.forget();
            (Reader::new(half, Arc::clone(&self.buffers), self.budget.clone(), MAX), peer)
        }

        /// Connections that sent so much of a frame of `MAX` bytes and then nothing, each received by a task of its own.
        async fn silent(&self, count: usize, sent: usize) -> (Vec<TcpStream>, JoinSet<RecvError>) {
            let (mut peers, mut ends, bytes) = (Vec::new(), JoinSet::new(), frame(MAX, 0));
            for _ in 0..count {
                let (mut reader, mut peer) = self.reader().await;
                ends.spawn(async move { last_word(&mut reader).await });
                peer.write_all(&bytes[..sent]).await.unwrap();
                peers.push(peer);
            }
            (peers, ends)
        }
    }

    /// Why the connection ended.
    async fn last_word(reader: &mut Reader) -> RecvError {
        let mut frames = Vec::new();
        loop {
            if let Err(error) = reader.recv(&mut frames).await {
                return error;
            }
        }
    }

    /// Sends a frame of `MAX` bytes piece by piece, and gives what was received.
    async fn sent_through((mut reader, peer): (Reader, TcpStream), step: usize) -> Result<Bytes, RecvError> {
        let receive = async {
            let mut frames = Vec::new();
            while frames.is_empty() {
                reader.recv(&mut frames).await?;
            }
            Ok(frames.remove(0))
        };
        tokio::join!(send(peer, frame(MAX, 5), step), receive).1
    }

    #[tokio::test]
    async fn frames_that_are_only_announced_keep_no_other_waiting() {
        let scene = Scene::new(64, 2 * MAX);
        let _silent = scene.silent(200, 100).await;
        let got = sent_through(scene.reader().await, 100_000).await.unwrap();
        assert!(got.iter().copied().eq(body(MAX, 5)));
    }

    #[tokio::test]
    async fn frames_that_fell_silent_give_way_to_those_that_go_on() {
        let scene = Scene::new(4, 2 * MAX);
        let (_peers, mut ends) = scene.silent(2, 300_000).await;
        while scene.budget.shares() < 2 {
            tokio::task::yield_now().await;
        }
        let mut received = Box::pin(sent_through(scene.reader().await, 100_000));
        let got = loop {
            tokio::select! {
                biased;
                got = &mut received => break got,
                () = tokio::task::yield_now() => {}
            }
            if scene.budget.is_waited_for() {
                scene.clock.advance(Duration::from_secs(1)).await;
            }
        };
        assert!(got.unwrap().iter().copied().eq(body(MAX, 5)));
        assert!(matches!(ends.join_next().await.unwrap().unwrap(), RecvError::GivenUp(_)));
    }

    #[tokio::test]
    async fn a_begun_frame_that_keeps_a_buffer_or_a_share_is_given_up_after_a_while() {
        let scene = Scene::new(4, 2 * MAX);
        for sent in [100_000, 300_000] {
            let (_peers, mut ends) = scene.silent(1, sent).await;
            let end = loop {
                match ends.try_join_next() {
                    Some(end) => break end.unwrap(),
                    None => scene.clock.advance(Duration::from_secs(1)).await,
                }
            };
            assert!(matches!(end, RecvError::GivenUp(reason) if reason == SILENT), "{end:?}");
        }
    }

    #[tokio::test]
    async fn the_progress_of_a_large_frame_is_told() {
        let (mut reader, mut peer) = reader().await;
        let (bytes, mut frames) = (frame(MAX, 5), Vec::new());
        for piece in bytes.chunks(700_000) {
            assert!(frames.is_empty());
            peer.write_all(piece).await.unwrap();
            reader.recv(&mut frames).await.unwrap();
        }
        while frames.is_empty() {
            reader.recv(&mut frames).await.unwrap();
        }
        assert!(frames[0].iter().copied().eq(body(MAX, 5)));
    }

    #[tokio::test]
    async fn without_free_buffers_frames_of_all_sizes_come_through() {
        let scene = Scene::new(0, 2 * MAX);
        let (mut reader, peer) = scene.reader().await;
        let lengths = [17 << 10, 10, 100_000, 20 << 10, 300_000, MAX, 5, 16 << 10];
        let bytes = lengths.iter().enumerate().flat_map(|(seed, length)| frame(*length, seed)).collect();
        let receive = async {
            let mut frames = Vec::new();
            while reader.recv(&mut frames).await.is_ok() {}
            frames
        };
        let ((), frames) = tokio::join!(send(peer, bytes, 7000), receive);
        for (seed, length) in lengths.into_iter().enumerate() {
            assert!(frames[seed].iter().copied().eq(body(length, seed)), "frame {seed} of {length} bytes");
        }
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
