//! Partitions over a disk in memory: what is committed, what is seen, what survives.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use env::Env;
use metadata::config::Overrides;
use metadata::{Delta, Image};
use model::{BrokerEpoch, ClusterId, Instant, LeaderEpoch, NodeId, Offset, Uuid};
use protocol::batch::BatchBuilder;
use protocol::records::metadata::{
    ConfigRecord, MetadataRecord, PartitionChangeRecord, PartitionRecord, RegisterBrokerRecord,
    RemoveTopicRecord, TopicRecord,
};
use replica::FetchState;
use sim::{Kind, Node, World};
use storage::{LogFolder, MetaProperties, TailBudget};
use tokio_util::sync::CancellationToken;

use crate::asked::{Asked, Lane, Listing, Next};
use crate::*;

const ME: NodeId = NodeId(1);
const TOPIC: Uuid = Uuid([5; 16]);
const EPOCH: BrokerEpoch = BrokerEpoch(7);

fn topic() -> Vec<MetadataRecord> {
    topic_in_epoch(0)
}

fn topic_in_epoch(leader_epoch: i32) -> Vec<MetadataRecord> {
    let partition = PartitionRecord {
        topic_id: TOPIC,
        replicas: vec![ME.0],
        isr: vec![ME.0],
        leader: ME.0,
        partition_id: 0,
        leader_epoch,
        partition_epoch: 0,
        directories: vec![Uuid::ZERO],
        ..PartitionRecord::default()
    };
    let topic = TopicRecord { name: "orders".to_owned(), topic_id: TOPIC };
    vec![MetadataRecord::Topic(topic), MetadataRecord::Partition(partition)]
}

fn config(key: &str, value: &str) -> MetadataRecord {
    MetadataRecord::Config(ConfigRecord {
        resource_type: 2,
        resource_name: "orders".to_owned(),
        name: key.to_owned(),
        value: Some(value.to_owned()),
    })
}

fn image(records: &[MetadataRecord]) -> (Image, Delta) {
    let me = RegisterBrokerRecord {
        broker_id: ME.0,
        broker_epoch: EPOCH.0,
        fenced: false,
        ..RegisterBrokerRecord::default()
    };
    let registered = [MetadataRecord::RegisterBroker(me)];
    let (image, _) = Image::default().apply(&registered, Offset(1)).expect("a broker");
    image.apply(records, Offset(2)).expect("records that fit")
}

/// What of this is this node's.
fn assigned(records: &[MetadataRecord]) -> Arc<[crate::assignment::Assignment]> {
    let fixed = Overrides::default();
    let settings = crate::assignment::Settings { fixed: &fixed };
    crate::assignment::Change::all(&image(records).0, ME, &settings, std::iter::empty()).assigned
}

/// A node that holds what `records` say.
struct Case {
    env: Env,
    replication: Arc<Replication>,
}

impl Case {
    async fn start(node: &Node, records: &[MetadataRecord]) -> Self {
        Self::start_in(&["/d"], node, records).await
    }

    async fn start_in(folders: &[&str], node: &Node, records: &[MetadataRecord]) -> Self {
        let env = node.boot();
        let tail = TailBudget::new(1 << 20);
        let open = |folder: &&str| {
            let identity = MetaProperties {
                cluster_id: ClusterId::from("c"),
                node_id: ME,
                directory_id: Some(env.rng.uuid()),
            };
            let disk = env.disk.clone();
            Arc::new(LogFolder::open(disk, Path::new(folder), &identity, tail.clone()).expect("a folder"))
        };
        let folders = folders.iter().map(open).collect();
        let upkeep = UpkeepConfig {
            retention_check: Duration::from_mins(5),
            flush_check: Duration::from_secs(1),
            checkpoint: Duration::from_secs(5),
        };
        let (fixed, replicas) = (Overrides::default(), ReplicasConfig::default());
        let config = Config { node_id: ME, fixed, recovery_threads: 2, upkeep, replicas };
        let replication = Replication::start(&env, config, folders, &CancellationToken::new());
        replication.registered(EPOCH);
        replication.apply_all(&image(records).0).await;
        Self { env, replication }
    }

