//! One partition on this node: its log, its part in replication, and those who wait for it.
//!
//! Everything is behind one lock that no await crosses. An append is one lock, one write and one question to the
//! committer; nothing hops to another task.
//!
//! Invariants: what is read by a consumer lies below the high watermark; the high watermark of a durable partition
//! never passes the flushed end.
//!
//! Kafka: `kafka.cluster.Partition`, `UnifiedLog`.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use env::{Clock, Exec};
use model::{LeaderEpoch, Offset, Timestamp, TopicIdPartition, TopicPartition};
use replica::Leader;
use storage::{
    Appended, CheckpointJob, Log, LogCheckpoint, LogConfig, Origin, Slice, StorageError, TimeSearch,
    TimestampOffset,
};

use crate::committer::Committer;
use crate::error::{AppendError, PartitionError, ReadError};
use crate::wait::{Registration, Signal, Ticket, Waiters};

/// How long a flush that found too many open files waits for some to be closed.
const HINDERED_PAUSE: Duration = Duration::from_millis(500);

/// A partition that this node holds.
pub struct Partition {
    /// Its name.
    pub name: TopicPartition,
    /// Its id.
    pub id: TopicIdPartition,
    /// The log folder that it lies in: an index into the node's log folders.
    pub folder: usize,
    clock: Arc<dyn Clock>,
    committer: Arc<Committer>,
    state: Mutex<State>,
}

struct State {
    log: Log,
    role: Role,
    min_isr: usize,
    /// The high watermark that was known before the node started, or when it stopped leading.
    restored: Offset,
    flush: Flush,
    /// How long upkeep has found something that is not flushed.
    unflushed_for: Duration,
    waiters: Waiters,
}

enum Role {
    Leader(Leader),
    /// Another node leads it, or none.
    Follower,
    /// Its log folder failed.
    Offline,
    /// Its topic was deleted.
    Gone,
}

/// Where the partition stands with its committer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flush {
    Idle,
    Queued,
    Running,
    RunningAndAsked,
}

/// How a flush ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flushed {
    /// Nobody has asked for another.
    Done,
    /// Another was asked for meanwhile.
    Again,
    /// Too many files were open: it is to be tried again in a while.
    Hindered,
}

/// Which records a reader may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// All below the high watermark.
    ReadUncommitted,
    /// All below the last stable offset.
    ReadCommitted,
    /// All below the log end: followers, and the coordinators of this node.
    LogEnd,
}

/// What a read found.
pub struct Read {
    /// Whole batches, from the one that holds the offset on.
    pub slice: Slice,
    /// The high watermark at the time.
    pub high_watermark: Offset,
    /// The last stable offset at the time.
    pub last_stable_offset: Offset,
    /// The first offset of the log.
    pub log_start: Offset,
    /// The offset below which this reader may read at the time, exclusive.
    pub readable_end: Offset,
}

/// Offsets of a partition at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offsets {
    /// The first offset of the log.
    pub log_start: Offset,
    /// Below it everything is committed.
    pub high_watermark: Offset,
    /// Below it no transaction is open.
    pub last_stable_offset: Offset,
    /// The next offset that is given.
    pub log_end: Offset,
    /// The leader epoch that this node leads in.
    pub leader_epoch: LeaderEpoch,
    /// Whether everything that older epochs left is committed, so that the high watermark may be shown.
    pub is_exposed: bool,
}

