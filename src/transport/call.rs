//! One question to a peer: the version that both sides speak, its frame, and the way back for the answer.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use model::Instant;
use protocol::{FrameError, Request, RequestHeader, StrBytes};
use tokio::sync::oneshot;

use crate::peer_versions::PeerVersions;

/// Why a call has no answer. It is never sent again by itself: only the caller knows whether that is safe.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    /// The peer was not reached.
    #[error("no connection: {0}")]
    Connect(Arc<io::Error>),
    /// What was reached is no Kafka node.
    #[error("the peer does not answer ApiVersions: {0}")]
    Handshake(Arc<str>),
    /// The last connection failed or broke, and it is too early for another one.
    #[error("the last connection failed and is not tried again yet")]
    BackingOff,
    /// The peer and this node have no version of the API in common.
    #[error("the peer serves no version of the API with key {0} that this node knows")]
    Unsupported(i16),
    /// The request has a value that the version cannot carry.
    #[error("the request cannot be sent: {0}")]
    Encode(Arc<FrameError>),
    /// No answer until the deadline.
    #[error("no answer in time")]
    TimedOut,
    /// The connection broke before the answer came.
    #[error("the connection closed before the answer came")]
    Closed,
    /// The answer is not one of its API and version.
    #[error("the answer cannot be read: {0}")]
    Answer(Arc<str>),
}

impl CallError {
    /// Whether the peer may have carried the request out.
    pub fn may_have_arrived(&self) -> bool {
        match self {
            Self::Connect(_)
            | Self::Handshake(_)
            | Self::BackingOff
            | Self::Unsupported(_)
            | Self::Encode(_) => false,
            Self::TimedOut | Self::Closed | Self::Answer(_) => true,
        }
    }
}

/// An answer, and the version of the API that it came in.
#[derive(Debug)]
pub struct Answer<R: Request> {
    /// What the peer said.
    pub response: R::Response,
    /// The version that both sides speak.
    pub version: i16,
}

/// A question, whatever its type is.
pub(crate) trait Question: Send {
    fn deadline(&self) -> Instant;

    /// Nobody waits any more.
    fn is_abandoned(&self) -> bool;

    /// The request's frame; asked for once.
    fn ask(
        &mut self,
        versions: &PeerVersions,
        correlation_id: i32,
        client_id: &str,
    ) -> Result<Bytes, CallError>;

    /// The response's frame came. False where it is not one, and the connection is of no more use.
    fn answer(self: Box<Self>, frame: Bytes) -> bool;

    fn fail(self: Box<Self>, error: CallError);
}

pub(crate) struct Call<R: Request, F> {
    request: Option<F>,
    version: i16,
    deadline: Instant,
    give: oneshot::Sender<Result<Answer<R>, CallError>>,
}

impl<R: Request, F: FnOnce(i16) -> R> Call<R, F> {
    pub(crate) fn new(
        request: F,
        deadline: Instant,
        give: oneshot::Sender<Result<Answer<R>, CallError>>,
    ) -> Self {
        Self { request: Some(request), version: 0, deadline, give }
    }

    fn read(version: i16, mut frame: Bytes) -> Result<Answer<R>, CallError> {
        let unreadable = |error: &dyn std::error::Error| CallError::Answer(error.to_string().into());
        protocol::decode_response_header(&mut frame, R::KEY, version).map_err(|error| unreadable(&error))?;
        let response = protocol::decode_response::<R>(version, frame).map_err(|error| unreadable(&error))?;
        Ok(Answer { response, version })
    }
}

impl<R, F> Question for Call<R, F>
where
    R: Request + Send + 'static,
    R::Response: Send,
    F: FnOnce(i16) -> R + Send,
{
    fn deadline(&self) -> Instant {
        self.deadline
    }

    fn is_abandoned(&self) -> bool {
        self.give.is_closed()
    }

    fn ask(
        &mut self,
        versions: &PeerVersions,
        correlation_id: i32,
        client_id: &str,
    ) -> Result<Bytes, CallError> {
        self.version =
            versions.pick(R::KEY, R::VERSIONS.min..=R::VERSIONS.max).ok_or(CallError::Unsupported(R::KEY))?;
        let header = RequestHeader {
            api_key: R::KEY,
            api_version: self.version,
            correlation_id,
            client_id: Some(StrBytes::from(client_id.to_owned())),
        };
        let request = self.request.take().ok_or(CallError::Closed)?(self.version);
        protocol::encode_request(&header, &request).map_err(|error| CallError::Encode(Arc::new(error)))
    }

    // Who asked may have gone away.
    fn answer(self: Box<Self>, frame: Bytes) -> bool {
        let answer = Self::read(self.version, frame);
        let is_readable = answer.is_ok();
        let _ = self.give.send(answer);
        is_readable
    }

    fn fail(self: Box<Self>, error: CallError) {
        let _ = self.give.send(Err(error));
    }
}
