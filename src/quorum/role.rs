//! The roles of a node, what each remembers, and the way from one to the other.
//!
//! Invariants: every change of role forgets the requests that were in flight, so an answer counts only for
//! the state that its question was asked in; the hard state changes here and in `vote` only.
//!
//! Kafka: `QuorumState` and its `EpochState`s.

use std::collections::BTreeSet;

use model::{Instant, LeaderEpoch, NodeId, Offset};

use crate::follow::Follower;
use crate::lead::Lead;
use crate::mutant::Mutant;
use crate::{Action, CurrentLeader, HardState, Quorum, ReplicaKey, RoleName};

#[derive(Clone, Debug)]
pub(crate) enum Role {
    Unattached(Unattached),
    Prospective(Election),
    Candidate(Election),
    Follower(Follower),
    Leader(Lead),
    Resigned(Resigned),
}

/// No leader is known: wait for one, look for one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unattached {
    /// When a voter campaigns.
    pub(crate) campaign_at: Instant,
    /// Whom to ask next for the leader.
    pub(crate) next_peer: usize,
}

/// A pre-vote or a vote on oneself.
#[derive(Clone, Debug)]
pub(crate) struct Election {
    /// When it is given up.
    pub(crate) ends_at: Instant,
    pub(crate) granted: BTreeSet<NodeId>,
    pub(crate) rejected: BTreeSet<NodeId>,
}

/// Was leader of this epoch, and tells the others so.
#[derive(Clone, Debug)]
pub(crate) struct Resigned {
    /// When a voter campaigns again.
    pub(crate) campaign_at: Instant,
    /// Who should campaign, the best first.
    pub(crate) preferred: Vec<ReplicaKey>,
}

impl Role {
    pub(crate) fn name(&self) -> RoleName {
        match self {
            Self::Unattached(_) => RoleName::Unattached,
            Self::Prospective(_) => RoleName::Prospective,
            Self::Candidate(_) => RoleName::Candidate,
            Self::Follower(_) => RoleName::Follower,
            Self::Leader(_) => RoleName::Leader,
            Self::Resigned(_) => RoleName::Resigned,
        }
    }

    /// When the role has something to do by itself, requests aside.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Unattached(role) => Some(role.campaign_at),
            Self::Prospective(role) | Self::Candidate(role) => Some(role.ends_at),
            Self::Follower(role) => Some(role.fetch_until),
            Self::Leader(role) => role.deadline(),
            Self::Resigned(role) => Some(role.campaign_at),
        }
    }
}

impl Quorum {
    /// Who leads, for answers: not a leader that resigned, and not this node unless it leads now.
    pub(crate) fn current(&self) -> CurrentLeader {
        let leader = match self.role {
            Role::Leader(_) => Some(self.me.id),
            Role::Resigned(_) => None,
            _ => self.hard.leader.filter(|leader| *leader != self.me.id),
        };
        CurrentLeader { epoch: self.hard.epoch, leader }
    }

    /// Whether the voters that count for this node name it, disk and all.
    pub(crate) fn is_voter(&self) -> bool {
        self.voters.current().contains(&self.me)
    }

    /// Whether this node may campaign: it is a voter, or was one until a record that may not be committed.
    /// Such a one may hold the longest log, and without it nobody could be elected (Ongaro's thesis, 4.2.2);
    /// its own vote does not count.
    pub(crate) fn may_campaign(&self) -> bool {
        // The last epoch that can be written down: nobody is elected after it.
        if self.hard.epoch.0 == i32::MAX {
            return false;
        }
        let uncertain = self.voters.current_offset().filter(|offset| *offset >= self.high_watermark);
        self.is_voter() || uncertain.is_some_and(|offset| self.voters.before(offset).contains(&self.me))
    }

    /// The other voters' ids.
    pub(crate) fn other_voters(&self) -> Vec<NodeId> {
        let ids = self.voters.current().iter().map(|voter| voter.key.id);
        ids.filter(|id| *id != self.me.id).collect()
    }

    fn change_role(&mut self, role: Role) {
        self.end_lead();
        self.peers.clear();
        self.role = role;
    }

    /// Takes in who leads, as a peer says it. True where that changed this node's role.
    pub(crate) fn learn(&mut self, current: CurrentLeader) -> bool {
        let leader = current.leader.filter(|leader| *leader != self.me.id && leader.0 >= 0);
        if current.epoch > self.hard.epoch {
            match leader {
                Some(leader) => self.become_follower(current.epoch, leader),
                None => self.become_unattached(current.epoch),
            }
            return true;
        }
        let Some(leader) = leader.filter(|_| current.epoch == self.hard.epoch && self.may_follow()) else {
            return false;
        };
        if self.hard.leader.is_some_and(|known| known != leader) {
            return false;
        }
        self.become_follower(current.epoch, leader);
        true
    }

