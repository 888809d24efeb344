//! `Net` for real: TCP listeners and connections that carry frames; and, over any `Net`, asking a peer (`Peer`).
//!
//! Measured choices: an active connection receives into one linear buffer of 256 KiB and parses all complete frames in
//! place, an idle one has no buffer; all answers at hand leave in one call; a long run of a file leaves by sendfile,
//! a shorter one is read into a buffer, for there sendfile costs more than it saves.
//!
//! Invariants: nothing is reserved because a peer announced it, memory follows the bytes that came; all that clients'
//! frames hold is bounded by the buffers, the budget of large frames, and a little for each connection; a frame over the
//! limit is refused by its length alone; whoever keeps a slice of a frame over 4 KiB keeps the buffer it came in.
//!
//! Kafka: `SocketServer`, `NetworkReceive`, `FileRecords.writeTo`, KIP-72 (`queued.max.request.bytes`).

mod backoff;
mod budget;
mod buffers;
mod call;
mod ledger;
mod listener;
#[cfg(test)]
mod manual_clock;
mod net;
mod peer;
mod peer_connection;
mod peer_versions;
mod reader;
mod relay;
#[cfg(test)]
mod tests;
mod writer;

pub use call::{Answer, CallError};
pub use net::{TcpConfig, TcpNet};
pub use peer::{Peer, PeerConfig, PeerState, RECONNECT_BACKOFF, RECONNECT_BACKOFF_MAX};
pub use peer_versions::PeerVersions;
pub use relay::{RelayedAnswer, RelayedRequest};
