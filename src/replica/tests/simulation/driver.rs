//! What a driver does for a replica: carries out its actions, serves its peers, and tells it what happened.

use std::time::Duration;

use model::{BrokerEpoch, ErrorCode, LeaderEpoch, Offset};
use replica::{
    Action, AlteredPartition, BatchRange, FetchAnswer, FetchError, FetchRequest, FetchState, FollowerFetch,
    LeaderOffsets, LogView, PartitionState, Position, QuestionId,
};

use super::disk::Batch;
use super::network::{Answer, Body, CONTROLLER, Message};
use super::node::{Parked, Process, Question, Wait};
use super::world::{Event, Request, World};

/// How long a leader keeps a Fetch that has nothing to bring.
const FETCH_WAIT: Duration = Duration::from_millis(100);
/// When a question is given up.
const PATIENCE: Duration = Duration::from_millis(400);

impl World {
    pub(super) fn process(&mut self, at: usize, life: u64) -> Option<&mut Process> {
        let node = &mut self.nodes[at];
        node.process.as_mut().filter(|_| node.life == life)
    }

    /// Carries out what the replica wants, then looks at what came of it.
    pub(super) fn act(&mut self, at: usize) {
        while let Some(action) = self.poll(at) {
            if self.carry_out(at, action) {
                let now = self.clock(at);
                let node = &mut self.nodes[at];
                if let Some(process) = node.process.as_mut() {
                    process.replica.handle_log_changed(now, &node.disk);
                }
            }
        }
        if self.is_up(at) {
            self.observe(at);
            self.answer_clients(at);
            self.serve_parked(at, None);
            self.plan_tick(at);
            self.check();
        }
    }

    fn poll(&mut self, at: usize) -> Option<Action> {
        self.nodes[at].process.as_mut()?.replica.poll_action()
    }

    /// Whether the log changed.
    fn carry_out(&mut self, at: usize, action: Action) -> bool {
        let disk = &mut self.nodes[at].disk;
        match action {
            Action::BeginEpoch { epoch, start } => disk.begin_epoch(epoch, start),
            Action::Truncate(to) => disk.truncate(to.min(disk.log_end())),
            Action::RestartAt(start) => disk.restart_at(start),
            Action::AdvanceLogStart(to) => disk.advance_log_start(to),
            Action::Append { count } => self.append_fetched(at, count),
            Action::Flush => {
                self.begin_flush(at);
                return false;
            }
            Action::Fetch(fetch) => {
                self.fetch(at, fetch);
                return false;
            }
            Action::ListOffsets { id, leader, leader_epoch } => {
                let leader = self.index(leader);
                self.ask(at, leader, id, Body::ListOffsets { id, leader_epoch });
                return false;
            }
            Action::AlterPartition(asked) => {
                let process = self.nodes[at].process.as_ref().expect("it asks");
                let broker_epoch = process.broker_epoch.unwrap_or(BrokerEpoch(-1));
                let (id, connection) = (asked.id, process.connection);
                self.ask(at, CONTROLLER, id, Body::Alter { connection, broker_epoch, asked });
                return false;
            }
            Action::HighWatermark(to) => {
                self.expose(at, to);
                return false;
            }
            Action::LostLeadership => return false,
        }
        true
    }

    fn append_fetched(&mut self, at: usize, count: usize) {
        let node = &mut self.nodes[at];
        let process = node.process.as_mut().expect("it appends");
        for batch in process.fetched.drain(..count) {
            node.disk.append(batch);
        }
    }

    fn begin_flush(&mut self, at: usize) {
        if self.nodes[at].disk.begin_flush() && !self.nodes[at].flushes_held {
            self.plan_flush_end(at);
        }
    }

    fn fetch(&mut self, at: usize, fetch: FetchState) {
        let process = self.nodes[at].process.as_ref().expect("it fetches");
        let broker_epoch = process.broker_epoch.unwrap_or(BrokerEpoch(-1));
        let leader = self.index(fetch.leader);
        self.ask(at, leader, fetch.id, Body::Fetch { fetch, broker_epoch });
    }

