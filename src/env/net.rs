//! Listeners and connections, in frames instead of bytes.
//!
//! A frame on the wire is an i32 length, big endian, and that many bytes. Readers give frames without their length;
//! writers take whole frames *with* it, in as many chunks as suit the sender.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;

use crate::{BoxFuture, FileRange};

/// Opens listeners and connections.
pub trait Net: Send + Sync {
    /// Listens at `address` (`host:port`; port 0 takes any). Frames over `frame_bytes_max` end their connection.
    fn listen<'a>(
        &'a self,
        address: &'a str,
        frame_bytes_max: usize,
    ) -> BoxFuture<'a, io::Result<Box<dyn Listener>>>;

    /// Connects to `address` (`host:port`).
    fn connect<'a>(&'a self, address: &'a str, frame_bytes_max: usize) -> BoxFuture<'a, io::Result<Link>>;
}

/// Accepts connections.
pub trait Listener: Send + Sync {
    /// Where it listens.
    fn local(&self) -> SocketAddr;

    /// The next connection. At the limit of open files it waits instead of spinning.
    fn accept(&mut self) -> BoxFuture<'_, io::Result<Link>>;
}

/// One connection, in its two halves. Dropping both closes it.
pub struct Link {
    /// The other end.
    pub peer: SocketAddr,
    /// This end.
    pub local: SocketAddr,
    /// What comes.
    pub reader: Box<dyn FrameReader>,
    /// What goes.
    pub writer: Box<dyn FrameWriter>,
}

/// The receiving half.
pub trait FrameReader: Send {
    /// Waits for frames, and adds all that are complete to `frames`: at least one, or none where a part of a large one has
    /// come. Safe to drop and call again.
    fn recv<'a>(&'a mut self, frames: &'a mut Vec<Bytes>) -> BoxFuture<'a, Result<(), RecvError>>;
}

/// The sending half.
pub trait FrameWriter: Send {
    /// Sends the chunks in order, waiting while the peer is slow.
    fn send(&mut self, chunks: Vec<Chunk>) -> BoxFuture<'_, io::Result<()>>;
}

/// A piece of what is sent.
#[derive(Clone)]
pub enum Chunk {
    /// Bytes in memory.
    Bytes(Bytes),
    /// Bytes of a file, which the real network may send without reading them.
    File(FileRange),
}

/// Why no frame comes any more.
#[derive(Debug)]
pub enum RecvError {
    /// The peer closed, between two frames.
    Closed,
    /// The frame's length is negative or over the limit; these were the first bytes.
    Length {
        /// What the length field said.
        length: i32,
        /// The first bytes as they came, the length included: HTTP and TLS show themselves here.
        head: [u8; 8],
    },
    /// A frame was begun and is not waited for any more, for the sake of others; this is why.
    GivenUp(&'static str),
    /// The connection broke.
    Io(io::Error),
}
