//! How empty Ottla nodes get to know each other: two tagged fields of DescribeCluster on a controller listener.
//!
//! It is that API because it already says which cluster a node is of and who its controllers are, because every
//! controller answers it whether anybody leads or not, and because Kafka skips tags that it does not know. They are sent
//! only to who asks with such a tag, so that no other client ever gets them. Both hold a KRaftVoters record: the node
//! itself, and the voters that it knows. A node that is of no cluster yet has an empty cluster id.
//!
//! Kafka: none; `kafka-storage format` does by hand what comes of it.

use bytes::Bytes;
use model::{ClusterId, NodeId};
use protocol::messages::describe_cluster_response::DescribeClusterBroker;
use protocol::messages::{DescribeClusterRequest, DescribeClusterResponse};
use protocol::records::ControlRecord;
use protocol::{FromWire, ToWire};
use quorum::{Cluster, Introduction, Voter, VoterSet};

use super::text;
use crate::convert;

/// KIP-919: not the brokers are asked for.
const CONTROLLERS: i8 = 2;
/// The node that answers, as a set of one; in a request, empty.
const SELF_TAG: i32 = 20_340;
/// The voters that it knows.
const VOTERS_TAG: i32 = 20_341;
/// A control record's key: its version, and the type of KRaftVoters.
const VOTERS_KEY: [u8; 4] = [0, 0, 0, 6];

/// What a node is asked for that is to introduce itself.
pub(crate) fn ask() -> DescribeClusterRequest {
    let mut request = DescribeClusterRequest::default().with_endpoint_type(CONTROLLERS);
    request.unknown_tagged_fields.insert(SELF_TAG, Bytes::new());
    request
}

/// The controllers of a cluster, and to another Ottla node who this one is.
pub(crate) fn answer(
    request: &DescribeClusterRequest,
    introduction: &Introduction,
    leader: Option<NodeId>,
) -> DescribeClusterResponse {
    let cluster = introduction.cluster.as_ref();
    let controllers = cluster.into_iter().flat_map(|cluster| cluster.voters.iter()).filter_map(controller);
    let mut response = DescribeClusterResponse::default()
        .with_endpoint_type(CONTROLLERS)
        .with_cluster_id(cluster.map_or_else(|| text(""), |cluster| cluster.id.to_wire()))
        .with_controller_id(leader.unwrap_or(NodeId::NONE).to_wire())
        .with_brokers(controllers.collect());
    if request.unknown_tagged_fields.contains_key(&SELF_TAG) {
        let me = [introduction.voter.clone()].into_iter().collect();
        response.unknown_tagged_fields.insert(SELF_TAG, voters_field(&me));
        if let Some(cluster) = cluster {
            response.unknown_tagged_fields.insert(VOTERS_TAG, voters_field(&cluster.voters));
        }
    }
    response
}

fn controller(voter: &Voter) -> Option<DescribeClusterBroker> {
    let endpoint = voter.endpoints.first()?;
    Some(
        DescribeClusterBroker::default()
            .with_broker_id(voter.key.id.to_wire())
            .with_host(text(&endpoint.host))
            .with_port(i32::from(endpoint.port)),
    )
}

/// What a node says of itself; none where it is no Ottla node.
pub(crate) fn hear(response: &DescribeClusterResponse) -> Option<Introduction> {
    let field = |tag| response.unknown_tagged_fields.get(&tag).and_then(|bytes| voters_of(bytes));
    let me = field(SELF_TAG)?;
    let mut selves = me.iter();
    let (Some(voter), None) = (selves.next(), selves.next()) else { return None };
    let id = ClusterId::from_wire(&response.cluster_id);
    let cluster = (!id.as_str().is_empty()).then(|| Some(Cluster { id, voters: field(VOTERS_TAG)? }));
    match cluster {
        Some(None) => None,
        cluster => Some(Introduction { voter: voter.clone(), cluster: cluster.flatten() }),
    }
}

fn voters_field(voters: &VoterSet) -> Bytes {
    let (_, value) = convert::voters_record(voters).encode().expect("made of a version that exists");
    value
}

fn voters_of(bytes: &[u8]) -> Option<VoterSet> {
    match ControlRecord::decode(&VOTERS_KEY, bytes) {
        Ok(ControlRecord::KRaftVoters(record)) => Some(convert::voters(&record)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use model::Uuid;
    use protocol::decode_response;
    use quorum::{Endpoint, ReplicaKey};

    use super::*;

    fn voter(id: i32) -> Voter {
        let endpoint = Endpoint { name: "CONTROLLER".into(), host: format!("node-{id}"), port: 9093 };
        let key = ReplicaKey::new(NodeId(id), Uuid([id as u8; 16]));
        Voter { endpoints: vec![endpoint], ..Voter::new(key) }
    }

    fn carried(request: &DescribeClusterRequest, introduction: &Introduction) -> DescribeClusterResponse {
        let response = answer(request, introduction, Some(NodeId(2)));
        let mut frame = protocol::encode_response(1, 60, 2, &response).expect("encodes").slice(4..);
        protocol::decode_response_header(&mut frame, 60, 2).expect("a header");
        decode_response::<DescribeClusterRequest>(2, frame).expect("decodes")
    }

    #[test]
    fn a_node_introduces_itself_with_and_without_a_cluster() {
        let voters: VoterSet = [voter(1), voter(2)].into_iter().collect();
        let cluster = Cluster { id: ClusterId::from("c"), voters };
        for cluster in [None, Some(cluster)] {
            let introduction = Introduction { voter: voter(1), cluster };
            assert_eq!(hear(&carried(&ask(), &introduction)), Some(introduction));
        }
    }

    #[test]
    fn others_are_told_the_controllers_and_nothing_that_kafka_does_not_know() {
        let voters: VoterSet = [voter(1), voter(2)].into_iter().collect();
        let cluster = Some(Cluster { id: ClusterId::from("c"), voters });
        let introduction = Introduction { voter: voter(1), cluster };
        let response = carried(&DescribeClusterRequest::default(), &introduction);
        assert!(response.unknown_tagged_fields.is_empty());
        assert_eq!(response.brokers.iter().map(|broker| broker.port).collect::<Vec<_>>(), [9093, 9093]);
        assert_eq!((response.controller_id.0, hear(&response)), (2, None));
    }
}