    fn ask(&mut self, at: usize, to: usize, id: QuestionId, body: Body) {
        let life = self.nodes[at].life;
        let whom = if to == CONTROLLER { Question::Controller } else { Question::Leader };
        if let Some(process) = self.process(at, life) {
            process.questions.insert(id, whom);
        }
        self.plan(self.now.plus(PATIENCE), Event::TimedOut { node: at, life, id });
        self.post(Message { from: at, to, life, body });
    }

    /// A leader appends a client's batch.
    pub(super) fn write(&mut self, at: usize, epoch: LeaderEpoch, count: i64, value: u64, acks_all: bool) {
        let now = self.clock(at);
        let node = &mut self.nodes[at];
        let base = node.disk.log_end();
        let batch = Batch { base, end: base.plus(count), epoch, value };
        self.oracle.wrote(&batch);
        node.disk.append(batch);
        let process = node.process.as_mut().expect("it leads");
        if acks_all {
            process.waits.push(Wait { epoch, base, end: batch.end, value });
        }
        process.replica.handle_log_changed(now, &node.disk);
        self.begin_flush(at);
        self.act(at);
    }

    /// A leader's records below this offset go.
    pub fn delete_records(&mut self, at: usize, before: Offset) {
        let now = self.clock(at);
        let node = &mut self.nodes[at];
        node.disk.advance_log_start(before);
        if let Some(process) = node.process.as_mut() {
            process.replica.handle_log_changed(now, &node.disk);
        }
        self.act(at);
    }

    // ---- what it shows

    fn observe(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        let process = node.process.as_mut().expect("it is looked at");
        let leads = process.replica.leads();
        if leads != process.led {
            process.led = leads;
            if let Some(epoch) = leads {
                let is_latest = epoch == self.controller.leader_epoch;
                self.oracle.leads(epoch, (node.id, node.life), &node.disk, is_latest);
            }
        }
        let high_watermark = process.replica.high_watermark();
        if high_watermark > process.exposed {
            self.expose(at, high_watermark);
        } else {
            process.exposed = high_watermark;
        }
    }

    // Readers may see what lies below.
    fn expose(&mut self, at: usize, to: Offset) {
        let node = &mut self.nodes[at];
        let process = node.process.as_mut().expect("it is looked at");
        let leads = process.replica.leads().is_some();
        self.oracle.exposed(&node.disk, process.exposed, to, leads);
        process.exposed = to;
    }

    fn answer_clients(&mut self, at: usize) {
        let process = self.nodes[at].process.as_mut().expect("it answers");
        let replica = &process.replica;
        let oracle = &mut self.oracle;
        process.waits.retain(|wait| match replica.verdict(wait.epoch, wait.end) {
            None => true,
            Some(Ok(())) => {
                oracle.acknowledged(wait.base, wait.value);
                false
            }
            Some(Err(_)) => false,
        });
    }

    fn plan_tick(&mut self, at: usize) {
        let (ahead, now) = (self.nodes[at].ahead, self.now);
        let node = &mut self.nodes[at];
        let process = node.process.as_mut().expect("it runs");
        let Some(deadline) = process.replica.deadline(&node.disk) else { return };
        let due = now.max(now.plus(deadline.since(now.plus(ahead))));
        if process.tick_at.is_none_or(|planned| due < planned) {
            process.tick_at = Some(due);
            let life = node.life;
            self.plan(due, Event::Tick { node: at, life });
        }
    }

    // ---- what happens to it

    pub(super) fn tick(&mut self, at: usize, life: u64) {
        let now = self.clock(at);
        let is_due = self.now;
        let Some(process) = self.process(at, life) else { return };
        if process.tick_at.is_some_and(|due| due <= is_due) {
            process.tick_at = None;
            let node = &mut self.nodes[at];
            let process = node.process.as_mut().expect("it runs");
            process.replica.handle_tick(now, &node.disk);
            self.act(at);
        }
    }

