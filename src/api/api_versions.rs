//! ApiVersions: which APIs, versions and features this node serves.
//!
//! A version that is too new is answered in the body of version 0, with error 35 and the range of ApiVersions alone, so
//! that the client can ask again. Features whose minimum is 0 are left out below version 4 (KAFKA-17011).
//!
//! Kafka: `ApiVersionsResponse`, `DefaultApiVersionManager`; KIP-35, KIP-511, KIP-584, KIP-1242.

use std::ops::RangeInclusive;

use env::Chunk;
use model::ErrorCode;
use protocol::messages::api_versions_response::{ApiVersion, FinalizedFeatureKey, SupportedFeatureKey};
use protocol::messages::{ApiVersionsRequest, ApiVersionsResponse};
use protocol::{RequestHeader, StrBytes};

use crate::{Node, Outcome, Reply, Row, Runs, Session, Side, TABLE};

pub(crate) const KEY: i16 = 18;

pub(crate) async fn handle(
    node: &Node,
    session: &mut Session,
    request: ApiVersionsRequest,
    version: i16,
) -> Reply<ApiVersionsResponse> {
    if version >= 3 {
        let (name, software_version) = (&request.client_software_name, &request.client_software_version);
        if !is_software_text(name) || !is_software_text(software_version) {
            return Reply::Now(refused(ErrorCode::InvalidRequest));
        }
        session.software = Some((name.to_string(), software_version.to_string()));
    }
    if let Err(error) = check_target(node, &request) {
        return Reply::Now(refused(error));
    }
    Reply::Now(lower(node, session.side, version))
}

/// A client that was configured for another cluster or node is told to bootstrap anew (KIP-1242).
fn check_target(node: &Node, request: &ApiVersionsRequest) -> Result<(), ErrorCode> {
    let other_cluster =
        request.cluster_id.as_ref().is_some_and(|id| id.as_str() != node.cluster.cluster_id().as_str());
    let other_node = request.node_id >= 0 && request.node_id != node.cluster.node_id().0;
    if other_cluster || other_node { Err(ErrorCode::RebootstrapRequired) } else { Ok(()) }
}

/// `[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?`, as Kafka asks of a client's name and version.
fn is_software_text(text: &str) -> bool {
    let ends_well = |c: Option<u8>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    ends_well(text.bytes().next())
        && ends_well(text.bytes().next_back())
        && text.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-' || c == b'.')
}

fn lower(node: &Node, side: Side, version: i16) -> ApiVersionsResponse {
    let image = node.image();
    let supported = controller::SUPPORTED_FEATURES
        .iter()
        .filter(|feature| version >= 4 || feature.min > 0)
        .map(|feature| {
            SupportedFeatureKey::default()
                .with_name(StrBytes::from_static_str(feature.name))
                .with_min_version(feature.min)
                .with_max_version(feature.max)
        })
        .collect();
    let kraft_version = ("kraft.version", node.cluster.kraft_version());
    let finalized = image
        .features
        .iter()
        .chain(std::iter::once(kraft_version))
        .filter(|(_, level)| *level > 0)
        .map(|(name, level)| {
            FinalizedFeatureKey::default()
                .with_name(StrBytes::from_string(name.to_owned()))
                .with_max_version_level(level)
                .with_min_version_level(level)
        })
        .collect();
    ApiVersionsResponse::default()
        .with_api_keys(api_keys(node, side))
        .with_supported_features(supported)
        .with_finalized_features_epoch(image.end().0 - 1)
        .with_finalized_features(finalized)
}

/// What is served on that side. Of the controller's APIs a broker serves what the active controller does, too.
fn api_keys(node: &Node, side: Side) -> Vec<ApiVersion> {
    let is_broker = side == Side::Broker;
    let controller = is_broker.then(|| node.forwarding.controller_versions()).flatten();
    let rows = TABLE.iter().filter(|row| row.is_served_on(side));
    let served = rows.filter_map(|row| match (&controller, row.runs) {
        (Some(controller), Runs::Controller) => common(row, controller.versions(row.key)?),
        _ => Some(api_version(row)),
    });
    served.collect()
}

fn common(row: &Row, controller: RangeInclusive<i16>) -> Option<ApiVersion> {
    let api = api_version(row);
    let (min, max) = (api.min_version.max(*controller.start()), api.max_version.min(*controller.end()));
    (min <= max).then(|| api.with_min_version(min).with_max_version(max))
}

fn refused(error: ErrorCode) -> ApiVersionsResponse {
    ApiVersionsResponse::default().with_error_code(error.code())
}

pub(crate) fn api_version(row: &Row) -> ApiVersion {
    ApiVersion::default()
        .with_api_key(row.key)
        .with_min_version(row.advertised_min())
        .with_max_version(row.max)
}

/// The answer to a version that is not served.
pub(crate) fn unsupported(header: &RequestHeader) -> Outcome {
    let own = TABLE.iter().filter(|row| row.key == KEY).map(api_version).collect();
    let response = refused(ErrorCode::UnsupportedVersion).with_api_keys(own);
    match protocol::encode_response(header.correlation_id, KEY, 0, &response) {
        Ok(frame) => Outcome::Now(vec![Chunk::Bytes(frame)]),
        Err(_) => Outcome::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broker_serves_no_more_of_the_controllers_apis_than_the_controller() {
        let row = TABLE.iter().find(|row| row.name == "CreateTopics").expect("served");
        let range = |controller| {
            let common = common(row, controller);
            common.map(|api| (api.min_version, api.max_version))
        };
        assert_eq!(range(0..=5), Some((2, 5)));
        assert_eq!(range(5..=9), Some((5, 7)));
        assert_eq!(range(0..=1), None);
    }

    #[test]
    fn software_text_is_what_kafka_takes() {
        for good in ["a", "librdkafka", "2.0.2", "confluent-kafka-python"] {
            assert!(is_software_text(good), "{good}");
        }
        for bad in ["", "-a", "a.", "a b", "a_b"] {
            assert!(!is_software_text(bad), "{bad}");
        }
    }
}
