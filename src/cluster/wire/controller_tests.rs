//! Every command of the active controller, there and back at each version, through the bytes.

use bytes::Buf;
use controller::{
    AlterPartition, AssignReplicasToDirs, ConnectionId, Heartbeat, HeartbeatReply, NewIsr, Registration,
};
use metadata::{Endpoint, FeatureRange, LeaderRecovery, SecurityProtocol};
use model::{
    BrokerEpoch, ClusterId, ErrorCode, LeaderEpoch, NodeId, Offset, PartitionEpoch, TopicIdPartition, Uuid,
};
use protocol::messages::BrokerHeartbeatRequest;
use protocol::{Request, RequestHeader};

use super::ControllerApi;
use super::alter_partition::{AskedIsrs, IsrAnswer, IsrState};
use super::assign_replicas_to_dirs::PlaceAnswer;

const CONNECTION: ConnectionId = ConnectionId(7);

fn versions<C: ControllerApi>() -> std::ops::RangeInclusive<i16> {
    fn of<R: Request>() -> std::ops::RangeInclusive<i16> {
        R::VERSIONS.min..=R::VERSIONS.max
    }
    of::<C::Request>()
}

/// A command as the controller reads it.
fn carried<C: ControllerApi>(command: C, version: i16) -> C {
    read::<C>(&command.ask(version), version).expect("well-formed")
}

fn read<C: ControllerApi>(request: &C::Request, version: i16) -> Result<C, ErrorCode> {
    let key = C::Request::KEY;
    let header = RequestHeader { api_key: key, api_version: version, correlation_id: 1, client_id: None };
    let mut frame = protocol::encode_request(&header, request).expect("encodes");
    frame.advance(4);
    protocol::decode_request_header(&mut frame).expect("a header");
    C::read(&protocol::decode::<C::Request>(version, frame).expect("decodes"), CONNECTION)
}

/// An answer as the broker hears it.
fn heard<C: ControllerApi>(answer: Result<C::Reply, ErrorCode>, version: i16) -> Result<C::Reply, ErrorCode> {
    let key = C::Request::KEY;
    let mut frame = protocol::encode_response(1, key, version, &C::answer(answer)).expect("encodes");
    frame.advance(4);
    protocol::decode_response_header(&mut frame, key, version).expect("a header");
    C::hear(protocol::decode_response::<C::Request>(version, frame).expect("decodes"))
}

fn of(topic: u8, partition: i32) -> TopicIdPartition {
    TopicIdPartition { topic_id: Uuid([topic; 16]), partition }
}

fn registration() -> Registration {
    let endpoint = Endpoint {
        listener: "PLAINTEXT".into(),
        host: "a".into(),
        port: 9092,
        protocol: SecurityProtocol::Plaintext,
    };
    Registration {
        cluster_id: ClusterId::from("a cluster"),
        id: NodeId(3),
        incarnation: Uuid([1; 16]),
        endpoints: vec![endpoint],
        features: vec![FeatureRange { name: "metadata.version".into(), min: 7, max: 30 }],
        rack: Some("r".into()),
        directories: vec![Uuid([2; 16]), Uuid([3; 16])],
        previous_epoch: Some(BrokerEpoch(9)),
        durable: true,
        connection: CONNECTION,
    }
}

#[test]
fn a_registration_is_carried_as_far_as_its_version_has_a_place_for_it() {
    for version in versions::<Registration>() {
        let whole = registration();
        let expected = Registration {
            directories: if version >= 2 { whole.directories.clone() } else { Vec::new() },
            previous_epoch: whole.previous_epoch.filter(|_| version >= 3),
            ..whole.clone()
        };
        assert_eq!(carried(whole, version), expected, "version {version}");
        assert_eq!(heard::<Registration>(Ok(BrokerEpoch(5)), version), Ok(BrokerEpoch(5)));
        let refused = Err(ErrorCode::DuplicateBrokerRegistration);
        assert_eq!(heard::<Registration>(refused, version), refused);
    }
    let of_kafka = Registration { durable: false, previous_epoch: None, rack: None, ..registration() };
    assert_eq!(carried(of_kafka.clone(), 4), of_kafka);
}

fn heartbeat(lost: Vec<TopicIdPartition>) -> Heartbeat {
    Heartbeat {
        id: NodeId(3),
        epoch: BrokerEpoch(9),
        metadata_offset: Offset(100),
        want_fence: false,
        want_shut_down: true,
        offline_directories: Vec::new(),
        lost,
        connection: CONNECTION,
    }
}

