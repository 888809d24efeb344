//! SyncGroup: members ask for their assignment, the leader brings all of them.
//!
//! The group is stable once its record is appended; the answers leave when it is committed.
//!
//! Kafka: `GroupMetadataManager.classicGroupSync`, KIP-559 (protocol type and name).

use std::collections::BTreeMap;

use bytes::Bytes;
use model::{ErrorCode, MemberId};

use crate::command::{GroupState, Sync, SyncReply, Text, Token};
use crate::outcome::Fallback;
use crate::turn::Turn;

impl Turn<'_> {
    /// Answers now, or lets `token` wait for the leader.
    pub(crate) fn sync(&mut self, sync: Sync, token: Token) {
        if let Err(error) = self.check_sync(&sync) {
            return self.release_sync(Some(token), SyncReply::refused(error));
        }
        let given_up = self.group.members.await_sync(&sync.member_id, token);
        self.release_sync(given_up, SyncReply::refused(ErrorCode::RebalanceInProgress));
        self.group.pending_sync.remove(&sync.member_id);
        if self.group.pending_sync.is_empty() {
            self.timers.cancel(&self.sync_timer());
        }
        if self.group.is(GroupState::Stable) {
            let reply = self.synced(&sync.member_id);
            let token = self.group.members.take_sync(&sync.member_id);
            self.release_sync(token, reply);
        } else if self.group.is_leader(&sync.member_id) {
            self.write_assignments(sync.assignments);
        }
    }

    fn check_sync(&self, sync: &Sync) -> Result<(), ErrorCode> {
        let group = &*self.group;
        if group.is(GroupState::Empty) {
            return Err(ErrorCode::UnknownMemberId);
        }
        group.check_member(&sync.member_id, sync.group_instance_id.as_ref())?;
        let differs = |said: &Option<Text>, is: &Option<Text>| said.is_some() && said != is;
        if sync.generation != group.generation {
            Err(ErrorCode::IllegalGeneration)
        } else if differs(&sync.protocol_type, &group.protocol_type)
            || differs(&sync.protocol_name, &group.protocol)
        {
            Err(ErrorCode::InconsistentGroupProtocol)
        } else if group.is(GroupState::PreparingRebalance) {
            Err(ErrorCode::RebalanceInProgress)
        } else {
            Ok(())
        }
    }

    /// Who is not in the leader's list gets an empty assignment.
    fn write_assignments(&mut self, assignments: Vec<(MemberId, Bytes)>) {
        let assignments: BTreeMap<MemberId, Bytes> = assignments.into_iter().collect();
        self.write(|member| assignments.get(&member.id).cloned().unwrap_or_default());
        self.fallback = Fallback::Rejoin(self.group.id.clone());
    }

    /// The generation's record is in the log: every member has its assignment.
    pub(crate) fn become_stable(&mut self, assignments: impl Iterator<Item = (MemberId, Bytes)>) {
        self.group.transition(GroupState::Stable, self.at.wall);
        for (member_id, assignment) in assignments {
            self.group.members.set_assignment(&member_id, assignment);
        }
        for member_id in self.group.members.ids() {
            let reply = self.synced(&member_id);
            self.answer_sync(&member_id, reply);
        }
    }

    fn synced(&self, member_id: &MemberId) -> SyncReply {
        SyncReply {
            error: ErrorCode::None,
            protocol_type: self.group.protocol_type.clone(),
            protocol_name: self.group.protocol.clone(),
            assignment: self.group.members.get(member_id).map(|m| m.assignment.clone()).unwrap_or_default(),
        }
    }
}
