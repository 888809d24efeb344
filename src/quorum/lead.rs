//! Leading: the epoch's first records, the high watermark, and knowing when to stop.
//!
//! Invariants: a record counts where it is flushed, on the leader too; only records of the leader's own epoch
//! are committed by counting, and older ones with them; until then it takes no records.
//!
//! Kafka: `LeaderState`.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{ErrorCode, Instant, LeaderEpoch, Offset};

use crate::change::Change;
use crate::mutant::Mutant;
use crate::role::Role;
use crate::serve::Parked;
use crate::{
    Action, BeginQuorumEpochRequest, ControlBatch, ControlRecord, EndQuorumEpochRequest, FetchResponse, Peer,
    Quorum, ReplicaKey, Request, Response, VoterSet,
};

/// Replicas that are remembered, and Fetches that are parked: more than any cluster has brokers.
pub(crate) const OBSERVERS_MAX: usize = 10_000;

/// An observer that has not fetched for so long is none (Kafka: `LeaderState.OBSERVER_SESSION_TIMEOUT_MS`).
const OBSERVER_SESSION: Duration = Duration::from_mins(5);

/// Why records were not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// This node does not lead that epoch.
    #[error("not the leader of this epoch")]
    NotLeader,
    /// It leads, but its first record is not committed yet.
    #[error("the leader's epoch is not committed yet")]
    NotActive,
}

/// Where the records of an append belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The offset of the first record.
    pub base_offset: Offset,
    /// The leader epoch of the batch.
    pub epoch: LeaderEpoch,
}

/// What a leader knows of a replica, since its epoch began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Progress {
    /// Up to where, exclusive, the replica has the log on disk; none before its first good Fetch.
    pub(crate) log_end: Option<Offset>,
    /// When it last fetched.
    pub(crate) last_fetch: Option<Instant>,
    /// When it last had all that the leader had.
    pub(crate) last_caught_up: Option<Instant>,
    /// The leader's log end at its last Fetch.
    pub(crate) end_at_fetch: Offset,
}

#[derive(Clone, Debug)]
pub(crate) struct Lead {
    /// Where the epoch starts: the offset of LeaderChange.
    start: Offset,
    /// Where the epoch's first records end, exclusive.
    active_from: Offset,
    pub(crate) active: bool,
    began_at: Instant,
    check_quorum_at: Instant,
    pub(crate) replicas: BTreeMap<ReplicaKey, Progress>,
    pub(crate) parked: Vec<Parked>,
    pub(crate) change: Option<Change>,
}

impl Lead {
    pub(crate) fn new(start: Offset, now: Instant) -> Self {
        Self {
            start,
            active_from: start,
            active: false,
            began_at: now,
            check_quorum_at: now,
            replicas: BTreeMap::new(),
            parked: Vec::new(),
            change: None,
        }
    }

    /// Observers that stay away are forgotten.
    fn forget_absent(&mut self, voters: &VoterSet, now: Instant) {
        let is_there =
            |progress: &Progress| progress.last_fetch.is_some_and(|at| now.since(at) < OBSERVER_SESSION);
        self.replicas.retain(|key, progress| voters.contains(key) || is_there(progress));
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        let parked = self.parked.iter().map(|parked| parked.until);
        let change = self.change.as_ref().and_then(Change::deadline);
        parked.chain(change).chain([self.check_quorum_at]).min()
    }

    /// What is known of the voter `key`. Where its directory is not known, it is whoever fetched last under its id: the
    /// disk may have been replaced meanwhile.
    pub(crate) fn progress(&self, key: &ReplicaKey) -> Progress {
        let same = self.replicas.iter().filter(|(replica, _)| replica.is_same(key));
        same.map(|(_, progress)| *progress).max_by_key(|progress| progress.last_fetch).unwrap_or_default()
    }
}

impl Quorum {
    pub(crate) fn lead(&self) -> Option<&Lead> {
        match &self.role {
            Role::Leader(lead) => Some(lead),
            _ => None,
        }
    }

    pub(crate) fn lead_mut(&mut self) -> Option<&mut Lead> {
        match &mut self.role {
            Role::Leader(lead) => Some(lead),
            _ => None,
        }
    }