impl Partition {
    pub(crate) fn new(
        (name, id, folder): (TopicPartition, TopicIdPartition, usize),
        (clock, committer): (Arc<dyn Clock>, Arc<Committer>),
        log: Log,
        (min_isr, restored): (usize, Offset),
    ) -> Self {
        let state = State {
            log,
            role: Role::Follower,
            min_isr,
            restored,
            flush: Flush::Idle,
            unflushed_for: Duration::ZERO,
            waiters: Waiters::default(),
        };
        Self { name, id, folder, clock, committer, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("a panic inside this partition's lock left it in doubt")
    }

    /// Appends batches of a client or a coordinator, and asks for a flush. The caller waits with
    /// [`crate::committed`] for the offset after [`Appended::last_offset`].
    ///
    /// What was decided in one leader epoch must not be appended in another: `decided_in` says it, or
    /// [`LeaderEpoch::NONE`].
    ///
    /// # Errors
    /// Nothing was appended.
    pub fn append(
        self: &Arc<Self>,
        batches: &[u8],
        (origin, decided_in): (Origin, LeaderEpoch),
        needs_min_isr: bool,
    ) -> Result<Appended, AppendError> {
        let now = self.clock.wall();
        let mut state = self.lock();
        let leader = state.leader_in(decided_in)?;
        let (epoch, isr) = (leader.epoch(), leader.isr_size());
        if needs_min_isr && isr < state.min_isr {
            return Err(AppendError::NotEnoughReplicas { isr, min_isr: state.min_isr });
        }
        let appended = match state.log.append_as_leader(batches, epoch, now, origin) {
            Ok(appended) => appended,
            Err(error) => {
                state.note_failure();
                return Err(error.into());
            }
        };
        self.committer.debt.add(batches.len());
        self.after_append(&mut state);
        Ok(appended)
    }

    /// Everything appended is flushed (or counted at once, where the topic caches writes).
    fn after_append(self: &Arc<Self>, state: &mut State) {
        if state.log.config().write_caching {
            let end = state.log.log_end();
            state.count(end);
            let unflushed = end.0 - state.log.flushed_end().0;
            if unflushed < state.log.config().flush_messages {
                return;
            }
        }
        self.ask(state);
    }

    fn ask(self: &Arc<Self>, state: &mut State) {
        match state.flush {
            Flush::Idle => {
                state.flush = Flush::Queued;
                self.committer.ask(self.clone());
            }
            Flush::Running => state.flush = Flush::RunningAndAsked,
            Flush::Queued | Flush::RunningAndAsked => {}
        }
    }

    /// One flush, for the committer alone, which then queues the partition again where another is wanted.
    pub(crate) async fn flush(&self, exec: &dyn Exec) -> Flushed {
        let job = {
            let mut state = self.lock();
            state.flush = Flush::Running;
            state.log.flush_job()
        };
        let Some(job) = job else {
            return self.lock().flush_ended();
        };
        let result = exec.flush(job.files.clone()).await;
        let mut state = self.lock();
        match state.log.flush_done(&job, result) {
            Ok(end) => state.count(end),
            Err(error @ StorageError::Io { .. }) => {
                tracing::warn!(partition = %self.name, %error, "a flush could not begin and is tried again");
                state.flush = Flush::Queued;
                return Flushed::Hindered;
            }
            Err(error) => {
                tracing::error!(partition = %self.name, %error, "a flush failed: the log folder goes offline");
                state.note_failure();
            }
        }
        state.flush_ended()
    }

    /// Reads from `from` on.
    ///
    /// # Errors
    /// The offset is outside the log, or the partition cannot be read here.
    pub fn read(
        &self,
        from: Offset,
        bytes_max: usize,
        at_least_one: bool,
        isolation: Isolation,
    ) -> Result<Read, ReadError> {
        let mut state = self.lock();
        let offsets = state.offsets()?;
        let readable_end = match isolation {
            Isolation::ReadUncommitted => offsets.high_watermark,
            Isolation::ReadCommitted => offsets.last_stable_offset,
            Isolation::LogEnd => offsets.log_end,
        };
        if from < offsets.log_start || from > offsets.log_end {
            return Err(ReadError::OutOfRange { log_start: offsets.log_start, log_end: offsets.log_end });
        }
        let slice = if from >= readable_end {
            Slice::Empty
        } else {
            match state.log.read(from, bytes_max, readable_end, at_least_one) {
                Ok(slice) => slice,
                Err(error) => {
                    state.note_failure();
                    return Err(error.into());
                }
            }
        };
        Ok(Read {
            slice,
            high_watermark: offsets.high_watermark,
            last_stable_offset: offsets.last_stable_offset,
            log_start: offsets.log_start,
            readable_end,
        })
    }

    /// Its offsets, where this node leads it.
    pub fn offsets(&self) -> Result<Offsets, PartitionError> {
        self.lock().offsets()
    }

    /// Whether `epoch`, as a client knows it, is this node's; -1 asks nothing (KIP-320).
    pub fn check_epoch(&self, epoch: LeaderEpoch) -> Result<(), PartitionError> {
        self.lock().leader_in(epoch).map(|_| ())
    }

    /// The largest epoch not above `epoch`, and where it ends (KIP-101, KIP-320). `None` where it is not known.
    pub fn epoch_end(&self, epoch: LeaderEpoch) -> Result<Option<(LeaderEpoch, Offset)>, PartitionError> {
        let mut state = self.lock();
        state.leader()?;
        Ok(state.log.epoch_end(epoch))
    }

    /// The first record, by offset, whose timestamp is `timestamp` or later.
    ///
    /// # Errors
    /// The partition cannot be read here.
    pub async fn offset_for_timestamp(
        &self,
        exec: &dyn Exec,
        timestamp: Timestamp,
    ) -> Result<Option<TimestampOffset>, ReadError> {
        self.search(exec, |log| log.offset_for_timestamp(timestamp)).await
    }

    /// The record with the latest timestamp.
    ///
    /// # Errors
    /// The partition cannot be read here.
    pub async fn max_timestamp(&self, exec: &dyn Exec) -> Result<Option<TimestampOffset>, ReadError> {
        self.search(exec, Log::max_timestamp).await
    }

    async fn search(
        &self,
        exec: &dyn Exec,
        take: impl FnOnce(&Log) -> Result<TimeSearch, StorageError>,
    ) -> Result<Option<TimestampOffset>, ReadError> {
        let (epoch, search) = {
            let mut state = self.lock();
            (state.leader()?.epoch(), take(&state.log))
        };
        let found = match search {
            Ok(search) if search.is_empty() => return Ok(None),
            Ok(search) => env::blocking(exec, move || search.run()).await,
            Err(error) => Err(error),
        };
        let mut state = self.lock();
        if found.is_err() {
            state.note_failure();
        }
        // Another leader's log may be another one, and this one may have been cut.
        if state.leader()?.epoch() != epoch {
            return Err(PartitionError::NotLeader.into());
        }
        found.map_err(|error| ReadError::Log(error.into()))
    }

    /// The epoch that wrote `offset`; of the log end the newest one. `None` where it is not known.
    pub fn epoch_at(&self, offset: Offset) -> Result<Option<LeaderEpoch>, PartitionError> {
        let mut state = self.lock();
        state.leader()?;
        Ok(state.log.epoch_at(offset))
    }

    /// Fires `signal` for `place` when the high watermark reaches `offset`, or the partition fails; at once if it did
    /// already.
    pub fn register(self: &Arc<Self>, offset: Offset, signal: &Arc<Signal>, place: usize) -> Registration {
        let mut state = self.lock();
        let waits = state.offsets().is_ok_and(|offsets| offsets.high_watermark < offset);
        let ticket = waits.then(|| state.waiters.add(offset, signal, place));
        if ticket.is_none() {
            signal.fire(place);
        }
        Registration::new(self.clone(), ticket)
    }

    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.lock().waiters.len()
    }

