//! Requests that are the active controller's, on whichever node they come in.
//!
//! A client's request is passed on as it came; it was decoded before, for a body that cannot be read would cost the connection
//! on which the requests of all clients go. What this node needs of the controller for another request's sake is asked
//! for the same way. Where no controller answers in time, the API's own handler says so, in the API's own words.
//!
//! Kafka: `ForwardingManager`, `KafkaApis.forwardToController`; KIP-590.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use cluster::{ClusterError, RelayedRequest};
use env::Chunk;
use model::Instant;
use protocol::{Request, RequestHeader, StrBytes};

use crate::{CloseReason, Node, Outcome, Session, Side};

/// As long as clients wait for an answer, unless they are told otherwise (`request.timeout.ms`).
const CLIENTS_WAIT: Duration = Duration::from_secs(30);
/// Less, so that the node that passed a request on hears that it took too long before its client gives it up.
const FORWARDERS_WAIT: Duration = Duration::from_secs(25);
/// For what is asked of the controller so that another request can be answered: its client can ask again.
pub(crate) const ASIDE_WITHIN: Duration = Duration::from_secs(3);

/// How long a request that came to this side may wait for the controller.
pub(crate) fn patience(side: Side) -> Duration {
    match side {
        Side::Broker => CLIENTS_WAIT,
        Side::Controller => FORWARDERS_WAIT,
    }
}

/// The active controller's answer to a client's request; none where the request's own handler is to answer it.
pub(crate) async fn forward(
    node: &Node,
    session: &mut Session,
    header: &RequestHeader,
    body: Bytes,
) -> Option<Outcome> {
    if session.side == Side::Controller {
        return None;
    }
    let request = RelayedRequest { header: header.clone(), body };
    match node.forwarding.forward(&request, session.until).await {
        Ok(answer) => answer.map(|answer| Outcome::Now(addressed(&answer.frame, header.correlation_id))),
        Err(ClusterError::Unsupported) => {
            let RequestHeader { api_key, api_version, .. } = *header;
            Some(Outcome::Close(CloseReason::Unsupported { api_key, api_version }))
        }
        Err(_) => {
            session.until = node.env.clock.now();
            None
        }
    }
}

/// An answer's frame with the client's correlation id in place of the one that this node gave the request.
fn addressed(frame: &Bytes, correlation_id: i32) -> Vec<Chunk> {
    let length = u32::try_from(frame.len()).expect("no frame is longer than its length can say");
    let start = [length.to_be_bytes(), correlation_id.to_be_bytes()].concat();
    vec![Chunk::Bytes(start.into()), Chunk::Bytes(frame.slice(4..))]
}

/// The active controller's answer to a request of this node; none where its own controller is the active one, and to be
/// asked without a detour.
pub(crate) async fn ask<R: Request>(
    node: &Node,
    until: Instant,
    request: &R,
) -> Result<Option<R::Response>, ClusterError> {
    if node.forwarding.is_here() {
        return Ok(None);
    }
    let relayed = encode(node, request).ok_or(ClusterError::Unsupported)?;
    let Some(answer) = node.forwarding.forward(&relayed, until).await? else { return Ok(None) };
    decode::<R>(relayed.header.api_version, answer.frame).map(Some).ok_or(ClusterError::Unsupported)
}

fn encode<R: Request>(node: &Node, request: &R) -> Option<RelayedRequest> {
    let api_version = protocol::tables::api(R::KEY)?.stable_versions().max.min(R::VERSIONS.max);
    let client_id = Some(StrBytes::from_string(node.cluster.node_id().to_string()));
    let header = RequestHeader { api_key: R::KEY, api_version, correlation_id: 0, client_id };
    let mut body = BytesMut::new();
    request.encode(&mut body, api_version).ok()?;
    Some(RelayedRequest { header, body: body.freeze() })
}

fn decode<R: Request>(version: i16, mut frame: Bytes) -> Option<R::Response> {
    protocol::decode_response_header(&mut frame, R::KEY, version).ok()?;
    protocol::decode_response::<R>(version, frame).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_gets_the_correlation_id_of_its_client() {
        let chunks = addressed(&Bytes::from_static(&[0, 0, 0, 9, 1, 2]), 7);
        let bytes: Vec<u8> = chunks
            .into_iter()
            .flat_map(|chunk| match chunk {
                Chunk::Bytes(bytes) => bytes,
                Chunk::File(_) => panic!("no file is read"),
            })
            .collect();
        assert_eq!(bytes, [0, 0, 0, 6, 0, 0, 0, 7, 1, 2]);
    }
}
