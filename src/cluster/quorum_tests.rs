//! Three controllers in a simulated network: from empty folders on, through kills, power cuts, a lost disk, a snapshot.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use env::{Chunk, Env, Link};
use metadata::config::BrokerConfig;
use model::{ErrorCode, NodeId, Offset, Uuid};
use protocol::messages::api_versions_response::ApiVersion;
use protocol::messages::describe_quorum_response::{PartitionData, TopicData};
use protocol::messages::{
    ApiVersionsResponse, BeginQuorumEpochRequest, ControllerRegistrationRequest,
    ControllerRegistrationResponse, DescribeClusterRequest, DescribeQuorumRequest, DescribeQuorumResponse,
    EndQuorumEpochRequest, FetchRequest, FetchSnapshotRequest, VoteRequest,
};
use protocol::records::metadata::RegisterControllerRecord;
use protocol::{Encodable, FromWire, RequestHeader};
use replication::{Replication, UpkeepConfig};
use shards::Shards;
use sim::{Kind, Node, World};
use storage::{LogFolder, MetaProperties, TailBudget};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::*;

const DIR: &str = "/d";
const FRAME_BYTES_MAX: usize = 1 << 24;
const PATIENCE: Duration = Duration::from_secs(30);

/// Whoever answers at a controller's listener: the APIs that peers use, and no server.
#[derive(Clone)]
enum Answering {
    Newcomer(Arc<Newcomer>),
    Cluster(Arc<Cluster>),
}

impl Answering {
    async fn answer(&self, mut frame: Bytes) -> Bytes {
        let header = protocol::decode_request_header(&mut frame).expect("a header");
        let version = header.api_version;
        macro_rules! ask {
            ($request:ident, |$cluster:ident, $asked:ident| $answer:expr) => {{
                let $asked = protocol::decode::<$request>(version, frame).expect("a body");
                let Self::Cluster($cluster) = self else { return Bytes::new() };
                encode(&header, &$answer)
            }};
        }
        match header.api_key {
            18 => encode(&header, &api_versions()),
            60 => {
                let asked = protocol::decode::<DescribeClusterRequest>(version, frame).expect("a body");
                encode(
                    &header,
                    &match self {
                        Self::Newcomer(newcomer) => newcomer.introduce(&asked),
                        Self::Cluster(cluster) => cluster.describe_controllers(&asked),
                    },
                )
            }
            1 => ask!(FetchRequest, |cluster, asked| cluster.handle_fetch(asked, version).await),
            52 => ask!(VoteRequest, |cluster, asked| cluster.handle_vote(asked, version).await),
            53 => ask!(BeginQuorumEpochRequest, |cluster, asked| {
                cluster.handle_begin_quorum_epoch(asked, version).await
            }),
            54 => ask!(EndQuorumEpochRequest, |cluster, asked| {
                cluster.handle_end_quorum_epoch(asked, version).await
            }),
            59 => ask!(FetchSnapshotRequest, |cluster, asked| {
                cluster.handle_fetch_snapshot(asked, version).await
            }),
            55 => ask!(DescribeQuorumRequest, |cluster, _asked| describe_quorum(cluster).await),
            _ => ask!(ControllerRegistrationRequest, |cluster, asked| register(cluster, &asked).await),
        }
    }

    async fn serve(self, env: Env, stop: CancellationToken) {
        let mut listener = env.net.listen(":9093", FRAME_BYTES_MAX).await.expect("a listener");
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                Ok(link) = listener.accept() => {
                    env.exec.spawn("connection", Box::pin(self.clone().converse(link, stop.clone())));
                }
            }
        }
    }

    async fn converse(self, mut link: Link, stop: CancellationToken) {
        let mut frames = Vec::new();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                received = link.reader.recv(&mut frames) => if received.is_err() { return },
            }
            for frame in std::mem::take(&mut frames) {
                let answer = self.answer(frame).await;
                if link.writer.send(vec![Chunk::Bytes(answer)]).await.is_err() {
                    return;
                }
            }
        }
    }
}