    fn partition(&self) -> Arc<Partition> {
        self.replication.partition("orders", 0).expect("it is held here")
    }

    /// The partition alone hears of new metadata, at once.
    fn learn(&self, records: &[MetadataRecord]) {
        let assigned = assigned(records);
        self.partition().apply(assigned[0].config.clone(), assigned[0].state.clone());
    }

    fn missing(&self) -> Option<PartitionError> {
        self.replication.partition("orders", 0).err()
    }

    fn append(&self, value: &str) -> Offset {
        self.append_decided_in(LeaderEpoch::NONE, value).expect("appended")
    }

    fn append_decided_in(&self, epoch: LeaderEpoch, value: &str) -> Result<Offset, AppendError> {
        let mut batch = BatchBuilder::new().timestamp(self.env.clock.wall());
        batch.append(None, Some(value.as_bytes()), &[]);
        let appended = self.partition().append(&batch.build(), (Origin::Client, epoch), true)?;
        Ok(appended.last_offset.plus(1))
    }

    fn high_watermark(&self) -> Offset {
        self.partition().offsets().expect("it is led here").high_watermark
    }

    async fn commit(&self, end: Offset) -> Result<(), CommitError> {
        let deadline: Instant = self.env.clock.now().plus(Duration::from_secs(30));
        let epoch = self.partition().offsets().map_or(LeaderEpoch::NONE, |offsets| offsets.leader_epoch);
        let commit = Commit { partition: self.partition(), epoch, end };
        committed(self.env.clock.as_ref(), &[commit], deadline).await.remove(0)
    }
}

fn world() -> (World, Node) {
    let world = World::new(11);
    let node = world.node("n");
    (world, node)
}

#[test]
fn nothing_is_visible_before_it_is_flushed() {
    let (world, node) = world();
    world.run(async {
        let case = Case::start(&node, &topic()).await;
        let end = case.append("a");
        assert_eq!(case.high_watermark(), Offset(0));
        let read = case.partition().read(Offset(0), 1000, true, Isolation::ReadUncommitted).expect("read");
        assert!(read.slice.is_empty());
        assert_eq!(case.commit(end).await, Ok(()));
        assert_eq!(case.high_watermark(), end);
        let read = case.partition().read(Offset(0), 1000, true, Isolation::ReadUncommitted).expect("read");
        assert!(!read.slice.is_empty());
    });
}

#[test]
fn an_append_does_not_wait_for_a_search_by_time() {
    let (world, node) = world();
    world.run(async {
        let case = Case::start(&node, &topic()).await;
        case.append("a");
        let (partition, exec) = (case.partition(), case.env.exec.as_ref());
        let append = async { (case.append("b"), case.env.clock.now()) };
        let (found, (end, appended)) = tokio::join!(biased; partition.max_timestamp(exec), append);
        assert!(case.env.clock.now() > appended, "the search blocks elsewhere");
        assert_eq!((found.expect("a search").map(|found| found.offset), end), (Some(Offset(0)), Offset(2)));
    });
}

#[test]
fn what_a_search_by_time_found_in_another_epoch_counts_for_nothing() {
    let (world, node) = world();
    world.run(async {
        let case = Case::start(&node, &topic()).await;
        case.append("a");
        let (partition, exec) = (case.partition(), case.env.exec.as_ref());
        let lead = async { case.learn(&topic_in_epoch(1)) };
        let (found, ()) = tokio::join!(biased; partition.max_timestamp(exec), lead);
        assert!(matches!(found, Err(ReadError::Partition(PartitionError::NotLeader))));
    });
}

#[test]
fn what_was_committed_survives_a_power_cut() {
    let (world, node) = world();
    let end = world.run(async {
        let case = Case::start(&node, &topic()).await;
        let end = case.append("a");
        case.commit(end).await.expect("committed");
        end
    });
    node.power_loss();
    world.run(async {
        let case = Case::start(&node, &topic()).await;
        assert_eq!(case.high_watermark(), end, "what recovery kept is flushed before anybody leads");
    });
}