    pub(super) fn flushed(&mut self, at: usize, life: u64) {
        let now = self.clock(at);
        if self.process(at, life).is_none() || self.nodes[at].flushes_held {
            return;
        }
        let node = &mut self.nodes[at];
        let again = node.disk.end_flush();
        node.process.as_mut().expect("it runs").replica.handle_log_changed(now, &node.disk);
        if again {
            self.begin_flush(at);
        }
        self.act(at);
    }

    /// Metadata comes.
    pub fn learn(&mut self, at: usize, life: u64, version: i64, state: PartitionState) {
        let now = self.clock(at);
        if self.process(at, life).is_none() || self.network.is_cut(CONTROLLER, at) {
            return;
        }
        let node = &mut self.nodes[at];
        if version < node.version {
            return;
        }
        node.version = version;
        let id = node.id;
        if state.replicas.iter().all(|broker| broker.id != id) {
            return self.delete(at);
        }
        node.metadata = Some(state.clone());
        let process = node.process.as_mut().expect("it runs");
        process.replica.apply_metadata(now, &node.disk, state);
        self.act(at);
    }

    /// The node is no replica: what it has of the partition goes.
    pub fn delete(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        let process = node.process.as_ref().expect("it runs");
        let has_it = process.replica.metadata().leader_epoch > LeaderEpoch::NONE;
        let broker_epoch = process.broker_epoch;
        if has_it || node.disk.log_end() > Offset(0) {
            node.metadata = None;
            node.disk.replace();
            self.open(at, broker_epoch);
        }
    }

    pub(super) fn time_out(&mut self, at: usize, life: u64, id: QuestionId) {
        let now = self.clock(at);
        let Some(process) = self.process(at, life) else { return };
        match process.questions.remove(&id) {
            None => return,
            Some(Question::Leader) => process.replica.handle_fetch_failure(now, id),
            Some(Question::Controller) => {
                process.connection += 1;
                process.replica.handle_alter_partition_failure(now, id);
            }
        }
        self.act(at);
    }

    pub(super) fn unpark(&mut self, at: usize, life: u64, id: QuestionId) {
        if self.process(at, life).is_some() {
            self.serve_parked(at, Some(id));
        }
    }

    pub(super) fn arrive(&mut self, message: Message) {
        let Message { from, to, life, body } = message;
        self.note(from, to);
        match body {
            Body::Fetch { fetch, broker_epoch } => {
                let replica = self.nodes[from].id;
                self.serve_fetch(to, Parked { from, replica, life, fetch, broker_epoch });
            }
            Body::ListOffsets { id, leader_epoch } => self.list_offsets(to, from, life, id, leader_epoch),
            Body::Alter { connection, broker_epoch, asked } if self.is_mirror => {
                self.requests.push(Request { from, life, connection, broker_epoch, asked });
            }
            Body::Alter { connection, broker_epoch, asked } => {
                let latest = self.connections.entry((from, life)).or_default();
                *latest = connection.max(*latest);
                if connection < *latest && self.fences_connections {
                    return;
                }
                let id = asked.id;
                let answer = self.controller.alter(self.nodes[from].id, broker_epoch, &asked);
                self.post(Message { from: CONTROLLER, to: from, life, body: Body::Altered { id, answer } });
                self.publish();
            }
            Body::Fetched { id, answer } => self.fetched(to, life, id, answer),
            Body::Offsets { id, offsets } => {
                let now = self.clock(to);
                let Some(process) = self.process(to, life) else { return };
                process.questions.remove(&id);
                let node = &mut self.nodes[to];
                let process = node.process.as_mut().expect("it runs");
                process.replica.handle_leader_offsets(now, &node.disk, id, offsets);
                self.act(to);
            }
            Body::Altered { id, answer } => self.altered(to, life, id, answer),
        }
    }

    /// The controller answered.
    pub fn altered(
        &mut self,
        at: usize,
        life: u64,
        id: QuestionId,
        answer: Result<AlteredPartition, ErrorCode>,
    ) {
        let now = self.clock(at);
        let Some(process) = self.process(at, life) else { return };
        process.questions.remove(&id);
        let node = &mut self.nodes[at];
        let process = node.process.as_mut().expect("it runs");
        process.replica.handle_alter_partition_answer(now, &node.disk, id, answer);
        self.act(at);
    }

