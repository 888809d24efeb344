//! Several brokers with one partition, and a controller that does what a test tells it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use env::Env;
use metadata::Image;
use metadata::config::Overrides;
use model::{BrokerEpoch, ClusterId, ErrorCode, LeaderEpoch, NodeId, Offset, PartitionEpoch, Uuid};
use protocol::batch::BatchBuilder;
use protocol::records::metadata::register_broker_record::BrokerEndpoint;
use protocol::records::metadata::{
    ConfigRecord, MetadataRecord, PartitionRecord, RegisterBrokerRecord, TopicRecord,
};
use sim::{Node, World};
use storage::{LogFolder, MetaProperties, TailBudget};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::serving::{self, PORT};
use crate::*;

const TOPIC: Uuid = Uuid([5; 16]);
const LISTENER: &str = "BETWEEN";
pub(super) const LAG: Duration = Duration::from_secs(3);

/// What the controller knows.
pub(super) struct Controller {
    epochs: BTreeMap<i32, i64>,
    partition: PartitionRecord,
    configs: Vec<(String, String)>,
    version: watch::Sender<i64>,
}

impl Controller {
    fn image(&self) -> Image {
        let broker = |(id, epoch): (&i32, &i64)| {
            let endpoint = BrokerEndpoint {
                name: LISTENER.to_owned(),
                host: format!("n{id}"),
                port: PORT,
                ..BrokerEndpoint::default()
            };
            MetadataRecord::RegisterBroker(RegisterBrokerRecord {
                broker_id: *id,
                broker_epoch: *epoch,
                end_points: vec![endpoint],
                fenced: false,
                ..RegisterBrokerRecord::default()
            })
        };
        let config = |(name, value): &(String, String)| {
            MetadataRecord::Config(ConfigRecord {
                resource_type: 2,
                resource_name: "orders".to_owned(),
                name: name.clone(),
                value: Some(value.clone()),
            })
        };
        let topic = TopicRecord { name: "orders".to_owned(), topic_id: TOPIC };
        let mut records: Vec<_> = self.epochs.iter().map(broker).collect();
        records.extend([MetadataRecord::Topic(topic), MetadataRecord::Partition(self.partition.clone())]);
        records.extend(self.configs.iter().map(config));
        Image::default().apply(&records, Offset(1)).expect("records that fit").0
    }

    fn changed(&mut self) {
        self.partition.partition_epoch += 1;
        self.version.send_modify(|version| *version += 1);
    }

    fn alter(&mut self, ask: &AlterPartition) -> Result<AlteredPartition, ErrorCode> {
        let partition = &self.partition;
        if partition.leader_epoch != ask.leader_epoch.0 {
            return Err(ErrorCode::FencedLeaderEpoch);
        }
        if partition.partition_epoch != ask.partition_epoch.0 {
            return Err(ErrorCode::InvalidUpdateVersion);
        }
        let is_known = |member: &IsrMember| {
            member.broker_epoch.is_none_or(|epoch| self.epochs.get(&member.id.0) == Some(&epoch.0))
        };
        if !ask.isr.iter().all(is_known) {
            return Err(ErrorCode::IneligibleReplica);
        }
        self.partition.isr = ask.isr.iter().map(|member| member.id.0).collect();
        self.changed();
        Ok(AlteredPartition {
            leader_epoch: ask.leader_epoch,
            partition_epoch: PartitionEpoch(self.partition.partition_epoch),
            isr: ask.isr.iter().map(|member| member.id).collect(),
        })
    }
}

/// A broker's process.
struct Process {
    env: Env,
    replication: Arc<Replication>,
}

/// All of them. Their machines are `n1`, `n2`, …
pub(super) struct Brokers {
    pub(super) nodes: Vec<Node>,
    controller: Arc<Mutex<Controller>>,
    running: Mutex<BTreeMap<i32, Process>>,
}