#[test]
fn a_heartbeat_names_failed_folders_and_lost_replicas() {
    let reply = HeartbeatReply { is_caught_up: true, is_fenced: false, should_shut_down: true };
    for version in versions::<Heartbeat>() {
        let offline = if version >= 1 { vec![Uuid([4; 16])] } else { Vec::new() };
        for lost in [Vec::new(), vec![of(1, 0), of(2, 70_000)]] {
            let whole = Heartbeat { offline_directories: offline.clone(), ..heartbeat(lost) };
            assert_eq!(carried(whole.clone(), version), whole, "version {version}");
        }
        assert_eq!(heard::<Heartbeat>(Ok(reply), version), Ok(reply));
        let stale = Err(ErrorCode::StaleBrokerEpoch);
        assert_eq!(heard::<Heartbeat>(stale, version), stale);
    }
}

#[test]
fn a_heartbeat_with_half_a_lost_replica_is_refused() {
    let cut = BrokerHeartbeatRequest::default().with_lost_replicas(Some(vec![0; 39].into()));
    assert_eq!(read::<Heartbeat>(&cut, 2), Err(ErrorCode::InvalidRequest));
}

#[test]
fn a_new_isr_is_carried_with_the_epochs_of_its_members_from_version_3_on() {
    let new_isr = |at: TopicIdPartition| NewIsr {
        topic: at.topic_id,
        partition: at.partition,
        leader_epoch: LeaderEpoch(4),
        partition_epoch: PartitionEpoch(5),
        isr: vec![(NodeId(3), None), (NodeId(4), Some(BrokerEpoch(8)))],
        recovery: LeaderRecovery::Recovered,
    };
    for version in versions::<AskedIsrs>() {
        let partitions = vec![new_isr(of(1, 0)), new_isr(of(1, 1)), new_isr(of(2, 0))];
        let command = AlterPartition { broker: NodeId(3), broker_epoch: BrokerEpoch(9), partitions };
        let mut expected = command.clone();
        if version < 3 {
            for partition in &mut expected.partitions {
                partition.isr = vec![(NodeId(3), None), (NodeId(4), None)];
            }
        }
        let asked = carried(AskedIsrs { command, connection: ConnectionId::LOCAL }, version);
        assert_eq!((asked.command, asked.connection), (expected, CONNECTION), "version {version}");
    }
}

#[test]
fn each_partition_has_its_own_answer_to_a_new_isr() {
    let state = IsrState {
        leader: NodeId(3),
        leader_epoch: LeaderEpoch(4),
        isr: vec![NodeId(3), NodeId(4)],
        recovery: LeaderRecovery::Recovered,
        partition_epoch: PartitionEpoch(6),
    };
    let answers = vec![
        IsrAnswer { of: of(1, 0), result: Ok(state) },
        IsrAnswer { of: of(1, 1), result: Err(ErrorCode::FencedLeaderEpoch) },
        IsrAnswer { of: of(2, 0), result: Err(ErrorCode::UnknownTopicId) },
    ];
    for version in versions::<AskedIsrs>() {
        assert_eq!(heard::<AskedIsrs>(Ok(answers.clone()), version), Ok(answers.clone()));
        let refused = Err(ErrorCode::NotController);
        assert_eq!(heard::<AskedIsrs>(refused.clone(), version), refused);
    }
}

#[test]
fn the_folders_of_replicas_are_carried_and_answered() {
    let (first, second) = (Uuid([5; 16]), Uuid([6; 16]));
    let replicas = vec![(first, of(1, 0)), (first, of(1, 1)), (first, of(2, 0)), (second, of(1, 2))];
    let command = AssignReplicasToDirs { broker: NodeId(3), broker_epoch: BrokerEpoch(9), replicas };
    assert_eq!(carried(command.clone(), 0), command);
    let answer = |(directory, of), error| PlaceAnswer { directory, of, error };
    let answers = vec![
        answer((first, of(1, 0)), ErrorCode::None),
        answer((first, of(2, 0)), ErrorCode::UnknownTopicId),
        answer((second, of(1, 2)), ErrorCode::NotLeaderOrFollower),
    ];
    assert_eq!(heard::<AssignReplicasToDirs>(Ok(answers.clone()), 0), Ok(answers));
}
