//! The node's APIs as the handler of all connections.

use std::net::SocketAddr;

use api::{Node, Session};
use bytes::Bytes;

use crate::{Handler, Outcome};

impl Handler for Node {
    type Session = Session;

    fn session(&self, listener: &str, peer: SocketAddr) -> Session {
        Session::new(listener, peer)
    }

    async fn handle(&self, session: &mut Session, frame: Bytes) -> Outcome {
        match api::handle(self, session, frame).await {
            api::Outcome::Now(chunks) => Outcome::Now(chunks),
            api::Outcome::Later(chunks) => Outcome::Later(chunks),
            api::Outcome::Nothing => Outcome::Nothing,
            api::Outcome::Close(reason) => Outcome::Close(Box::new(reason)),
        }
    }
}
