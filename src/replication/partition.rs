//! One partition on this node: its log, its replica, and those who wait for it.
//!
//! Everything is behind one lock that no await crosses. The replica's machine decides: it is told what happened to the
//! log, and what it wants is done in order before the lock is given back. An append is one lock, one write and one
//! question to the committer; nothing hops to another task.
//!
//! Invariants: what is read by a consumer lies below the high watermark; the high watermark of a durable partition
//! never passes the flushed end of a replica that it counts.
//!
//! Kafka: `kafka.cluster.Partition`, `UnifiedLog`.

mod append;
mod drive;
mod flush;
mod follow;
mod read;

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use model::{Instant, LeaderEpoch, Offset, Timestamp, TopicIdPartition, TopicPartition};
use replica::{Action, PartitionState, ProduceError, Replica};
use storage::{CheckpointJob, DeletedLog, Log, LogCheckpoint, Maintained, StorageError};

use flush::Flush;
pub(crate) use flush::Flushed;
pub(crate) use follow::Fetched;
pub use read::{Isolation, Read, ReadLimits};

use crate::committer::Committer;
use crate::error::PartitionError;
use crate::fetcher::Fetcher;
use crate::log_shape::LogShape;
use crate::outlets::Outlets;
use crate::wait::{Registration, Signal, Ticket, Waiters};

/// A partition that this node holds.
pub struct Partition {
    /// Its name.
    pub name: TopicPartition,
    /// Its id.
    pub id: TopicIdPartition,
    /// The log folder that it lies in: an index into the node's log folders.
    pub folder: usize,
    committer: Arc<Committer>,
    outlets: Arc<Outlets>,
    state: Mutex<State>,
}

struct State {
    log: Log,
    replica: Replica,
    condition: Condition,
    /// What the checkpoint says is committed, where recovery found less and the controller does not know it yet. Until it does
    /// the partition takes no part in anything.
    lost: Option<Offset>,
    /// What could not be done to the log yet, though it goes on; and the metadata that came meanwhile.
    hindered: Option<Action>,
    late: Option<PartitionState>,
    flush: Flush,
    /// How long upkeep has found something that is not flushed.
    unflushed_for: Duration,
    /// Whether it was appended to since its checkpoint.
    owes_checkpoint: bool,
    /// Those who wait for the high watermark, and followers, who wait for the log end.
    waiters: Waiters,
    followers: Waiters,
    /// Who has its question to the leader.
    fetcher: Option<Arc<Fetcher>>,
    tick_at: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    Working,
    /// Its log folder failed.
    Offline,
    /// Its topic was deleted, or its replica moved elsewhere.
    Gone,
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

/// What somebody waits for at a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// That the high watermark reaches this offset.
    HighWatermark(Offset),
    /// That the log end does.
    LogEnd(Offset),
}