#[test]
fn what_was_decided_in_another_leader_epoch_is_not_appended() {
    let (world, node) = world();
    world.run(async {
        let case = Case::start(&node, &topic_in_epoch(3)).await;
        let refused = |epoch| match case.append_decided_in(LeaderEpoch(epoch), "a") {
            Err(AppendError::Partition(error)) => error,
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(2), PartitionError::FencedLeaderEpoch);
        assert_eq!(refused(4), PartitionError::UnknownLeaderEpoch);
        assert_eq!(case.append_decided_in(LeaderEpoch(3), "a").expect("appended"), Offset(1));
    });
}

#[test]
fn every_epoch_but_minus_one_is_held_against_the_leaders() {
    let (world, node) = world();
    world.run(async {
        let case = Case::start(&node, &topic_in_epoch(3)).await;
        let check = |epoch| case.partition().check_epoch(LeaderEpoch(epoch)).err();
        assert_eq!((check(-1), check(3)), (None, None));
        for old in [i32::MIN, -2, 2] {
            assert_eq!(check(old), Some(PartitionError::FencedLeaderEpoch));
        }
        assert_eq!(check(4), Some(PartitionError::UnknownLeaderEpoch));
    });
}

#[test]
fn with_write_caching_what_is_written_counts_at_once() {
    let (world, node) = world();
    world.run(async {
        let records = [topic(), vec![config("write.caching", "true")]].concat();
        let case = Case::start(&node, &records).await;
        let end = case.append("a");
        assert_eq!(case.high_watermark(), end);
    });
}

#[test]
fn a_failed_flush_takes_the_partition_offline_and_tells_who_waits() {
    let (world, node) = world();
    world.run(async {
        let case = Case::start(&node, &topic()).await;
        let end = case.append("a");
        case.commit(end).await.expect("committed");
        node.disk().fail(Kind::Sync, "/d/orders-0", 0, 1);
        let end = case.append("b");
        assert_eq!(case.commit(end).await, Err(CommitError::Partition(PartitionError::Offline)));
        assert_eq!(case.partition().offsets(), Err(PartitionError::Offline));
    });
}

#[test]
fn a_flush_that_finds_too_many_open_files_is_tried_again_until_there_are_fewer() {
    let (world, node) = world();
    world.run(async {
        let case = Case::start(&node, &topic()).await;
        node.disk().fail(Kind::Open, "/d/orders-0", 1, 41);
        let (end, begun) = (case.append("a"), case.env.clock.now());
        case.commit(end).await.expect("committed");
        let took = case.env.clock.now().since(begun);
        assert!(took > Duration::from_secs(10), "it pauses between the tries: {took:?}");
        assert!(!case.replication.folders()[0].is_offline);
    });
}

#[test]
fn a_partition_that_was_not_made_for_too_many_open_files_is_made_when_there_are_fewer() {
    for opened in 0..6 {
        let (world, node) = world();
        world.run(async {
            let case = Case::start(&node, &[]).await;
            node.disk().fail(Kind::Open, "/d/orders-0", opened, u64::MAX);
            case.replication.apply_all(&image(&topic()).0).await;
            node.disk().heal();
            case.env.clock.sleep(Duration::from_secs(6)).await;
            let end = case.append("a");
            case.commit(end).await.expect("committed");
        });
    }
}

#[test]
fn a_log_that_waits_for_its_flush_is_not_opened_by_upkeep_too() {
    let (world, node) = world();
    world.run(async {
        let case = Case::start(&node, &topic()).await;
        let end = case.append("a");
        case.commit(end).await.expect("committed");
        node.kill();
        node.disk().fail(Kind::Open, "/d/orders-0", 0, u64::MAX);
        let case = Case::start(&node, &topic()).await;
        assert_eq!(case.missing(), Some(PartitionError::Offline));
        node.disk().heal();
        let opening = case.replication.read_missing(&assigned(&topic())).await;
        case.replication.reopen();
        assert_eq!(case.missing(), Some(PartitionError::Unknown), "it is not held before it is flushed");
        case.replication.flush_read(&opening).await;
        case.replication.apply_all(&image(&topic_in_epoch(1)).0).await;
        assert_eq!(case.high_watermark(), end);
    });
}

