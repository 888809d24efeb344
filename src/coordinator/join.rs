//! JoinGroup: a member comes, comes again, or comes back under its name.
//!
//! Kafka: `GroupMetadataManager.classicGroupJoin`; KIP-345 (static members), KIP-394 (a member's id first), KIP-814 (a
//! static leader that came back assigns nothing).

use model::{ErrorCode, GroupInstanceId, Limits, MemberId};

use crate::command::{GroupState, Join, JoinReply, Token};
use crate::member::{Member, new_member_id};
use crate::outcome::Fallback;
use crate::timers::Timer;
use crate::turn::Turn;

impl Turn<'_> {
    /// Answers now, or lets `token` wait for the end of the join phase.
    pub(crate) fn join(&mut self, join: &Join, token: Token) {
        if !self.has_room_for(&join.member_id) {
            self.remove(&join.member_id);
            self.refuse_join(token, &MemberId::default(), ErrorCode::GroupMaxSizeReached);
        } else if !self.has_memory_for(join) {
            self.refuse_join(token, &join.member_id, ErrorCode::GroupMaxSizeReached);
        } else if !self.group.supports(&join.protocol_type, &join.protocols) {
            self.refuse_join(token, &join.member_id, ErrorCode::InconsistentGroupProtocol);
        } else if join.member_id.as_str().is_empty() {
            self.join_new(join, token);
        } else {
            self.join_known(join, token);
        }
    }

    fn refuse_join(&mut self, token: Token, member_id: &MemberId, error: ErrorCode) {
        self.release_join(Some(token), JoinReply::refused(member_id.clone(), error));
    }

    /// In the join phase those that wait are counted, so that a lowered `group.max.size` puts the last ones out.
    fn has_room_for(&self, member_id: &MemberId) -> bool {
        let members = &self.group.members;
        let waits = members.get(member_id).is_some_and(|m| m.awaiting_join.is_some());
        match self.group.state {
            GroupState::Empty | GroupState::Dead => true,
            GroupState::PreparingRebalance => waits || members.joining() < self.config.group_size_max,
            GroupState::CompletingRebalance | GroupState::Stable => {
                members.has(member_id) || members.len() < self.config.group_size_max
            }
        }
    }

    fn has_memory_for(&self, join: &Join) -> bool {
        let members = &self.group.members;
        let before = join.group_instance_id.as_ref().and_then(|instance| members.static_id(instance));
        let bytes = members.bytes_with(before.unwrap_or(&join.member_id), &join.protocols);
        bytes <= Limits::GROUP_BYTES_MAX
    }

    fn join_new(&mut self, join: &Join, token: Token) {
        let member_id = new_member_id(join);
        let instance = join.group_instance_id.as_ref();
        let current = instance.and_then(|instance| self.group.members.static_id(instance)).cloned();
        match (instance, current) {
            (Some(instance), Some(current)) => {
                self.replace_static(join, instance, &current, &member_id, token);
            }
            (None, _) if join.member_id_required => self.require_member_id(join, member_id, token),
            (Some(_) | None, _) => self.add_member(join, member_id, token),
        }
    }

    fn require_member_id(&mut self, join: &Join, member_id: MemberId, token: Token) {
        let pending = self.group.pending_join.len();
        // An id begins with the client's own, which may be long.
        if pending >= Limits::GROUP_PENDING_MEMBERS_MAX
            || pending * member_id.as_str().len() > Limits::GROUP_BYTES_MAX
        {
            return self.refuse_join(token, &MemberId::default(), ErrorCode::GroupMaxSizeReached);
        }
        self.refuse_join(token, &member_id, ErrorCode::MemberIdRequired);
        self.expect_within(&member_id, join.session_timeout);
        self.group.pending_join.insert(member_id);
    }

    fn add_member(&mut self, join: &Join, member_id: MemberId, token: Token) {
        let mut member = Member::joining(join, member_id.clone());
        member.awaiting_join = Some(token);
        if let Some(initial) = self.group.initial.as_mut() {
            initial.member_added = true;
        }
        if self.group.members.is_empty() {
            self.group.protocol_type = Some(join.protocol_type.clone());
        }
        self.group.leader.get_or_insert_with(|| member_id.clone());
        self.group.pending_join.remove(&member_id);
        self.group.members.add(member);
        self.expect_within(&member_id, self.config.new_member_join_timeout);
        self.rebalance_or_complete_join();
    }

    fn join_known(&mut self, join: &Join, token: Token) {
        let member_id = &join.member_id;
        let instance = join.group_instance_id.as_ref();
        if self.group.pending_join.contains(member_id) {
            return match instance {
                None => self.add_member(join, member_id.clone(), token),
                Some(_) => self.refuse_join(token, member_id, ErrorCode::UnknownServerError),
            };
        }
        if let Err(error) = self.group.check_member(member_id, instance) {
            return self.refuse_join(token, member_id, error);
        }
        match self.group.state {
            // The answer to its JoinGroup may have been lost.
            GroupState::CompletingRebalance if self.says_the_same(join) => self.repeat_join(member_id, token),
            // A leader that comes again knows of something that its metadata does not show.
            GroupState::Stable if !self.group.is_leader(member_id) && self.says_the_same(join) => {
                self.repeat_join(member_id, token);
            }
            GroupState::PreparingRebalance | GroupState::CompletingRebalance | GroupState::Stable => {
                self.rejoin(join, token);
            }
            GroupState::Empty | GroupState::Dead => {
                self.refuse_join(token, member_id, ErrorCode::UnknownMemberId);
            }
        }
    }

    fn says_the_same(&self, join: &Join) -> bool {
        self.group.members.get(&join.member_id).is_some_and(|m| m.protocols == join.protocols)
    }

    fn repeat_join(&mut self, member_id: &MemberId, token: Token) {
        let reply = self.joined(member_id);
        self.release_join(Some(token), reply);
    }

    fn rejoin(&mut self, join: &Join, token: Token) {
        self.group.members.update(&join.member_id, join);
        self.await_join(&join.member_id, token);
        self.rebalance_or_complete_join();
    }

    /// A JoinGroup that the member has given up is answered too, or its connection would wait for ever.
    fn await_join(&mut self, member_id: &MemberId, token: Token) {
        let given_up = self.group.members.await_join(member_id, token);
        self.release_join(given_up, JoinReply::refused(member_id.clone(), ErrorCode::RebalanceInProgress));
    }

    /// A static member came back without its id: the old id is fenced, the new one takes its place and assignment.
    fn replace_static(
        &mut self,
        join: &Join,
        instance: &GroupInstanceId,
        old: &MemberId,
        new: &MemberId,
        token: Token,
    ) {
        let leader_before = self.group.leader.clone().unwrap_or_default();
        self.rename(instance, old, new);
        self.group.members.update(new, join);
        self.await_join(new, token);
        self.restart_session(new);
        match self.group.state {
            GroupState::Stable if self.group.members.elect_protocol() == self.group.protocol => {
                self.keep_assignment(join, new, leader_before);
            }
            GroupState::Stable => self.rebalance_or_complete_join(),
            // The leader may already have been told the old id, and would assign to it.
            GroupState::CompletingRebalance => self.prepare_rebalance(),
            GroupState::PreparingRebalance => self.complete_join_if_all_joined(),
            GroupState::Empty | GroupState::Dead => unreachable!("a group with a member is not empty"),
        }
    }

    fn rename(&mut self, instance: &GroupInstanceId, old: &MemberId, new: &MemberId) {
        self.release_with(old, old, ErrorCode::FencedInstanceId);
        let is_leader = self.group.is_leader(old);
        self.timers.cancel(&Timer::Member(self.group.id.clone(), old.clone()));
        let Some(mut member) = self.group.members.remove(old) else { return };
        member.id = new.clone();
        member.group_instance_id = Some(instance.clone());
        member.is_new = false;
        self.group.members.add(member);
        self.group.pending_sync.remove(old);
        if is_leader {
            self.group.leader = Some(new.clone());
        }
    }

    /// No rebalance: only the new id is written. An older leader must not learn that it leads, or it would assign anew.
    fn keep_assignment(&mut self, join: &Join, member_id: &MemberId, leader_before: MemberId) {
        self.write(|member| member.assignment.clone());
        self.fallback = Fallback::Rejoin(self.group.id.clone());
        let mut reply = self.joined(member_id);
        if join.skip_assignment {
            reply.skip_assignment = self.group.is_leader(member_id);
        } else {
            reply.members.clear();
            reply.leader = leader_before;
        }
        let token = self.group.members.take_join(member_id);
        self.release_join(token, reply);
    }
}
