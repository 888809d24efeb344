//! The metadata of one node over a disk in memory: decisions, restarts, power cuts, snapshots, a failing disk.

use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use controller::{ConnectionId, Controller, Registration};
use env::Env;
use metadata::config::BrokerConfig;
use model::{BrokerEpoch, ClusterId, LeaderEpoch, NodeId, Uuid};
use protocol::records::QuorumState;
use replication::{Replication, UpkeepConfig};
use shards::Shards;
use sim::{Kind, Node, World};
use storage::{LogFolder, MetaProperties, TailBudget};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::*;

const ME: NodeId = NodeId(1);

struct Case {
    cluster: Arc<Cluster>,
    replication: Arc<Replication>,
    clock: Arc<dyn env::Clock>,
    fatal: oneshot::Receiver<FatalError>,
}

fn registration(env: &Env) -> Registration {
    Registration {
        cluster_id: ClusterId::from("c"),
        id: ME,
        incarnation: env.rng.uuid(),
        endpoints: Vec::new(),
        features: controller::SUPPORTED_FEATURES
            .iter()
            .map(|f| metadata::FeatureRange { name: f.name.to_owned(), min: f.min, max: f.max })
            .collect(),
        rack: None,
        directories: vec![Uuid([3; 16])],
        previous_epoch: None,
        durable: true,
        connection: ConnectionId::LOCAL,
    }
}

fn folder(env: &Env) -> Arc<LogFolder> {
    let (cluster_id, directory_id) = (ClusterId::from("c"), Some(Uuid([3; 16])));
    let identity = MetaProperties { cluster_id, node_id: ME, directory_id };
    let tail = TailBudget::new(1 << 20);
    Arc::new(LogFolder::open(env.disk.clone(), Path::new("/d"), &identity, tail).expect("a folder"))
}

impl Case {
    async fn start(node: &Node, snapshot_bytes: u64) -> Result<(Self, BrokerEpoch), BootError> {
        let env = node.boot();
        let (folder, closing) = (folder(&env), CancellationToken::new());
        let boot = boot(&env, (std::slice::from_ref(&folder), 0), ME, None)?;
        let upkeep = UpkeepConfig {
            retention_check: Duration::from_mins(5),
            flush_check: Duration::from_secs(1),
            checkpoint: Duration::from_secs(5),
        };
        let broker = BrokerConfig::default();
        let fixed = broker.values().clone();
        let config = replication::Config {
            node_id: ME,
            fixed,
            recovery_threads: 2,
            upkeep,
            replicas: replication::ReplicasConfig::default(),
        };
        let folders = vec![folder];
        let replication = Replication::start(&env, config, folders.clone(), &closing);
        let shards = Shards::start(&env, shards::Config::new(ME), replication.clone(), &closing);
        let config = Config {
            node_id: ME,
            cluster_id: ClusterId::from("c"),
            broker,
            snapshot_bytes,
            quorum: QuorumConfig::default(),
        };
        let (tell, fatal) = oneshot::channel();
        let cluster = Cluster::start(&env, config, boot, replication.clone(), shards, closing.clone(), tell);
        let mut lifecycle = Lifecycle::start(&env, &cluster, registration(&env), folders, closing);
        let epoch = lifecycle.join().await.expect("registered");
        Ok((Self { cluster, replication, clock: env.clock, fatal }, epoch))
    }

    /// Leaves nothing but the reserve, and finds it out.
    async fn fill(&self, node: &Node) {
        self.clock.sleep(Duration::from_secs(1)).await;
        assert!(env::Disk::exists(&*node.disk(), Path::new("/d/.reserve")).expect("a disk"));
        set_free(node, 0);
        self.block().await;
    }

    /// The first producer id of a new block.
    async fn block(&self) -> i64 {
        let allocate = |controller: &Controller| {
            let epoch = controller.image().brokers.get(ME).expect("registered").epoch;
            controller.allocate_producer_ids(ME, epoch)
        };
        self.cluster.decide(allocate).await.expect("decided").expect("allocated").first.0
    }
}

fn world() -> (World, Node) {
    let world = World::new(5);
    let node = world.node("n");
    (world, node)
}

const NEVER: u64 = u64::MAX / 2;

