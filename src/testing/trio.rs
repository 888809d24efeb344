//! Three whole nodes, each broker and controller: whether they find each other, and notice who is gone and back.

mod any_node;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use env::Env;
use model::Instant;
use ottla::assemble;
use ottla::config::{Config, Sources};
use protocol::StrBytes;
use protocol::batch::BatchBuilder;
use protocol::messages::create_topics_request::CreatableTopic;
use protocol::messages::metadata_request::MetadataRequestTopic;
use protocol::messages::metadata_response::MetadataResponsePartition;
use protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use protocol::messages::{
    CreateTopicsRequest, DescribeClusterRequest, DescribeClusterResponse, MetadataRequest, ProduceRequest,
    TopicName,
};
use sim::{Kind, Node, World};
use tokio_util::sync::CancellationToken;

use crate::client::Client;

const ALL: [i32; 3] = [1, 2, 3];
const DESCRIBE_CLUSTER: i16 = 2;
const CREATE_TOPICS: i16 = 7;
const METADATA: i16 = 12;
const PRODUCE: i16 = 12;
const BROKERS: i8 = 1;
const CONTROLLERS: i8 = 2;
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// What a broker has to come back on another connection, and what it takes to see that it did not.
const FENCED_WITHIN: Duration = Duration::from_millis(300);
/// As [`FENCED_WITHIN`], after an election.
const REPLACED_WITHIN: Duration = Duration::from_millis(600);

struct Trio {
    world: World,
    operator: Env,
    machines: Vec<Node>,
    processes: Mutex<Vec<Process>>,
}

/// One run of a node.
#[derive(Clone, Default)]
struct Process {
    stop: CancellationToken,
    ended: Arc<Mutex<Option<Result<(), String>>>>,
}

impl Trio {
    fn new(seed: u64) -> Self {
        let world = World::new(seed);
        let operator = world.node("operator").boot();
        let machines = ALL.iter().map(|id| world.node(&format!("n{id}"))).collect();
        Self { world, operator, machines, processes: Mutex::new(vec![Process::default(); ALL.len()]) }
    }

    fn machine(&self, id: i32) -> &Node {
        &self.machines[id as usize - 1]
    }

    fn start(&self, id: i32) {
        self.start_with(id, &[]);
    }

    /// As `start`, with settings that count more than the usual ones.
    fn start_with(&self, id: i32, more: &[&str]) {
        let (env, process) = (self.machine(id).boot(), Process::default());
        let set = settings(id).into_iter().chain(more.iter().map(|&pair| pair.to_owned())).collect();
        let told = Sources { set, ..Sources::default() };
        let config = Config::load(&told).expect("the settings are valid");
        let Process { stop, ended } = process.clone();
        self.machine(id).run(async move {
            let result = assemble::run_in(env, config, stop).await.map_err(|error| error.to_string());
            *ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        });
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)[id as usize - 1] = process;
    }

    fn start_all(&self) {
        for id in ALL {
            self.start(id);
        }
    }

    fn process(&self, id: i32) -> Process {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)[id as usize - 1].clone()
    }

    /// SIGTERM; how long the process took to end, in order.
    async fn stop(&self, id: i32) -> Duration {
        let (process, since) = (self.process(id), self.now());
        process.stop.cancel();
        let ended = self.until("end", async || process.ended.lock().expect("no panic").clone()).await;
        assert_eq!(ended, Ok(()), "node {id}");
        let took = self.now().since(since);
        self.machine(id).kill();
        took
    }

    fn now(&self) -> Instant {
        self.operator.clock.now()
    }

    async fn until<T>(&self, what: &str, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
        let end = self.now().plus(PATIENCE);
        loop {
            if let Some(found) = probe().await {
                return found;
            }
            assert!(self.now() < end, "no {what} within {PATIENCE:?}");
            self.operator.clock.sleep(LOOK_AGAIN).await;
        }
    }

    fn client(&self, id: i32, port: u16) -> Client {
        Client::at(self.operator.clone(), &format!("n{id}:{port}"))
    }

    async fn describe(&self, id: i32, of: i8) -> Option<DescribeClusterResponse> {
        let mut client = self.client(id, if of == BROKERS { 9092 } else { 9093 });
        let request =
            DescribeClusterRequest::default().with_endpoint_type(of).with_include_fenced_brokers(true);
        client.call(DESCRIBE_CLUSTER, &request).await.ok()
    }

    /// The brokers that a node knows, and whether each is fenced.
    async fn brokers(&self, id: i32) -> Option<Vec<(i32, bool)>> {
        let described = self.describe(id, BROKERS).await?;
        Some(described.brokers.iter().map(|broker| (broker.broker_id.0, broker.is_fenced)).collect())
    }

    /// Waits until these nodes all say that these brokers are fenced, and the others not.
    async fn until_fenced(&self, told_by: &[i32], fenced: &[i32]) {
        let expected: Vec<_> = ALL.into_iter().map(|id| (id, fenced.contains(&id))).collect();
        for id in told_by {
            let is_so = async || self.brokers(*id).await.filter(|brokers| *brokers == expected);
            self.until(&format!("{expected:?} at node {id}"), is_so).await;
        }
    }

    async fn leader(&self, told_by: i32) -> i32 {
        let known = async || {
            let leader = self.describe(told_by, CONTROLLERS).await?.controller_id.0;
            (leader > 0).then_some(leader)
        };
        self.until("leader", known).await
    }
}

