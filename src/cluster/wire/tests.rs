//! Every question and every answer, there and back at each version, through the bytes.

use std::time::Duration;

use bytes::{Buf, Bytes};
use model::{ClusterId, ErrorCode, LeaderEpoch, Limits, NodeId, Offset, Uuid};
use protocol::RequestHeader;
use protocol::batch::BatchBuilder;
use protocol::messages::{
    BeginQuorumEpochRequest, EndQuorumEpochRequest, FetchRequest, FetchSnapshotRequest, VoteRequest,
};
use quorum::{
    Batch, CurrentLeader, Endpoint, EpochEnd, EpochResponse, ReplicaKey, Response, SnapshotId, Voter,
};

use super::{Address, Answer, Asked, Place, QuorumApi};
use crate::{convert, snapshot};

fn key(id: i32) -> ReplicaKey {
    ReplicaKey::new(NodeId(id), Uuid([id as u8; 16]))
}

fn place(id: i32) -> Place {
    let endpoint = Endpoint { name: "CONTROLLER".into(), host: format!("node-{id}"), port: 9093 };
    Place { me: key(id), cluster_id: ClusterId::from("a cluster"), endpoints: vec![endpoint] }
}

fn address(id: i32) -> Address {
    Address { node: NodeId(id), host: format!("node-{id}"), port: 9093 }
}

fn versions<R: QuorumApi>() -> std::ops::RangeInclusive<i16> {
    R::VERSIONS.min..=R::VERSIONS.max
}

/// A question of node 1 as node 2 reads it.
fn carried<R: QuorumApi>(question: &R::Question, version: i16) -> Asked {
    read::<R>(&R::ask(question, &place(1), version), version).expect("about the metadata log")
}

fn read<R: QuorumApi>(request: &R, version: i16) -> Result<Asked, ErrorCode> {
    let header = RequestHeader { api_key: R::KEY, api_version: version, correlation_id: 1, client_id: None };
    let mut frame = protocol::encode_request(&header, request).expect("encodes");
    frame.advance(4);
    protocol::decode_request_header(&mut frame).expect("a header");
    protocol::decode::<R>(version, frame).expect("decodes").read(&place(2), version)
}

/// An answer as the node that asked hears it.
fn heard<R: QuorumApi>(answer: &Answer, version: i16) -> Option<Answer> {
    hear::<R>(&R::answer(answer.clone(), version).expect("of this API"), version)
}

fn hear<R: QuorumApi>(response: &R::Response, version: i16) -> Option<Answer> {
    let mut frame = protocol::encode_response(1, R::KEY, version, response).expect("encodes");
    frame.advance(4);
    protocol::decode_response_header(&mut frame, R::KEY, version).expect("a header");
    R::hear(protocol::decode_response::<R>(version, frame).expect("decodes"))
}

fn current() -> CurrentLeader {
    CurrentLeader { epoch: LeaderEpoch(7), leader: Some(NodeId(3)) }
}

fn answer(response: Response) -> Answer {
    Answer { response, bytes: Bytes::new(), leader: Some(address(3)) }
}

#[test]
fn a_vote_is_asked_and_given() {
    let question = quorum::VoteRequest {
        epoch: LeaderEpoch(7),
        candidate: key(1),
        voter: key(2),
        log_end: EpochEnd { epoch: LeaderEpoch(5), end: Offset(42) },
        pre_vote: true,
    };
    for version in versions::<VoteRequest>().filter(|version| *version >= 1) {
        let question = quorum::VoteRequest { pre_vote: version >= 2, ..question };
        let request = quorum::Request::Vote(question);
        assert_eq!(carried::<VoteRequest>(&question, version), Asked { request, bytes_max: 0, leader: None });
    }
    for (granted, error) in [(true, ErrorCode::None), (false, ErrorCode::InvalidVoterKey)] {
        let vote = answer(Response::Vote(quorum::VoteResponse { error, current: current(), granted }));
        assert_eq!(heard::<VoteRequest>(&vote, 2), Some(vote.clone()));
        assert_eq!(heard::<VoteRequest>(&vote, 0), Some(Answer { leader: None, ..vote }));
    }
}

#[test]
fn version_0_of_a_vote_knows_no_directories_and_means_whoever_it_is_sent_to() {
    let question = quorum::VoteRequest {
        epoch: LeaderEpoch(7),
        candidate: key(1),
        voter: ReplicaKey::new(NodeId(2), Uuid::default()),
        log_end: EpochEnd { epoch: LeaderEpoch(5), end: Offset(42) },
        pre_vote: false,
    };
    let candidate = ReplicaKey::new(NodeId(1), Uuid::default());
    let request = quorum::Request::Vote(quorum::VoteRequest { candidate, voter: key(2), ..question });
    assert_eq!(carried::<VoteRequest>(&question, 0).request, request);
}

