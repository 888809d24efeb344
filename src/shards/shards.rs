//! All shards of this node: which there are, and the way to each.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use coordinator::{
    Commit, DeleteOffsets, DeletedGroup, DescribedGroup, FetchOffsets, FetchedTopic, Heartbeat, Join,
    JoinReply, Leave, LeaveReply, List, ListedGroup, Sync, SyncReply, TopicErrors, partition_for,
};
use env::Env;
use metadata::{Delta, Image, Topic};
use model::internal_topics::CONSUMER_OFFSETS;
use model::{ErrorCode, GroupId, LeaderEpoch, Offset, PartitionIndex, TopicPartition};
use replication::Replication;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use crate::answer::{Answer, Appended};
use crate::load::load;
use crate::log::ShardLog;
use crate::partition_log::PartitionLog;
use crate::shard::{Command, Shard};
use crate::{Config, ShardError};

/// Commands that wait for a shard; who comes then waits for a place.
const MAILBOX: usize = 1024;

/// Finds the log of a partition of the offsets topic.
pub(crate) type Logs =
    Box<dyn Fn(PartitionIndex) -> Result<Arc<dyn ShardLog>, ErrorCode> + Send + std::marker::Sync>;

/// The group coordinators on this node.
pub struct Shards {
    env: Env,
    config: Config,
    logs: Logs,
    closing: CancellationToken,
    led: Mutex<Led>,
}

/// The part of the offsets topic that this node leads.
#[derive(Default)]
struct Led {
    /// How many partitions the topic has; 0 while there is none.
    partitions: i32,
    doors: BTreeMap<PartitionIndex, Door>,
}

/// The way to a shard.
struct Door {
    epoch: LeaderEpoch,
    mailbox: mpsc::Sender<Command>,
    log: Arc<dyn ShardLog>,
    phase: watch::Receiver<Phase>,
    /// Ends the shard.
    end: CancellationToken,
    /// Is dropped when the shard has ended.
    ended: oneshot::Receiver<()>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Loading,
    Running,
    Failed,
}

impl Shards {
    /// There are no shards before the first [`Self::apply`]. All end when `closing` is cancelled.
    pub fn start(
        env: &Env,
        config: Config,
        replication: Arc<Replication>,
        closing: &CancellationToken,
    ) -> Arc<Self> {
        let world = env.clone();
        let log = move |partition| -> Result<Arc<dyn ShardLog>, ErrorCode> {
            let partition = replication.partition(CONSUMER_OFFSETS, partition)?;
            Ok(Arc::new(PartitionLog::new(world.clone(), partition)))
        };
        Self::with_logs(env, config, Box::new(log), closing)
    }

    pub(crate) fn with_logs(env: &Env, config: Config, logs: Logs, closing: &CancellationToken) -> Arc<Self> {
        let (env, closing) = (env.clone(), closing.child_token());
        Arc::new(Self { env, config, logs, closing, led: Mutex::default() })
    }

    /// Follows the metadata: starts and ends shards, and forgets the offsets of deleted topics. To be called after the
    /// node's partitions have made the same change; at start with all that there is, and an empty delta.
    pub async fn apply(&self, image: &Image, delta: &Delta) {
        self.follow(image.topics.by_name(CONSUMER_OFFSETS).map(AsRef::as_ref));
        let deleted = delta.topics_deleted.iter().flat_map(|topic| {
            topic.partitions.keys().map(|partition| TopicPartition::new(topic.name.as_str(), *partition))
        });
        let deleted: Arc<[TopicPartition]> = deleted.collect();
        if !deleted.is_empty() {
            self.forget(&deleted).await;
        }
    }

    fn follow(&self, topic: Option<&Topic>) {
        let partitions = topic.into_iter().flat_map(|topic| &topic.partitions);
        let wanted: BTreeMap<PartitionIndex, LeaderEpoch> = partitions
            .filter(|(_, partition)| partition.leader == self.config.node_id)
            .map(|(index, partition)| (*index, partition.leader_epoch))
            .collect();
        let mut led = self.led();
        led.partitions = topic.map_or(0, |topic| topic.partitions.len() as i32);
        let mut before = std::mem::take(&mut led.doors);
        for (partition, epoch) in wanted {
            let door = match before.remove(&partition) {
                Some(door) if door.epoch == epoch => Some(door),
                other => self.begin(partition, epoch, other),
            };
            led.doors.extend(door.map(|door| (partition, door)));
        }
        for (partition, door) in before {
            info!(partition, "this node no longer coordinates the groups of a partition");
            door.end.cancel();
        }
    }