fn api_versions() -> ApiVersionsResponse {
    let keys = [1, 18, 52, 53, 54, 55, 59, 60, 70];
    let apis = keys.into_iter().filter_map(protocol::tables::api).map(|api| {
        let versions = api.stable_versions();
        ApiVersion::default()
            .with_api_key(api.key)
            .with_min_version(versions.min)
            .with_max_version(versions.max)
    });
    ApiVersionsResponse::default().with_api_keys(apis.collect())
}

async fn describe_quorum(cluster: &Cluster) -> DescribeQuorumResponse {
    let quorum = cluster.describe_quorum().await.expect("it runs");
    let partition = PartitionData::default().with_high_watermark(quorum.high_watermark.0);
    let topic = TopicData::default().with_partitions(vec![partition]);
    DescribeQuorumResponse::default().with_topics(vec![topic])
}

async fn register(
    cluster: &Cluster,
    request: &ControllerRegistrationRequest,
) -> ControllerRegistrationResponse {
    let record = RegisterControllerRecord {
        controller_id: request.controller_id,
        incarnation_id: FromWire::from_wire(&request.incarnation_id),
        ..RegisterControllerRecord::default()
    };
    let code = match cluster.decide(move |controller| controller.register_controller(record)).await {
        Ok(()) => ErrorCode::None,
        Err(error) => error.into(),
    };
    ControllerRegistrationResponse::default().with_error_code(code.code())
}

fn encode(header: &RequestHeader, response: &impl Encodable) -> Bytes {
    protocol::encode_response(header.correlation_id, header.api_key, header.api_version, response)
        .expect("encodes")
}

fn quorum_config(id: i32) -> QuorumConfig {
    let address = |id: i32| (format!("c{id}"), 9093);
    let (host, port) = address(id);
    QuorumConfig {
        listeners: vec![Endpoint { name: "CONTROLLER".into(), host, port }],
        voters: (1..=3).map(|id| (NodeId(id), address(id))).collect::<BTreeMap<_, _>>(),
        ..QuorumConfig::default()
    }
}

/// What runs on a machine, for the scenario.
type Shown = Arc<Mutex<Option<(Arc<Cluster>, Arc<Forwarding>)>>>;

/// A process from its start: it forms the cluster if there is none, and then runs.
async fn process(env: Env, id: i32, snapshot_bytes: u64, show: Shown) {
    let (dir, node_id, quorum) = (Path::new(DIR), NodeId(id), quorum_config(id));
    let meta = LogFolder::read_meta(&*env.disk, dir).expect("readable");
    let known = meta.as_ref().and_then(|meta| meta.directory_id);
    let directory = known.unwrap_or_else(|| directory_id(&env, dir).expect("an id"));
    let mut beginning = None;
    if is_empty(&*env.disk, dir).expect("readable") {
        let (key, listeners) = ((node_id, directory), quorum.listeners.clone());
        let newcomer = Arc::new(Newcomer::new(key, listeners, &quorum.voters, None));
        let stop = CancellationToken::new();
        let serving = Answering::Newcomer(newcomer.clone()).serve(env.clone(), stop.clone());
        env.exec.spawn("forming", Box::pin(serving));
        beginning = Some(newcomer.form(&env).await.expect("of one cluster"));
        stop.cancel();
        env.clock.sleep(Duration::from_millis(5)).await;
    }
    let formed = beginning.as_ref().map(|beginning| beginning.cluster_id.clone());
    let cluster_id = meta.map(|meta| meta.cluster_id).or(formed).expect("known by now");
    let identity = MetaProperties { cluster_id: cluster_id.clone(), node_id, directory_id: Some(directory) };
    let folder = LogFolder::open(env.disk.clone(), dir, &identity, TailBudget::new(1 << 20));
    let folder = Arc::new(folder.expect("a folder"));
    let boot = boot(&env, (std::slice::from_ref(&folder), 0), node_id, beginning.as_ref()).expect("boots");
    let (broker, closing) = (BrokerConfig::default(), CancellationToken::new());
    let (minute, fixed) = (Duration::from_mins(1), broker.values().clone());
    let upkeep = UpkeepConfig { retention_check: minute, flush_check: minute, checkpoint: minute };
    let replicas = replication::ReplicasConfig::default();
    let config = replication::Config { node_id, fixed, recovery_threads: 1, upkeep, replicas };
    let replication = Replication::start(&env, config, vec![folder], &closing);
    let shards = Shards::start(&env, shards::Config::new(node_id), replication.clone(), &closing);
    let config = Config { node_id, cluster_id, broker, snapshot_bytes, quorum };
    let (tell, fatal) = oneshot::channel();
    let cluster = Cluster::start(&env, config, boot, replication, shards, closing.clone(), tell);
    let forwarding = Arc::new(Forwarding::new(&env, cluster.clone()));
    *show.lock().expect("no panic") = Some((cluster.clone(), forwarding));
    env.exec.spawn("serving", Box::pin(Answering::Cluster(cluster).serve(env.clone(), closing)));
    if let Ok(error) = fatal.await {
        panic!("controller {id}: {error}");
    }
}