impl Brokers {
    /// So many, which are in sync and the first of which leads; not started yet.
    pub(super) fn new(world: &World, count: i32, configs: &[(&str, &str)]) -> Self {
        let ids: Vec<_> = (1..=count).collect();
        let partition = PartitionRecord {
            topic_id: TOPIC,
            replicas: ids.clone(),
            isr: ids.clone(),
            leader: 1,
            partition_id: 0,
            leader_epoch: 0,
            partition_epoch: 0,
            directories: vec![Uuid::ZERO; ids.len()],
            ..PartitionRecord::default()
        };
        let configs = configs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let (epochs, version) = (BTreeMap::new(), watch::Sender::new(0));
        let controller = Controller { epochs, partition, configs, version };
        Self {
            nodes: ids.iter().map(|id| world.node(&format!("n{id}"))).collect(),
            controller: Arc::new(Mutex::new(controller)),
            running: Mutex::default(),
        }
    }

    pub(super) async fn start_all(&self) {
        for id in 1..=self.nodes.len() as i32 {
            self.start(id).await;
        }
        self.elect(&self.isr());
    }

    /// A process begins: its logs are opened, it follows the metadata, and is registered. How many partitions lost records.
    pub(super) async fn start(&self, id: i32) -> usize {
        let env = self.node(id).boot();
        let replication = replication(&env, id);
        let image = self.with(|controller| controller.image());
        replication.open_logs(&image).await;
        let lost = replication.lost().len();
        let (controller, follower) = (self.controller.clone(), replication.clone());
        env.exec.spawn("metadata", Box::pin(follow(controller.clone(), follower.clone())));
        env.clock.sleep(Duration::from_millis(100)).await;
        let epoch = self.with(|controller| {
            controller.changed();
            let epoch = i64::from(controller.partition.partition_epoch);
            controller.epochs.insert(id, epoch);
            epoch
        });
        replication.registered(BrokerEpoch(epoch));
        env.exec.spawn("controller", Box::pin(ask(controller, follower.clone())));
        env.exec.spawn("listener", Box::pin(serving::serve(env.clone(), follower)));
        self.running.lock().expect("no panic").insert(id, Process { env, replication });
        lost
    }

    pub(super) fn kill(&self, id: i32) {
        self.running.lock().expect("no panic").remove(&id);
        self.node(id).kill();
    }

    pub(super) fn power_loss(&self, id: i32) {
        self.running.lock().expect("no panic").remove(&id);
        self.node(id).power_loss();
    }

    pub(super) fn node(&self, id: i32) -> &Node {
        &self.nodes[id as usize - 1]
    }

    fn with<T>(&self, act: impl FnOnce(&mut Controller) -> T) -> T {
        act(&mut self.controller.lock().expect("no panic"))
    }

    /// A new leader epoch with these replicas in sync, the first of which leads.
    pub(super) fn elect(&self, isr: &[i32]) {
        self.with(|controller| {
            controller.partition.leader = isr[0];
            controller.partition.leader_epoch += 1;
            controller.partition.isr = isr.to_vec();
            controller.changed();
        });
    }

    pub(super) fn isr(&self) -> Vec<i32> {
        self.with(|controller| controller.partition.isr.clone())
    }

    pub(super) fn leader(&self) -> i32 {
        self.with(|controller| controller.partition.leader)
    }

    pub(super) fn runs(&self, id: i32) -> bool {
        self.running.lock().expect("no panic").contains_key(&id)
    }

    pub(super) fn clock(&self) -> Arc<dyn env::Clock> {
        let running = self.running.lock().expect("no panic");
        running.values().next().expect("one runs").env.clock.clone()
    }

    pub(super) async fn sleep(&self, seconds: u64) {
        self.clock().sleep(Duration::from_secs(seconds)).await;
    }

    pub(super) fn partition(&self, id: i32) -> Option<Arc<Partition>> {
        self.running.lock().expect("no panic").get(&id)?.replication.partition("orders", 0).ok()
    }