    fn begin(&self, partition: PartitionIndex, epoch: LeaderEpoch, before: Option<Door>) -> Option<Door> {
        let log = (self.logs)(partition)
            .inspect_err(|error| {
                error!(partition, ?error, "groups cannot be coordinated: the partition is not there");
            })
            .ok();
        let before = before.map(|door| {
            door.end.cancel();
            door.ended
        });
        let log = log?;
        let (mailbox, commands) = mpsc::channel(MAILBOX);
        let (phase, phase_seen) = watch::channel(Phase::Loading);
        let (alive, ended) = oneshot::channel();
        let end = self.closing.child_token();
        let start = Start { partition, epoch, log: log.clone(), end: end.clone(), before };
        let (env, config) = (self.env.clone(), self.config.clone());
        self.env.exec.spawn(
            "shard",
            Box::pin(async move {
                start.run(env, config, commands, phase).await;
                drop(alive);
            }),
        );
        Some(Door { epoch, mailbox, log, phase: phase_seen, end, ended })
    }

    async fn forget(&self, partitions: &Arc<[TopicPartition]>) {
        let mailboxes: Vec<_> = self.led().doors.values().map(|door| door.mailbox.clone()).collect();
        for mailbox in mailboxes {
            let partitions = partitions.clone();
            let act = move |shard: &mut Shard| shard.forget(&partitions);
            // A shard that has ended forgets everything.
            let _ended = mailbox.send(Command::Act(Box::new(act))).await;
        }
    }

    /// The partition that coordinates a group; none while the offsets topic does not exist.
    pub fn partition_for(&self, group_id: &GroupId) -> Option<PartitionIndex> {
        let partitions = self.led().partitions;
        (partitions > 0).then(|| partition_for(group_id, partitions))
    }

    /// JoinGroup. Takes as long as the join phase does.
    pub async fn join(&self, join: Join) -> Result<JoinReply, ShardError> {
        let group_id = join.group_id.clone();
        self.ask(&group_id, move |shard, answer| shard.join(&join, answer)).await?.committed().await
    }

    /// SyncGroup. Takes as long as the sync phase does.
    pub async fn sync(&self, sync: Sync) -> Result<SyncReply, ShardError> {
        let group_id = sync.group_id.clone();
        self.ask(&group_id, move |shard, answer| shard.sync(sync, answer)).await?.committed().await
    }

    /// Heartbeat.
    pub async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<ErrorCode, ShardError> {
        let group_id = heartbeat.group_id.clone();
        let act = move |shard: &mut Shard, answer: Answer<_>| {
            shard.act(|groups, at| groups.handle_heartbeat(&heartbeat, at), answer);
        };
        self.ask(&group_id, act).await?.committed().await
    }

    /// LeaveGroup.
    pub async fn leave(&self, leave: Leave) -> Result<LeaveReply, ShardError> {
        let group_id = leave.group_id.clone();
        let act = move |shard: &mut Shard, answer: Answer<_>| {
            shard.act(|groups, at| groups.handle_leave(leave, at), answer);
        };
        self.ask(&group_id, act).await?.committed().await
    }

    /// OffsetCommit, up to its ordered point: what comes back is appended, and tells when it is committed.
    pub async fn commit(&self, commit: Commit) -> Result<Appended<Vec<TopicErrors>>, ShardError> {
        let group_id = commit.group_id.clone();
        self.send(&self.way_to(&group_id)?, move |answer| Command::Commit(commit, answer)).await
    }

    /// OffsetFetch of one group.
    pub async fn fetch_offsets(&self, fetch: FetchOffsets) -> Result<Vec<FetchedTopic>, ShardError> {
        let group_id = fetch.group_id.clone();
        let act = move |shard: &mut Shard, answer: Answer<_>| {
            shard.look(|groups| groups.fetch_offsets(&fetch), answer);
        };
        self.ask(&group_id, act).await?.committed().await
    }

    /// OffsetDelete.
    pub async fn delete_offsets(
        &self,
        delete: DeleteOffsets,
    ) -> Result<Result<Vec<TopicErrors>, ErrorCode>, ShardError> {
        let group_id = delete.group_id.clone();
        let act = move |shard: &mut Shard, answer: Answer<_>| {
            shard.act(|groups, _| groups.handle_delete_offsets(&delete), answer);
        };
        self.ask(&group_id, act).await?.committed().await
    }

    /// DescribeGroups, of one group.
    pub async fn describe(&self, group_id: GroupId) -> Result<DescribedGroup, ShardError> {
        let way = self.way_to(&group_id)?;
        let act = move |shard: &mut Shard, answer: Answer<_>| {
            shard.look(|groups| groups.describe(&group_id), answer);
        };
        self.ask_way(&way, act).await?.committed().await
    }

    /// DeleteGroups, of one group.
    pub async fn delete(&self, group_id: GroupId) -> Result<DeletedGroup, ShardError> {
        let way = self.way_to(&group_id)?;
        let act = move |shard: &mut Shard, answer: Answer<_>| {
            shard.act(|groups, _| groups.handle_delete(group_id), answer);
        };
        self.ask_way(&way, act).await?.committed().await
    }

