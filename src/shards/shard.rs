//! One shard: a machine, its log, and those who wait for it.

use std::mem::take;
use std::sync::Arc;

use bytes::Bytes;
use coordinator::{
    Commit, CoordinatorRecord, Groups, Join, JoinReply, Moment, Outcome, Released, Sync, SyncReply, Token,
    TopicErrors,
};
use env::Clock;
use model::{ErrorCode, Instant, LeaderEpoch, Map, Offset, Timestamp, TopicPartition};
use protocol::batch::BatchBuilder;
use protocol::records::RecordError;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::answer::{Answer, Replied};
use crate::log::ShardLog;
use crate::{Config, ShardError};

/// Commands taken from the mailbox at once.
const COMMANDS_AT_ONCE: usize = 64;
/// A batch is closed when it has reached this size: well below `max.message.bytes`.
const BATCH_BYTES: usize = 256 << 10;

/// What a shard is asked to do.
pub(crate) enum Command {
    /// OffsetCommit: a run of them is appended as one batch.
    Commit(Commit, Answer<Vec<TopicErrors>>),
    /// Anything else.
    Act(Box<dyn FnOnce(&mut Shard) + Send>),
}

/// A decision, and who asked for it.
type Decided<R> = (Outcome<R>, Answer<R>);

pub(crate) struct Shard {
    clock: Arc<dyn Clock>,
    config: Config,
    log: Arc<dyn ShardLog>,
    epoch: LeaderEpoch,
    groups: Groups,
    /// The log end: what the machine knows lies below it.
    end: Offset,
    tokens: u64,
    joins: Map<Token, Answer<JoinReply>>,
    syncs: Map<Token, Answer<SyncReply>>,
    /// Decided, not appended yet.
    commits: Vec<Decided<Vec<TopicErrors>>>,
    expiry: Instant,
}

impl Shard {
    pub(crate) fn new(
        (clock, config): (Arc<dyn Clock>, Config),
        (log, epoch): (Arc<dyn ShardLog>, LeaderEpoch),
        (groups, end): (Groups, Offset),
    ) -> Self {
        Self {
            expiry: clock.now().plus(config.expiry_interval),
            clock,
            config,
            log,
            epoch,
            groups,
            end,
            tokens: 0,
            joins: Map::default(),
            syncs: Map::default(),
            commits: Vec::new(),
        }
    }

    /// Works until it is `ended`, or nobody can ask any more. Who waits then learns it from the dropped answer.
    pub(crate) async fn run(mut self, mut mailbox: mpsc::Receiver<Command>, ended: CancellationToken) {
        self.groups.handle_loaded(self.moment());
        let mut commands = Vec::new();
        loop {
            let wake = self.clock.sleep_until(self.deadline());
            tokio::select! {
                biased;
                () = ended.cancelled() => return,
                count = mailbox.recv_many(&mut commands, COMMANDS_AT_ONCE) => if count == 0 { return },
                () = wake => {}
            }
            self.poll();
            commands.drain(..).for_each(|command| self.handle(command));
            self.append_commits();
        }
    }

    fn deadline(&self) -> Instant {
        self.groups.deadline().map_or(self.expiry, |deadline| deadline.min(self.expiry))
    }

    /// What time has brought.
    fn poll(&mut self) {
        while let Some(outcome) = self.groups.poll(self.moment()) {
            self.settle(outcome);
        }
        let Moment { now, wall } = self.moment();
        if now >= self.expiry {
            self.expiry = now.plus(self.config.expiry_interval);
            let outcome = self.groups.handle_expiry(wall);
            debug!(tombstones = outcome.records.len(), "looked for expired offsets");
            self.settle(outcome);
        }
    }

    fn handle(&mut self, command: Command) {
        match command {
            Command::Commit(commit, answer) => {
                let outcome = self.groups.handle_commit(commit, self.moment());
                self.commits.push((outcome, answer));
            }
            Command::Act(act) => {
                self.append_commits();
                act(self);
            }
        }
    }

    fn append_commits(&mut self) {
        let mut commits = take(&mut self.commits);
        let records: Vec<_> =
            commits.iter_mut().flat_map(|(outcome, _)| take(&mut outcome.records)).collect();
        let appended = self.append(records).map_err(ShardError::of_log);
        for (outcome, answer) in commits {
            self.tell(answer, appended.map(|()| outcome.reply));
        }
    }