impl Partition {
    pub(crate) fn new(
        (name, id, folder): (TopicPartition, TopicIdPartition, usize),
        (committer, outlets): (Arc<Committer>, Arc<Outlets>),
        log: Log,
        restored: Offset,
    ) -> Self {
        let replica = outlets.fetchers.replica(restored, &LogShape(&log));
        let lost = (restored > log.log_end()).then_some(restored);
        let state = State {
            log,
            replica,
            condition: Condition::Working,
            lost,
            hindered: None,
            late: None,
            flush: Flush::Idle,
            unflushed_for: Duration::ZERO,
            owes_checkpoint: false,
            waiters: Waiters::default(),
            followers: Waiters::default(),
            fetcher: None,
            tick_at: None,
        };
        Self { name, id, folder, committer, outlets, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("a panic inside this partition's lock left it in doubt")
    }

    fn now(&self) -> Instant {
        self.outlets.clock.now()
    }

    fn wall(&self) -> Timestamp {
        self.outlets.clock.wall()
    }

    /// Its offsets, where this node leads it.
    pub fn offsets(&self) -> Result<Offsets, PartitionError> {
        self.lock().offsets()
    }

    /// Whether `epoch`, as a client knows it, is this node's; -1 asks nothing (KIP-320).
    pub fn check_epoch(&self, epoch: LeaderEpoch) -> Result<(), PartitionError> {
        self.lock().check_epoch(epoch)
    }

    /// The largest epoch not above `epoch`, and where it ends (KIP-101, KIP-320). `None` where it is not known.
    pub fn epoch_end(&self, epoch: LeaderEpoch) -> Result<Option<(LeaderEpoch, Offset)>, PartitionError> {
        let state = self.lock();
        state.leader_epoch()?;
        Ok(state.log.epoch_end(epoch))
    }

    /// The epoch that wrote `offset`; of the log end the newest one. `None` where it is not known.
    pub fn epoch_at(&self, offset: Offset) -> Result<Option<LeaderEpoch>, PartitionError> {
        let state = self.lock();
        state.leader_epoch()?;
        Ok(state.log.epoch_at(offset))
    }

    /// Fires `signal` for `place` when that comes, or the partition fails or is led elsewhere; at once if it did already.
    pub fn register(self: &Arc<Self>, awaited: Awaited, signal: &Arc<Signal>, place: usize) -> Registration {
        let mut state = self.lock();
        let waits = state.offsets().is_ok_and(|offsets| match awaited {
            Awaited::HighWatermark(offset) => offsets.high_watermark < offset,
            Awaited::LogEnd(offset) => offsets.log_end < offset,
        });
        let ticket = waits.then(|| match awaited {
            Awaited::HighWatermark(offset) => state.waiters.add(offset, signal, place),
            Awaited::LogEnd(offset) => state.followers.add(offset, signal, place),
        });
        if ticket.is_none() {
            signal.fire(place);
        }
        Registration::new(self.clone(), awaited, ticket)
    }

    pub(crate) fn forget(&self, awaited: Awaited, ticket: Ticket) {
        let mut state = self.lock();
        match awaited {
            Awaited::HighWatermark(_) => state.waiters.forget(ticket),
            Awaited::LogEnd(_) => state.followers.forget(ticket),
        }
    }

    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        let state = self.lock();
        state.waiters.len() + state.followers.len()
    }

    /// Log start, high watermark and log end, whoever leads.
    #[cfg(test)]
    pub(crate) fn shape(&self) -> [i64; 3] {
        let State { log, replica, .. } = &*self.lock();
        [log.log_start().0, replica.high_watermark().0, log.log_end().0]
    }

    /// What became of records that were appended in `epoch` and end at `end`; none while that is open.
    pub(crate) fn verdict(
        &self,
        epoch: LeaderEpoch,
        end: Offset,
    ) -> Result<Option<Result<(), ProduceError>>, PartitionError> {
        let state = self.lock();
        state.check_condition()?;
        Ok(state.replica.verdict(epoch, end))
    }

    /// One bounded step of rolling and retention. Whether there is more to do.
    pub(crate) fn maintain(self: &Arc<Self>, now: Timestamp) -> bool {
        let maintained = self.maintain_log(now);
        // No append waits while files are removed.
        let more = maintained.and_then(|maintained| maintained.map_or(Ok(false), Maintained::remove_files));
        more.unwrap_or_else(|error| {
            tracing::warn!(partition = %self.name, %error, "retention could not be enforced");
            self.lock().note_failure(self);
            false
        })
    }

    fn maintain_log(self: &Arc<Self>, now: Timestamp) -> Result<Option<Maintained>, StorageError> {
        let mut state = self.lock();
        if state.check_condition().is_err() || state.lost.is_some() || state.hindered.is_some() {
            return Ok(None);
        }
        let high_watermark = state.replica.high_watermark();
        let maintained = state.log.maintain(now, high_watermark)?;
        self.log_changed(&mut state);
        self.ask(&mut state);
        Ok(Some(maintained))
    }

