//! The node without a cluster as the handler of all connections.

use std::net::SocketAddr;

use api::Forming;
use bytes::Bytes;

use crate::node::outcome;
use crate::{Handler, Outcome};

impl Handler for Forming {
    type Session = ();

    fn session(&self, _listener: &str, _peer: SocketAddr) {}

    async fn handle(&self, _session: &mut (), frame: Bytes) -> Outcome {
        outcome(self.answer(frame))
    }
}
