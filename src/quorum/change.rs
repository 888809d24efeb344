//! Changes of the voters: one at a time, each a voters record that counts as soon as it is appended.
//!
//! Kafka: `AddVoterHandler`, `RemoveVoterHandler`, `UpdateVoterHandler`, KIP-853.

use model::{ErrorCode, Instant, Offset};

use crate::mutant::Mutant;
use crate::{Action, ControlRecord, Quorum, ReplicaKey, Token, Voter, VoterSet};

/// Why the voters were not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum VoterChangeError {
    /// This node does not lead, or led until the change was under way: it may or may not come to be.
    #[error("not the leader, or no longer")]
    NotLeader,
    /// Another change, or the leader's first record, is not committed yet.
    #[error("an earlier change is not committed yet; try again")]
    Busy,
    /// The id is a voter's already.
    #[error("a voter with this id exists")]
    Duplicate,
    /// There is no such voter.
    #[error("no such voter")]
    NotFound,
    /// The last voter cannot go.
    #[error("the last voter cannot be removed")]
    LastVoter,
    /// The new voter did not reach the end of the log in time.
    #[error("the new voter does not fetch, or is too far behind")]
    NotCaughtUp,
}

impl From<VoterChangeError> for ErrorCode {
    fn from(error: VoterChangeError) -> Self {
        match error {
            VoterChangeError::NotLeader => Self::NotLeaderOrFollower,
            VoterChangeError::Busy | VoterChangeError::NotCaughtUp => Self::RequestTimedOut,
            VoterChangeError::Duplicate => Self::DuplicateVoter,
            VoterChangeError::NotFound => Self::VoterNotFound,
            VoterChangeError::LastVoter => Self::InvalidRequest,
        }
    }
}

/// A change under way.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// A voter to be waits until it has caught up with the log.
    CatchingUp { token: Token, voter: Voter, until: Instant },
    /// The record is appended; it ends here, exclusive.
    Appended { token: Token, end: Offset },
}

impl Change {
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self {
            Self::CatchingUp { until, .. } => Some(*until),
            Self::Appended { .. } => None,
        }
    }
}

impl Quorum {
    /// Makes an observer a voter, once a Fetch that comes after this shows that it has caught up: it lives.
    pub fn add_voter(&mut self, now: Instant, token: Token, voter: Voter) {
        self.event(now, |quorum| {
            if let Err(error) = quorum.check_add(&voter) {
                return quorum.end_change(token, Err(error));
            }
            let until = quorum.now.plus(quorum.config.request_timeout);
            if let Some(lead) = quorum.lead_mut() {
                lead.change = Some(Change::CatchingUp { token, voter, until });
            }
        });
    }

    /// Makes a voter an observer. A leader that removes itself leads until that is committed, and then resigns.
    pub fn remove_voter(&mut self, now: Instant, token: Token, key: ReplicaKey) {
        self.event(now, |quorum| {
            let voters = quorum.voters.current();
            let checked = quorum.check_change().and_then(|()| match voters.contains(&key) {
                false => Err(VoterChangeError::NotFound),
                true if voters.len() == 1 => Err(VoterChangeError::LastVoter),
                true => Ok(voters.without(key.id)),
            });
            quorum.change_voters(token, checked);
        });
    }

    /// Changes a voter's endpoints or versions.
    pub fn update_voter(&mut self, now: Instant, token: Token, voter: Voter) {
        self.event(now, |quorum| {
            let voters = quorum.voters.current();
            let checked = quorum.check_change().and_then(|()| {
                let known = voters.contains(&voter.key);
                if known { Ok(voters.with(voter)) } else { Err(VoterChangeError::NotFound) }
            });
            quorum.change_voters(token, checked);
        });
    }

    fn check_add(&self, voter: &Voter) -> Result<(), VoterChangeError> {
        self.check_change()?;
        match self.voters.current().get(voter.key.id) {
            Some(_) => Err(VoterChangeError::Duplicate),
            None => Ok(()),
        }
    }

    fn check_change(&self) -> Result<(), VoterChangeError> {
        let lead = self.lead().ok_or(VoterChangeError::NotLeader)?;
        let settled = self.voters.current_offset().is_none_or(|offset| offset < self.high_watermark);
        let busy = !lead.active || lead.change.is_some() || !settled;
        if busy && !self.mutation.is(Mutant::TwoVoterChanges) {
            return Err(VoterChangeError::Busy);
        }
        Ok(())
    }

    fn change_voters(&mut self, token: Token, checked: Result<VoterSet, VoterChangeError>) {
        match checked {
            Err(error) => self.end_change(token, Err(error)),
            Ok(voters) => {
                self.append_control(vec![ControlRecord::Voters(voters)]);
                let end = self.log.end();
                if let Some(lead) = self.lead_mut() {
                    lead.change = Some(Change::Appended { token, end });
                }
                self.advance_high_watermark();
            }
        }
    }

    pub(crate) fn append_voters(&mut self, offset: Offset, voters: VoterSet) {
        self.voters.append(offset, voters);
        self.actions.push(Action::VotersChanged(self.voters.current().clone()));
    }

    /// A replica has fetched: perhaps it is the one that is waited for.
    pub(crate) fn continue_change(&mut self, replica: ReplicaKey) {
        let end = self.log.end();
        let Some(lead) = self.lead() else { return };
        let Some(Change::CatchingUp { token, voter, .. }) = &lead.change else { return };
        if voter.key == replica && lead.progress(&replica).log_end >= Some(end) {
            let (token, voters) = (*token, self.voters.current().with(voter.clone()));
            self.change_voters(token, Ok(voters));
        }
    }

    pub(crate) fn expire_change(&mut self) {
        let now = self.now;
        let Some(lead) = self.lead_mut() else { return };
        if lead.change.as_ref().and_then(Change::deadline).is_some_and(|until| until <= now)
            && let Some(Change::CatchingUp { token, .. }) = lead.change.take()
        {
            self.end_change(token, Err(VoterChangeError::NotCaughtUp));
        }
    }

    /// The high watermark moved: perhaps past the change.
    pub(crate) fn finish_change(&mut self) {
        let high_watermark = self.high_watermark;
        let Some(lead) = self.lead_mut() else { return };
        if let Some(Change::Appended { token, end }) = lead.change
            && end <= high_watermark
        {
            lead.change = None;
            self.end_change(token, Ok(()));
        }
        if !self.is_voter() && self.voters.current_offset().is_none_or(|offset| offset < high_watermark) {
            self.resign_now();
        }
    }

    /// This node leads no more, and cannot say what becomes of the change.
    pub(crate) fn fail_change(&mut self, change: Change) {
        let (Change::CatchingUp { token, .. } | Change::Appended { token, .. }) = change;
        self.end_change(token, Err(VoterChangeError::NotLeader));
    }

    fn end_change(&mut self, token: Token, result: Result<(), VoterChangeError>) {
        self.actions.push(Action::VoterChangeDone { token, result });
    }
}