    /// This node has no replica of it any more: those who wait are told, and the log is marked for removal.
    pub(crate) fn delete(&self) {
        let deleted = {
            let mut state = self.lock();
            state.stop(self, Condition::Gone);
            state.log.delete()
        };
        // Who was told looks at the partition, and does not wait for its files to go.
        if let Err(error) = deleted.and_then(DeletedLog::remove_files) {
            tracing::warn!(partition = %self.name, %error, "a deleted partition's folder could not be removed");
        }
    }

    /// The clean end: everything is flushed, and its producer snapshot and indexes are written. What the checkpoints
    /// then say of it; nothing where the partition failed.
    pub(crate) fn close(self: &Arc<Self>) -> Result<Option<LogCheckpoint>, storage::StorageError> {
        let mut state = self.lock();
        if state.check_condition().is_err() {
            return Ok(None);
        }
        state.log.close()?;
        self.log_changed(&mut state);
        state.checkpoint().map(CheckpointJob::run).transpose()
    }

    /// What the checkpoints say of it. Waits for the disk, for which no append waits.
    pub(crate) fn checkpoint(&self) -> Option<LogCheckpoint> {
        let job = self.lock().checkpoint();
        job?.run().ok()
    }

    /// Whether recovery found less than was committed, and the controller does not know it yet.
    pub(crate) fn has_lost(&self) -> bool {
        self.lock().lost.is_some()
    }

    /// Bytes of its log.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.lock().log.size_bytes()
    }
}

impl State {
    fn check_condition(&self) -> Result<(), PartitionError> {
        match self.condition {
            Condition::Working => Ok(()),
            Condition::Offline => Err(PartitionError::Offline),
            Condition::Gone => Err(PartitionError::Unknown),
        }
    }

    /// The leader epoch that this node leads in.
    fn leader_epoch(&self) -> Result<LeaderEpoch, PartitionError> {
        self.check_condition()?;
        self.replica.leads().ok_or(PartitionError::NotLeader)
    }

    fn check_epoch(&self, epoch: LeaderEpoch) -> Result<(), PartitionError> {
        self.check_condition()?;
        Ok(self.replica.check_epoch(known(epoch))?)
    }

    fn offsets(&self) -> Result<Offsets, PartitionError> {
        let leader_epoch = self.leader_epoch()?;
        let high_watermark = self.replica.high_watermark();
        Ok(Offsets {
            log_start: self.log.log_start(),
            high_watermark,
            last_stable_offset: self.log.last_stable_offset(high_watermark),
            log_end: self.log.log_end(),
            leader_epoch,
            is_exposed: self.replica.is_exposed(),
        })
    }

    /// So many bytes were appended.
    fn owe(&mut self, partition: &Partition, bytes: usize) {
        let are_first = !std::mem::replace(&mut self.owes_checkpoint, true);
        partition.committer.debt.add(bytes, are_first);
    }

    fn checkpoint(&mut self) -> Option<CheckpointJob> {
        self.check_condition().ok()?;
        self.owes_checkpoint = false;
        let high_watermark = self.lost.unwrap_or(self.replica.high_watermark());
        self.log.checkpoint(high_watermark).ok()
    }

    /// After an error of the log: where its folder failed, the partition is offline for good.
    fn note_failure(&mut self, partition: &Partition) {
        if self.log.check().is_err() {
            self.stop(partition, Condition::Offline);
        }
    }

    /// It works no more.
    fn stop(&mut self, partition: &Partition, condition: Condition) {
        self.condition = condition;
        self.waiters.all();
        self.followers.all();
        self.leave_fetcher(partition.id);
        if let Some(planned) = self.tick_at.take() {
            partition.outlets.ticks.forget(planned, partition.id);
        }
    }

    fn leave_fetcher(&mut self, id: TopicIdPartition) {
        if let Some(fetcher) = self.fetcher.take() {
            fetcher.leave(id);
        }
    }
}

/// A leader epoch as a request tells it; -1 is none, and any other negative one is old.
fn known(epoch: LeaderEpoch) -> Option<LeaderEpoch> {
    (epoch != LeaderEpoch::NONE).then_some(epoch)
}