#[test]
fn an_epoch_begins_and_ends() {
    let begin = quorum::BeginQuorumEpochRequest { epoch: LeaderEpoch(7), leader: NodeId(1), voter: key(2) };
    let end = quorum::EndQuorumEpochRequest {
        epoch: LeaderEpoch(7),
        leader: NodeId(1),
        preferred: vec![key(2), key(3)],
    };
    for version in versions::<BeginQuorumEpochRequest>() {
        let leader = (version >= 1).then(|| address(1));
        let request = quorum::Request::BeginQuorumEpoch(begin);
        let asked = Asked { request, bytes_max: 0, leader: leader.clone() };
        assert_eq!(carried::<BeginQuorumEpochRequest>(&begin, version), asked);

        let mut told = end.clone();
        if version == 0 {
            told.preferred.iter_mut().for_each(|key| key.directory = Uuid::default());
        }
        let request = quorum::Request::EndQuorumEpoch(told);
        assert_eq!(carried::<EndQuorumEpochRequest>(&end, version), Asked { request, bytes_max: 0, leader });

        let epoch = EpochResponse { error: ErrorCode::FencedLeaderEpoch, current: current() };
        let begun = answer(Response::BeginQuorumEpoch(epoch));
        let ended = answer(Response::EndQuorumEpoch(epoch));
        let leader = begun.leader.clone().filter(|_| version >= 1);
        let begun_there = Answer { leader: leader.clone(), ..begun.clone() };
        let ended_there = Answer { leader, ..ended.clone() };
        assert_eq!(heard::<BeginQuorumEpochRequest>(&begun, version), Some(begun_there));
        assert_eq!(heard::<EndQuorumEpochRequest>(&ended, version), Some(ended_there));
    }
}

fn fetch() -> quorum::FetchRequest {
    quorum::FetchRequest {
        replica: key(1),
        epoch: LeaderEpoch(7),
        fetch_offset: Offset(42),
        last_fetched_epoch: LeaderEpoch(5),
        high_watermark: Offset(40),
        wait: Duration::from_millis(500),
    }
}

#[test]
fn a_fetch_is_asked_at_every_version_that_has_epochs() {
    for version in versions::<FetchRequest>().filter(|version| *version >= 12) {
        let mut request = fetch();
        if version < 18 {
            request.high_watermark = Offset(i64::MAX);
        }
        if version < 17 {
            request.replica.directory = Uuid::default();
        }
        let asked = Asked {
            request: quorum::Request::Fetch(request),
            bytes_max: Limits::METADATA_FETCH_BYTES,
            leader: None,
        };
        assert_eq!(carried::<FetchRequest>(&fetch(), version), asked, "version {version}");
    }
}

/// Two batches, the first with voters.
fn records() -> (Bytes, Vec<Batch>) {
    let voters = [Voter::new(key(1))].into_iter().collect();
    let mut control = BatchBuilder::new().base_offset(Offset(42)).leader_epoch(LeaderEpoch(6)).control();
    snapshot::append_control(&mut control, &convert::kraft_version(1));
    snapshot::append_control(&mut control, &convert::voters_record(&voters));
    let mut data = BatchBuilder::new().base_offset(Offset(44)).leader_epoch(LeaderEpoch(7));
    data.append(None, Some(b"a record"), &[]);
    let batch = |from, end, epoch, voters| Batch {
        base_offset: Offset(from),
        end: Offset(end),
        epoch: LeaderEpoch(epoch),
        voters,
    };
    let batches = vec![batch(42, 44, 6, vec![(Offset(43), voters)]), batch(44, 45, 7, Vec::new())];
    ([control.build(), data.build()].concat().into(), batches)
}

fn fetched(batches: Vec<Batch>) -> quorum::FetchResponse {
    quorum::FetchResponse {
        error: ErrorCode::None,
        current: current(),
        high_watermark: Some(Offset(44)),
        log_start: Offset(3),
        diverging: None,
        snapshot: None,
        batches,
    }
}

/// The answer as the core gives it, for the driver to fill: without batches.
fn unread(answer: &Answer) -> Answer {
    let Response::Fetch(fetch) = answer.response.clone() else { panic!("{answer:?}") };
    Answer {
        response: Response::Fetch(quorum::FetchResponse { batches: Vec::new(), ..fetch }),
        ..answer.clone()
    }
}