#[test]
fn a_log_that_is_opened_late_and_lost_records_takes_no_part_before_the_next_start() {
    let (world, node) = world();
    world.run(async {
        let cached = [topic(), vec![config("write.caching", "true")]].concat();
        let case = Case::start(&node, &cached).await;
        for value in 0..50 {
            case.append(&value.to_string());
        }
        case.env.clock.sleep(Duration::from_secs(6)).await;
        node.power_loss();
        node.disk().fail(Kind::Open, "/d/orders-0", 0, u64::MAX);
        let case = Case::start(&node, &cached).await;
        node.disk().heal();
        for _ in 0..2 {
            case.env.clock.sleep(Duration::from_secs(6)).await;
            case.replication.apply_all(&image(&cached).0).await;
            assert_eq!(
                (case.missing(), case.replication.lost()),
                (Some(PartitionError::Offline), Vec::new())
            );
        }
        node.kill();
        let case = Case::start(&node, &cached).await;
        assert!(case.high_watermark() < Offset(50), "the controller was told");
    });
}

#[test]
fn a_folder_is_marked_clean_only_when_its_logs_were_closed() {
    for fails in [false, true] {
        let (world, node) = world();
        world.run(async {
            let case = Case::start(&node, &topic()).await;
            case.append("a");
            if fails {
                node.disk().fail(Kind::Open, "/d/orders-0", 0, u64::MAX);
            }
            case.replication.close(BrokerEpoch(1)).await;
            let marked = case.env.disk.exists(Path::new("/d/.kafka_cleanshutdown")).expect("a disk");
            assert_eq!(marked, !fails);
        });
    }
}

#[test]
fn a_deleted_topic_is_gone_for_who_waits_too() {
    let (world, node) = world();
    world.run(async {
        let case = Case::start(&node, &topic()).await;
        let partition = case.partition();
        let (image, _) = image(&topic());
        let removal = [MetadataRecord::RemoveTopic(RemoveTopicRecord { topic_id: TOPIC })];
        let (image, delta) = image.apply(&removal, Offset(3)).expect("it fits");
        let (waited, ()) = tokio::join!(case.commit(Offset(100)), case.replication.apply(&image, &delta));
        assert_eq!(waited, Err(CommitError::Partition(PartitionError::Unknown)));
        assert!(case.replication.partition("orders", 0).is_err());
        assert_eq!(partition.offsets(), Err(PartitionError::Unknown));
        assert!(!case.env.disk.exists(Path::new("/d/orders-0")).expect("a disk"));
    });
}

#[test]
fn a_partition_that_the_cluster_does_not_know_is_set_aside() {
    let (world, node) = world();
    world.run(async {
        let case = Case::start(&node, &topic()).await;
        case.append("a");
        case.replication.close(BrokerEpoch(1)).await;
    });
    node.kill();
    world.run(async {
        let case = Case::start(&node, &[]).await;
        let names: Vec<_> =
            case.env.disk.list(Path::new("/d")).expect("a disk").into_iter().map(|e| e.name).collect();
        assert!(names.iter().any(|name| name.ends_with("-stray")), "{names:?}");
        assert!(!names.contains(&"orders-0".to_owned()), "{names:?}");
    });
}

#[test]
fn a_topic_that_comes_with_its_configuration_is_opened_once() {
    let records = [topic(), vec![config("retention.ms", "5")]].concat();
    let (image, delta) = image(&records);
    let fixed = Overrides::default();
    let settings = crate::assignment::Settings { fixed: &fixed };
    assert_eq!(crate::assignment::Change::of(&image, &delta, ME, &settings).assigned.len(), 1);
}