pub(crate) struct Trio {
    pub(crate) world: World,
    /// For the time that the scenario waits.
    pub(crate) clock: Arc<dyn env::Clock>,
    machines: Vec<Node>,
    clusters: Vec<Shown>,
    snapshot_bytes: u64,
    registrations: Mutex<u8>,
}

impl Trio {
    pub(crate) fn new(seed: u64, snapshot_bytes: u64) -> Self {
        let world = World::new(seed);
        let clock = world.node("operator").boot().clock;
        let machines = (1..=3).map(|id| world.node(&format!("c{id}"))).collect();
        let clusters = (0..3).map(|_| Arc::default()).collect();
        Self { world, clock, machines, clusters, snapshot_bytes, registrations: Mutex::new(0) }
    }

    fn start(&self, id: i32) {
        let (machine, show) = (&self.machines[id as usize - 1], &self.clusters[id as usize - 1]);
        *show.lock().expect("no panic") = None;
        machine.run(process(machine.boot(), id, self.snapshot_bytes, show.clone()));
    }

    pub(crate) fn start_all(&self) {
        for id in ALL {
            self.start(id);
        }
    }

    pub(crate) fn machine(&self, id: i32) -> &Node {
        &self.machines[id as usize - 1]
    }

    pub(crate) fn cluster(&self, id: i32) -> Option<Arc<Cluster>> {
        Some(self.running(id)?.0)
    }

    /// What runs on this machine.
    pub(crate) fn running(&self, id: i32) -> Option<(Arc<Cluster>, Arc<Forwarding>)> {
        self.clusters[id as usize - 1].lock().expect("no panic").clone()
    }

    pub(crate) fn kill(&self, id: i32) {
        self.machine(id).kill();
        *self.clusters[id as usize - 1].lock().expect("no panic") = None;
    }

    async fn until<T>(&self, what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
        let end = self.clock.now().plus(PATIENCE);
        loop {
            if let Some(found) = probe() {
                return found;
            }
            assert!(self.clock.now() < end, "no {what} within {PATIENCE:?}");
            self.clock.sleep(Duration::from_millis(10)).await;
        }
    }

    /// The leader that all of these know.
    pub(crate) async fn leader_of(&self, ids: &[i32]) -> i32 {
        let led = || {
            let leaders = ids.iter().map(|id| self.cluster(*id).and_then(|cluster| cluster.leader()));
            let leaders: Option<Vec<NodeId>> = leaders.collect();
            let first = *leaders.as_ref()?.first()?;
            let all = leaders?.iter().all(|leader| *leader == first);
            (all && ids.contains(&first.0)).then_some(first.0)
        };
        self.until("leader", led).await
    }

