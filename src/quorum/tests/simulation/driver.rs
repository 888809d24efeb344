//! The driver of a simulated node: does what the core's actions say.

use std::hash::Hash;
use std::rc::Rc;

use model::{LeaderEpoch, Offset};
use quorum::{
    Action, ControlRecord, FetchResponse, HardState, Peer, Request, RequestId, Response, RoleName,
    SnapshotId, Token,
};

use super::network::{Body, Message, Payload};
use super::node::{Node, Process};
use super::world::{Event, World};

impl World {
    // `payload` is what came with the message that was just handed in.
    pub(super) fn act(&mut self, at: usize, mut payload: Payload) {
        loop {
            let process = self.nodes[at].process.as_mut().expect("it acts");
            let actions = process.quorum.take_actions();
            if actions.is_empty() {
                break;
            }
            for action in actions {
                action.hash(&mut self.hash);
                self.do_one(at, action, &mut payload);
            }
        }
        self.plan_tick(at);
    }

    fn plan_tick(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        let Some(process) = node.process.as_mut() else { return };
        let Some(due) = process.quorum.deadline() else { return };
        let due = due.max(self.now);
        if process.tick_at.is_none_or(|planned| due < planned) {
            process.tick_at = Some(due);
            let life = node.life;
            self.plan(due, Event::Tick { node: at, life });
        }
    }

    fn do_one(&mut self, at: usize, action: Action, payload: &mut Payload) {
        match action {
            Action::Persist(hard) => self.persist(at, hard),
            Action::AppendControl(batch) => {
                let end = batch.base_offset.plus(batch.records.len() as i64);
                let numbered = batch.records.into_iter().enumerate();
                let voters = numbered.filter_map(|(i, record)| match record {
                    ControlRecord::Voters(voters) => Some((batch.base_offset.plus(i as i64), voters)),
                    _ => None,
                });
                self.write(at, batch.base_offset, end, batch.epoch, voters.collect());
            }
            Action::AppendFetched { count } => {
                for entry in payload.entries.drain(..count) {
                    self.nodes[at].disk.append(entry);
                }
            }
            Action::Truncate(to) => {
                self.counts.truncations += 1;
                self.nodes[at].disk.truncate(to);
            }
            Action::Flush { end, truncations } => self.ask_for_flush(at, end, truncations),
            Action::Send { to, id, request } => self.send(at, to, id, request),
            Action::Respond { token, response } => self.respond(at, token, response),
            Action::RespondRecords { token, response, start, end } => {
                self.respond_records(at, token, response, start, end);
            }
            Action::RoleChanged { role, epoch, .. } => self.role_changed(at, role, epoch),
            Action::Activated { epoch, .. } => self.process_of(at).active = Some(epoch),
            Action::HighWatermark(to) => self.high_watermark_moved(at, to),
            Action::VotersChanged(voters) => self.process_of(at).voters = voters,
            Action::WriteSnapshotPiece { id, position } => {
                let file = payload.file.take().expect("a piece came");
                assert_eq!(file.id, id);
                let length = (file.size - position).min(1_000);
                self.process_of(at).write_piece(file, position, length);
            }
            Action::InstallSnapshot(id) => self.install(at, id),
            Action::DeleteBefore(offset) => self.nodes[at].disk.delete_before(offset),
            Action::VoterChangeDone { result, .. } => {
                self.counts.voter_changes += u64::from(result.is_ok());
                self.changes.push(result);
            }
        }
    }

    fn persist(&mut self, at: usize, hard: HardState) {
        let Node { key, disk, .. } = &mut self.nodes[at];
        assert!(
            hard.epoch >= disk.hard.epoch,
            "{key:?} went back from epoch {} to {}",
            disk.hard.epoch,
            hard.epoch
        );
        disk.hard = hard;
        if hard.voted == Some(*key) {
            self.oracle.voted(hard.epoch, *key, *key);
        }
    }

    fn process_of(&mut self, at: usize) -> &mut Process {
        self.nodes[at].process.as_mut().expect("it acts")
    }

    fn ask_for_flush(&mut self, at: usize, end: Offset, truncations: u64) {
        if self.nodes[at].disk.flushing.is_some() {
            self.nodes[at].disk.flush_next = Some((end, truncations));
        } else {
            self.begin_flush(at, end, truncations);
        }
    }

    fn send(&mut self, at: usize, to: Peer, id: RequestId, request: Request) {
        let to = match to {
            Peer::Node(id) => id.0 as usize - 1,
            Peer::Bootstrap(n) => n,
        };
        let life = self.nodes[at].life;
        if to == at {
            let body = Body::Failure { life, id };
            return self.post(Message { from: at, to, body });
        }
        if !self.oracle.harm_only {
            check_promises(&self.nodes[at], &request);
        }
        self.post(Message { from: at, to, body: Body::Request { life, id, request } });
    }

