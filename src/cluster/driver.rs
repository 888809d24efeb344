//! The task that owns the quorum, the metadata log and the controller's image.
//!
//! Each turn takes one event, hands it to the core, and does what the core asks, in order. Committed records are read
//! back from the log, and the image that they make goes to the publisher: nothing here waits for a partition, and nothing
//! for a peer.
//!
//! Kafka: `KafkaRaftClient.poll`, `QuorumController.ControllerWriteEvent`.

mod exchange;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use controller::{Controller, Decision};
use env::Env;
use metadata::{Image, METADATA_VERSION};
use model::{Instant, LeaderEpoch, NodeId, Offset, Timestamp};
use protocol::records::metadata::MetadataRecord;
use quorum::{Action, Quorum, RoleName, SnapshotId, VoterSet};
use storage::{FlushJob, Log};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::description::QuorumDescription;
use crate::flusher::Flusher;
use crate::metadata_log::{self, patiently};
use crate::peers::{Answered, Peers};
use crate::publisher::{Answer, Publisher};
use crate::questions::Questions;
use crate::snapshot::{self, Snapshot};
use crate::wire::{self, Asked};
use crate::{Boot, Config, FatalError, quorum_state};

/// The latest snapshot, and the one before it for whoever looks into what happened.
const SNAPSHOTS_KEPT: usize = 2;
/// How long after a snapshot for which there was no space the next one is tried.
const SNAPSHOT_AGAIN: Duration = Duration::from_secs(10);

/// How long a leader that ends looks for another one.
const HAND_OVER_WITHIN: Duration = Duration::from_secs(1);

/// What is asked of the driver, whether it leads or not.
pub(crate) enum Command {
    Describe(oneshot::Sender<QuorumDescription>),
    Answer(Asked, oneshot::Sender<wire::Answer>),
}

/// What is asked of the controller: it waits while it is not known who leads.
pub(crate) type Decide = Box<dyn FnOnce(&mut Controller, Instant) -> Decided + Send>;

/// What comes from the rest of the node.
pub(crate) struct Mailboxes {
    pub(crate) commands: mpsc::Receiver<Command>,
    pub(crate) decisions: mpsc::Receiver<Decide>,
    pub(crate) closing: CancellationToken,
}

/// Who leads and who votes, for readers, who also hear when it changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    pub(crate) leader: Option<NodeId>,
    pub(crate) leader_address: Option<wire::Address>,
    pub(crate) voters: VoterSet,
    /// The level of `kraft.version`, which stands in the control records and not in the image.
    pub(crate) kraft_version: i16,
}

/// A decision: its records, and how to answer once they are committed and applied.
pub(crate) struct Decided {
    pub(crate) records: Vec<MetadataRecord>,
    pub(crate) answer: Answer,
}

enum Event {
    Flushed((Offset, u64), Option<FlushJob>, std::io::Result<()>),
    Asked(Command),
    Decide(Decide),
    Answered(Answered),
    Due,
}

pub(crate) struct Driver {
    env: Env,
    config: Config,
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
    /// What this node's folder was formatted with.
    bootstrap: Vec<MetadataRecord>,
    /// The controller over all that is appended, while this node leads and is active.
    controller: Option<(LeaderEpoch, Controller)>,
    /// The last other node that led.
    followed: Option<NodeId>,
    /// Who waits for which offset to be committed.
    waiting: VecDeque<(Offset, Answer)>,
    publisher: Arc<Publisher>,
    view: watch::Sender<View>,
    peers: Peers,
    questions: Questions,
    /// The bytes of the answer that is being handed in.
    received: Bytes,
}

impl Driver {
    pub(crate) fn new(
        env: Env,
        config: &Config,
        boot: Boot,
        publisher: Arc<Publisher>,
        view: watch::Sender<View>,
    ) -> Self {
        let (now, seed, timing) = (env.clock.now(), env.rng.next_u64(), config.quorum.timing);
        let place = config.place(boot.me);
        let mut peers = Peers::new(&env, place, timing.request_timeout, &config.quorum);
        peers.learn_voters(boot.quorum.voters.current());
        let bootstrap_servers = peers.bootstrap_servers();
        let quorum = Quorum::open(timing, boot.me, bootstrap_servers, seed, boot.quorum, now);
        Self {
            env,
            config: config.clone(),
            folder: boot.folder,
            log: boot.log,
            quorum,
            kraft_version: boot.kraft_version,
            flusher: Flusher::default(),
            committed: boot.image,
            committed_at: Timestamp(0),
            bytes_since_snapshot: 0,
            snapshot_not_before: now,
            bootstrap: boot.bootstrap,
            controller: None,
            followed: None,
            waiting: VecDeque::new(),
            publisher,
            view,
            peers,
            questions: Questions::default(),
            received: Bytes::new(),
        }
    }