#[test]
fn a_decision_is_answered_when_it_is_applied() {
    let (world, node) = world();
    world.run(async {
        let (case, epoch) = Case::start(&node, NEVER).await.expect("boots");
        assert_eq!(case.cluster.image().brokers.get(ME).map(|broker| broker.epoch), Some(epoch));
        let first = case.block().await;
        assert_eq!(case.block().await, first + 1000);
    });
}

#[test]
fn what_was_answered_survives_power_cuts_and_no_block_is_given_twice() {
    let (world, node) = world();
    let (mut last, mut epochs) = (-1, BrokerEpoch(-1));
    for _ in 0..5 {
        world.run(async {
            let (case, epoch) = Case::start(&node, NEVER).await.expect("boots");
            assert!(epoch > epochs, "each start has a newer broker epoch");
            let first = case.block().await;
            assert!(first > last, "block {first} after {last}");
            (last, epochs) = (first, epoch);
        });
        node.power_loss();
    }
}

#[test]
fn a_vote_that_was_found_at_start_is_not_forgotten_in_a_power_cut() {
    let path = Path::new("/d/__cluster_metadata-0/quorum-state");
    for seed in 0..20 {
        let world = World::new(seed);
        let node = world.node("n");
        let epoch = || {
            let env = node.boot();
            boot(&env, (&[folder(&env)], 0), ME, None).expect("boots").quorum.hard.epoch
        };
        assert_eq!(epoch(), LeaderEpoch(0));
        let vote = QuorumState { leader_epoch: 7, ..QuorumState::default() }.encode();
        node.disk().fail(Kind::Sync, "/d/__cluster_metadata-0", 1, 1);
        env::write_atomic(&*node.disk(), path, vote.as_bytes()).expect_err("killed between rename and sync");
        node.kill();
        assert_eq!(epoch(), LeaderEpoch(7));
        node.power_loss();
        assert_eq!(epoch(), LeaderEpoch(7), "seed {seed}");
    }
}

#[test]
fn snapshots_take_the_place_of_the_log_below_them() {
    let (world, node) = world();
    let mut last = -1;
    for round in 0..4 {
        world.run(async {
            let (case, _) = Case::start(&node, 500).await.expect("boots");
            for _ in 0..10 {
                let first = case.block().await;
                assert!(first > last, "block {first} after {last} in round {round}");
                last = first;
            }
        });
        assert!(snapshots(&node) > 1);
        if round % 2 == 0 { node.kill() } else { node.power_loss() }
    }
}

/// Leaves so many bytes of the node's disk.
fn set_free(node: &Node, left: u64) {
    let disk = node.disk();
    disk.set_capacity(1 << 40);
    let free = env::Disk::free_bytes(&*disk, Path::new("/d")).expect("a disk");
    disk.set_capacity((1 << 40) - free + left);
}

fn snapshots(node: &Node) -> usize {
    let names = env::Disk::list(&*node.disk(), Path::new("/d/__cluster_metadata-0")).expect("a folder");
    names.iter().filter(|entry| entry.name.ends_with(".checkpoint")).count()
}

#[test]
fn a_snapshot_waits_until_there_is_space_for_it() {
    let (world, node) = world();
    world.run(async {
        let (case, _) = Case::start(&node, 2000).await.expect("boots");
        let before = snapshots(&node);
        for _ in 0..40 {
            set_free(&node, 400);
            case.block().await;
        }
        assert_eq!(snapshots(&node), before);
        node.disk().set_capacity(u64::MAX);
        case.clock.sleep(Duration::from_secs(11)).await;
        case.block().await;
        assert!(snapshots(&node) > before);
    });
}

#[test]
fn a_decision_waits_for_space_and_the_node_goes_on() {
    let (world, node) = world();
    world.run(async {
        let (mut case, _) = Case::start(&node, NEVER).await.expect("boots");
        set_free(&node, 10);
        let heals = async {
            case.clock.sleep(Duration::from_secs(30)).await;
            node.disk().set_capacity(u64::MAX);
        };
        let (first, ()) = tokio::join!(case.block(), heals);
        assert!(case.block().await > first);
        assert!(case.fatal.try_recv().is_err(), "it did not end");
    });
}

