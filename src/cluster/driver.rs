//! The task that owns the quorum, the metadata log and the controller's image.
//!
//! Each turn takes one event, hands it to the core, and does what the core asks, in order. Committed records are read
//! back from the log, and the image that they make goes to the publisher: nothing here waits for a partition.
//!
//! Kafka: `KafkaRaftClient.poll`, `QuorumController.ControllerWriteEvent`.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use controller::Controller;
use env::Env;
use metadata::Image;
use model::{Instant, LeaderEpoch, Offset, Timestamp};
use protocol::records::metadata::MetadataRecord;
use quorum::{Action, Quorum, ReplicaKey, SnapshotId};
use storage::{FlushJob, Log, StorageError};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};

use crate::description::QuorumDescription;
use crate::flusher::Flusher;
use crate::metadata_log::{self, with_space};
use crate::publisher::{Answer, Publisher};
use crate::snapshot::{self, Snapshot};
use crate::{Boot, Config, FatalError, quorum_state};

/// The latest snapshot, and the one before it for whoever looks into what happened.
const SNAPSHOTS_KEPT: usize = 2;
/// How long after a snapshot for which there was no space the next one is tried.
const SNAPSHOT_AGAIN: Duration = Duration::from_secs(10);

/// What is asked of the driver.
pub(crate) enum Command {
    Decide(Decide),
    Describe(oneshot::Sender<QuorumDescription>),
}

type Decide = Box<dyn FnOnce(&mut Controller, Instant) -> Decided + Send>;

/// A decision: its records, and how to answer once they are committed and applied.
pub(crate) struct Decided {
    pub(crate) records: Vec<MetadataRecord>,
    pub(crate) answer: Answer,
}

enum Event {
    Close,
    Flushed((Offset, u64), Option<FlushJob>, std::io::Result<()>),
    Asked(Command),
    Due,
}

pub(crate) struct Driver {
    env: Env,
    config: Config,
    me: ReplicaKey,
    folder: PathBuf,
    log: Log,
    quorum: Quorum,
    kraft_version: i16,
    flusher: Flusher,
    /// The image of all that is committed.
    committed: Image,
    committed_at: Timestamp,
    bytes_since_snapshot: u64,
    /// After one for which there was no space.
    snapshot_not_before: Instant,
    /// The controller over all that is appended, while this node leads and is active.
    controller: Option<(LeaderEpoch, Controller)>,
    /// Who waits for which offset to be committed.
    waiting: VecDeque<(Offset, Answer)>,
    publisher: Arc<Publisher>,
}

impl Driver {
    pub(crate) fn new(env: Env, config: &Config, boot: Boot, publisher: Arc<Publisher>) -> Self {
        let (now, seed) = (env.clock.now(), env.rng.next_u64());
        let quorum = Quorum::open(quorum::Config::default(), boot.me, 0, seed, boot.quorum, now);
        Self {
            env,
            config: config.clone(),
            me: boot.me,
            folder: boot.folder,
            log: boot.log,
            quorum,
            kraft_version: boot.kraft_version,
            flusher: Flusher::default(),
            committed: boot.image,
            committed_at: Timestamp(0),
            bytes_since_snapshot: 0,
            snapshot_not_before: now,
            controller: None,
            waiting: VecDeque::new(),
            publisher,
        }
    }

    /// Runs until the node closes or the disk fails.
    pub(crate) async fn run(
        mut self,
        mut commands: mpsc::Receiver<Command>,
        closing: CancellationToken,
        fatal: oneshot::Sender<FatalError>,
    ) {
        if let Err(error) = self.turns(&mut commands, &closing).await {
            error!(%error, "the metadata log failed; this node cannot go on");
            // The receiver is gone only if the node is ending anyway.
            let _ = fatal.send(error);
        }
    }

    async fn turns(
        &mut self,
        commands: &mut mpsc::Receiver<Command>,
        closing: &CancellationToken,
    ) -> Result<(), FatalError> {
        loop {
            self.settle().await?;
            match self.next(commands, closing).await {
                Event::Close => return self.close().await,
                Event::Flushed(asked, job, result) => self.flushed(asked, job, result)?,
                Event::Asked(Command::Decide(decide)) => self.decide(decide).await?,
                Event::Asked(Command::Describe(give)) => drop(give.send(self.describe())),
                Event::Due => self.quorum.handle_tick(self.env.clock.now()),
            }
        }
    }

