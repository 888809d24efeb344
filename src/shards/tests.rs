//! Shards over a log in memory, whose high watermark moves when the test says so.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use coordinator::{
    Commit, CommitPartition, CommitTopic, CoordinatorRecord, FetchOffsets, Generation, GroupState, Heartbeat,
    Join, Leave, LeavingMember, List, Protocol, Sync,
};
use env::{BoxFuture, Clock, Env};
use metadata::{Delta, Image};
use model::{
    ErrorCode, GroupId, Instant, LeaderEpoch, MemberId, NodeId, Offset, PartitionIndex, TopicId, Uuid,
};
use protocol::batch::{batches, set_base_offset};
use protocol::records::metadata::{
    MetadataRecord, PartitionChangeRecord, PartitionRecord, RemoveTopicRecord, TopicRecord,
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::log::ShardLog;
use crate::{Config, ShardError, Shards};
use model::internal_topics::CONSUMER_OFFSETS;

const ME: NodeId = NodeId(1);
const OFFSETS_ID: TopicId = Uuid([1; 16]);
const DATA_ID: TopicId = Uuid([2; 16]);

/// A log in memory.
struct MemoryLog {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    high_watermark: watch::Sender<Offset>,
}

#[derive(Default)]
struct State {
    batches: Vec<Bytes>,
    end: i64,
    epoch: i32,
    fails: Option<ErrorCode>,
    /// Whether what is appended is committed at once.
    is_held: bool,
    is_slow: bool,
}

impl MemoryLog {
    fn hold(&self, is_held: bool) {
        let mut state = self.state.lock().unwrap();
        state.is_held = is_held;
        if !is_held {
            self.high_watermark.send_replace(Offset(state.end));
        }
    }

    fn records(&self) -> Vec<CoordinatorRecord> {
        let state = self.state.lock().unwrap();
        let mut all = Vec::new();
        for bytes in &state.batches {
            for record in &batches(bytes).next().unwrap().unwrap().records(1 << 20).unwrap() {
                let record = record.unwrap();
                all.push(CoordinatorRecord::decode(record.key.unwrap(), record.value).unwrap());
            }
        }
        all
    }
}

impl ShardLog for MemoryLog {
    fn append(&self, batch: &[u8], epoch: LeaderEpoch) -> Result<Offset, ErrorCode> {
        let mut state = self.state.lock().unwrap();
        if let Some(error) = state.fails {
            return Err(error);
        }
        if epoch.0 != state.epoch {
            return Err(ErrorCode::NotLeaderOrFollower);
        }
        let mut batch = batch.to_vec();
        set_base_offset(&mut batch, Offset(state.end));
        state.end += i64::from(batches(&batch).next().unwrap().unwrap().header.record_count);
        state.batches.push(batch.into());
        if !state.is_held {
            self.high_watermark.send_replace(Offset(state.end));
        }
        Ok(Offset(state.end))
    }

    fn range(&self) -> Result<(Offset, Offset), ErrorCode> {
        Ok((Offset(0), Offset(self.state.lock().unwrap().end)))
    }

    /// One batch, and a part of the next one.
    fn read(&self, from: Offset) -> BoxFuture<'_, Result<Bytes, ErrorCode>> {
        Box::pin(async move {
            if self.state.lock().unwrap().is_slow {
                self.clock.sleep(Duration::from_secs(1)).await;
            }
            let state = self.state.lock().unwrap();
            let at = state
                .batches
                .iter()
                .position(|batch| batches(batch).next().unwrap().unwrap().header.next_offset() > from);
            let at = at.ok_or(ErrorCode::OffsetOutOfRange)?;
            let mut bytes = state.batches[at].to_vec();
            bytes.extend(state.batches.get(at + 1).into_iter().flat_map(|next| &next[..70]));
            Ok(bytes.into())
        })
    }

    fn committed(&self, end: Offset, deadline: Instant) -> BoxFuture<'_, Result<(), ErrorCode>> {
        Box::pin(async move {
            let mut high_watermark = self.high_watermark.subscribe();
            let reached = high_watermark.wait_for(|high_watermark| *high_watermark >= end);
            let reached = env::timeout(self.clock.as_ref(), deadline, reached).await;
            reached.map(|_| ()).ok_or(ErrorCode::RequestTimedOut)
        })
    }
}