#[test]
fn a_full_disk_takes_no_more_topics_and_is_healed_by_deleting_some() {
    let (world, node) = world();
    world.run(async {
        node.disk().set_capacity(32 << 20);
        let (case, _) = Case::start(&node, NEVER).await.expect("boots");
        case.cluster.decide_where_space_is(create("a", 3)).await.expect("created");
        case.fill(&node).await;
        let before = case.cluster.image().end();
        for _ in 0..3 {
            let refused = case.cluster.decide_where_space_is(create("bb", 10)).await;
            assert_eq!(refused, Err(ClusterError::DiskFull));
        }
        case.cluster.decide_where_space_is(create("a", 3)).await.expect("what is there is told as ever");
        assert_eq!(case.cluster.image().end(), before);
        case.cluster.decide(delete("a")).await.expect("deleted");
        assert!(case.cluster.image().topics.is_empty());
        node.disk().set_capacity(64 << 20);
        case.clock.sleep(Duration::from_secs(1)).await;
        case.cluster.decide_where_space_is(create("bb", 10)).await.expect("created");
    });
}

#[test]
fn partitions_that_a_full_disk_has_no_place_for_leave_the_reserve_alone() {
    let (world, node) = world();
    world.run(async {
        node.disk().set_capacity(32 << 20);
        let (case, _) = Case::start(&node, NEVER).await.expect("boots");
        case.fill(&node).await;
        case.cluster.decide(create("a", 100)).await.expect("decided before the disk was full");
        let made = env::Disk::list(&*node.disk(), Path::new("/d")).expect("a folder");
        assert!(!made.iter().any(|entry| entry.name.starts_with("a-")));
        assert!(case.replication.partition("a", 0).is_err());
    });
}

#[test]
fn a_node_that_starts_without_any_space_waits_for_it() {
    let (world, node) = world();
    world.run(async { drop(Case::start(&node, NEVER).await.expect("boots")) });
    node.kill();
    let clock = world.node("operator").boot().clock;
    world.run(async {
        set_free(&node, 0);
        let heals = async {
            clock.sleep(Duration::from_mins(3)).await;
            node.disk().set_capacity(u64::MAX);
        };
        let (started, ()) = tokio::join!(Case::start(&node, NEVER), heals);
        started.expect("boots");
    });
}

#[test]
fn a_log_longer_than_one_read_is_read_whole() {
    let (world, node) = world();
    let assignment = |index| controller::NewTopic {
        name: format!("topic-{index}"),
        partitions: 500,
        replication_factor: 1,
        ..controller::NewTopic::default()
    };
    for start in 0..2 {
        world.run(async {
            let (case, _) = Case::start(&node, NEVER).await.expect("boots");
            assert_eq!(case.cluster.image().topics.len(), start * 8);
            for index in start * 8..(start + 1) * 8 {
                let command = controller::CreateTopics {
                    topics: vec![assignment(index)],
                    ..controller::CreateTopics::default()
                };
                let create =
                    move |controller: &Controller| controller.create_topics(&command, &mut || index as u64);
                case.cluster.decide(create).await.expect("decided");
            }
            assert_eq!(case.cluster.image().topics.len(), (start + 1) * 8);
        });
        node.kill();
    }
}

fn create(
    name: &str,
    partitions: i32,
) -> impl FnOnce(&Controller) -> controller::Decision<()> + Send + 'static {
    let topic = controller::NewTopic {
        name: name.to_owned(),
        partitions,
        replication_factor: 1,
        ..controller::NewTopic::default()
    };
    let command = controller::CreateTopics { topics: vec![topic], ..controller::CreateTopics::default() };
    let seed = name.len() as u64;
    move |controller| {
        let decision = controller.create_topics(&command, &mut || seed);
        controller::Decision { records: decision.records, reply: () }
    }
}

fn delete(name: &str) -> impl FnOnce(&Controller) -> controller::Decision<()> + Send + 'static {
    let name = name.to_owned();
    move |controller| {
        let topic = controller.image().topics.by_name(&name).expect("it is there").id;
        let asked = controller::DeleteTopic { name: None, id: topic };
        let decision = controller.delete_topics(&[asked]);
        controller::Decision { records: decision.records, reply: () }
    }
}