    /// Runs until the node closes or the disk fails.
    pub(crate) async fn run(mut self, mut mailboxes: Mailboxes, fatal: oneshot::Sender<FatalError>) {
        self.show();
        if let Err(error) = self.turns(&mut mailboxes).await {
            error!(%error, "the metadata log failed; this node cannot go on");
            // The receiver is gone only if the node is ending anyway.
            let _ = fatal.send(error);
        }
    }

    async fn turns(&mut self, mailboxes: &mut Mailboxes) -> Result<(), FatalError> {
        let closing = mailboxes.closing.clone();
        loop {
            self.settle().await?;
            // Its folder may have failed elsewhere, while nothing was written here.
            self.log.check()?;
            tokio::select! {
                biased;
                () = closing.cancelled() => break,
                event = self.next(mailboxes) => self.handle(event).await?,
            }
        }
        self.hand_over(mailboxes).await?;
        self.close().await
    }

    async fn handle(&mut self, event: Event) -> Result<(), FatalError> {
        match event {
            Event::Flushed(asked, job, result) => self.flushed(asked, job, result)?,
            Event::Decide(decide) => self.decide(decide).await?,
            Event::Asked(Command::Describe(give)) => drop(give.send(self.describe())),
            Event::Asked(Command::Answer(asked, give)) => self.asked(asked, give),
            Event::Answered(answered) => self.answered(answered).await?,
            Event::Due => {
                self.quorum.handle_tick(self.env.clock.now());
                self.look_after_brokers().await?;
            }
        }
        Ok(())
    }