/// A node with its shards, and the metadata it follows.
struct Scene {
    env: Env,
    shards: Arc<Shards>,
    logs: Arc<BTreeMap<PartitionIndex, Arc<MemoryLog>>>,
    image: Image,
    closing: CancellationToken,
}

impl Scene {
    /// A node that leads the two partitions of the offsets topic.
    async fn start(env: Env) -> Self {
        let log = |clock: Arc<dyn Clock>| MemoryLog {
            clock,
            state: Mutex::default(),
            high_watermark: watch::Sender::new(Offset(0)),
        };
        let logs: Arc<BTreeMap<_, _>> =
            Arc::new((0..2).map(|i| (i, Arc::new(log(env.clock.clone())))).collect());
        let mut scene = Self::over(env, logs);
        scene
            .change(&[
                topic(CONSUMER_OFFSETS, OFFSETS_ID),
                partition(OFFSETS_ID, 0),
                partition(OFFSETS_ID, 1),
            ])
            .await;
        scene.loaded().await;
        scene
    }

    fn over(env: Env, logs: Arc<BTreeMap<PartitionIndex, Arc<MemoryLog>>>) -> Self {
        let closing = CancellationToken::new();
        let found = logs.clone();
        let config = Config {
            groups: coordinator::Config { initial_rebalance_delay: Duration::ZERO, ..Default::default() },
            ..Config::new(ME)
        };
        let logs_of = move |partition| Ok(found[&partition].clone() as Arc<dyn ShardLog>);
        let shards = Shards::with_logs(&env, config, Box::new(logs_of), &closing);
        Self { env, shards, logs, image: Image::default(), closing }
    }

    async fn change(&mut self, records: &[MetadataRecord]) {
        let end = self.image.end().plus(records.len() as i64);
        let (image, delta) = self.image.apply(records, end).unwrap();
        self.image = image;
        self.shards.apply(&self.image, &delta).await;
    }

    /// Waits until no shard loads.
    async fn loaded(&self) {
        while self.shards.list(List::default()).await == Err(ShardError::LoadInProgress) {
            self.pass(1).await;
        }
    }

    async fn pass(&self, millis: u64) {
        self.env.clock.sleep(Duration::from_millis(millis)).await;
    }

    fn log_of(&self, group_id: &str) -> &MemoryLog {
        &self.logs[&self.shards.partition_for(&group_id.into()).unwrap()]
    }

    /// A stable group of one member.
    async fn stable(&self, group_id: &str) -> (MemberId, Generation) {
        let joined = self.shards.join(join(group_id)).await.unwrap();
        assert_eq!(joined.error, ErrorCode::None);
        let assignments = vec![(joined.member_id.clone(), Bytes::from("work"))];
        let synced =
            self.shards.sync(Sync { assignments, ..sync(group_id, &joined.member_id, joined.generation) });
        assert_eq!(synced.await.unwrap().assignment, "work");
        (joined.member_id, joined.generation)
    }

    async fn heartbeat(
        &self,
        group_id: &str,
        member: &(MemberId, Generation),
    ) -> Result<ErrorCode, ShardError> {
        let (member_id, generation) = member.clone();
        let heartbeat =
            Heartbeat { group_id: group_id.into(), generation, member_id, group_instance_id: None };
        self.shards.heartbeat(heartbeat).await
    }

    async fn committed(&self, group_id: &str) -> Vec<i64> {
        let fetch = FetchOffsets { group_id: group_id.into(), topics: None };
        let topics = self.shards.fetch_offsets(fetch).await.unwrap();
        topics.iter().flat_map(|topic| topic.partitions.iter().map(|p| p.offset.0)).collect()
    }
}

fn topic(name: &str, id: TopicId) -> MetadataRecord {
    MetadataRecord::Topic(TopicRecord::default().with_name(name.into()).with_topic_id(id))
}

fn partition(topic_id: TopicId, index: i32) -> MetadataRecord {
    let partition = PartitionRecord::default()
        .with_topic_id(topic_id)
        .with_partition_id(index)
        .with_replicas(vec![ME.0])
        .with_isr(vec![ME.0])
        .with_leader(ME.0)
        .with_leader_epoch(0);
    MetadataRecord::Partition(partition)
}

