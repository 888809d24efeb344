//! The sending half of a connection: chunks to bytes.

use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use env::{BoxFuture, Chunk, Exec, FileRange, FrameWriter};
use rustix::fs::sendfile;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use tokio::io::Interest;
use tokio::net::tcp::OwnedWriteHalf;

use crate::buffers::{Buffers, Lent};

/// Shorter runs of a file are read and sent: sendfile costs 2 to 50 times more there.
const SENDFILE_BYTES_MIN: usize = 128 << 10;
/// Less than this of a buffer is not read into, but sent and begun anew.
const READ_BYTES_MIN: usize = 4 << 10;
/// The most pieces that one sendmsg takes (IOV_MAX).
const PIECES_MAX: usize = 1024;

pub(crate) struct Writer {
    half: OwnedWriteHalf,
    buffers: Arc<Buffers>,
    exec: Arc<dyn Exec>,
}

/// What is read of files on its way out.
#[derive(Default)]
struct Outgoing {
    pieces: Vec<Bytes>,
    buffer: Option<Lent>,
}

impl FrameWriter for Writer {
    fn send(&mut self, chunks: Vec<Chunk>) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(async move {
            let mut outgoing = Outgoing::default();
            for chunk in chunks {
                match chunk {
                    Chunk::Bytes(bytes) => outgoing.pieces.push(bytes),
                    Chunk::File(range) => self.send_range(range, &mut outgoing).await?,
                }
            }
            self.write(&mut outgoing.pieces, SendFlags::empty()).await
        })
    }
}

impl Writer {
    pub(crate) fn new(half: OwnedWriteHalf, buffers: Arc<Buffers>, exec: Arc<dyn Exec>) -> Self {
        Self { half, buffers, exec }
    }

    async fn send_range(&self, range: FileRange, outgoing: &mut Outgoing) -> io::Result<()> {
        match range.file.fd() {
            Some(fd) if range.length >= SENDFILE_BYTES_MIN && is_cached(&range)? => {
                self.write(&mut outgoing.pieces, SendFlags::MORE).await?;
                self.send_file(fd, range.position, range.length).await
            }
            _ => self.read_range(range, outgoing).await,
        }
    }

    /// Puts the range behind the pieces; writes them whenever the buffer is full.
    async fn read_range(&self, mut range: FileRange, outgoing: &mut Outgoing) -> io::Result<()> {
        while range.length > 0 {
            let lent = outgoing.buffer.get_or_insert_with(|| self.buffers.lend());
            avoid_slow_copy(&mut lent.bytes, range.position);
            let length = range.length.min(lent.bytes.capacity());
            if length < range.length.min(READ_BYTES_MIN) {
                self.write(&mut outgoing.pieces, SendFlags::MORE).await?;
                outgoing.buffer = None;
                continue;
            }
            let part = FileRange { length, ..range.clone() };
            lent.bytes = self.read(part, std::mem::take(&mut lent.bytes)).await?;
            outgoing.pieces.push(lent.bytes.split().freeze());
            range.position += length as u64;
            range.length -= length;
        }
        Ok(())
    }

    /// Reads the range into the empty buffer, on another thread where the disk has to be waited for.
    async fn read(&self, range: FileRange, mut buffer: BytesMut) -> io::Result<BytesMut> {
        buffer.resize(range.length, 0);
        match read_exact(&mut buffer, range.position, |into, at| range.file.try_read_at(into, at)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                env::blocking(&*self.exec, move || {
                    read_exact(&mut buffer, range.position, |into, at| range.file.read_at(into, at))?;
                    Ok(buffer)
                })
                .await
            }
            result => result.map(|()| buffer),
        }
    }

    /// Sends all the pieces and forgets them.
    async fn write(&self, pieces: &mut Vec<Bytes>, flags: SendFlags) -> io::Result<()> {
        let socket = self.half.as_ref();
        let mut next = 0;
        while next < pieces.len() {
            let slices: Vec<_> =
                pieces[next..].iter().take(PIECES_MAX).map(|piece| IoSlice::new(piece)).collect();
            let send = || {
                Ok(sendmsg(
                    socket,
                    &slices,
                    &mut SendAncillaryBuffer::default(),
                    flags | SendFlags::NOSIGNAL,
                )?)
            };
            let mut sent = socket.async_io(Interest::WRITABLE, send).await?;
            while let Some(piece) = pieces.get_mut(next) {
                if sent < piece.len() {
                    piece.advance(sent);
                    break;
                }
                sent -= piece.len();
                next += 1;
            }
        }
        pieces.clear();
        Ok(())
    }

    async fn send_file(&self, file: BorrowedFd<'_>, mut position: u64, mut left: usize) -> io::Result<()> {
        let socket = self.half.as_ref();
        while left > 0 {
            let send = || Ok(sendfile(socket, file, Some(&mut position), left)?);
            match socket.async_io(Interest::WRITABLE, send).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                sent => left -= sent,
            }
        }
        Ok(())
    }
}