#[test]
fn logs_that_are_open_are_led_in_the_epoch_that_comes_then() {
    let (world, node) = world();
    world.run(async {
        let case = Case::start(&node, &topic()).await;
        case.append("a");
    });
    node.kill();
    world.run(async {
        let case = Case::start(&node, &[]).await;
        case.replication.open_logs(&image(&topic()).0).await;
        assert_eq!(case.partition().offsets(), Err(PartitionError::NotLeader));
        case.replication.apply_all(&image(&topic_in_epoch(4)).0).await;
        assert_eq!(case.partition().offsets().expect("led").leader_epoch, LeaderEpoch(4));
    });
}

#[test]
fn what_the_newest_image_does_not_know_is_deleted_though_it_was_just_opened() {
    let (world, node) = world();
    world.run(async {
        let case = Case::start(&node, &topic()).await;
        case.replication.apply_all(&image(&[]).0).await;
        assert!(case.replication.partition("orders", 0).is_err());
        assert!(!case.env.disk.exists(Path::new("/d/orders-0")).expect("a disk"));
    });
}

#[test]
fn a_partition_that_may_lie_in_an_offline_folder_does_not_begin_anew_in_another() {
    let (world, node) = world();
    world.run(async {
        let case = Case::start_in(&["/d", "/e"], &node, &topic_in_epoch(0)).await;
        let end = case.append("a");
        case.commit(end).await.expect("committed");
    });
    node.kill();
    node.disk().fail(Kind::Name, "/d/orders-0", 0, 1);
    world.run(async {
        let case = Case::start_in(&["/d", "/e"], &node, &topic_in_epoch(0)).await;
        assert_eq!(case.missing(), Some(PartitionError::Offline));
        let (later, change) = image(&topic_in_epoch(0));
        case.replication.apply(&later, &change).await;
        case.replication.apply_all(&later).await;
        assert_eq!(case.missing(), Some(PartitionError::Offline));
        let id = model::TopicIdPartition { topic_id: TOPIC, partition: 0 };
        assert_eq!(case.replication.partition_by_id(id).err(), Some(PartitionError::Offline));
        assert!(!case.env.disk.exists(Path::new("/e/orders-0")).expect("a disk"));
    });
}

#[test]
fn a_partition_that_is_new_begins_in_a_folder_that_works() {
    let (world, node) = world();
    world.run(async {
        let case = Case::start_in(&["/d", "/e"], &node, &[]).await;
        node.disk().fail(Kind::Name, "/d/orders-0", 0, u64::MAX);
        let (image, created) = image(&topic());
        case.replication.apply(&image, &created).await;
        case.replication.apply_all(&image).await;
        assert_eq!(case.missing(), None);
        assert!(case.env.disk.exists(Path::new("/e/orders-0")).expect("a disk"));
    });
}

/// Leaves so many bytes of the node's disk.
fn set_free(node: &Node, left: u64) {
    let disk = node.disk();
    disk.set_capacity(1 << 40);
    let free = env::Disk::free_bytes(&*disk, Path::new("/d")).expect("a disk");
    disk.set_capacity((1 << 40) - free + left);
}

#[test]
fn a_partition_that_is_new_begins_in_a_folder_with_space() {
    let (world, node) = world();
    world.run(async {
        node.disk().set_capacity(64 << 20);
        let case = Case::start_in(&["/d", "/e"], &node, &[]).await;
        case.env.clock.sleep(Duration::from_secs(1)).await;
        set_free(&node, 0);
        let first = &case.replication.folders.get(0).logs;
        first.checkpoint(&[]).expect("out of the reserve");
        assert!(first.is_full());
        let (image, created) = image(&topic());
        case.replication.apply(&image, &created).await;
        assert_eq!(case.missing(), None);
        assert!(case.env.disk.exists(Path::new("/e/orders-0")).expect("a disk"));
    });
}