    fn fetched(&mut self, at: usize, life: u64, id: QuestionId, answer: Answer) {
        let now = self.clock(at);
        let Some(process) = self.process(at, life) else { return };
        process.questions.remove(&id);
        let ranges: Vec<BatchRange> = answer.batches.iter().map(Batch::range).collect();
        process.fetched = answer.batches;
        let answer = FetchAnswer {
            error: answer.error,
            high_watermark: answer.high_watermark,
            log_start: answer.log_start,
            diverging: answer.diverging,
            batches: &ranges,
        };
        let node = &mut self.nodes[at];
        let process = node.process.as_mut().expect("it runs");
        process.replica.handle_fetch_answer(now, &node.disk, id, &answer);
        self.act(at);
    }

    // ---- what it serves

    fn list_offsets(&mut self, at: usize, to: usize, life: u64, id: QuestionId, epoch: LeaderEpoch) {
        let node = &self.nodes[at];
        let Some(process) = node.process.as_ref() else { return };
        let (log_start, log_end) = (node.disk.log_start(), node.disk.log_end());
        let offsets =
            process.replica.check_epoch(Some(epoch)).ok().map(|()| LeaderOffsets { log_start, log_end });
        self.post(Message { from: at, to, life, body: Body::Offsets { id, offsets } });
    }

    // It is checked, counted, and answered or parked.
    fn serve_fetch(&mut self, at: usize, parked: Parked) {
        let now = self.clock(at);
        let (wait_until, life, id) = (self.now.plus(FETCH_WAIT), self.nodes[at].life, parked.fetch.id);
        let node = &mut self.nodes[at];
        let Some(process) = node.process.as_mut() else { return };
        let fetch = parked.follower_fetch();
        if process.replica.check_follower_fetch(&node.disk, &fetch).is_ok() {
            process.replica.handle_follower_fetch(now, &node.disk, &fetch);
        }
        process.parked.push(parked);
        self.plan(wait_until, Event::Unpark { node: at, life, id });
        self.act(at);
    }

    /// Answers those who have something to hear, and the one whose time is over.
    fn serve_parked(&mut self, at: usize, over: Option<QuestionId>) {
        let node = &mut self.nodes[at];
        let Some(process) = node.process.as_mut() else { return };
        let mut answers = Vec::new();
        let replica = &process.replica;
        let disk = &node.disk;
        process.parked.retain(|parked| {
            let fetch = parked.follower_fetch();
            let checked = replica.check_follower_fetch(disk, &fetch);
            let answer = answer(disk, replica.high_watermark(), checked, fetch.request.offset);
            let waits =
                checked == Ok(Position::Valid) && answer.batches.is_empty() && over != Some(parked.fetch.id);
            if !waits {
                answers.push((parked.from, parked.life, parked.fetch.id, answer));
            }
            waits
        });
        for (to, life, id, answer) in answers {
            self.post(Message { from: at, to, life, body: Body::Fetched { id, answer } });
        }
    }
}

fn answer(
    disk: &super::disk::Disk,
    high_watermark: Offset,
    checked: Result<Position, FetchError>,
    offset: Offset,
) -> Answer {
    let mut answer = Answer {
        error: ErrorCode::None,
        high_watermark,
        log_start: disk.log_start(),
        diverging: None,
        batches: Vec::new(),
    };
    match checked {
        Err(error) => answer.error = error.into(),
        Ok(Position::Diverging(end)) => answer.diverging = Some(end),
        Ok(Position::Valid) => answer.batches = disk.read(offset, 3),
    }
    answer
}

impl Parked {
    fn follower_fetch(&self) -> FollowerFetch {
        FollowerFetch {
            replica: self.replica,
            broker_epoch: Some(self.broker_epoch),
            log_start: self.fetch.log_start,
            request: FetchRequest {
                leader_epoch: Some(self.fetch.leader_epoch),
                offset: self.fetch.offset,
                last_fetched_epoch: self.fetch.last_fetched_epoch,
            },
        }
    }
}
