//! The machine of one `__consumer_offsets` partition: all its groups and their offsets.
//!
//! A `handle_*` decides: it gives back records, which the caller appends and then `apply`s. What a restart may forget
//! (members that are about to join, requests that wait, timers) changes at once; what it must not forget changes only
//! by `apply`. So the state after a restart is what `replay` makes of the log, and losing the leadership means to drop
//! the machine.
//!
//! Invariants: each token is released exactly once; a group's offsets and metadata change only by records.
//!
//! Kafka: `GroupCoordinatorShard`, `GroupMetadataManager` (classic part), `OffsetMetadataManager`.

use std::collections::BTreeMap;

use model::{ErrorCode, GroupId, Instant, Limits, MemberId};

use crate::command::{
    GroupState, Heartbeat, Join, JoinReply, Leave, LeaveReply, Protocol, Sync, SyncReply, Token,
};
use crate::config::Config;
use crate::group::Group;
use crate::offsets::Offsets;
use crate::outcome::{Fallback, Moment, Outcome, Released};
use crate::record::{CoordinatorRecord, GroupMetadata};
use crate::timers::{Timer, Timers};
use crate::turn::Turn;

/// All groups of one partition.
#[derive(Debug)]
pub struct Groups {
    pub(crate) config: Config,
    pub(crate) by_id: BTreeMap<GroupId, Group>,
    pub(crate) offsets: Offsets,
    timers: Timers,
}

impl Groups {
    /// A machine that knows of nothing yet.
    pub fn new(config: Config) -> Self {
        Self { config, by_id: BTreeMap::new(), offsets: Offsets::default(), timers: Timers::default() }
    }

    /// JoinGroup. Answered by a `Released::Join` of `token`, perhaps of a later event.
    pub fn handle_join(&mut self, join: &Join, token: Token, at: Moment) -> Outcome<()> {
        match self.admit(join) {
            Err(error) => Outcome {
                released: vec![Released::Join(token, JoinReply::refused(join.member_id.clone(), error))],
                ..Outcome::reply(())
            },
            Ok(()) if self.by_id.contains_key(&join.group_id) => {
                self.with_group(&join.group_id, at, |turn| turn.join(join, token))
            }
            Ok(()) => self.join_new_group(join, token, at),
        }
    }

    fn admit(&self, join: &Join) -> Result<(), ErrorCode> {
        let sessions = self.config.session_timeout_min..=self.config.session_timeout_max;
        if !(1..=Limits::GROUP_ID_BYTES_MAX).contains(&join.group_id.as_str().len()) {
            Err(ErrorCode::InvalidGroupId)
        } else if !sessions.contains(&join.session_timeout) {
            Err(ErrorCode::InvalidSessionTimeout)
        } else if Protocol::bytes_of(&join.protocols) > Limits::GROUP_METADATA_BYTES_MAX {
            Err(ErrorCode::UnknownServerError)
        } else if !join.member_id.as_str().is_empty() && !self.by_id.contains_key(&join.group_id) {
            Err(ErrorCode::UnknownMemberId)
        } else {
            Ok(())
        }
    }

    /// The group is written down before its first member is known, as Kafka does.
    fn join_new_group(&mut self, join: &Join, token: Token, at: Moment) -> Outcome<()> {
        let group_id = &join.group_id;
        self.by_id.insert(group_id.clone(), Group::new(group_id.clone(), at.wall));
        let mut outcome = self.with_group(group_id, at, |turn| turn.join(join, token));
        if outcome.records.is_empty() {
            let value = Some(GroupMetadata::empty(at.wall));
            outcome.records.push(CoordinatorRecord::GroupMetadata { group_id: group_id.clone(), value });
            outcome.fallback = Fallback::Forget(group_id.clone());
        }
        outcome
    }

    /// SyncGroup. Answered by a `Released::Sync` of `token`, perhaps of a later event.
    pub fn handle_sync(&mut self, sync: Sync, token: Token, at: Moment) -> Outcome<()> {
        let bytes: usize = sync.assignments.iter().map(|(id, bytes)| id.as_str().len() + bytes.len()).sum();
        let group_id = sync.group_id.clone();
        let error = if group_id.as_str().is_empty() {
            ErrorCode::InvalidGroupId
        } else if bytes > Limits::GROUP_ASSIGNMENT_BYTES_MAX {
            ErrorCode::UnknownServerError
        } else if self.by_id.contains_key(&group_id) {
            return self.with_group(&group_id, at, |turn| turn.sync(sync, token));
        } else {
            ErrorCode::UnknownMemberId
        };
        Outcome { released: vec![Released::Sync(token, SyncReply::refused(error))], ..Outcome::reply(()) }
    }

    /// Heartbeat.
    pub fn handle_heartbeat(&mut self, heartbeat: &Heartbeat, at: Moment) -> Outcome<ErrorCode> {
        if heartbeat.group_id.as_str().is_empty() {
            return Outcome::reply(ErrorCode::InvalidGroupId);
        }
        match self.turn(&heartbeat.group_id, at) {
            Some(mut turn) => {
                let reply = turn.heartbeat(heartbeat);
                turn.end(reply)
            }
            None => Outcome::reply(ErrorCode::UnknownMemberId),
        }
    }

    /// LeaveGroup.
    pub fn handle_leave(&mut self, leave: Leave, at: Moment) -> Outcome<LeaveReply> {
        if leave.group_id.as_str().is_empty() {
            return Outcome::reply(LeaveReply { error: ErrorCode::InvalidGroupId, members: Vec::new() });
        }
        if let Some(mut turn) = self.turn(&leave.group_id, at) {
            let reply = turn.leave(leave);
            return turn.end(reply);
        }
        let unknown = leave.members.into_iter().map(|member| (member, ErrorCode::UnknownMemberId));
        Outcome::reply(LeaveReply { error: ErrorCode::None, members: unknown.collect() })
    }