    /// ListGroups: the groups that this node coordinates.
    ///
    /// # Errors
    /// One of the shards is still loading, so the list would not be whole.
    pub async fn list(&self, list: List) -> Result<Vec<ListedGroup>, ShardError> {
        let partitions: Vec<_> = self.led().doors.keys().copied().collect();
        let list = Arc::new(list);
        let mut listed = Vec::new();
        for partition in partitions {
            let list = list.clone();
            let act = move |shard: &mut Shard, answer: Answer<_>| {
                shard.look(|groups| groups.list(&list), answer);
            };
            let way = match self.way(partition) {
                // It moved away meanwhile.
                Err(ShardError::NotCoordinator) => continue,
                way => way?,
            };
            listed.extend(self.ask_way(&way, act).await?.committed().await?);
        }
        Ok(listed)
    }

    async fn ask<R: Send + 'static>(
        &self,
        group_id: &GroupId,
        act: impl FnOnce(&mut Shard, Answer<R>) + Send + 'static,
    ) -> Result<Appended<R>, ShardError> {
        self.ask_way(&self.way_to(group_id)?, act).await
    }

    async fn ask_way<R: Send + 'static>(
        &self,
        way: &Way,
        act: impl FnOnce(&mut Shard, Answer<R>) + Send + 'static,
    ) -> Result<Appended<R>, ShardError> {
        self.send(way, |answer| Command::Act(Box::new(move |shard| act(shard, answer)))).await
    }

    async fn send<R: Send + 'static>(
        &self,
        way: &Way,
        command: impl FnOnce(Answer<R>) -> Command,
    ) -> Result<Appended<R>, ShardError> {
        let (give, take) = oneshot::channel();
        way.mailbox.send(command(give)).await.map_err(|_| ShardError::NotCoordinator)?;
        let replied = take.await.map_err(|_| ShardError::NotCoordinator)??;
        let deadline = self.env.clock.now().plus(self.config.commit_timeout);
        Ok(Appended::new(replied, way.log.clone(), deadline))
    }

    fn way_to(&self, group_id: &GroupId) -> Result<Way, ShardError> {
        self.way(self.partition_for(group_id).ok_or(ShardError::NotCoordinator)?)
    }

    fn way(&self, partition: PartitionIndex) -> Result<Way, ShardError> {
        let led = self.led();
        let door = led.doors.get(&partition).ok_or(ShardError::NotCoordinator)?;
        let phase = *door.phase.borrow();
        match phase {
            Phase::Loading => Err(ShardError::LoadInProgress),
            Phase::Failed => Err(ShardError::NotCoordinator),
            Phase::Running => Ok(Way { mailbox: door.mailbox.clone(), log: door.log.clone() }),
        }
    }

    fn led(&self) -> MutexGuard<'_, Led> {
        self.led.lock().expect("nothing panics while it is held")
    }
}

/// What is needed to ask a shard, without the lock.
struct Way {
    mailbox: mpsc::Sender<Command>,
    log: Arc<dyn ShardLog>,
}

/// What a shard's task begins with.
struct Start {
    partition: PartitionIndex,
    epoch: LeaderEpoch,
    log: Arc<dyn ShardLog>,
    end: CancellationToken,
    /// The shard of an older epoch.
    before: Option<oneshot::Receiver<()>>,
}

impl Start {
    async fn run(
        self,
        env: Env,
        config: Config,
        commands: mpsc::Receiver<Command>,
        phase: watch::Sender<Phase>,
    ) {
        if let Some(before) = self.before {
            // It never sends; it ends.
            let _ended = before.await;
        }
        let began = env.clock.now();
        let loaded = tokio::select! {
            biased;
            () = self.end.cancelled() => return,
            loaded = load(self.log.as_ref(), config.groups.clone()) => loaded,
        };
        match loaded {
            Ok((groups, end)) => {
                let load_ms = env.clock.now().since(began).as_millis() as u64;
                // Most partitions of a small node are empty.
                if end > Offset(0) {
                    info!(partition = self.partition, leader_epoch = %self.epoch, offset = %end, load_ms, "groups loaded");
                }
                let shard = Shard::new((env.clock, config), (self.log, self.epoch), (groups, end));
                phase.send_replace(Phase::Running);
                shard.run(commands, self.end).await;
            }
            Err(error) => {
                error!(partition = self.partition, %error, "groups could not be loaded, and are not coordinated");
                phase.send_replace(Phase::Failed);
                // Nobody must wait for a place in a mailbox that is never emptied.
                drop(commands);
                self.end.cancelled().await;
            }
        }
    }
}