    async fn next(&mut self, mailboxes: &mut Mailboxes) -> Event {
        let clock = self.env.clock.clone();
        let deadline = self.deadline();
        let due = async {
            match deadline {
                Some(at) => clock.sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let takes_decisions = self.controller.is_some() || self.another_leads();
        tokio::select! {
            biased;
            (of, job, result) = self.flusher.done() => Event::Flushed(of, job, result),
            answered = self.peers.answered() => Event::Answered(answered),
            Some(command) = mailboxes.commands.recv() => Event::Asked(command),
            Some(decide) = mailboxes.decisions.recv(), if takes_decisions => Event::Decide(decide),
            () = due => Event::Due,
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let controller = self.controller.as_ref().map(|(_, controller)| controller.deadline());
        [self.quorum.deadline(), controller].into_iter().flatten().min()
    }

    fn another_leads(&self) -> bool {
        self.quorum.leader().is_some_and(|leader| leader != self.config.node_id)
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
                patiently(clock, &mut self.log, |log| Ok(quorum_state::write(log, &hard)?)).await?;
            }
            Action::AppendControl(batch) => {
                let append = |log: &mut Log| metadata_log::append_control(log, &batch, now);
                patiently(clock, &mut self.log, append).await?;
            }
            Action::Flush { end, truncations } => {
                self.flusher.ask(&self.env, &mut self.log, (end, truncations));
            }
            Action::HighWatermark(end) => self.commit(end).await?,
            Action::Activated { epoch, .. } => self.activate(epoch).await?,
            Action::RoleChanged { role, epoch, leader } => {
                info!(?role, %epoch, leader = leader.map(|id| id.0), "the quorum's role changed");
                self.followed = leader.filter(|id| *id != self.config.node_id).or(self.followed);
                if role != RoleName::Leader {
                    self.controller = None;
                    self.waiting.clear();
                }
                self.show();
            }
            Action::VotersChanged(voters) => {
                info!(voters = voters.len(), "the voters changed");
                self.peers.learn_voters(&voters);
                self.show();
            }
            Action::DeleteBefore(offset) => self.delete_before(offset).await?,
            Action::Truncate(offset) => {
                patiently(clock, &mut self.log, |log| Ok(log.truncate_to(offset, now)?)).await?;
            }
            Action::Send { to, id, request } => self.send(to, id, request),
            Action::Respond { token, response } => self.respond(token, response).await?,
            Action::RespondRecords { token, response, start, end } => {
                self.respond_records(token, response, start..end).await?;
            }
            Action::AppendFetched { count } => self.append_fetched(count).await?,
            Action::WriteSnapshotPiece { id, position } => self.write_piece(id, position).await?,
            Action::InstallSnapshot(id) => self.install_snapshot(id).await?,
            // Nobody can ask for a change of the voters yet.
            Action::VoterChangeDone { .. } => {}
        }
        Ok(())
    }

    fn show(&self) {
        let (leader, voters) = (self.quorum.leader(), self.quorum.voters().current().clone());
        let leader_address = leader.and_then(|leader| self.peers.address(leader));
        self.view.send_replace(View { leader, leader_address, voters, kraft_version: self.kraft_version });
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
    async fn activate(&mut self, epoch: LeaderEpoch) -> Result<(), FatalError> {
        info!(%epoch, end = %self.committed.end(), "the controller is active");
        let config = controller::Config {
            node: self.config.node_id,
            cluster_id: self.config.cluster_id.clone(),
            broker: self.config.broker.clone(),
        };
        let now = self.env.clock.now();
        let mut controller = Controller::new(self.committed.clone(), config, now);
        // Its broker ran in the process of the controller before this one, which perhaps is gone.
        let before = self.followed.take().and_then(|id| self.committed.brokers.get(id));
        if let Some(broker) = before {
            controller.handle_connection_closed(broker.id, broker.epoch, None, now);
        }
        self.controller = Some((epoch, controller));
        let is_new = self.committed.features.level(METADATA_VERSION) == 0;
        let formatted = self.bootstrap.clone();
        self.decide(Box::new(move |controller, _| {
            let begins_as_formatted = is_new && !formatted.is_empty();
            let records = if begins_as_formatted { formatted } else { controller.bootstrap().records };
            Decided { records, answer: Box::new(|| ()) }
        }))
        .await
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
            let end = patiently(clock, &mut self.log, append).await?;
            let (image, _) = controller.image().apply(&decided.records, end).map_err(|error| {
                FatalError::Apply(format!("a decision of this node's controller: {error}"))
            })?;
            controller.advance(image);
        }
        self.waiting.push_back((self.log.log_end(), decided.answer));
        self.answer();
        Ok(())
    }

    /// Does what the controller has to do by the clock, one thing at a time: what is left is due at once.
    async fn look_after_brokers(&mut self) -> Result<(), FatalError> {
        let now = self.env.clock.now();
        if self.controller.as_ref().is_none_or(|(_, controller)| controller.deadline() > now) {
            return Ok(());
        }
        self.decide(Box::new(|controller, now| {
            let Decision { records, reply: fenced } = controller.handle_tick(now);
            for broker in fenced {
                info!(broker_id = broker.0, "a broker is fenced: its session has ended");
            }
            Decided { records, answer: Box::new(|| ()) }
        }))
        .await
    }

    /// Hands what is committed now to the publisher.
    async fn commit(&mut self, high_watermark: Offset) -> Result<(), FatalError> {
        while self.committed.end() < high_watermark {
            let from = self.committed.end();
            let read = |log: &mut Log| metadata_log::read(log, from, high_watermark);
            let batches = patiently(&*self.env.clock, &mut self.log, read).await?;
            let Some(last) = batches.last() else {
                return Err(FatalError::Apply(format!("no record at offset {from}")));
            };
            let (end, at) = (last.end, last.timestamp);
            self.learn_kraft_version(metadata_log::kraft_version(&batches));
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

    fn learn_kraft_version(&mut self, told: Option<i16>) {
        if let Some(level) = told.filter(|level| *level != self.kraft_version) {
            self.kraft_version = level;
            self.show();
        }
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
            Err(error) if error.passes() => {
                warn!(%error, "a metadata snapshot waits for space or for open files to be closed");
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
        let found = match snapshot::list(self.env.disk.as_ref(), &self.folder).map_err(io) {
            // They are removed after the next one.
            Err(error) if error.passes() => return Ok(()),
            found => found?,
        };
        let old = found.len().saturating_sub(SNAPSHOTS_KEPT);
        for (id, _) in &found[..old] {
            snapshot::remove(self.env.disk.as_ref(), &self.folder, *id).map_err(io)?;
            self.quorum.handle_snapshot_deleted(*id);
        }
        Ok(())
    }

    async fn delete_before(&mut self, offset: Offset) -> Result<(), FatalError> {
        let (now, high_watermark) = (self.env.clock.wall(), self.quorum.high_watermark());
        let delete = |log: &mut Log| {
            log.advance_log_start(offset)?;
            while log.maintain(now, high_watermark)?.remove_files()? {}
            Ok(())
        };
        patiently(&*self.env.clock, &mut self.log, delete).await?;
        self.bytes_since_snapshot = self.log.size_bytes();
        Ok(())
    }

    fn describe(&self) -> QuorumDescription {
        QuorumDescription::of(&self.quorum, self.env.clock.now())
    }

    /// A leader that ends lets another one be elected first, if there is one, so that nobody waits for it to be missed.
    async fn hand_over(&mut self, mailboxes: &mut Mailboxes) -> Result<(), FatalError> {
        if self.quorum.role() != RoleName::Leader || self.quorum.voters().current().len() < 2 {
            return Ok(());
        }
        let clock = self.env.clock.clone();
        let until = clock.now().plus(HAND_OVER_WITHIN);
        self.quorum.resign(clock.now());
        self.settle().await?;
        while !self.another_leads() {
            let Some(event) = env::timeout(&*clock, until, self.next(mailboxes)).await else { break };
            self.handle(event).await?;
            self.settle().await?;
        }
        Ok(())
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
