//! Connections: accepting them, keeping them within limits, running their requests and sending the answers in order.
//!
//! One task a connection. It reads requests and hands them to a [`Handler`], one after the other; what a handler gives
//! back is queued, and everything at the queue's head that is ready leaves in one send.
//!
//! Invariants: answers leave in the order of their requests; of a connection at most `Limits::REQUESTS_LATER_MAX` requests
//! wait behind their ordered point, and no request starts while `Limits::CONNECTION_QUEUE_BYTES` wait to be sent; a stop
//! lets what has started finish, and starts nothing.
//!
//! Kafka: `SocketServer`, `RequestChannel`, KIP-402 (connection limits), KIP-103 (named listeners).

mod admission;
mod answers;
mod connection;
mod forming;
mod handler;
mod node;
mod server;
mod stranger;
#[cfg(test)]
mod stress;
#[cfg(test)]
mod tests;

pub use handler::{Handler, Outcome, Reason};
pub use server::{Bound, Config, Endpoint, Server};