/// A topic whose partitions have a replica on each node.
impl Trio {
    async fn create_topic(&self, partitions: i32) {
        let topic = CreatableTopic::default().with_name(topic()).with_num_partitions(partitions);
        let request = CreateTopicsRequest::default()
            .with_topics(vec![topic.with_replication_factor(3)])
            .with_timeout_ms(5000);
        let mut client = self.client(self.leader(1).await, 9092);
        let answer = client.call(CREATE_TOPICS, &request).await.expect("an answer");
        assert_eq!(answer.topics[0].error_code, 0, "{answer:?}");
    }

    /// The partitions as a node tells them.
    async fn partitions(&self, told_by: i32) -> Option<Vec<MetadataResponsePartition>> {
        let named = MetadataRequestTopic::default().with_name(Some(topic()));
        let request = MetadataRequest::default().with_topics(Some(vec![named]));
        let mut answer = self.client(told_by, 9092).call(METADATA, &request).await.ok()?;
        answer.topics.pop().map(|topic| topic.partitions)
    }

    /// The leader and the ISR as a node tells them.
    async fn partition(&self, told_by: i32) -> Option<(i32, Vec<i32>)> {
        let partitions = self.partitions(told_by).await?;
        let partition = partitions.first()?;
        let mut isr: Vec<_> = partition.isr_nodes.iter().map(|node| node.0).collect();
        isr.sort_unstable();
        Some((partition.leader_id.0, isr))
    }

    /// The replicas of each partition that a node says are offline.
    async fn offline(&self, told_by: i32) -> Option<Vec<Vec<i32>>> {
        let partitions = self.partitions(told_by).await?;
        let offline = |partition: &MetadataResponsePartition| {
            partition.offline_replicas.iter().map(|node| node.0).collect()
        };
        Some(partitions.iter().map(offline).collect())
    }

    async fn until_in_sync(&self, told_by: &[i32], isr: &[i32]) {
        for id in told_by {
            let is_so =
                async || self.partition(*id).await.filter(|(leader, now)| isr.contains(leader) && now == isr);
            self.until(&format!("ISR {isr:?} at node {id}"), is_so).await;
        }
    }

    /// Produces a record with acks=all, again until it is acknowledged.
    async fn produce(&self, told_by: i32) {
        let mut records = BatchBuilder::new().timestamp(self.operator.clock.wall());
        records.append(None, Some(b"value"), &[]);
        let partition = PartitionProduceData::default().with_records(Some(records.build()));
        let data = TopicProduceData::default().with_name(topic()).with_partition_data(vec![partition]);
        let request =
            ProduceRequest::default().with_acks(-1).with_timeout_ms(1000).with_topic_data(vec![data]);
        let sent = async || {
            let (leader, _) = self.partition(told_by).await.filter(|(leader, _)| *leader > 0)?;
            let answer = self.client(leader, 9092).call(PRODUCE, &request).await.ok()?;
            (answer.responses[0].partition_responses[0].error_code == 0).then_some(())
        };
        self.until("acknowledgement", sent).await;
    }
}

fn topic() -> TopicName {
    TopicName(StrBytes::from_static_str("t"))
}

fn settings(id: i32) -> Vec<String> {
    vec![
        format!("node.id={id}"),
        format!("listeners=PLAINTEXT://n{id}:9092,CONTROLLER://n{id}:9093"),
        "controller.listener.names=CONTROLLER".to_owned(),
        "controller.quorum.voters=1@n1:9093,2@n2:9093,3@n3:9093".to_owned(),
        "log.dirs=/data,/more".to_owned(),
        "min.insync.replicas=2".to_owned(),
    ]
}

fn without(gone: i32) -> Vec<i32> {
    ALL.into_iter().filter(|id| *id != gone).collect()
}