    // Who campaigns has just given the known leader up; that others still name it is no news. Were it taken
    // for one, voters would send each other back to a dead leader for ever.
    fn may_follow(&self) -> bool {
        match self.role {
            Role::Unattached(_) => true,
            Role::Prospective(_) | Role::Candidate(_) => {
                self.hard.leader.is_none() || self.mutation.is(Mutant::EchoOfDeadLeader)
            }
            Role::Follower(_) | Role::Leader(_) | Role::Resigned(_) => false,
        }
    }

    pub(crate) fn become_unattached(&mut self, epoch: LeaderEpoch) {
        if epoch > self.hard.epoch {
            self.hard = HardState::of_epoch(epoch);
        }
        let campaign_at = self.now.plus(self.jitter.once_to_twice(self.config.election_timeout));
        self.wait_for_leader(campaign_at);
    }

    fn wait_for_leader(&mut self, campaign_at: Instant) {
        self.change_role(Role::Unattached(Unattached { campaign_at, next_peer: 0 }));
    }

    pub(crate) fn become_follower(&mut self, epoch: LeaderEpoch, leader: NodeId) {
        assert!(leader != self.me.id, "a node does not follow itself");
        if epoch > self.hard.epoch {
            self.hard = HardState::of_epoch(epoch);
        }
        self.hard.leader = Some(leader);
        let fetch_until = self.next_fetch_deadline();
        self.change_role(Role::Follower(Follower::new(leader, fetch_until)));
    }

    pub(crate) fn become_prospective(&mut self) {
        assert!(self.may_campaign(), "an observer does not campaign");
        if self.mutation.is(Mutant::NoPreVote) {
            return self.become_candidate();
        }
        let election = self.new_election();
        self.change_role(Role::Prospective(election));
        self.count_votes();
    }

    pub(crate) fn become_candidate(&mut self) {
        assert!(self.may_campaign(), "an observer does not campaign");
        let epoch = LeaderEpoch(self.hard.epoch.0 + 1);
        self.hard = HardState { voted: Some(self.me), ..HardState::of_epoch(epoch) };
        let election = self.new_election();
        self.change_role(Role::Candidate(election));
        self.count_votes();
    }

    fn new_election(&mut self) -> Election {
        let ends_at = self.now.plus(self.jitter.once_to_twice(self.config.election_timeout));
        let own = self.is_voter().then_some(self.me.id);
        Election { ends_at, granted: own.into_iter().collect(), rejected: BTreeSet::new() }
    }

    pub(crate) fn become_leader(&mut self, granting: Vec<ReplicaKey>) {
        assert!(matches!(self.role, Role::Candidate(_)), "{:?} cannot lead", self.role.name());
        assert!(self.hard.voted == Some(self.me) && self.hard.leader.is_none(), "{:?}", self.hard);
        self.hard.leader = Some(self.me.id);
        self.change_role(Role::Leader(Lead::new(self.log.end(), self.now)));
        self.begin_lead(granting);
    }

    pub(crate) fn become_resigned(&mut self, preferred: Vec<ReplicaKey>) {
        assert!(self.hard.leader == Some(self.me.id), "only a leader resigns");
        let campaign_at = self.now.plus(self.jitter.once_to_twice(self.config.election_timeout));
        self.change_role(Role::Resigned(Resigned { campaign_at, preferred }));
    }

    /// An election came to nothing: back to the leader that is known, for it may live, or to look for one.
    pub(crate) fn give_up_election(&mut self) {
        if let Some(leader) = self.hard.leader.filter(|leader| *leader != self.me.id) {
            self.become_follower(self.hard.epoch, leader);
        } else {
            let campaign_at = self.now.plus(self.jitter.up_to(self.config.election_backoff_max));
            self.wait_for_leader(campaign_at);
        }
    }

    pub(crate) fn announce_role(&mut self) {
        let now = (self.role.name(), self.current());
        if now != self.announced {
            self.announced = now;
            let (role, CurrentLeader { epoch, leader }) = now;
            self.actions.push(Action::RoleChanged { role, epoch, leader });
        }
    }

    /// Moves the high watermark, which only grows.
    pub(crate) fn move_high_watermark(&mut self, to: Offset) {
        if to > self.high_watermark {
            assert!(
                to <= self.log.end(),
                "a high watermark of {to} with a log that ends at {}",
                self.log.end()
            );
            self.high_watermark = to;
            self.actions.push(Action::HighWatermark(to));
        }
    }
}
