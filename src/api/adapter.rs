//! Between frames and handlers: header, version, decode, handle, encode. The only place that knows all APIs alike.

use bytes::Bytes;
use env::{BoxFuture, Chunk};
use protocol::{FrameError, Request, RequestHeader};
use tracing::{debug, error};

use crate::{Answer, Node, Reply, Session, api_versions, forwarding, table};

/// What the connection does next.
pub enum Outcome {
    /// Send this.
    Now(Vec<Chunk>),
    /// Send this when it comes, in the order of the requests, or close; the next request may start.
    Later(BoxFuture<'static, Result<Vec<Chunk>, CloseReason>>),
    /// Send nothing.
    Nothing,
    /// Close the connection.
    Close(CloseReason),
}

/// Why a connection is closed on a request.
#[derive(Debug, thiserror::Error)]
pub enum CloseReason {
    /// The header is not one.
    #[error("request header: {0}")]
    Header(FrameError),
    /// No such API, or not at this version. Kafka closes too.
    #[error("API key {api_key} version {api_version} is not served here")]
    Unsupported {
        /// As the client sent it.
        api_key: i16,
        /// As the client sent it.
        api_version: i16,
    },
    /// The body is not one of its API and version.
    #[error("request body of API key {api_key} version {api_version}: {cause}")]
    Body {
        /// As the client sent it.
        api_key: i16,
        /// As the client sent it.
        api_version: i16,
        /// What is wrong with it.
        cause: protocol::DecodeError,
    },
    /// A Produce with acks=0 failed; closing is the only answer that it has.
    #[error("a request without an answer failed")]
    Unanswered,
    /// Ottla could not encode its own answer.
    #[error("answer of API key {api_key} version {api_version}: {cause}")]
    Encode {
        /// The request's.
        api_key: i16,
        /// The request's.
        api_version: i16,
        /// What cannot be said at this version.
        cause: FrameError,
    },
}

/// Handles one request up to its ordered point.
pub async fn handle(node: &Node, session: &mut Session, mut frame: Bytes) -> Outcome {
    let mut header = match protocol::decode_request_header(&mut frame) {
        Ok(header) => header,
        Err(cause) => return Outcome::Close(CloseReason::Header(cause)),
    };
    // Taken out: a slice of the frame, whose memory is wanted while the request waits.
    if let Some(client_id) = header.client_id.take().filter(|id| **id != *session.client_id) {
        client_id.as_str().clone_into(&mut session.client_id);
    }
    session.until = node.env.clock.now().plus(forwarding::patience(session.side));
    debug!(
        api_key = header.api_key,
        api_version = header.api_version,
        correlation_id = header.correlation_id,
        client_id = session.client_id,
        "request"
    );
    match table::row(header.api_key, session.side) {
        Some(row) if row.serves(header.api_version) => (row.call)(node, session, header, frame).await,
        Some(row) if row.key == api_versions::KEY => api_versions::unsupported(&header),
        _ => Outcome::Close(CloseReason::Unsupported {
            api_key: header.api_key,
            api_version: header.api_version,
        }),
    }
}

/// Decodes a body after its preflight.
pub(crate) fn decode<R: Request>(header: &RequestHeader, body: Bytes) -> Result<R, Outcome> {
    protocol::decode(header.api_version, body).map_err(|cause| {
        Outcome::Close(CloseReason::Body { api_key: header.api_key, api_version: header.api_version, cause })
    })
}

/// Encodes a reply, now or when it comes.
pub(crate) fn outcome<R: Answer>(header: RequestHeader, reply: Reply<R>) -> Outcome {
    match reply {
        Reply::Now(answer) => match encode(&header, answer) {
            Ok(chunks) => Outcome::Now(chunks),
            Err(reason) => Outcome::Close(reason),
        },
        Reply::Later(answer) => Outcome::Later(Box::pin(async move { encode(&header, answer.await) })),
        Reply::Nothing => Outcome::Nothing,
        Reply::Close => Outcome::Close(CloseReason::Unanswered),
    }
}

fn encode<R: Answer>(header: &RequestHeader, answer: R) -> Result<Vec<Chunk>, CloseReason> {
    answer.encode(header).map_err(|cause| {
        let reason = CloseReason::Encode { api_key: header.api_key, api_version: header.api_version, cause };
        error!(%reason, "an answer could not be encoded");
        reason
    })
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// An answer that no version can say.
    struct Unsayable;

    impl Answer for Unsayable {
        fn encode(self, _: &RequestHeader) -> Result<Vec<Chunk>, FrameError> {
            Err(FrameError::UnknownApi(0))
        }
    }

    #[test]
    fn an_answer_that_cannot_be_encoded_closes_the_connection_now_and_later() {
        let header = || RequestHeader { api_key: 0, api_version: 3, correlation_id: 1, client_id: None };
        let now = outcome(header(), Reply::Now(Unsayable));
        assert!(matches!(now, Outcome::Close(CloseReason::Encode { .. })));
        let later = outcome(header(), Reply::Later(Box::pin(std::future::ready(Unsayable))));
        let Outcome::Later(mut answer) = later else { panic!("it was to come later") };
        let answer = answer.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(answer, Poll::Ready(Err(CloseReason::Encode { .. }))));
    }
}