    fn respond(&mut self, at: usize, token: Token, response: Response) {
        if !self.oracle.harm_only {
            check_answer(&self.nodes[at], &response);
        }
        let mut payload = Payload::default();
        if let Response::FetchSnapshot(piece) = &response {
            payload.file = self.nodes[at].disk.snapshots.get(&piece.id).map(Rc::clone);
        }
        self.answer(at, token, response, payload);
    }

    fn respond_records(
        &mut self,
        at: usize,
        token: Token,
        mut response: FetchResponse,
        start: Offset,
        end: Offset,
    ) {
        let most = self.chance.between(1, self.batches_most + 1) as usize;
        let entries: Vec<_> = self.nodes[at].disk.from(start).iter().take(most).map(Rc::clone).collect();
        assert!(entries.first().is_some_and(|first| first.base == start), "no batch starts at {start}");
        assert!(entries.iter().all(|entry| entry.end <= end));
        response.batches = entries.iter().map(|entry| entry.batch()).collect();
        let response = Response::Fetch(response);
        check_answer(&self.nodes[at], &response);
        self.answer(at, token, response, Payload { entries, file: None });
    }

    fn role_changed(&mut self, at: usize, role: RoleName, epoch: LeaderEpoch) {
        let node = &mut self.nodes[at];
        let process = node.process.as_mut().expect("it acts");
        process.leads = (role == RoleName::Leader).then_some(epoch);
        process.active = process.active.filter(|active| role == RoleName::Leader && *active == epoch);
        if role == RoleName::Leader {
            self.counts.elections += 1;
            self.oracle.elected(epoch, node.key, &node.disk, &process.voters);
        }
    }

    fn high_watermark_moved(&mut self, at: usize, to: Offset) {
        let node = &self.nodes[at];
        let process = node.process.as_ref().expect("it acts");
        if process.leads.is_some() && !self.oracle.harm_only {
            let epoch = node.disk.before(to).map(|entry| entry.epoch);
            assert_eq!(
                epoch,
                Some(process.quorum.epoch()),
                "a record of an older epoch is committed by counting"
            );
        }
        let from = process.high_watermark.max(node.disk.start());
        assert!(to > process.high_watermark, "the high watermark went back to {to}");
        let entries: Vec<_> =
            node.disk.from(from).iter().take_while(|entry| entry.end <= to).map(Rc::clone).collect();
        let disks = || self.nodes.iter().map(|node| (node.key, &node.disk)).collect();
        self.oracle.exposed(&entries, process.leads, disks, &process.voters);
        self.process_of(at).high_watermark = to;
    }

    fn install(&mut self, at: usize, id: SnapshotId) {
        let now = self.now;
        let node = &mut self.nodes[at];
        let process = node.process.as_mut().expect("it acts");
        let part = process.part.take().expect("it was fetched");
        self.counts.installs += 1;
        assert_eq!(
            (part.file.id, part.length),
            (id, part.file.size),
            "a snapshot is installed before it is whole"
        );
        assert_eq!(part.file.state, self.oracle.state_before(id.end), "a snapshot of something else");
        let voters = part.file.voters.clone();
        node.disk.install(Rc::clone(&part.file));
        process.quorum.handle_snapshot_installed(now, id, part.file.size, voters);
    }
}

// What a request promises is on disk: the epoch and the vote, and what its log end acknowledges.
fn check_promises(node: &Node, request: &Request) {
    let hard = &node.disk.hard;
    let epoch = match request {
        Request::Vote(vote) if vote.pre_vote => vote.epoch,
        Request::Vote(vote) => {
            assert_eq!(hard.voted, Some(node.key), "a candidate has not written down its own vote");
            vote.epoch
        }
        Request::BeginQuorumEpoch(begin) => begin.epoch,
        Request::EndQuorumEpoch(end) => end.epoch,
        Request::Fetch(fetch) => {
            let on_disk = node.disk.flushed_end();
            assert!(
                fetch.fetch_offset <= on_disk,
                "a Fetch acknowledges {} of {on_disk}",
                fetch.fetch_offset
            );
            fetch.epoch
        }
        Request::FetchSnapshot(fetch) => fetch.epoch,
    };
    assert_eq!(hard.epoch, epoch, "an epoch is spoken of that is not written down");
}

fn check_answer(node: &Node, response: &Response) {
    let active = node.process.as_ref().is_some_and(|process| process.active.is_some());
    if let Response::Fetch(fetch) = response
        && fetch.high_watermark.is_some()
    {
        assert!(active, "a leader shows a high watermark before its epoch is committed");
        assert!(
            fetch.diverging.is_none() && fetch.error.is_none(),
            "an answer that refuses has a high watermark"
        );
    }
}