    /// Decides something that is answered at once.
    pub(crate) fn act<R>(
        &mut self,
        decide: impl FnOnce(&mut Groups, Moment) -> Outcome<R>,
        answer: Answer<R>,
    ) {
        let at = self.moment();
        let outcome = decide(&mut self.groups, at);
        let reply = self.carry_out(outcome);
        self.tell(answer, reply);
    }

    /// Looks at the machine without changing it.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&Groups) -> R, answer: Answer<R>) {
        self.tell(answer, Ok(look(&self.groups)));
    }

    pub(crate) fn join(&mut self, join: &Join, answer: Answer<JoinReply>) {
        let token = self.token();
        self.joins.insert(token, answer);
        let outcome = self.groups.handle_join(join, token, self.moment());
        self.settle(outcome);
    }

    pub(crate) fn sync(&mut self, sync: Sync, answer: Answer<SyncReply>) {
        let token = self.token();
        self.syncs.insert(token, answer);
        let outcome = self.groups.handle_sync(sync, token, self.moment());
        self.settle(outcome);
    }

    /// Forgets the offsets of partitions that were deleted.
    pub(crate) fn forget(&mut self, partitions: &[TopicPartition]) {
        let outcome = self.groups.handle_partitions_deleted(partitions);
        self.settle(outcome);
    }

    fn token(&mut self) -> Token {
        self.tokens += 1;
        Token(self.tokens)
    }

    /// Carries out what nobody waits for.
    fn settle(&mut self, outcome: Outcome<()>) {
        if let Err(error) = self.carry_out(outcome) {
            warn!(%error, "a decision of the group coordinator could not be written");
        }
    }

    fn carry_out<R>(&mut self, mut outcome: Outcome<R>) -> Result<R, ShardError> {
        match self.append(take(&mut outcome.records)).map_err(ShardError::of_log) {
            Ok(()) => {
                self.release(outcome.released);
                Ok(outcome.reply)
            }
            Err(error) => {
                let mended = self.groups.handle_append_failure(outcome, error.into(), self.moment());
                self.settle(mended);
                Err(error)
            }
        }
    }

    /// Appends records and applies them, batch by batch.
    fn append(&mut self, records: Vec<CoordinatorRecord>) -> Result<(), ErrorCode> {
        let at = self.moment();
        let batches = batches_of(records, at.wall).map_err(|error| {
            warn!(%error, "a record could not be encoded");
            ErrorCode::UnknownServerError
        })?;
        for (batch, records) in batches {
            self.end = self.log.append(&batch, self.epoch)?;
            for record in records {
                let released = self.groups.apply(record, at);
                self.release(released);
            }
        }
        Ok(())
    }

    fn release(&mut self, released: Vec<Released>) {
        for released in released {
            match released {
                Released::Join(token, reply) => {
                    let answer = self.joins.remove(&token).expect("a token is released once");
                    self.tell(answer, Ok(reply));
                }
                Released::Sync(token, reply) => {
                    let answer = self.syncs.remove(&token).expect("a token is released once");
                    self.tell(answer, Ok(reply));
                }
            }
        }
    }

    fn tell<R>(&self, answer: Answer<R>, reply: Result<R, ShardError>) {
        // Who asked may have gone away.
        let _unheard = answer.send(reply.map(|reply| Replied { reply, end: self.end }));
    }

    fn moment(&self) -> Moment {
        Moment { now: self.clock.now(), wall: self.clock.wall() }
    }
}

/// The records in as few batches as their size allows, each with what is in it.
fn batches_of(
    records: Vec<CoordinatorRecord>,
    now: Timestamp,
) -> Result<Vec<(Bytes, Vec<CoordinatorRecord>)>, RecordError> {
    let mut batches = Vec::new();
    let (mut batch, mut inside) = (BatchBuilder::new().timestamp(now), Vec::new());
    for record in records {
        let (key, value) = record.encode()?;
        batch.append(Some(&key), value.as_deref(), &[]);
        inside.push(record);
        if batch.size_bytes() >= BATCH_BYTES {
            let full = std::mem::replace(&mut batch, BatchBuilder::new().timestamp(now));
            batches.push((full.build(), take(&mut inside)));
        }
    }
    if !inside.is_empty() {
        batches.push((batch.build(), inside));
    }
    Ok(batches)
}