fn new_leader(index: i32, leader: NodeId) -> MetadataRecord {
    let change = PartitionChangeRecord::default()
        .with_topic_id(OFFSETS_ID)
        .with_partition_id(index)
        .with_leader(leader.0);
    MetadataRecord::PartitionChange(change)
}

fn join(group_id: &str) -> Join {
    Join {
        group_id: group_id.into(),
        member_id: MemberId::default(),
        group_instance_id: None,
        client_id: "client".into(),
        client_host: "/127.0.0.1".into(),
        protocol_type: "consumer".into(),
        protocols: vec![Protocol { name: "range".into(), metadata: Bytes::new() }],
        session_timeout: Duration::from_secs(10),
        rebalance_timeout: Duration::from_mins(1),
        member_id_required: false,
        skip_assignment: true,
        fresh_id: Uuid([9; 16]),
    }
}

fn sync(group_id: &str, member_id: &MemberId, generation: Generation) -> Sync {
    Sync {
        group_id: group_id.into(),
        generation,
        member_id: member_id.clone(),
        group_instance_id: None,
        protocol_type: None,
        protocol_name: None,
        assignments: Vec::new(),
    }
}

fn commit(group_id: &str, offsets: std::ops::Range<i32>) -> Commit {
    let partitions = offsets.map(|offset| CommitPartition {
        partition: offset,
        offset: Offset(offset.into()),
        leader_epoch: LeaderEpoch::NONE,
        metadata: "".into(),
    });
    let topic =
        CommitTopic { topic: "data".into(), topic_id: TopicId::ZERO, partitions: partitions.collect() };
    Commit {
        group_id: group_id.into(),
        generation: Generation::NONE,
        member_id: MemberId::default(),
        group_instance_id: None,
        retention: None,
        knows_group_id_not_found: true,
        topics: vec![topic],
    }
}

/// Runs a scenario on a node of a world of its own.
fn run<F: Future<Output = ()>>(scenario: impl FnOnce(Env) -> F) {
    let world = sim::World::new(1);
    let node = world.node("node");
    let env = node.boot();
    world.run(scenario(env));
}

#[test]
fn a_group_lives_in_the_shard_of_its_partition() {
    run(async |env| {
        let scene = Scene::start(env).await;
        let member = scene.stable("group").await;
        assert_eq!(scene.heartbeat("group", &member).await, Ok(ErrorCode::None));
        let described = scene.shards.describe("group".into()).await.unwrap();
        assert_eq!((described.state, described.members.len()), (GroupState::Stable, 1));
        assert_eq!(scene.shards.list(List::default()).await.unwrap().len(), 1);
        assert_eq!(scene.log_of("group").records().len(), 2);
    });
}

#[test]
fn a_commit_is_ordered_when_it_is_appended_and_told_when_it_is_committed() {
    run(async |env| {
        let scene = Scene::start(env).await;
        scene.log_of("group").hold(true);
        let appended = scene.shards.commit(commit("group", 7..8)).await.unwrap();
        assert_eq!(scene.log_of("group").records().len(), 1);
        let (clock, soon) = (scene.env.clock.clone(), scene.env.clock.now().plus(Duration::from_secs(1)));
        let told = env::timeout(clock.as_ref(), soon, appended.committed()).await;
        assert!(told.is_none(), "it is not committed");
        let appended = scene.shards.commit(commit("group", 8..9)).await.unwrap();
        scene.log_of("group").hold(false);
        assert_eq!(appended.committed().await.unwrap()[0].partitions, [(8, ErrorCode::None)]);
    });
}

#[test]
fn what_is_not_committed_is_not_shown() {
    run(async |env| {
        let scene = Scene::start(env).await;
        scene.log_of("group").hold(true);
        let _appended = scene.shards.commit(commit("group", 7..8)).await.unwrap();
        let fetch = FetchOffsets { group_id: "group".into(), topics: None };
        let refused = ShardError::Refused(ErrorCode::CoordinatorNotAvailable);
        assert_eq!(scene.shards.fetch_offsets(fetch).await, Err(refused));
        scene.log_of("group").hold(false);
        assert_eq!(scene.committed("group").await, [7]);
    });
}