#[test]
fn a_partition_that_was_not_made_for_lack_of_space_is_made_when_there_is_some() {
    for seed in 0..10 {
        let world = World::new(seed);
        let node = world.node("n");
        world.run(async {
            let case = Case::start(&node, &[]).await;
            node.disk().set_capacity(1 << 40);
            let free = case.env.disk.free_bytes(Path::new("/d")).expect("a disk");
            node.disk().set_capacity((1 << 40) - free);
            case.replication.apply_all(&image(&topic()).0).await;
            assert_eq!(case.missing(), Some(PartitionError::Offline));
            node.disk().set_capacity(u64::MAX);
            case.env.clock.sleep(Duration::from_secs(6)).await;
            assert_eq!(case.missing(), None);
            let end = case.append("a");
            case.commit(end).await.expect("committed");
        });
        node.power_loss();
        world.run(async {
            let case = Case::start(&node, &topic_in_epoch(1)).await;
            assert_eq!(case.commit(Offset(1)).await, Ok(()), "seed {seed}");
        });
    }
}

#[test]
fn a_node_that_is_killed_soon_does_not_recover_the_same_twice() {
    let (world, node) = world();
    world.run(async {
        let case = Case::start(&node, &topic()).await;
        let end = case.append("a");
        case.commit(end).await.expect("committed");
        case.env.clock.sleep(Duration::from_secs(1)).await;
        let rows =
            case.env.disk.read(Path::new("/d/recovery-point-offset-checkpoint"), 1000).expect("a checkpoint");
        assert_eq!(String::from_utf8_lossy(&rows), "0\n1\norders 0 1\n");
    });
}

#[test]
fn long_polls_leave_nothing_behind() {
    let (world, node) = world();
    world.run(async {
        let case = Case::start(&node, &topic()).await;
        let signal = Signal::new(1);
        drop(case.partition().register(Awaited::HighWatermark(Offset(100)), &signal, 0));
        assert_eq!(case.partition().waiting(), 0);
    });
}

#[test]
fn a_change_of_a_broker_concerns_the_partitions_that_have_a_replica_on_it() {
    let assigned = |id: i32| {
        let (image, _) = image(&topic());
        let broker =
            RegisterBrokerRecord { broker_id: id, broker_epoch: 9, ..RegisterBrokerRecord::default() };
        let (image, delta) =
            image.apply(&[MetadataRecord::RegisterBroker(broker)], Offset(3)).expect("it fits");
        let fixed = Overrides::default();
        let settings = crate::assignment::Settings { fixed: &fixed };
        crate::assignment::Change::of(&image, &delta, ME, &settings).assigned.len()
    };
    assert_eq!((assigned(ME.0), assigned(2)), (1, 0));
}

#[test]
fn a_partition_that_moved_to_other_brokers_is_gone() {
    let (world, node) = world();
    world.run(async {
        let case = Case::start(&node, &topic()).await;
        let (image, _) = image(&topic());
        let moved = PartitionChangeRecord {
            topic_id: TOPIC,
            partition_id: 0,
            replicas: Some(vec![2]),
            isr: Some(vec![2]),
            leader: 2,
            ..PartitionChangeRecord::default()
        };
        let (image, delta) =
            image.apply(&[MetadataRecord::PartitionChange(moved)], Offset(3)).expect("it fits");
        case.replication.apply(&image, &delta).await;
        assert_eq!(case.missing(), Some(PartitionError::Unknown));
        assert!(!case.env.disk.exists(Path::new("/d/orders-0")).expect("a disk"));
    });
}

#[test]
fn while_a_lane_asks_where_a_log_begins_the_other_one_asks_for_records() {
    let (world, node) = world();
    world.run(async {
        let partition = Case::start(&node, &topic()).await.partition();
        let (id, leader, leader_epoch) = (QuestionId(1), NodeId(2), LeaderEpoch(0));
        let mut asked = Asked::default();
        asked.ask_offsets(Listing { partition: partition.clone(), id, leader_epoch });
        assert!(matches!(asked.take(Lane::Main), Some(Next::Offsets(_))));
        let (offset, last_fetched_epoch, log_start) = (Offset(0), None, Offset(0));
        asked.ask(&partition, FetchState { id, leader, leader_epoch, offset, last_fetched_epoch, log_start });
        assert!(matches!(asked.take(Lane::Aside), Some(Next::Records(_))));
    });
}
