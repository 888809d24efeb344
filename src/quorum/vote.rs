//! Elections, on both sides.
//!
//! Kafka: `KafkaRaftClient.handleVoteRequest`, `EpochElection`, KIP-595, KIP-996.

use model::ErrorCode;

use crate::mutant::Mutant;
use crate::role::{Election, Role};
use crate::{EpochEnd, Peer, Quorum, ReplicaKey, Request, Response, Token, VoteRequest, VoteResponse};

impl Quorum {
    pub(crate) fn handle_vote(&mut self, token: Token, request: &VoteRequest) {
        let (error, granted) = match self.check_vote(request) {
            Err(error) => (error, false),
            Ok(()) => (ErrorCode::None, self.decide_vote(request)),
        };
        self.respond(token, Response::Vote(VoteResponse { error, current: self.current(), granted }));
    }

    fn check_vote(&self, request: &VoteRequest) -> Result<(), ErrorCode> {
        let EpochEnd { epoch, end } = request.log_end;
        // A pre-vote may be of the epoch that the candidate's log is in, a vote is of a new one.
        let is_ahead = if request.pre_vote { epoch > request.epoch } else { epoch >= request.epoch };
        if request.candidate.id.0 < 0 || end.0 < 0 || epoch.0 < 0 || is_ahead {
            return Err(ErrorCode::InvalidRequest);
        }
        if request.epoch < self.hard.epoch {
            return Err(ErrorCode::FencedLeaderEpoch);
        }
        // The one asked is another one's disk. Whether this node knows itself as a voter does not matter: it
        // may lag.
        if !request.voter.is_same(&self.me) || request.candidate.id == self.me.id {
            return Err(ErrorCode::InvalidVoterKey);
        }
        Ok(())
    }

    fn decide_vote(&mut self, request: &VoteRequest) -> bool {
        if request.epoch > self.hard.epoch {
            self.become_unattached(request.epoch);
        }
        let reaches = request.log_end.epoch.cmp(&self.log.flushed_end().epoch);
        let reaches = reaches.then(request.log_end.end.cmp(&self.log.flushed_end().end)).is_ge();
        if !reaches && !self.mutation.is(Mutant::VoteWithoutLogCheck) {
            return false;
        }
        if request.pre_vote { self.would_vote() } else { self.give_vote(request.candidate) }
    }

    // Who hears from a leader keeps it.
    fn would_vote(&self) -> bool {
        match &self.role {
            Role::Leader(_) => false,
            Role::Follower(role) => !role.is_attended(),
            Role::Unattached(_) | Role::Prospective(_) | Role::Candidate(_) | Role::Resigned(_) => true,
        }
    }

    fn give_vote(&mut self, candidate: ReplicaKey) -> bool {
        if self.hard.leader.is_some() {
            return false;
        }
        if let Some(voted) = self.hard.voted {
            return voted == candidate;
        }
        self.hard.voted = Some(candidate);
        self.become_unattached(self.hard.epoch);
        true
    }

    pub(crate) fn handle_vote_response(&mut self, peer: Peer, response: &VoteResponse) {
        let Peer::Node(voter) = peer else { return };
        // Who is not the voter that the set names, for its disk was replaced, cannot give that one's vote.
        if !response.error.is_none() && response.error != ErrorCode::InvalidVoterKey {
            return self.back_off(peer);
        }
        let granted = response.granted && response.error.is_none();
        self.peers.finish(peer);
        if let Role::Prospective(election) | Role::Candidate(election) = &mut self.role {
            let votes = if granted { &mut election.granted } else { &mut election.rejected };
            votes.insert(voter);
            self.count_votes();
        }
    }

    pub(crate) fn count_votes(&mut self) {
        let (Role::Prospective(election) | Role::Candidate(election)) = &self.role else { return };
        let voters = self.voters.current();
        if election.granted.len() >= voters.majority() {
            self.win_election();
        } else if election.rejected.len() + voters.majority() > voters.len() {
            self.give_up_election();
        }
    }

    fn win_election(&mut self) {
        match &self.role {
            Role::Candidate(election) => {
                let granting = self.granting(election);
                self.become_leader(granting);
            }
            _ => self.become_candidate(),
        }
    }

    fn granting(&self, election: &Election) -> Vec<ReplicaKey> {
        let keys = self.voters.current().iter().map(|voter| voter.key);
        keys.filter(|key| election.granted.contains(&key.id)).collect()
    }

    pub(crate) fn drive_election(&mut self) {
        let (Role::Prospective(election) | Role::Candidate(election)) = &self.role else { return };
        if election.ends_at <= self.now {
            return self.give_up_election();
        }
        let pre_vote = matches!(self.role, Role::Prospective(_));
        for voter in self.other_voter_keys() {
            let peer = Peer::Node(voter.id);
            if self.peers.is_ready(peer, self.now) {
                let (epoch, log_end) = (self.hard.epoch, self.log.flushed_end());
                let request = VoteRequest { epoch, candidate: self.me, voter, log_end, pre_vote };
                self.send(peer, Request::Vote(request));
            }
        }
    }
}