#[test]
fn fetched_records_come_with_their_epochs_and_voters() {
    let (bytes, batches) = records();
    let told = Answer { bytes: bytes.clone(), ..answer(Response::Fetch(fetched(batches))) };
    for version in versions::<FetchRequest>().filter(|version| *version >= 12) {
        let there = Answer { leader: told.leader.clone().filter(|_| version >= 17), ..told.clone() };
        assert_eq!(heard::<FetchRequest>(&unread(&told), version), Some(there), "version {version}");
    }
    let cut = bytes.slice(..bytes.len() - 1);
    let whole = Answer { bytes: cut, ..unread(&told) };
    let Some(Answer { response: Response::Fetch(fetch), .. }) = heard::<FetchRequest>(&whole, 18) else {
        panic!("a leader may cut its last batch")
    };
    assert_eq!(fetch.batches.len(), 1);
    let mut damaged = bytes.to_vec();
    *damaged.last_mut().expect("bytes") ^= 1;
    assert_eq!(heard::<FetchRequest>(&Answer { bytes: damaged.into(), ..unread(&told) }, 18), None);
}

#[test]
fn a_fetch_is_told_where_logs_diverge_and_which_snapshot_to_take() {
    let diverging = Some(EpochEnd { epoch: LeaderEpoch(5), end: Offset(41) });
    let snapshot = Some(SnapshotId { end: Offset(30), epoch: LeaderEpoch(4) });
    let none = quorum::FetchResponse { high_watermark: None, ..fetched(Vec::new()) };
    for response in [
        quorum::FetchResponse { diverging, ..none.clone() },
        quorum::FetchResponse { snapshot, ..none.clone() },
        quorum::FetchResponse { error: ErrorCode::FencedLeaderEpoch, log_start: Offset(-1), ..none },
    ] {
        let told = answer(Response::Fetch(response));
        assert_eq!(heard::<FetchRequest>(&told, 18), Some(told));
    }
}

#[test]
fn a_snapshot_is_fetched_in_pieces() {
    let id = SnapshotId { end: Offset(30), epoch: LeaderEpoch(4) };
    let question = quorum::FetchSnapshotRequest {
        replica: key(1),
        epoch: LeaderEpoch(7),
        id,
        position: 5,
        bytes_max: 1000,
    };
    for version in versions::<FetchSnapshotRequest>() {
        let mut there = question;
        if version < 1 {
            there.replica.directory = Uuid::default();
        }
        let request = quorum::Request::FetchSnapshot(there);
        let asked = Asked { request, bytes_max: 1000, leader: None };
        assert_eq!(carried::<FetchSnapshotRequest>(&question, version), asked);
    }
    let piece = quorum::FetchSnapshotResponse {
        error: ErrorCode::None,
        current: current(),
        id,
        size: 9,
        position: 5,
        length: 4,
    };
    let told = Answer { bytes: Bytes::from_static(b"rest"), ..answer(Response::FetchSnapshot(piece)) };
    assert_eq!(heard::<FetchSnapshotRequest>(&told, 1), Some(told));
}

#[test]
fn what_is_of_another_cluster_or_about_another_topic_is_refused() {
    let mut request = FetchRequest::ask(&fetch(), &place(1), 18);
    request.cluster_id = Some(super::text("another cluster"));
    assert_eq!(read(&request, 18).map(|_| ()), Err(ErrorCode::InconsistentClusterId));
    request.cluster_id = None;
    assert!(read(&request, 18).is_ok(), "it need not be said");
    request.topics[0].topic_id = protocol::ToWire::to_wire(&Uuid([9; 16]));
    assert_eq!(read(&request, 18).map(|_| ()), Err(ErrorCode::InvalidRequest));
    request.topics.clear();
    assert_eq!(read(&request, 18).map(|_| ()), Err(ErrorCode::InvalidRequest));
}

#[test]
fn an_answer_that_is_refused_as_a_whole_is_nobodys() {
    fn refused<R: QuorumApi>() -> Option<Answer> {
        hear::<R>(&R::refuse(ErrorCode::InconsistentClusterId), R::VERSIONS.max)
    }
    assert_eq!(refused::<VoteRequest>(), None);
    assert_eq!(refused::<BeginQuorumEpochRequest>(), None);
    assert_eq!(refused::<EndQuorumEpochRequest>(), None);
    assert_eq!(refused::<FetchRequest>(), None);
    assert_eq!(refused::<FetchSnapshotRequest>(), None);
}
