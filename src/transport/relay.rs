//! A request of somebody else that is passed on to a peer: its body as it came, its answer as it comes.
//!
//! Of the answer only the error codes are looked at, for who passes it on wants to know whether the peer took the request.
//!
//! Kafka: `ForwardingManager`.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use model::Instant;
use protocol::RequestHeader;
use tokio::sync::oneshot;

use crate::CallError;
use crate::call::Question;
use crate::peer_versions::PeerVersions;

/// A request as it came.
#[derive(Clone, Debug)]
pub struct RelayedRequest {
    /// Its header; the connection to the peer counts in correlation ids of its own.
    pub header: RequestHeader,
    /// Its body, which must be one of that API and version: a peer that cannot read it closes the connection.
    pub body: Bytes,
}

/// An answer as it came.
#[derive(Clone, Debug)]
pub struct RelayedAnswer {
    /// The whole frame behind its length. It begins with the four bytes of this connection's correlation id.
    pub frame: Bytes,
    /// The error codes in it, 0 left out.
    pub error_codes: BTreeSet<i16>,
}

pub(crate) struct Relay {
    request: RelayedRequest,
    deadline: Instant,
    give: oneshot::Sender<Result<RelayedAnswer, CallError>>,
}

impl Relay {
    pub(crate) fn new(
        request: RelayedRequest,
        deadline: Instant,
        give: oneshot::Sender<Result<RelayedAnswer, CallError>>,
    ) -> Self {
        Self { request, deadline, give }
    }

    fn read(&self, frame: Bytes) -> Result<RelayedAnswer, CallError> {
        let unreadable = |error: &dyn std::error::Error| CallError::Answer(error.to_string().into());
        let RequestHeader { api_key, api_version, .. } = self.request.header;
        let mut body = frame.clone();
        protocol::decode_response_header(&mut body, api_key, api_version)
            .map_err(|error| unreadable(&error))?;
        let error_codes =
            protocol::error_codes(api_key, api_version, &body).map_err(|error| unreadable(&error))?;
        Ok(RelayedAnswer { frame, error_codes })
    }
}

impl Question for Relay {
    fn deadline(&self) -> Instant {
        self.deadline
    }

    fn is_abandoned(&self) -> bool {
        self.give.is_closed()
    }

    fn ask(&mut self, versions: &PeerVersions, correlation_id: i32, _: &str) -> Result<Bytes, CallError> {
        let RelayedRequest { header, body } = &self.request;
        if !versions.serves(header.api_key, header.api_version) {
            return Err(CallError::Unsupported(header.api_key));
        }
        let header = RequestHeader { correlation_id, ..header.clone() };
        protocol::frame_request(&header, body).map_err(|error| CallError::Encode(Arc::new(error)))
    }

    // Who asked may have gone away.
    fn answer(self: Box<Self>, frame: Bytes) -> bool {
        let answer = self.read(frame);
        let is_readable = answer.is_ok();
        let _ = self.give.send(answer);
        is_readable
    }

    fn fail(self: Box<Self>, error: CallError) {
        let _ = self.give.send(Err(error));
    }
}