    /// The epoch's first batch. A leader whose voters stand in no log yet writes them down.
    pub(crate) fn begin_lead(&mut self, granting: Vec<ReplicaKey>) {
        let voters = self.voters.current().clone();
        let keys = voters.iter().map(|voter| voter.key).collect();
        let mut records = vec![ControlRecord::LeaderChange { leader: self.me.id, voters: keys, granting }];
        if !self.voters.is_logged() {
            records.extend([ControlRecord::KRaftVersion(1), ControlRecord::Voters(voters)]);
        }
        self.append_control(records);
        let end = self.log.end();
        let check_quorum_at = self.now.plus(self.config.check_quorum_timeout());
        if let Some(lead) = self.lead_mut() {
            (lead.active_from, lead.check_quorum_at) = (end, check_quorum_at);
        }
        self.advance_high_watermark();
    }

    pub(crate) fn append_control(&mut self, records: Vec<ControlRecord>) {
        let (base_offset, epoch) = (self.log.end(), self.hard.epoch);
        self.log.append(epoch, base_offset.plus(records.len() as i64));
        self.actions.push(Action::AppendControl(ControlBatch {
            base_offset,
            epoch,
            records: records.clone(),
        }));
        for (i, record) in records.into_iter().enumerate() {
            if let ControlRecord::Voters(voters) = record {
                self.append_voters(base_offset.plus(i as i64), voters);
            }
        }
        self.answer_parked();
    }

    /// Takes `count` records of the leader of `epoch`. The driver appends them as one batch, at the offset
    /// and with the epoch of the answer, before it does the next action.
    ///
    /// # Errors
    /// Where this node is not the active leader of that epoch.
    ///
    /// # Panics
    /// Where `count` is 0.
    pub fn append(&mut self, now: Instant, epoch: LeaderEpoch, count: u32) -> Result<Appended, AppendError> {
        assert!(count > 0, "an append of nothing");
        let lead = self.lead().filter(|_| epoch == self.hard.epoch).ok_or(AppendError::NotLeader)?;
        if !lead.active {
            return Err(AppendError::NotActive);
        }
        let appended = Appended { base_offset: self.log.end(), epoch };
        self.event(now, |quorum| {
            quorum.log.append(epoch, appended.base_offset.plus(i64::from(count)));
            quorum.advance_high_watermark();
            quorum.answer_parked();
        });
        Ok(appended)
    }

    /// Looks how far a majority of the voters has the log on disk.
    pub(crate) fn advance_high_watermark(&mut self) {
        let Some(lead) = self.lead() else { return };
        let committed = self.majority_end(lead);
        let of_this_epoch = committed > lead.start || self.mutation.is(Mutant::CommitOlderEpoch);
        if committed > self.high_watermark && of_this_epoch {
            self.move_high_watermark(committed);
            self.activate();
            self.answer_parked();
            self.finish_change();
        }
    }

    fn majority_end(&self, lead: &Lead) -> Offset {
        let own =
            if self.mutation.is(Mutant::LeaderCountsUnflushed) { self.log.end() } else { self.log.flushed() };
        let voters = self.voters.current();
        let mut ends: Vec<_> = voters
            .iter()
            .map(
                |voter| {
                    if voter.key.is_same(&self.me) { Some(own) } else { lead.progress(&voter.key).log_end }
                },
            )
            .collect();
        ends.sort_unstable_by(|a, b| b.cmp(a));
        ends.get(voters.majority() - 1).copied().flatten().unwrap_or(Offset(0)).min(own)
    }

    fn activate(&mut self) {
        let (epoch, high_watermark) = (self.hard.epoch, self.high_watermark);
        let Some(lead) = self.lead_mut() else { return };
        if !lead.active && high_watermark >= lead.active_from {
            lead.active = true;
            let end = lead.active_from;
            self.actions.push(Action::Activated { epoch, end });
        }
    }

    pub(crate) fn drive_leader(&mut self) {
        let Some(lead) = self.lead() else { return };
        let attended_until = self.attended_until(lead);
        if attended_until <= self.now && !self.mutation.is(Mutant::NoCheckQuorum) {
            return self.resign_now();
        }
        let next_check = attended_until.max(self.now.plus(self.config.retry_backoff));
        let now = self.now;
        if let Role::Leader(lead) = &mut self.role {
            lead.check_quorum_at = next_check;
            lead.forget_absent(self.voters.current(), now);
        }
        self.expire_change();
        self.answer_parked();
        self.begin_epochs();
    }