    /// Lets the leader of these decide on something; where the metadata then ends, at least.
    pub(crate) async fn decide(&self, ids: &[i32]) -> Offset {
        let incarnation = {
            let mut count = self.registrations.lock().expect("no panic");
            *count += 1;
            *count
        };
        let record = RegisterControllerRecord {
            controller_id: 9,
            incarnation_id: Uuid([incarnation; 16]),
            ..RegisterControllerRecord::default()
        };
        loop {
            let leader = self.leader_of(ids).await;
            let cluster = self.cluster(leader).expect("it runs");
            let record = record.clone();
            if cluster.decide(move |controller| controller.register_controller(record)).await.is_ok() {
                return cluster.image().end();
            }
        }
    }

    /// Waits until these have applied what was decided, and sees that they have the same.
    pub(crate) async fn applied(&self, ids: &[i32], end: Offset) {
        for id in ids {
            let at = || self.cluster(*id).filter(|cluster| cluster.image().end() >= end);
            self.until("application", at).await;
        }
        let last = *self.registrations.lock().expect("no panic");
        for id in ids {
            let image = self.cluster(*id).expect("it runs").image();
            let known = image.brokers.controllers().find(|known| known.controller_id == 9);
            assert_eq!(known.map(|known| known.incarnation_id), Some(Uuid([last; 16])), "controller {id}");
        }
    }
}

pub(crate) const ALL: [i32; 3] = [1, 2, 3];
pub(crate) const NEVER: u64 = u64::MAX / 2;

pub(crate) fn without(gone: i32) -> Vec<i32> {
    ALL.into_iter().filter(|id| *id != gone).collect()
}

#[test]
fn three_empty_nodes_form_a_cluster_and_go_on_without_their_leader() {
    for seed in 0..2 {
        let trio = Trio::new(seed, NEVER);
        trio.world.run(async {
            trio.start_all();
            trio.applied(&ALL, trio.decide(&ALL).await).await;
            for _ in 0..3 {
                let leader = trio.leader_of(&ALL).await;
                trio.kill(leader);
                let left = without(leader);
                trio.applied(&left, trio.decide(&left).await).await;
                trio.start(leader);
                trio.applied(&ALL, trio.decide(&ALL).await).await;
            }
        });
    }
}

#[test]
fn nothing_that_was_decided_is_lost_when_all_lose_power_at_once() {
    for seed in 0..2 {
        let trio = Trio::new(seed, NEVER);
        trio.world.run(async {
            trio.start_all();
            for _ in 0..3 {
                let end = trio.decide(&ALL).await;
                for machine in &trio.machines {
                    machine.power_loss();
                }
                trio.start_all();
                trio.applied(&ALL, end).await;
            }
        });
    }
}

#[test]
fn a_power_cut_while_the_cluster_forms_changes_nobodys_identity() {
    for seed in 0..4 {
        let trio = Trio::new(seed, NEVER);
        trio.world.run(async {
            trio.start_all();
            for _ in 0..4 {
                trio.clock.sleep(Duration::from_millis(trio.world.below(150))).await;
                let struck = ALL[trio.world.below(3) as usize];
                trio.machine(struck).power_loss();
                trio.start(struck);
            }
            let end = trio.decide(&ALL).await;
            trio.applied(&ALL, end).await;
            let voters = trio.cluster(1).expect("it runs").view.borrow().voters.clone();
            for id in ALL {
                let me = trio.cluster(id).expect("it runs").place.me;
                assert!(voters.contains(&me), "seed {seed}: {me:?} is none of {voters:?}");
            }
        });
    }
}

#[test]
fn who_was_away_for_long_is_given_a_snapshot() {
    let (trio, away) = comes_back(3, async |trio, away| trio.start(away));
    let names = env::Disk::list(&*trio.machine(away).disk(), &Path::new(DIR).join("__cluster_metadata-0"));
    let names = names.expect("a folder");
    let is_old = |entry: &env::Entry| entry.name.starts_with("00000000000000000000.log");
    assert!(!names.iter().any(is_old), "the log begins where the snapshot ends: {names:?}");
}