    pub(crate) fn forget(&self, ticket: Ticket) {
        self.lock().waiters.forget(ticket);
    }

    /// Takes the lead in `epoch`. Its entry is written and flushed with the epoch's first records.
    pub(crate) fn lead(self: &Arc<Self>, me: model::NodeId, epoch: LeaderEpoch, isr: &[model::NodeId]) {
        let mut state = self.lock();
        if matches!(&state.role, Role::Leader(leader) if leader.epoch() >= epoch)
            || matches!(state.role, Role::Gone | Role::Offline)
        {
            return;
        }
        let start = state.log.log_end();
        if let Err(error) = state.log.begin_epoch(epoch, start) {
            tracing::error!(partition = %self.name, %error, "the leader epoch could not begin");
            state.role = Role::Offline;
            return;
        }
        let restored = state
            .high_watermark()
            .clamp(state.log.log_start(), state.log.flushed_end().max(state.log.log_start()));
        state.role = Role::Leader(Leader::new(me, epoch, start, isr.iter().copied(), restored));
        let (end, caches) = (state.log.log_end(), state.log.config().write_caching);
        let counted = if caches { end } else { state.log.flushed_end() };
        state.count(counted);
        self.ask(&mut state);
    }

    /// Stops leading: another node does, or none.
    pub(crate) fn follow(&self) {
        let mut state = self.lock();
        if matches!(state.role, Role::Leader(_)) {
            state.restored = state.high_watermark();
            state.role = Role::Follower;
            state.waiters.all();
        }
    }

    /// Takes over changed configuration.
    pub(crate) fn configure(&self, config: LogConfig, min_isr: usize) {
        let mut state = self.lock();
        state.log.set_config(config);
        state.min_isr = min_isr;
    }

    /// Asks for a flush where the topic caches writes and `flush.ms` is over, as far as upkeep can tell.
    pub(crate) fn flush_if_due(self: &Arc<Self>, every: Duration) {
        let mut state = self.lock();
        state.unflushed_for = if state.log.flushed_end() < state.log.log_end() {
            state.unflushed_for + every
        } else {
            Duration::ZERO
        };
        if state.unflushed_for.as_millis() as i64 >= state.log.config().flush_ms {
            state.unflushed_for = Duration::ZERO;
            self.ask(&mut state);
        }
    }

