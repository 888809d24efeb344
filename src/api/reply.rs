//! What a handler gives back.

use env::{BoxFuture, Chunk};
use protocol::{FrameError, RequestHeader};

/// A handler's answer, at its ordered point.
pub enum Reply<R> {
    /// It is here.
    Now(R),
    /// It comes when what was appended is committed; the connection's next request may start meanwhile.
    Later(BoxFuture<'static, R>),
    /// None is sent: Produce with acks=0.
    Nothing,
    /// The connection is closed instead: all that Kafka can do about a failed Produce with acks=0.
    Close,
}

impl<R: Send + 'static> Reply<R> {
    /// The same with another answer.
    pub fn map<S>(self, change: impl FnOnce(R) -> S + Send + 'static) -> Reply<S> {
        match self {
            Self::Now(answer) => Reply::Now(change(answer)),
            Self::Later(answer) => Reply::Later(Box::pin(async move { change(answer.await) })),
            Self::Nothing => Reply::Nothing,
            Self::Close => Reply::Close,
        }
    }
}

/// A response as the connection sends it: length, header and body in chunks.
pub trait Answer: Send + 'static {
    /// Encodes it for the request of `header`.
    ///
    /// # Errors
    /// A value that this version cannot carry; a fault of ours, since `lower` ran before.
    fn encode(self, header: &RequestHeader) -> Result<Vec<Chunk>, FrameError>;
}

impl<R: protocol::Encodable + Send + 'static> Answer for R {
    fn encode(self, header: &RequestHeader) -> Result<Vec<Chunk>, FrameError> {
        let frame =
            protocol::encode_response(header.correlation_id, header.api_key, header.api_version, &self)?;
        Ok(vec![Chunk::Bytes(frame)])
    }
}