    async fn next(&mut self, commands: &mut mpsc::Receiver<Command>, closing: &CancellationToken) -> Event {
        let clock = self.env.clock.clone();
        let deadline = self.quorum.deadline();
        let due = async {
            match deadline {
                Some(at) => clock.sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let is_active = self.controller.is_some();
        let asked = async {
            match commands.recv().await {
                Some(command) if is_active => command,
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = closing.cancelled() => Event::Close,
            (of, job, result) = self.flusher.done() => Event::Flushed(of, job, result),
            command = asked, if is_active => Event::Asked(command),
            () = due => Event::Due,
        }
    }

    /// Does what the core asks until it asks for nothing more.
    async fn settle(&mut self) -> Result<(), FatalError> {
        loop {
            let actions = self.quorum.take_actions();
            if actions.is_empty() {
                return Ok(());
            }
            for action in actions {
                self.perform(action).await?;
            }
        }
    }

    async fn perform(&mut self, action: Action) -> Result<(), FatalError> {
        let (clock, now) = (&*self.env.clock, self.env.clock.wall());
        match action {
            Action::Persist(hard) => {
                with_space(clock, &mut self.log, |log| Ok(quorum_state::write(log, &hard)?)).await?;
            }
            Action::AppendControl(batch) => {
                let append = |log: &mut Log| metadata_log::append_control(log, &batch, now);
                with_space(clock, &mut self.log, append).await?;
            }
            Action::Flush { end, truncations } => {
                self.flusher.ask(&self.env, &mut self.log, (end, truncations));
            }
            Action::HighWatermark(end) => self.commit(end)?,
            Action::Activated { epoch, .. } => self.activate(epoch),
            Action::RoleChanged { role, epoch, leader } => {
                info!(?role, %epoch, leader = leader.map(|id| id.0), "the quorum's role changed");
                if role != quorum::RoleName::Leader {
                    self.controller = None;
                    self.waiting.clear();
                }
            }
            Action::DeleteBefore(offset) => self.delete_before(offset)?,
            Action::Truncate(offset) => self.log.truncate_to(offset, self.env.clock.wall())?,
            Action::Send { id, .. } => self.quorum.handle_failure(self.env.clock.now(), id),
            Action::VotersChanged(voters) => debug!(voters = voters.len(), "the voters changed"),
            // A quorum of one has nobody to fetch from or to answer.
            Action::AppendFetched { .. }
            | Action::Respond { .. }
            | Action::RespondRecords { .. }
            | Action::WriteSnapshotPiece { .. }
            | Action::InstallSnapshot(_)
            | Action::VoterChangeDone { .. } => {}
        }
        Ok(())
    }

    fn flushed(
        &mut self,
        asked: (Offset, u64),
        job: Option<FlushJob>,
        result: std::io::Result<()>,
    ) -> Result<(), FatalError> {
        if let Some(job) = job {
            self.log.flush_done(&job, result)?;
        }
        self.quorum.handle_flushed(self.env.clock.now(), asked.0, asked.1);
        if let Some(next) = self.flusher.take_next() {
            self.flusher.ask(&self.env, &mut self.log, next);
        }
        Ok(())
    }

    /// This node leads and everything before its epoch is committed: the controller begins.
    fn activate(&mut self, epoch: LeaderEpoch) {
        info!(%epoch, end = %self.committed.end(), "the controller is active");
        let config = controller::Config {
            node: self.config.node_id,
            cluster_id: self.config.cluster_id.clone(),
            broker: self.config.broker.clone(),
        };
        self.controller =
            Some((epoch, Controller::new(self.committed.clone(), config, self.env.clock.now())));
    }

    async fn decide(&mut self, decide: Decide) -> Result<(), FatalError> {
        let Some((epoch, controller)) = &mut self.controller else { return Ok(()) };
        let decided = decide(controller, self.env.clock.now());
        if !decided.records.is_empty() {
            let count = decided.records.len() as u32;
            let Ok(appended) = self.quorum.append(self.env.clock.now(), *epoch, count) else { return Ok(()) };
            let at = (appended.base_offset, appended.epoch);
            let (clock, now) = (&*self.env.clock, self.env.clock.wall());
            let append = |log: &mut Log| metadata_log::append(log, at, &decided.records, now);
            let end = with_space(clock, &mut self.log, append).await?;
            let (image, _) = controller.image().apply(&decided.records, end).map_err(|error| {
                FatalError::Apply(format!("a decision of this node's controller: {error}"))
            })?;
            controller.advance(image);
        }
        self.waiting.push_back((self.log.log_end(), decided.answer));
        self.answer();
        Ok(())
    }

    /// Hands what is committed now to the publisher.
    fn commit(&mut self, high_watermark: Offset) -> Result<(), FatalError> {
        while self.committed.end() < high_watermark {
            let batches = metadata_log::read(&self.log, self.committed.end(), high_watermark)?;
            let Some(last) = batches.last() else {
                return Err(FatalError::Apply(format!("no record at offset {}", self.committed.end())));
            };
            let (end, at) = (last.end, last.timestamp);
            let records: Vec<_> = batches.into_iter().flat_map(|batch| batch.records).collect();
            let (image, delta) =
                self.committed.apply(&records, end).map_err(|error| FatalError::Apply(error.to_string()))?;
            self.publisher.publish(image.clone(), delta);
            self.committed = image;
            self.committed_at = at;
        }
        self.answer();
        self.snapshot_if_due()
    }

    fn answer(&mut self) {
        while let Some((_, answer)) = self.waiting.pop_front_if(|(end, _)| *end <= self.committed.end()) {
            self.publisher.answer(answer);
        }
    }

    /// A snapshot when the log has grown enough; then the log below it goes.
    fn snapshot_if_due(&mut self) -> Result<(), FatalError> {
        let covered = self.quorum.latest_snapshot().map_or(0, |id| id.end.0);
        let log_bytes = self.log.size_bytes();
        if self.committed.is_in_transaction()
            || log_bytes < self.bytes_since_snapshot + self.config.snapshot_bytes
            || self.committed.end().0 <= covered
            || self.env.clock.now() < self.snapshot_not_before
        {
            return Ok(());
        }
        let end = self.committed.end();
        let id = SnapshotId { end, epoch: self.quorum.log().epoch_before(end) };
        let snapshot = Snapshot {
            kraft_version: self.kraft_version,
            voters: self.quorum.voters().before(end).clone(),
            records: self.committed.to_records(),
        };
        let bytes = snapshot::encode(&snapshot, id.epoch, self.committed_at, self.env.clock.wall());
        let now = self.env.clock.now();
        match snapshot::write(&self.log, id, &bytes, self.env.clock.wall()) {
            Err(error @ StorageError::DiskFull { .. }) => {
                warn!(%error, "a metadata snapshot waits for space");
                self.snapshot_not_before = now.plus(SNAPSHOT_AGAIN);
                return Ok(());
            }
            result => result?,
        }
        info!(end = %id.end, epoch = %id.epoch, bytes = bytes.len(), "a metadata snapshot was written");
        self.quorum.handle_snapshot_made(now, id, bytes.len() as u64);
        self.quorum.delete_before(now, end);
        self.bytes_since_snapshot = log_bytes;
        self.remove_old_snapshots()
    }

    fn remove_old_snapshots(&mut self) -> Result<(), FatalError> {
        let io = |cause| FatalError::Io { path: self.folder.clone(), cause };
        let found = snapshot::list(self.env.disk.as_ref(), &self.folder).map_err(io)?;
        let old = found.len().saturating_sub(SNAPSHOTS_KEPT);
        for (id, _) in &found[..old] {
            snapshot::remove(self.env.disk.as_ref(), &self.folder, *id).map_err(io)?;
            self.quorum.handle_snapshot_deleted(*id);
        }
        Ok(())
    }

    fn delete_before(&mut self, offset: Offset) -> Result<(), FatalError> {
        self.log.advance_log_start(offset)?;
        while self.log.maintain(self.env.clock.wall(), self.quorum.high_watermark())?.more {}
        self.bytes_since_snapshot = self.log.size_bytes();
        Ok(())
    }

    fn describe(&self) -> QuorumDescription {
        QuorumDescription::of(&self.quorum, self.me)
    }

    /// A flush that has begun is waited for: if it failed and nobody heard of it, the next one would succeed.
    async fn close(&mut self) -> Result<(), FatalError> {
        self.waiting.clear();
        if let Some((job, result)) = self.flusher.end().await {
            self.log.flush_done(&job, result)?;
        }
        self.log.close()?;
        Ok(())
    }
}