/// Whether the range's two ends can be read without waiting for the disk. Kafka's readers go forwards, so that what
/// lies between has been read ahead with them.
fn is_cached(range: &FileRange) -> io::Result<bool> {
    for position in [range.position, range.position + range.length as u64 - 1] {
        match range.file.try_read_at(&mut [0], position) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            result => result?,
        };
    }
    Ok(true)
}

fn read_exact(
    mut buffer: &mut [u8],
    mut position: u64,
    read: impl Fn(&mut [u8], u64) -> io::Result<usize>,
) -> io::Result<()> {
    while !buffer.is_empty() {
        match read(buffer, position)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => {
                buffer = &mut buffer[n..];
                position += n as u64;
            }
        }
    }
    Ok(())
}

/// Moves the empty buffer's start on where copying from `position` would be slow: 1 to 31 bytes past its place in the page.
fn avoid_slow_copy(buffer: &mut BytesMut, position: u64) {
    let past = (buffer.as_ptr() as u64).wrapping_sub(position) % 4096;
    if (1..32).contains(&past) && buffer.capacity() > 32 {
        buffer.resize(32, 0);
        buffer.advance(32);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use env::{Disk, File, Open};
    use tokio::io::AsyncReadExt;

    use super::*;
    use crate::net::tests::link;

    fn pattern(length: usize) -> Vec<u8> {
        (0..length).map(|i| (i * 7 + i / 256) as u8).collect()
    }

    fn file(folder: &Path, bytes: &[u8]) -> Arc<dyn File> {
        let file = host::HostDisk.open(&folder.join("log"), Open::Create).unwrap();
        file.write_at(&[IoSlice::new(bytes)], 0).unwrap();
        file
    }

    /// A file whose bytes are never at hand.
    struct Cold(Arc<dyn File>);

    impl File for Cold {
        fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
            let some = buffer.len().min(1000);
            self.0.read_at(&mut buffer[..some], position)
        }
        fn try_read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
            Err(io::ErrorKind::WouldBlock.into())
        }
        fn write_at(&self, _: &[IoSlice<'_>], _: u64) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }
        fn len(&self) -> io::Result<u64> {
            self.0.len()
        }
        fn set_len(&self, _: u64) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }
        fn sync(&self) -> io::Result<()> {
            Ok(())
        }
        fn fd(&self) -> Option<BorrowedFd<'_>> {
            self.0.fd()
        }
    }

    /// What the peer gets of these chunks.
    async fn sent(chunks: Vec<Chunk>) -> Vec<u8> {
        let (mut link, mut peer) = link(100).await;
        let send = async {
            link.writer.send(chunks).await.unwrap();
            drop(link);
        };
        let mut got = Vec::new();
        let ((), result) = tokio::join!(send, peer.read_to_end(&mut got));
        result.unwrap();
        got
    }

    /// Ranges of a file between bytes in memory, as an answer to Fetch has them.
    async fn file_ranges_come_out_in_order(file: Arc<dyn File>, bytes: &[u8], ranges: &[(usize, usize)]) {
        let mut chunks = vec![Chunk::Bytes(Bytes::from_static(b"head"))];
        let mut expected = b"head".to_vec();
        for &(position, length) in ranges {
            let range = FileRange { file: Arc::clone(&file), position: position as u64, length };
            chunks.push(Chunk::File(range));
            chunks.push(Chunk::Bytes(Bytes::from_static(b"|")));
            expected.extend_from_slice(&bytes[position..position + length]);
            expected.push(b'|');
        }
        assert!(sent(chunks).await == expected);
    }

    const RANGES: [(usize, usize); 8] = [
        (0, 10),
        (5, 0),
        (1, 200_000),
        (300_000, 700_000),
        (4097, 127 << 10),
        (33, 4000),
        (0, 1_000_000),
        (999_999, 1),
    ];

    #[tokio::test]
    async fn long_and_short_runs_of_a_file_come_out_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let bytes = pattern(1_000_000);
        let file = file(folder.path(), &bytes);
        file_ranges_come_out_in_order(file, &bytes, &RANGES).await;
    }

    #[tokio::test]
    async fn runs_that_are_not_in_memory_come_out_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let bytes = pattern(1_000_000);
        let file = Arc::new(Cold(file(folder.path(), &bytes)));
        file_ranges_come_out_in_order(file, &bytes, &RANGES).await;
    }

    #[tokio::test]
    async fn more_pieces_than_the_kernel_takes_at_once_are_sent() {
        let pieces: Vec<_> = (0..5000).map(|i| Bytes::from(pattern(i % 50))).collect();
        let expected = pieces.concat();
        assert_eq!(sent(pieces.into_iter().map(Chunk::Bytes).collect()).await, expected);
        assert_eq!(sent(Vec::new()).await, [0_u8; 0]);
    }

    #[tokio::test]
    async fn a_file_that_ends_too_early_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = file(folder.path(), &pattern(1000));
        let (mut link, _peer) = link(100).await;
        for length in [1001, 200_000] {
            let range = FileRange { file: Arc::clone(&file), position: 0, length };
            let error = link.writer.send(vec![Chunk::File(range)]).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        }
    }
}
