//! Who answers requests.

use std::fmt;
use std::net::SocketAddr;

use bytes::Bytes;
use env::{BoxFuture, Chunk};

/// Answers the requests of all connections.
pub trait Handler: Send + Sync + 'static {
    /// What is known of one connection.
    type Session: Send + 'static;

    /// A connection begins, by the listener of that name.
    fn session(&self, listener: &str, peer: SocketAddr) -> Self::Session;

    /// A connection has ended, and not because this node stops.
    fn closed(&self, session: Self::Session) -> impl Future<Output = ()> + Send {
        drop(session);
        std::future::ready(())
    }

    /// Handles one request up to its ordered point: the connection's next request starts after that.
    fn handle(&self, session: &mut Self::Session, frame: Bytes) -> impl Future<Output = Outcome> + Send;
}

/// What the connection does next.
pub enum Outcome {
    /// Send this.
    Now(Vec<Chunk>),
    /// Send this when it comes, in the order of the requests; the next request may start. An error closes the connection
    /// when all that came before is sent.
    Later(BoxFuture<'static, Result<Vec<Chunk>, Reason>>),
    /// Send nothing.
    Nothing,
    /// Send what came before, and close the connection.
    Close(Reason),
}

/// Why a connection is closed, for people.
pub type Reason = Box<dyn fmt::Display + Send>;
