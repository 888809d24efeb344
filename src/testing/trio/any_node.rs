//! What is the active controller's, asked for at each node.

use std::collections::BTreeSet;

use model::ErrorCode;
use protocol::messages::alter_partition_reassignments_request::{ReassignablePartition, ReassignableTopic};
use protocol::messages::create_topics_request::{CreatableReplicaAssignment, CreatableTopic};
use protocol::messages::elect_leaders_request::TopicPartitions;
use protocol::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use protocol::messages::metadata_request::MetadataRequestTopic;
use protocol::messages::metadata_response::MetadataResponseTopic;
use protocol::messages::{
    AlterPartitionReassignmentsRequest, BrokerId, CreateTopicsRequest, DescribeQuorumRequest,
    ElectLeadersRequest, FindCoordinatorRequest, IncrementalAlterConfigsRequest, InitProducerIdRequest,
    ListPartitionReassignmentsRequest, MetadataRequest, TopicName, UnregisterBrokerRequest,
    describe_quorum_request,
};

use super::*;

impl Trio {
    /// A cluster of three, each of which knows the others.
    async fn formed(&self) {
        self.start_all();
        self.until_fenced(&ALL, &[]).await;
    }

    fn broker(&self, id: i32) -> Client {
        self.client(id, 9092)
    }

    /// Somebody whose controller is not the active one.
    async fn follower(&self) -> i32 {
        without(self.leader(1).await)[0]
    }
}

fn topic(name: &str) -> TopicName {
    TopicName(name.to_owned().into())
}

async fn create(client: &mut Client, name: &str, partitions: i32, replicas: i16) -> i16 {
    let wanted = CreatableTopic::default()
        .with_name(topic(name))
        .with_num_partitions(partitions)
        .with_replication_factor(replicas);
    let request = CreateTopicsRequest::default().with_topics(vec![wanted]);
    client.call(7, &request).await.expect("answered").topics[0].error_code
}

/// A topic of one partition, on this node alone.
async fn create_at(client: &mut Client, name: &str, node: i32) -> i16 {
    let assigned = CreatableReplicaAssignment::default().with_broker_ids(vec![BrokerId(node)]);
    let wanted = CreatableTopic::default()
        .with_name(topic(name))
        .with_num_partitions(-1)
        .with_replication_factor(-1)
        .with_assignments(vec![assigned]);
    let request = CreateTopicsRequest::default().with_topics(vec![wanted]);
    client.call(7, &request).await.expect("answered").topics[0].error_code
}

/// Gives the first partition other replicas, or calls that off.
async fn reassign(client: &mut Client, name: &str, replicas: Option<&[i32]>) -> ErrorCode {
    let replicas = replicas.map(|nodes| nodes.iter().copied().map(BrokerId).collect());
    let partition = ReassignablePartition::default().with_replicas(replicas);
    let moved = ReassignableTopic::default().with_name(topic(name)).with_partitions(vec![partition]);
    let request = AlterPartitionReassignmentsRequest::default().with_topics(vec![moved]);
    let answer = client.call(0, &request).await.expect("answered");
    ErrorCode::from_code(answer.responses[0].partitions[0].error_code).expect("a code")
}

/// The replicas that come with the reassignment that is under way.
async fn adding(client: &mut Client) -> Vec<BrokerId> {
    let request = ListPartitionReassignmentsRequest::default().with_topics(None);
    let under_way = client.call(0, &request).await.expect("answered");
    under_way.topics.first().map_or_else(Vec::new, |topic| topic.partitions[0].adding_replicas.clone())
}

/// A topic as a node sees it; missing ones are made if `makes`.
async fn look_up(client: &mut Client, name: &str, makes: bool) -> MetadataResponseTopic {
    let wanted = MetadataRequestTopic::default().with_name(Some(topic(name)));
    let request =
        MetadataRequest::default().with_topics(Some(vec![wanted])).with_allow_auto_topic_creation(makes);
    client.call(12, &request).await.expect("answered").topics[0].clone()
}

#[test]
fn what_is_created_through_a_node_is_there_at_that_node_at_once() {
    for seed in 0..2 {
        let trio = Trio::new(seed);
        trio.world.run(async {
            trio.formed().await;
            for id in ALL {
                let (mut client, name) = (trio.broker(id), format!("made-by-{id}"));
                assert_eq!(create(&mut client, &name, 3, 3).await, 0, "seed {seed}, node {id}");
                let found = look_up(&mut client, &name, false).await;
                assert_eq!((found.error_code, found.partitions.len()), (0, 3), "seed {seed}, node {id}");
                let exists = ErrorCode::TopicAlreadyExists.code();
                assert_eq!(create(&mut client, &name, 3, 3).await, exists);
            }
        });
    }
}

#[test]
fn what_is_missing_is_made_by_whatever_node_is_asked() {
    let trio = Trio::new(2);
    trio.world.run(async {
        trio.formed().await;
        for id in ALL {
            let mut client = trio.broker(id);
            let made = look_up(&mut client, &format!("missed-by-{id}"), true).await;
            assert_eq!((made.error_code, made.partitions.len()), (0, 1), "node {id}");
        }
        let mut client = trio.broker(trio.follower().await);
        let request = FindCoordinatorRequest::default().with_coordinator_keys(vec!["g".into()]);
        let found = client.call(4, &request).await.expect("answered");
        assert_eq!(found.coordinators[0].error_code, 0);
    });
}

