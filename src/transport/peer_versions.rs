//! What a peer serves: asked once, when the connection is made.
//!
//! Kafka: `ApiVersionsRequest`, `NodeApiVersions`; KIP-35, KIP-511.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use bytes::Bytes;
use env::{Chunk, Link, RecvError};
use model::ErrorCode;
use protocol::messages::{ApiVersionsRequest, ApiVersionsResponse};
use protocol::{Message, Request, RequestHeader, StrBytes, decode_response};

use crate::CallError;

/// The API versions and features of a peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerVersions {
    apis: BTreeMap<i16, RangeInclusive<i16>>,
    features: BTreeMap<String, RangeInclusive<i16>>,
}

impl PeerVersions {
    /// The newest version of the API that both sides know; `known` is what this node's struct can carry.
    pub(crate) fn pick(&self, api_key: i16, known: RangeInclusive<i16>) -> Option<i16> {
        let (theirs, stable) = (self.apis.get(&api_key)?, protocol::tables::api(api_key)?.stable_versions());
        let max = (*theirs.end()).min(*known.end()).min(stable.max);
        let min = (*theirs.start()).max(*known.start());
        (min <= max).then_some(max)
    }

    /// The versions of an API that the peer serves, if it serves any.
    pub fn versions(&self, api_key: i16) -> Option<RangeInclusive<i16>> {
        self.apis.get(&api_key).cloned()
    }

    /// Whether the peer serves this version of the API.
    pub(crate) fn serves(&self, api_key: i16, version: i16) -> bool {
        self.apis.get(&api_key).is_some_and(|theirs| theirs.contains(&version))
    }

    /// The levels of a feature that the peer can do; none where it does not know the feature.
    pub fn feature(&self, name: &str) -> Option<RangeInclusive<i16>> {
        self.features.get(name).cloned()
    }

    fn of(response: &ApiVersionsResponse) -> Self {
        let apis = response.api_keys.iter().map(|api| (api.api_key, api.min_version..=api.max_version));
        let features = response
            .supported_features
            .iter()
            .map(|feature| (feature.name.to_string(), feature.min_version..=feature.max_version));
        Self { apis: apis.collect(), features: features.collect() }
    }
}

/// Asks the peer what it serves: first in the newest version, then, where that is too new, in the one that it names.
pub(crate) async fn handshake(link: &mut Link, client_id: &str) -> Result<PeerVersions, CallError> {
    let newest = ApiVersionsRequest::VERSIONS.max;
    let mut response = ask(link, client_id, newest).await?;
    if response.error_code == ErrorCode::UnsupportedVersion as i16 {
        let theirs = PeerVersions::of(&response);
        let known = ApiVersionsRequest::VERSIONS.min..=newest - 1;
        response = ask(link, client_id, theirs.pick(ApiVersionsRequest::KEY, known).unwrap_or(0)).await?;
    }
    match response.error_code {
        0 => Ok(PeerVersions::of(&response)),
        code => Err(refused(&format!("error code {code}"))),
    }
}

async fn ask(link: &mut Link, client_id: &str, version: i16) -> Result<ApiVersionsResponse, CallError> {
    let header = RequestHeader {
        api_key: ApiVersionsRequest::KEY,
        api_version: version,
        // Both tries have the same; no answer can be taken for the other's, for one follows the other.
        correlation_id: 0,
        client_id: Some(StrBytes::from(client_id.to_owned())),
    };
    let request = ApiVersionsRequest::default()
        .with_client_software_name(StrBytes::from_static_str("ottla"))
        .with_client_software_version(StrBytes::from_static_str(env!("CARGO_PKG_VERSION")));
    let frame = protocol::encode_request(&header, &request).map_err(|error| refused(&error))?;
    link.writer.send(vec![Chunk::Bytes(frame)]).await.map_err(|error| refused(&error))?;
    let mut frames = Vec::new();
    while frames.is_empty() {
        link.reader.recv(&mut frames).await.map_err(|error| refused(&cause(&error)))?;
    }
    match <[Bytes; 1]>::try_from(frames) {
        Ok([frame]) => read(frame, version),
        Err(frames) => Err(refused(&format!("{} answers to one request", frames.len()))),
    }
}

/// An answer that says that the version is too new has the form of version 0.
fn read(mut frame: Bytes, version: i16) -> Result<ApiVersionsResponse, CallError> {
    let correlation_id = protocol::decode_response_header(&mut frame, ApiVersionsRequest::KEY, version)
        .map_err(|error| refused(&error))?;
    if correlation_id != 0 {
        return Err(refused(&"another correlation id"));
    }
    let is_too_new = frame.starts_with(&(ErrorCode::UnsupportedVersion as i16).to_be_bytes());
    decode_response::<ApiVersionsRequest>(if is_too_new { 0 } else { version }, frame)
        .map_err(|error| refused(&error))
}

fn cause(error: &RecvError) -> String {
    match error {
        RecvError::Closed => "the connection was closed".to_owned(),
        RecvError::Length { length, .. } => format!("a frame of {length} bytes"),
        RecvError::GivenUp(reason) => (*reason).to_owned(),
        RecvError::Io(error) => error.to_string(),
    }
}

fn refused(cause: &dyn std::fmt::Display) -> CallError {
    CallError::Handshake(cause.to_string().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_common_version_is_picked() {
        let versions = PeerVersions { apis: [(52, 0..=1), (1, 4..=20)].into(), ..PeerVersions::default() };
        assert_eq!(versions.pick(52, 0..=2), Some(1));
        assert_eq!(versions.pick(52, 2..=2), None);
        assert_eq!(versions.pick(1, 4..=18), Some(18));
        assert_eq!(versions.pick(53, 0..=1), None, "the peer does not serve it");
    }
}