    /// One bounded step of rolling and retention. Whether there is more to do.
    pub(crate) fn maintain(self: &Arc<Self>, now: Timestamp) -> bool {
        let mut state = self.lock();
        let Ok(offsets) = state.offsets() else { return false };
        match state.log.maintain(now, offsets.high_watermark) {
            Ok(maintained) => {
                self.ask(&mut state);
                maintained.more
            }
            Err(error) => {
                tracing::warn!(partition = %self.name, %error, "retention could not be enforced");
                state.note_failure();
                false
            }
        }
    }

    /// The topic is deleted: those who wait are told, and the log is marked for removal.
    pub(crate) fn delete(&self) {
        let mut state = self.lock();
        state.role = Role::Gone;
        state.waiters.all();
        if let Err(error) = state.log.delete() {
            tracing::warn!(partition = %self.name, %error, "a deleted partition's folder could not be removed");
        }
    }

    /// The clean end: everything is flushed, and its producer snapshot and indexes are written. What the checkpoints
    /// then say of it; nothing where the partition failed.
    pub(crate) fn close(&self) -> Result<Option<LogCheckpoint>, storage::StorageError> {
        let mut state = self.lock();
        if matches!(state.role, Role::Offline | Role::Gone) {
            return Ok(None);
        }
        state.log.close()?;
        let end = state.log.flushed_end();
        state.count(end);
        state.checkpoint().map(CheckpointJob::run).transpose()
    }

    /// Ends when a flush that was hindered may be tried again.
    pub(crate) async fn rest(&self) {
        self.clock.sleep(HINDERED_PAUSE).await;
    }

    /// What the checkpoints say of it. Waits for the disk, for which no append waits.
    pub(crate) fn checkpoint(&self) -> Option<LogCheckpoint> {
        let job = self.lock().checkpoint();
        job?.run().ok()
    }

    /// Bytes of its log.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.lock().log.size_bytes()
    }
}

impl State {
    fn leader(&mut self) -> Result<&mut Leader, PartitionError> {
        match &mut self.role {
            Role::Leader(leader) => Ok(leader),
            Role::Follower => Err(PartitionError::NotLeader),
            Role::Offline => Err(PartitionError::Offline),
            Role::Gone => Err(PartitionError::Unknown),
        }
    }

    /// The leader, if that is what `epoch` asks for; [`LeaderEpoch::NONE`] asks for any.
    fn leader_in(&mut self, epoch: LeaderEpoch) -> Result<&mut Leader, PartitionError> {
        let leader = self.leader()?;
        match epoch {
            LeaderEpoch::NONE => Ok(leader),
            older if older < leader.epoch() => Err(PartitionError::FencedLeaderEpoch),
            newer if newer > leader.epoch() => Err(PartitionError::UnknownLeaderEpoch),
            _ => Ok(leader),
        }
    }

    fn offsets(&mut self) -> Result<Offsets, PartitionError> {
        let (high_watermark, leader_epoch, is_exposed) = {
            let leader = self.leader()?;
            (leader.high_watermark(), leader.epoch(), leader.is_exposed())
        };
        Ok(Offsets {
            log_start: self.log.log_start(),
            high_watermark,
            last_stable_offset: self.log.last_stable_offset(high_watermark),
            log_end: self.log.log_end(),
            leader_epoch,
            is_exposed,
        })
    }

    /// The log is safe up to `end`.
    fn count(&mut self, end: Offset) {
        if let Role::Leader(leader) = &mut self.role
            && let Some(high_watermark) = leader.handle_counted(end)
        {
            self.waiters.reached(high_watermark);
        }
    }

    fn checkpoint(&mut self) -> Option<CheckpointJob> {
        if matches!(self.role, Role::Offline | Role::Gone) {
            return None;
        }
        let high_watermark = self.high_watermark();
        self.log.checkpoint(high_watermark).ok()
    }

    /// The highest that is known here, whoever leads.
    fn high_watermark(&self) -> Offset {
        match &self.role {
            Role::Leader(leader) => leader.high_watermark(),
            Role::Follower | Role::Offline | Role::Gone => self.restored,
        }
    }

    /// After an error of the log: where its folder failed, the partition is offline for good.
    fn note_failure(&mut self) {
        if self.log.check().is_err() {
            self.role = Role::Offline;
            self.waiters.all();
        }
    }

    fn flush_ended(&mut self) -> Flushed {
        let again = self.flush == Flush::RunningAndAsked;
        self.flush = if again { Flush::Queued } else { Flush::Idle };
        if again { Flushed::Again } else { Flushed::Done }
    }
}
