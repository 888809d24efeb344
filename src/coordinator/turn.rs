//! One event of one group: what it may touch, and the small acts that all parts share.

use std::time::Duration;

use bytes::Bytes;
use model::{ErrorCode, MemberId};

use crate::command::{JoinMember, JoinReply, SyncReply, Token};
use crate::config::Config;
use crate::group::Group;
use crate::member::Member;
use crate::outcome::{Fallback, Moment, Outcome, Released};
use crate::record::{CoordinatorRecord, GroupMetadata};
use crate::timers::{Timer, Timers};

/// A group at the moment of an event, and what comes out of it.
pub(crate) struct Turn<'a> {
    pub(crate) config: &'a Config,
    pub(crate) group: &'a mut Group,
    pub(crate) timers: &'a mut Timers,
    pub(crate) at: Moment,
    pub(crate) records: Vec<CoordinatorRecord>,
    pub(crate) released: Vec<Released>,
    pub(crate) fallback: Fallback,
}

impl<'a> Turn<'a> {
    pub(crate) fn new(config: &'a Config, group: &'a mut Group, timers: &'a mut Timers, at: Moment) -> Self {
        Self {
            config,
            group,
            timers,
            at,
            records: Vec::new(),
            released: Vec::new(),
            fallback: Fallback::None,
        }
    }

    pub(crate) fn end<R>(self, reply: R) -> Outcome<R> {
        Outcome { reply, records: self.records, released: self.released, fallback: self.fallback }
    }

    /// Writes the group as it stands, each member with the assignment that `assign` gives it.
    pub(crate) fn write(&mut self, assign: impl Fn(&Member) -> Bytes) {
        let group_id = self.group.id.clone();
        let value = Some(GroupMetadata::of(self.group, assign));
        self.records.push(CoordinatorRecord::GroupMetadata { group_id, value });
    }

    pub(crate) fn release_join(&mut self, token: Option<Token>, reply: JoinReply) {
        self.released.extend(token.map(|token| Released::Join(token, reply)));
    }

    pub(crate) fn release_sync(&mut self, token: Option<Token>, reply: SyncReply) {
        self.released.extend(token.map(|token| Released::Sync(token, reply)));
    }

    /// Answers what the member waits for with an error.
    pub(crate) fn release_with(&mut self, member_id: &MemberId, told: &MemberId, error: ErrorCode) {
        let join = self.group.members.take_join(member_id);
        self.release_join(join, JoinReply::refused(told.clone(), error));
        let sync = self.group.members.take_sync(member_id);
        self.release_sync(sync, SyncReply::refused(error));
    }

    /// What a member is told of the generation it is in.
    pub(crate) fn joined(&self, member_id: &MemberId) -> JoinReply {
        let group = &*self.group;
        JoinReply {
            error: ErrorCode::None,
            generation: group.generation,
            protocol_type: group.protocol_type.clone(),
            protocol_name: group.protocol.clone(),
            leader: group.leader.clone().unwrap_or_default(),
            skip_assignment: false,
            member_id: member_id.clone(),
            members: if group.is_leader(member_id) { self.all_members() } else { Vec::new() },
        }
    }

    fn all_members(&self) -> Vec<JoinMember> {
        let protocol = self.group.protocol.as_deref().unwrap_or_default();
        let members = self.group.members.iter().map(|m| JoinMember {
            member_id: m.id.clone(),
            group_instance_id: m.group_instance_id.clone(),
            metadata: m.metadata(protocol),
        });
        members.collect()
    }

    /// Gives the member its session timeout from now on.
    pub(crate) fn restart_session(&mut self, member_id: &MemberId) {
        if let Some(timeout) = self.group.members.get(member_id).map(|m| m.session_timeout) {
            self.expect_within(member_id, timeout);
        }
    }

    pub(crate) fn expect_within(&mut self, member_id: &MemberId, timeout: Duration) {
        self.timers.set(self.member_timer(member_id), self.at.now.plus(timeout));
    }

    /// Takes a member, or one that is pending, out of the group; what it waits for is answered.
    pub(crate) fn remove(&mut self, member_id: &MemberId) {
        self.release_with(member_id, &MemberId::default(), ErrorCode::UnknownMemberId);
        self.timers.cancel(&self.member_timer(member_id));
        self.group.members.remove(member_id);
        self.group.pending_join.remove(member_id);
        self.group.pending_sync.remove(member_id);
        if self.group.is_leader(member_id) {
            self.group.leader = self.group.members.iter().next().map(|m| m.id.clone());
        }
    }

    fn member_timer(&self, member_id: &MemberId) -> Timer {
        Timer::Member(self.group.id.clone(), member_id.clone())
    }
}