/// Lets one that was away for long come back, which what `hinders` does to its machine must not end.
fn comes_back(seed: u64, hinders: impl AsyncFn(&Trio, i32)) -> (Trio, i32) {
    let trio = Trio::new(seed, 500);
    let away = trio.world.run(async {
        trio.start_all();
        trio.applied(&ALL, trio.decide(&ALL).await).await;
        let away = without(trio.leader_of(&ALL).await)[0];
        trio.kill(away);
        let left = without(away);
        let mut end = Offset(0);
        for _ in 0..20 {
            end = trio.decide(&left).await;
        }
        hinders(&trio, away).await;
        trio.applied(&ALL, end).await;
        trio.applied(&ALL, trio.decide(&ALL).await).await;
        away
    });
    (trio, away)
}

#[test]
fn who_is_given_a_snapshot_bears_too_many_open_files() {
    for after in 0..10 {
        comes_back(after, async |trio, away| {
            trio.start(away);
            trio.clock.sleep(Duration::from_millis(after)).await;
            trio.machine(away).disk().fail(Kind::Open, DIR, after % 5, 2);
        });
    }
}

#[test]
fn who_is_given_a_snapshot_waits_for_space() {
    for after in 0..6 {
        comes_back(after, async |trio, away| {
            trio.start(away);
            trio.clock.sleep(Duration::from_millis(after * 5)).await;
            trio.machine(away).disk().set_capacity(0);
            trio.clock.sleep(Duration::from_secs(5)).await;
            trio.machine(away).disk().set_capacity(u64::MAX);
        });
    }
}

#[test]
fn who_is_given_a_snapshot_and_dies_begins_with_it() {
    for after in 0..10 {
        comes_back(after, async |trio, away| {
            trio.start(away);
            trio.clock.sleep(Duration::from_millis(5)).await;
            // Hindered at each step in turn, and killed while it waits.
            trio.machine(away).disk().fail(Kind::Open, DIR, after, u64::MAX);
            trio.clock.sleep(Duration::from_millis(900)).await;
            trio.machine(away).power_loss();
            trio.machine(away).disk().heal();
            trio.start(away);
        });
    }
}

#[test]
fn a_voter_whose_disk_was_replaced_follows_and_does_not_vote() {
    let trio = Trio::new(4, NEVER);
    trio.world.run(async {
        trio.start_all();
        trio.applied(&ALL, trio.decide(&ALL).await).await;
        let struck = without(trio.leader_of(&ALL).await)[0];
        trio.kill(struck);
        trio.machine(struck).replace_disk();
        trio.start(struck);
        trio.applied(&ALL, trio.decide(&without(struck)).await).await;
        let cluster = trio.cluster(struck).expect("it runs");
        assert!(!cluster.view.borrow().voters.contains(&cluster.place.me));
        let described = trio.cluster(trio.leader_of(&ALL).await).expect("it runs").describe_quorum().await;
        let observers = described.expect("it leads").observers;
        assert_eq!(observers.iter().map(|observer| observer.id.0).collect::<Vec<_>>(), [struck]);
    });
}

#[test]
fn a_leader_that_nobody_hears_any_more_is_replaced_and_comes_back() {
    let trio = Trio::new(5, NEVER);
    trio.world.run(async {
        trio.start_all();
        trio.applied(&ALL, trio.decide(&ALL).await).await;
        let cut = trio.leader_of(&ALL).await;
        let left = without(cut);
        for id in &left {
            trio.world.cut(trio.machine(cut), trio.machine(*id));
        }
        trio.applied(&left, trio.decide(&left).await).await;
        trio.world.mend_all();
        trio.applied(&ALL, trio.decide(&ALL).await).await;
    });
}
