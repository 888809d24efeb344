//! The node's APIs as the handler of all connections.

use std::net::SocketAddr;

use api::{Node, Session};
use bytes::Bytes;

use crate::{Handler, Outcome, Reason};

impl Handler for Node {
    type Session = Session;

    fn session(&self, listener: &str, peer: SocketAddr) -> Session {
        Self::session(self, listener, peer)
    }

    async fn closed(&self, session: Session) {
        self.close_session(session).await;
    }

    async fn handle(&self, session: &mut Session, frame: Bytes) -> Outcome {
        outcome(api::handle(self, session, frame).await)
    }
}

pub(crate) fn outcome(of_api: api::Outcome) -> Outcome {
    match of_api {
        api::Outcome::Now(chunks) => Outcome::Now(chunks),
        api::Outcome::Later(answer) => {
            Outcome::Later(Box::pin(
                async move { answer.await.map_err(|reason| -> Reason { Box::new(reason) }) },
            ))
        }
        api::Outcome::Nothing => Outcome::Nothing,
        api::Outcome::Close(reason) => Outcome::Close(Box::new(reason)),
    }
}
