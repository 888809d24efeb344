//! `Net` for real: TCP listeners and connections that carry frames.
//!
//! Measured choices: an active connection receives into one linear buffer of 256 KiB and parses all complete frames in
//! place, an idle one has no buffer; all answers at hand leave in one call; a long run of a file leaves by sendfile,
//! a shorter one is read into a buffer, for there sendfile costs more than it saves.
//!
//! Invariants: nothing is reserved because a peer announced it, memory follows the bytes that came; a frame over the
//! limit is refused by its length alone; whoever keeps a slice of a frame over 4 KiB keeps the buffer it came in.
//!
//! Kafka: `SocketServer`, `NetworkReceive`, `FileRecords.writeTo`, KIP-72 (`queued.max.request.bytes`).

mod budget;
mod buffers;
mod listener;
mod net;
mod reader;
mod writer;

pub use net::{TcpConfig, TcpNet};
