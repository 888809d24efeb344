//! The quorum's voters and control records, and those of the wire.

use model::NodeId;
use protocol::records::{
    ControlRecord, KRaftVersionRecord, LeaderChangeMessage, VotersRecord, leader_change_message,
    voters_record,
};
use quorum::{Endpoint, ReplicaKey, Voter, VoterSet};

/// A control record of the core as the log has it.
pub(crate) fn control_record(record: &quorum::ControlRecord) -> ControlRecord {
    match record {
        quorum::ControlRecord::LeaderChange { leader, voters, granting } => {
            ControlRecord::LeaderChange(LeaderChangeMessage {
                // Kafka 4.4 writes, and its tools read, no other; version 1 would add the voters' log folders.
                version: 0,
                leader_id: leader.0,
                voters: voters.iter().map(leader_change_voter).collect(),
                granting_voters: granting.iter().map(leader_change_voter).collect(),
            })
        }
        quorum::ControlRecord::KRaftVersion(level) => kraft_version(*level),
        quorum::ControlRecord::Voters(voters) => voters_record(voters),
    }
}

fn leader_change_voter(key: &ReplicaKey) -> leader_change_message::Voter {
    leader_change_message::Voter { voter_id: key.id.0, ..leader_change_message::Voter::default() }
}

/// The record of this `kraft.version`.
pub(crate) fn kraft_version(level: i16) -> ControlRecord {
    ControlRecord::KRaftVersion(KRaftVersionRecord { version: 0, k_raft_version: level })
}

/// The record of these voters.
pub(crate) fn voters_record(voters: &VoterSet) -> ControlRecord {
    let voters = voters.iter().map(voter_to_record).collect();
    ControlRecord::KRaftVoters(VotersRecord { version: 0, voters })
}

fn voter_to_record(voter: &Voter) -> voters_record::Voter {
    voters_record::Voter {
        voter_id: voter.key.id.0,
        voter_directory_id: voter.key.directory,
        endpoints: voter.endpoints.iter().map(endpoint_to_record).collect(),
        k_raft_version_feature: voters_record::KRaftVersionFeature {
            min_supported_version: voter.kraft_version_min,
            max_supported_version: voter.kraft_version_max,
        },
    }
}

fn endpoint_to_record(endpoint: &Endpoint) -> voters_record::Endpoint {
    voters_record::Endpoint { name: endpoint.name.clone(), host: endpoint.host.clone(), port: endpoint.port }
}

/// The voters of a record.
pub(crate) fn voters(record: &VotersRecord) -> VoterSet {
    record
        .voters
        .iter()
        .map(|voter| Voter {
            key: ReplicaKey::new(NodeId(voter.voter_id), voter.voter_directory_id),
            endpoints: voter.endpoints.iter().map(endpoint).collect(),
            kraft_version_min: voter.k_raft_version_feature.min_supported_version,
            kraft_version_max: voter.k_raft_version_feature.max_supported_version,
        })
        .collect()
}

fn endpoint(record: &voters_record::Endpoint) -> Endpoint {
    Endpoint { name: record.name.clone(), host: record.host.clone(), port: record.port }
}