    /// Waits until this broker leads in the newest epoch.
    pub(super) async fn leads(&self, id: i32) -> Arc<Partition> {
        let epoch = self.with(|controller| LeaderEpoch(controller.partition.leader_epoch));
        let leads = |partition: &Arc<Partition>| {
            partition.offsets().is_ok_and(|offsets| offsets.leader_epoch == epoch)
        };
        for _ in 0..1000 {
            if let Some(partition) = self.partition(id).filter(leads) {
                return partition;
            }
            self.clock().sleep(Duration::from_millis(10)).await;
        }
        let offsets = self.partition(id).map(|partition| partition.offsets());
        panic!("broker {id} does not lead in {epoch}: {offsets:?}");
    }

    /// Appends at this broker; the offset after the record, and what became of it after so many seconds at most.
    pub(super) async fn produce(&self, id: i32, value: &str, seconds: u64) -> Result<Offset, CommitError> {
        let partition = self.leads(id).await;
        let mut batch = BatchBuilder::new().timestamp(self.clock().wall());
        batch.append(None, Some(value.as_bytes()), &[]);
        let from = (Origin::Client, LeaderEpoch::NONE);
        let appended = partition.append(&batch.build(), from, true).map_err(refused)?;
        let commit = Commit::of(partition, &appended);
        let (end, deadline) = (commit.end, self.clock().now().plus(Duration::from_secs(seconds)));
        committed(self.clock().as_ref(), &[commit], deadline).await.remove(0).map(|()| end)
    }

    /// Bytes of all its log files.
    pub(super) fn log(&self, id: i32) -> Vec<u8> {
        let running = self.running.lock().expect("no panic");
        let disk = &running[&id].env.disk;
        let folder = Path::new("/d/orders-0");
        let mut names: Vec<_> =
            disk.list(folder).expect("a disk").into_iter().map(|entry| entry.name).collect();
        names.sort();
        let logs = names.iter().filter(|name| Path::new(name).extension().is_some_and(|kind| kind == "log"));
        logs.flat_map(|name| disk.read(&folder.join(name), 1 << 20).expect("a disk")).collect()
    }

    /// Log start, high watermark and log end.
    pub(super) fn shape(&self, id: i32) -> [i64; 3] {
        self.partition(id).expect("it runs").shape()
    }
}

fn refused(error: AppendError) -> CommitError {
    match error {
        AppendError::Partition(error) => error.into(),
        AppendError::NotEnoughReplicas { isr, min_isr } => CommitError::NotEnoughReplicas { isr, min_isr },
        AppendError::Log(error) => panic!("{error}"),
    }
}

fn replication(env: &Env, id: i32) -> Arc<Replication> {
    let identity = MetaProperties {
        cluster_id: ClusterId::from("c"),
        node_id: NodeId(id),
        directory_id: Some(env.rng.uuid()),
    };
    let tail = TailBudget::new(1 << 20);
    let folder = LogFolder::open(env.disk.clone(), Path::new("/d"), &identity, tail).expect("a folder");
    let upkeep = UpkeepConfig {
        retention_check: Duration::from_mins(1),
        flush_check: Duration::from_secs(1),
        checkpoint: Duration::from_secs(5),
    };
    let machine = MachineConfig { replica_lag_time_max: LAG, ..MachineConfig::default() };
    let replicas = ReplicasConfig { machine, listener: LISTENER.to_owned(), fetch: FetchConfig::default() };
    let fixed = Overrides::default();
    let config = Config { node_id: NodeId(id), fixed, recovery_threads: 1, upkeep, replicas };
    Replication::start(env, config, vec![Arc::new(folder)], &CancellationToken::new())
}

/// The metadata comes, as it changes.
async fn follow(controller: Arc<Mutex<Controller>>, replication: Arc<Replication>) {
    let mut version = controller.lock().expect("no panic").version.subscribe();
    loop {
        version.borrow_and_update();
        let image = controller.lock().expect("no panic").image();
        replication.apply_all(&image).await;
        if version.changed().await.is_err() {
            return;
        }
    }
}

/// The controller is asked for other ISRs.
async fn ask(controller: Arc<Mutex<Controller>>, replication: Arc<Replication>) {
    loop {
        for IsrChange { id, ask } in replication.next_isr_changes().await {
            let answer = controller.lock().expect("no panic").alter(&ask);
            replication.isr_altered(id, ask.id, answer);
        }
    }
}