#[test]
fn no_two_nodes_give_out_the_same_producer_id() {
    let trio = Trio::new(3);
    trio.world.run(async {
        trio.formed().await;
        let mut given = BTreeSet::new();
        for id in ALL {
            let mut client = trio.broker(id);
            for _ in 0..3 {
                let request = InitProducerIdRequest::default()
                    .with_transactional_id(None)
                    .with_producer_id((-1).into())
                    .with_producer_epoch(-1);
                let answer = client.call(4, &request).await.expect("answered");
                assert_eq!(answer.error_code, 0, "node {id}");
                assert!(given.insert(answer.producer_id.0), "{given:?}");
            }
        }
    });
}

#[test]
fn a_brokers_values_are_altered_through_it_and_not_through_others() {
    const BROKER: i8 = 4;
    let trio = Trio::new(4);
    trio.world.run(async {
        trio.formed().await;
        for (id, of) in [(1, 1), (2, 2), (3, 3), (1, 2), (2, 3), (3, 1)] {
            let value = AlterableConfig::default()
                .with_name("log.retention.ms".into())
                .with_value(Some("5000".into()));
            let resource = AlterConfigsResource::default()
                .with_resource_type(BROKER)
                .with_resource_name(of.to_string().into())
                .with_configs(vec![value]);
            let request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
            let answer = trio.broker(id).call(1, &request).await.expect("answered");
            let expected = if id == of { ErrorCode::None } else { ErrorCode::InvalidRequest };
            assert_eq!(answer.responses[0].error_code, expected.code(), "of {of} through {id}");
        }
    });
}

#[test]
fn reassignments_and_elections_are_taken_by_any_node() {
    let trio = Trio::new(5);
    trio.world.run(async {
        trio.formed().await;
        let [told, gone] = without(trio.leader(1).await)[..] else { panic!("three") };
        let mut client = trio.broker(told);
        assert_eq!(create_at(&mut client, "t", told).await, 0);
        trio.stop(gone).await;
        // It ends when the one that is gone has caught up.
        assert_eq!(reassign(&mut client, "t", Some(&[told, gone])).await, ErrorCode::None);
        assert_eq!(adding(&mut client).await, [BrokerId(gone)]);
        assert_eq!(reassign(&mut client, "t", None).await, ErrorCode::None);
        assert!(adding(&mut client).await.is_empty());
        assert_eq!(reassign(&mut client, "t", None).await, ErrorCode::NoReassignmentInProgress);

        let named = TopicPartitions::default().with_topic(topic("t")).with_partitions(vec![0]);
        let request = ElectLeadersRequest::default().with_topic_partitions(Some(vec![named]));
        let elected = client.call(2, &request).await.expect("answered");
        let code = elected.replica_election_results[0].partition_result[0].error_code;
        assert_eq!(code, ErrorCode::ElectionNotNeeded.code());
    });
}

#[test]
fn every_node_describes_the_quorum_as_its_leader_does() {
    let trio = Trio::new(6);
    trio.world.run(async {
        trio.formed().await;
        let leader = trio.leader(1).await;
        for id in ALL {
            let topic = describe_quorum_request::TopicData::default()
                .with_topic_name(topic("__cluster_metadata"))
                .with_partitions(vec![describe_quorum_request::PartitionData::default()]);
            let request = DescribeQuorumRequest::default().with_topics(vec![topic]);
            let answer = trio.broker(id).call(2, &request).await.expect("answered");
            let partition = &answer.topics[0].partitions[0];
            assert_eq!((partition.leader_id.0, partition.current_voters.len()), (leader, 3), "node {id}");
        }
    });
}

#[test]
fn a_broker_that_is_gone_is_forgotten_through_any_node() {
    let trio = Trio::new(9);
    trio.world.run(async {
        trio.formed().await;
        let leader = trio.leader(1).await;
        let [told, gone] = without(leader)[..] else { panic!("three") };
        trio.stop(gone).await;
        let request = UnregisterBrokerRequest::default().with_broker_id(BrokerId(gone));
        let answer = trio.broker(told).call(0, &request).await.expect("answered");
        assert_eq!(answer.error_code, 0);
        let known = trio.brokers(told).await.expect("it runs");
        assert!(!known.iter().any(|(id, _)| *id == gone), "{known:?}");
    });
}

#[test]
fn a_request_outlives_the_leader_that_it_was_for() {
    for seed in 10..13 {
        let trio = Trio::new(seed);
        trio.world.run(async {
            trio.formed().await;
            let leader = trio.leader(1).await;
            let mut client = trio.broker(without(leader)[0]);
            trio.machine(leader).kill();
            assert_eq!(create(&mut client, "t", 1, 1).await, 0, "seed {seed}");
            assert_eq!(look_up(&mut client, "t", false).await.error_code, 0, "seed {seed}");
        });
    }
}