#[test]
fn who_is_killed_is_fenced_at_once_and_unfenced_when_it_is_back() {
    for seed in 0..2 {
        let trio = Trio::new(seed);
        trio.world.run(async {
            trio.start_all();
            trio.until_fenced(&ALL, &[]).await;
            for killed in ALL {
                let leads = trio.leader(ALL[0]).await == killed;
                trio.machine(killed).kill();
                let since = trio.now();
                trio.until_fenced(&without(killed), &[killed]).await;
                let (took, within) =
                    (trio.now().since(since), if leads { REPLACED_WITHIN } else { FENCED_WITHIN });
                assert!(took < within, "seed {seed}, node {killed}: {took:?}");
                trio.start(killed);
                trio.until_fenced(&ALL, &[]).await;
            }
        });
    }
}

#[test]
fn who_stops_in_order_is_fenced_before_it_is_gone() {
    let trio = Trio::new(7);
    trio.world.run(async {
        trio.start_all();
        trio.until_fenced(&ALL, &[]).await;
        for stopped in ALL {
            let took = trio.stop(stopped).await;
            assert!(took < Duration::from_secs(2), "{took:?}");
            let others = without(stopped);
            assert!(trio.brokers(others[0]).await.expect("it runs").contains(&(stopped, true)));
            trio.start(stopped);
            trio.until_fenced(&ALL, &[]).await;
        }
    });
}

#[test]
fn a_connection_that_breaks_fences_nobody() {
    let trio = Trio::new(8);
    trio.world.run(async {
        trio.start_all();
        trio.until_fenced(&ALL, &[]).await;
        let leader = trio.leader(1).await;
        for id in without(leader) {
            trio.world.reset(trio.machine(id), trio.machine(leader));
        }
        let end = trio.now().plus(Duration::from_secs(2));
        while trio.now() < end {
            let brokers = trio.brokers(leader).await.expect("it runs");
            assert!(brokers.iter().all(|(_, is_fenced)| !is_fenced), "{brokers:?}");
            trio.operator.clock.sleep(LOOK_AGAIN).await;
        }
    });
}

#[test]
fn a_partition_goes_on_without_any_of_its_replicas_and_takes_it_back() {
    let trio = Trio::new(9);
    trio.world.run(async {
        trio.start_all();
        trio.until_fenced(&ALL, &[]).await;
        trio.create_topic(1).await;
        trio.until_in_sync(&ALL, &ALL).await;
        for killed in ALL {
            trio.machine(killed).kill();
            let others = without(killed);
            trio.until_in_sync(&others, &others).await;
            for _ in 0..5 {
                trio.produce(others[0]).await;
            }
            trio.start(killed);
            trio.until_in_sync(&ALL, &ALL).await;
        }
    });
}

#[test]
fn a_log_folder_that_fails_takes_its_own_replicas_out_of_service() {
    let trio = Trio::new(10);
    trio.world.run(async {
        trio.start_all();
        trio.until_fenced(&ALL, &[]).await;
        trio.create_topic(4).await;
        trio.until_in_sync(&ALL, &ALL).await;
        // Until the metadata knows the folders.
        trio.operator.clock.sleep(Duration::from_secs(2)).await;
        let struck = without(trio.partition(1).await.expect("a leader").0)[0];
        trio.machine(struck).disk().fail(Kind::Write, "/more", 0, u64::MAX);
        trio.produce(1).await;
        let some = async || {
            let offline = trio.offline(1).await?.iter().filter(|nodes| **nodes == [struck]).count();
            (1..4).contains(&offline).then_some(())
        };
        trio.until("replica that is offline", some).await;
        trio.until_fenced(&ALL, &[]).await;
    });
}

#[test]
fn a_broker_alone_follows_the_controllers_and_is_missed_like_the_others() {
    const VOTERS: &str = "controller.quorum.voters=1@n1:9093,2@n2:9093";
    const ALONE: &[&str] = &["process.roles=broker", "listeners=PLAINTEXT://n3:9092", VOTERS];
    let trio = Trio::new(11);
    trio.world.run(async {
        trio.start_with(3, ALONE);
        trio.start_with(1, &[VOTERS]);
        trio.start_with(2, &[VOTERS]);
        trio.until_fenced(&ALL, &[]).await;
        trio.create_topic(1).await;
        trio.until_in_sync(&ALL, &ALL).await;
        trio.machine(3).kill();
        trio.until_in_sync(&[1, 2], &[1, 2]).await;
        trio.produce(1).await;
        trio.start_with(3, ALONE);
        trio.until_in_sync(&ALL, &ALL).await;
    });
}