    /// When `poll` has something to do.
    pub fn deadline(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// One thing that time has brought, if any is due. Call it again after applying its records.
    pub fn poll(&mut self, at: Moment) -> Option<Outcome<()>> {
        let timer = self.timers.pop(at.now)?;
        let (Timer::Join(group_id) | Timer::Sync(group_id) | Timer::Member(group_id, _)) = &timer;
        if !self.by_id.contains_key(group_id) {
            return Some(Outcome::reply(()));
        }
        Some(self.with_group(group_id, at, |turn| match &timer {
            Timer::Join(_) => turn.handle_join_timeout(),
            Timer::Sync(_) => turn.handle_sync_timeout(),
            Timer::Member(_, member_id) => turn.handle_member_timeout(member_id),
        }))
    }

    /// The records of an outcome are appended: the group goes on. Gives what this releases.
    pub fn apply(&mut self, record: CoordinatorRecord, at: Moment) -> Vec<Released> {
        if let CoordinatorRecord::GroupMetadata { group_id, value: Some(value) } = &record
            && self.by_id.contains_key(group_id)
        {
            return self.with_group(group_id, at, |turn| turn.apply_metadata(value)).released;
        }
        self.replay(record);
        Vec::new()
    }

    /// The records of `failed` could not be appended: everybody it would have answered is told `error`.
    pub fn handle_append_failure<R>(
        &mut self,
        failed: Outcome<R>,
        error: ErrorCode,
        at: Moment,
    ) -> Outcome<()> {
        let mut outcome = match &failed.fallback {
            Fallback::None => Outcome::reply(()),
            Fallback::Forget(group_id) => self.forget(group_id, error, at),
            Fallback::Rejoin(group_id) => self.with_group(group_id, at, |turn| turn.rejoin_all(error)),
        };
        outcome.released.extend(failed.released.into_iter().map(|released| released.refused(error)));
        outcome
    }

    fn forget(&mut self, group_id: &GroupId, error: ErrorCode, at: Moment) -> Outcome<()> {
        let outcome = self.with_group(group_id, at, |turn| {
            for member_id in turn.group.members.ids() {
                turn.release_with(&member_id, &MemberId::default(), error);
            }
        });
        self.by_id.remove(group_id);
        outcome
    }

    /// A record of the log, while it is loaded.
    pub fn replay(&mut self, record: CoordinatorRecord) {
        match record {
            CoordinatorRecord::OffsetCommit { group_id, topic, partition, value: Some(value) } => {
                let new = || Group::new(group_id.clone(), value.commit_timestamp);
                self.by_id.entry(group_id.clone()).or_insert_with(new);
                self.offsets.put(group_id, topic, partition, value);
            }
            CoordinatorRecord::OffsetCommit { group_id, topic, partition, value: None } => {
                self.offsets.remove(&group_id, &topic, partition);
            }
            CoordinatorRecord::GroupMetadata { group_id, value: Some(value) } => {
                let group = value.into_group(group_id.clone());
                self.by_id.insert(group_id, group);
            }
            CoordinatorRecord::GroupMetadata { group_id, value: None } => {
                self.by_id.remove(&group_id);
            }
        }
    }

    /// The log is loaded: the members' sessions begin anew.
    pub fn handle_loaded(&mut self, at: Moment) {
        for group_id in self.by_id.keys().cloned().collect::<Vec<_>>() {
            if let Some(mut turn) = self.turn(&group_id, at) {
                turn.loaded();
                assert!(turn.records.is_empty(), "a group whose members have yet to join writes nothing");
            }
        }
    }

    pub(crate) fn group(&self, group_id: &GroupId) -> Option<&Group> {
        self.by_id.get(group_id)
    }

    pub(crate) fn turn(&mut self, group_id: &GroupId, at: Moment) -> Option<Turn<'_>> {
        let group = self.by_id.get_mut(group_id)?;
        Some(Turn::new(&self.config, group, &mut self.timers, at))
    }

    fn with_group(&mut self, group_id: &GroupId, at: Moment, act: impl FnOnce(&mut Turn<'_>)) -> Outcome<()> {
        match self.turn(group_id, at) {
            Some(mut turn) => {
                act(&mut turn);
                turn.end(())
            }
            None => Outcome::reply(()),
        }
    }
}

impl Turn<'_> {
    /// The group's record is in the log. Only an assignment waited for that; the rest has happened already.
    fn apply_metadata(&mut self, value: &GroupMetadata) {
        let completes = self.group.is(GroupState::CompletingRebalance) && !value.members.is_empty();
        if completes && value.generation == self.group.generation {
            let assignments = value.members.iter().map(|m| (m.member_id.clone(), m.assignment.clone()));
            self.become_stable(assignments);
        }
    }

    /// What the members know is not in the log: only another generation can mend that.
    fn rejoin_all(&mut self, error: ErrorCode) {
        if self.group.is(GroupState::CompletingRebalance) {
            self.reset_assignments(error);
        }
        self.rebalance_or_complete_join();
    }

    fn loaded(&mut self) {
        for member_id in self.group.members.ids() {
            self.restart_session(&member_id);
        }
        // `group.max.size` has been lowered meanwhile: the members may commit, and then some will not be let in.
        if self.group.members.len() > self.config.group_size_max {
            self.prepare_rebalance();
        }
    }
}