#[test]
fn a_restart_finds_everything_again() {
    run(async |env| {
        let scene = Scene::start(env).await;
        let member = scene.stable("group").await;
        for offset in 0..5 {
            let commit = Commit {
                member_id: member.0.clone(),
                generation: member.1,
                ..commit("group", offset..offset + 1)
            };
            scene.shards.commit(commit).await.unwrap().committed().await.unwrap();
        }
        scene.closing.cancel();
        let mut after = Scene::over(scene.env.clone(), scene.logs.clone());
        after.image = scene.image.clone();
        after.shards.apply(&after.image, &Delta::default()).await;
        after.loaded().await;
        assert_eq!(after.heartbeat("group", &member).await, Ok(ErrorCode::None));
        assert_eq!(after.committed("group").await, [0, 1, 2, 3, 4]);
    });
}

#[test]
fn while_it_loads_a_shard_says_so() {
    run(async |env| {
        let mut scene = Scene::start(env).await;
        let member = scene.stable("group").await;
        let index = scene.shards.partition_for(&"group".into()).unwrap();
        scene.log_of("group").state.lock().unwrap().is_slow = true;
        scene.change(&[new_leader(index, NodeId(2))]).await;
        assert_eq!(scene.heartbeat("group", &member).await, Err(ShardError::NotCoordinator));
        scene.change(&[new_leader(index, ME)]).await;
        scene.log_of("group").state.lock().unwrap().epoch = 2;
        assert_eq!(scene.heartbeat("group", &member).await, Err(ShardError::LoadInProgress));
        assert_eq!(scene.shards.list(List::default()).await, Err(ShardError::LoadInProgress));
        scene.loaded().await;
        assert_eq!(scene.heartbeat("group", &member).await, Ok(ErrorCode::None));
        assert_eq!(scene.shards.commit(commit("other-2", 0..1)).await.err(), None);
    });
}

#[test]
fn who_waits_is_told_when_the_coordinator_moves() {
    run(async |env| {
        let mut scene = Scene::start(env).await;
        scene.stable("group").await;
        let shards = scene.shards.clone();
        let (give, take) = tokio::sync::oneshot::channel();
        let second = Join { fresh_id: Uuid([8; 16]), ..join("group") };
        let second = async move { drop(give.send(shards.join(second).await)) };
        scene.env.exec.spawn("client", Box::pin(second));
        scene.pass(10).await;
        scene.change(&[new_leader(0, NodeId(2)), new_leader(1, NodeId(2))]).await;
        assert_eq!(take.await.unwrap(), Err(ShardError::NotCoordinator));
    });
}

#[test]
fn without_the_offsets_topic_nobody_coordinates() {
    run(async |env| {
        let scene = Scene::over(env, Arc::default());
        scene.shards.apply(&Image::default(), &Delta::default()).await;
        assert_eq!(scene.shards.partition_for(&"group".into()), None);
        assert_eq!(scene.shards.join(join("group")).await, Err(ShardError::NotCoordinator));
        assert_eq!(scene.shards.list(List::default()).await, Ok(Vec::new()));
    });
}

#[test]
fn sessions_end_by_the_clock() {
    run(async |env| {
        let scene = Scene::start(env).await;
        let member = scene.stable("group").await;
        scene.pass(9_900).await;
        assert_eq!(scene.heartbeat("group", &member).await, Ok(ErrorCode::None));
        scene.pass(10_100).await;
        assert_eq!(scene.heartbeat("group", &member).await, Ok(ErrorCode::UnknownMemberId));
    });
}

#[test]
fn offsets_expire_by_the_clock() {
    run(async |env| {
        let scene = Scene::start(env).await;
        let keep = commit("group", 0..1);
        let expire = Commit { retention: Some(Duration::from_secs(1)), ..commit("group", 1..2) };
        for commit in [keep, expire] {
            scene.shards.commit(commit).await.unwrap().committed().await.unwrap();
        }
        assert_eq!(scene.committed("group").await, [0, 1]);
        scene.pass(10 * 60 * 1000 + 1).await;
        assert_eq!(scene.committed("group").await, [0]);
    });
}