    // Until when a majority of the voters has fetched recently enough.
    fn attended_until(&self, lead: &Lead) -> Instant {
        let voters = self.voters.current();
        let mut fetched: Vec<_> = voters
            .iter()
            .map(|voter| match lead.progress(&voter.key).last_fetch {
                _ if voter.key.is_same(&self.me) => self.now,
                last_fetch => last_fetch.unwrap_or(lead.began_at),
            })
            .collect();
        fetched.sort_unstable_by(|a, b| b.cmp(a));
        let deciding = fetched.get(voters.majority() - 1).copied().unwrap_or(self.now);
        deciding.plus(self.config.check_quorum_timeout())
    }

    // A voter that does not fetch may not know of this leader.
    fn begin_epochs(&mut self) {
        let quiet = self.config.fetch_timeout / 2;
        for voter in self.other_voter_keys() {
            let peer = Peer::Node(voter.id);
            let last_fetch = self.lead().and_then(|lead| lead.progress(&voter).last_fetch);
            let is_quiet = last_fetch.is_none_or(|at| self.now.since(at) >= quiet);
            if is_quiet && self.peers.is_ready(peer, self.now) {
                let (epoch, leader) = (self.hard.epoch, self.me.id);
                self.send(peer, Request::BeginQuorumEpoch(BeginQuorumEpochRequest { epoch, leader, voter }));
            }
        }
    }

    pub(crate) fn handle_begin_epoch_response(&mut self, peer: Peer) {
        self.peers.back_off(peer, self.now.plus(self.config.fetch_timeout / 2));
    }

    /// Steps down in favour of the voter that has most of the log: an orderly end, or a leader that should
    /// move. Nothing happens where this node does not lead.
    pub fn resign(&mut self, now: Instant) {
        self.event(now, Self::resign_now);
    }

    pub(crate) fn resign_now(&mut self) {
        let Some(lead) = self.lead() else { return };
        let mut preferred = self.other_voter_keys();
        preferred.sort_by_key(|key| std::cmp::Reverse(lead.progress(key).log_end));
        self.become_resigned(preferred);
    }

    pub(crate) fn drive_resigned(&mut self) {
        let Role::Resigned(role) = &self.role else { return };
        if role.campaign_at <= self.now {
            return self.leave_resigned();
        }
        let preferred = role.preferred.clone();
        for voter in &preferred {
            let peer = Peer::Node(voter.id);
            if self.peers.is_ready(peer, self.now) {
                let (epoch, leader) = (self.hard.epoch, self.me.id);
                let request = EndQuorumEpochRequest { epoch, leader, preferred: preferred.clone() };
                self.send(peer, Request::EndQuorumEpoch(request));
            }
        }
    }

    fn leave_resigned(&mut self) {
        if self.may_campaign() {
            self.become_prospective();
        } else {
            self.become_unattached(self.hard.epoch);
        }
    }

    pub(crate) fn handle_end_epoch_response(&mut self, peer: Peer, error: ErrorCode) {
        if error.is_none() { self.peers.finish(peer) } else { self.back_off(peer) }
    }

    /// The role is about to change: whoever waits for this leader is told so.
    pub(crate) fn end_lead(&mut self) {
        let Some(lead) = self.lead_mut() else { return };
        let parked = std::mem::take(&mut lead.parked);
        let change = lead.change.take();
        let current = crate::CurrentLeader { epoch: self.hard.epoch, leader: None };
        for parked in parked {
            let response = FetchResponse::refusal(ErrorCode::NotLeaderOrFollower, current);
            self.respond(parked.token, Response::Fetch(response));
        }
        if let Some(change) = change {
            self.fail_change(change);
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{NodeId, Uuid};

    use super::*;

    #[test]
    fn a_voter_of_unknown_directory_is_the_replica_that_fetched_last() {
        let key = |directory: u8| ReplicaKey::new(NodeId(2), Uuid([directory; 16]));
        let mut lead = Lead::new(Offset(0), Instant(0));
        for (directory, fetched, log_end) in [(1, 5, 9), (2, 7, 3)] {
            let progress = Progress {
                log_end: Some(Offset(log_end)),
                last_fetch: Some(Instant(fetched)),
                ..Progress::default()
            };
            lead.replicas.insert(key(directory), progress);
        }
        assert_eq!(lead.progress(&key(0)).log_end, Some(Offset(3)));
        assert_eq!(lead.progress(&key(1)).log_end, Some(Offset(9)));
    }
}