#[test]
fn what_nobody_waits_for_any_more_is_not_decided() {
    let (world, node) = world();
    world.run(async {
        let (case, _) = Case::start(&node, NEVER).await.expect("boots");
        let mut asked = Box::pin(case.cluster.decide(create("a", 1)));
        assert!(asked.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        drop(asked);
        case.block().await;
        assert!(case.cluster.image().topics.is_empty());
    });
}

#[test]
fn a_partition_can_be_written_to_as_soon_as_its_creation_is_answered() {
    let (world, node) = world();
    world.run(async {
        let (case, _) = Case::start(&node, NEVER).await.expect("boots");
        node.set_disk_latency(Duration::from_millis(5)..Duration::from_millis(50));
        for name in ["a", "bb", "ccc"] {
            case.cluster.decide(create(name, 3)).await.expect("created");
            assert!(case.cluster.image().topics.by_name(name).is_some());
            for partition in 0..3 {
                let partition = case.replication.partition(name, partition).expect("it is held here");
                assert!(partition.offsets().is_ok(), "it is led here");
            }
        }
    });
}

#[test]
fn the_quorum_goes_on_while_partitions_are_opened() {
    let (world, node) = world();
    world.run(async {
        let (case, _) = Case::start(&node, NEVER).await.expect("boots");
        let high_watermark = async || case.cluster.describe_quorum().await.expect("described").high_watermark;
        let before = high_watermark().await;
        node.set_disk_latency(Duration::from_millis(5)..Duration::from_millis(50));
        let creations = async {
            let (first, second) =
                tokio::join!(case.cluster.decide(create("a", 20)), case.cluster.decide(create("bb", 1)));
            first.and(second)
        };
        let commits = async {
            while high_watermark().await.0 < before.0 + 23 {
                case.clock.sleep(Duration::from_millis(1)).await;
            }
            assert!(case.cluster.image().topics.is_empty(), "committed, and not open yet");
        };
        let (created, ()) = tokio::join!(creations, commits);
        created.expect("created");
        assert_eq!(case.cluster.image().topics.len(), 2);
    });
}

#[test]
fn a_metadata_disk_that_fails_ends_the_node() {
    let (world, node) = world();
    world.run(async {
        let (case, _) = Case::start(&node, NEVER).await.expect("boots");
        node.disk().fail(Kind::Sync, "/d/__cluster_metadata-0", 0, 1);
        let cluster = case.cluster.clone();
        let answer = cluster
            .decide(|controller| {
                let epoch = controller.image().brokers.get(ME).expect("registered").epoch;
                controller.allocate_producer_ids(ME, epoch)
            })
            .await;
        assert!(answer.is_err(), "nothing is answered that may be lost");
        assert!(matches!(case.fatal.await, Ok(FatalError::Storage(_))));
    });
}

#[test]
fn a_node_whose_metadata_folder_is_removed_ends() {
    let (world, node) = world();
    world.run(async {
        let (case, _) = Case::start(&node, NEVER).await.expect("boots");
        let before = case.clock.now();
        env::Disk::remove_dir_all(&*node.disk(), Path::new("/d")).expect("a disk");
        assert!(matches!(case.fatal.await, Ok(FatalError::Storage(_))));
        assert!(case.clock.now().since(before) < Duration::from_secs(10));
    });
}

#[test]
fn too_many_open_files_end_no_node() {
    for after in 0..15 {
        let (world, node) = world();
        world.run(async {
            let (mut case, _) = Case::start(&node, 1000).await.expect("boots");
            node.disk().fail(Kind::Open, "/d/__cluster_metadata-0", after, 2);
            for _ in 0..30 {
                case.block().await;
            }
            assert!(case.fatal.try_recv().is_err(), "after {after}");
        });
    }
}

#[test]
fn a_damaged_snapshot_is_told_with_its_path() {
    let (world, node) = world();
    world.run(async {
        Case::start(&node, NEVER).await.expect("boots");
    });
    node.kill();
    let disk = node.disk().clone();
    let path = Path::new("/d/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint");
    let file = env::Disk::open(&disk, path, env::Open::Write).expect("a snapshot");
    file.set_len(70).expect("cut");
    world.run(async {
        match Case::start(&node, NEVER).await {
            Err(BootError::Damaged { path: told, .. }) => assert_eq!(told, path),
            other => panic!("{:?}", other.map(|_| ()).err()),
        }
    });
}