#[test]
fn a_refused_append_fails_the_request_and_nothing_else() {
    run(async |env| {
        let scene = Scene::start(env).await;
        let member = scene.stable("group").await;
        scene.log_of("group").state.lock().unwrap().fails = Some(ErrorCode::NotEnoughReplicas);
        let commit = || Commit { member_id: member.0.clone(), generation: member.1, ..commit("group", 0..1) };
        let refused = ShardError::Refused(ErrorCode::CoordinatorNotAvailable);
        assert_eq!(scene.shards.commit(commit()).await.err(), Some(refused));
        scene.log_of("group").state.lock().unwrap().fails = None;
        assert_eq!(scene.committed("group").await, [0; 0]);
        assert_eq!(scene.shards.commit(commit()).await.err(), None);
        assert_eq!(scene.heartbeat("group", &member).await, Ok(ErrorCode::None));
    });
}

#[test]
fn a_commit_larger_than_a_batch_is_split() {
    run(async |env| {
        let scene = Scene::start(env).await;
        scene.shards.commit(commit("group", 0..20_000)).await.unwrap().committed().await.unwrap();
        assert_eq!(scene.committed("group").await.len(), 20_000);
        assert!(
            scene.log_of("group").state.lock().unwrap().batches.iter().all(|batch| batch.len() < 300_000)
        );
    });
}

#[test]
fn commits_at_hand_become_one_batch() {
    run(async |env| {
        let scene = Scene::start(env).await;
        for index in 0..10 {
            let shards = scene.shards.clone();
            let client = async move { drop(shards.commit(commit("group", index..index + 1)).await) };
            scene.env.exec.spawn("client", Box::pin(client));
        }
        scene.pass(10).await;
        assert_eq!(scene.committed("group").await.len(), 10);
        assert!(scene.log_of("group").state.lock().unwrap().batches.len() < 10);
    });
}

#[test]
fn the_offsets_of_a_deleted_topic_are_forgotten() {
    run(async |env| {
        let mut scene = Scene::start(env).await;
        scene.change(&[topic("data", DATA_ID), partition(DATA_ID, 0)]).await;
        scene.shards.commit(commit("group", 0..2)).await.unwrap().committed().await.unwrap();
        let remove = RemoveTopicRecord::default().with_topic_id(DATA_ID);
        scene.change(&[MetadataRecord::RemoveTopic(remove)]).await;
        scene.pass(1).await;
        assert_eq!(scene.committed("group").await, [1], "partition 0 is gone");
    });
}

#[test]
fn a_group_is_deleted_when_it_is_empty() {
    run(async |env| {
        let scene = Scene::start(env).await;
        let (member_id, _) = scene.stable("group").await;
        let group_id = || GroupId::from("group");
        assert_eq!(scene.shards.delete(group_id()).await.unwrap().error, ErrorCode::NonEmptyGroup);
        let members = vec![LeavingMember { member_id, group_instance_id: None }];
        scene.shards.leave(Leave { group_id: group_id(), members }).await.unwrap();
        assert_eq!(scene.shards.delete(group_id()).await.unwrap().error, ErrorCode::None);
        assert_eq!(scene.shards.list(List::default()).await.unwrap(), []);
    });
}

#[test]
fn a_log_that_is_not_understood_is_not_served() {
    run(async |env| {
        let mut scene = Scene::start(env).await;
        scene.shards.commit(commit("group", 0..1)).await.unwrap().committed().await.unwrap();
        let index = scene.shards.partition_for(&"group".into()).unwrap();
        {
            let mut state = scene.log_of("group").state.lock().unwrap();
            let mut rotten = state.batches[0].to_vec();
            *rotten.last_mut().unwrap() ^= 1;
            state.batches[0] = rotten.into();
        }
        scene.change(&[new_leader(index, NodeId(2))]).await;
        scene.change(&[new_leader(index, ME)]).await;
        scene.loaded().await;
        assert_eq!(scene.shards.describe("group".into()).await, Err(ShardError::NotCoordinator));
        // It holds nobody up who has news for all shards.
        for _ in 0..1_100 {
            let remove = RemoveTopicRecord::default().with_topic_id(DATA_ID);
            let records = [topic("data", DATA_ID), partition(DATA_ID, 0)];
            scene.change(&records).await;
            scene.change(&[MetadataRecord::RemoveTopic(remove)]).await;
        }
    });
}
