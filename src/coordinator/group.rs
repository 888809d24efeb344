//! One classic group: its members, its generation, and where it stands (Kafka: `ClassicGroup`).
//!
//! Invariants: the generation never goes back; a group with members that is not empty has a leader, and the leader is
//! one of them; `Stable` and `CompletingRebalance` have a protocol that all members support.

use std::collections::BTreeSet;
use std::time::Duration;

use model::{ErrorCode, GroupId, GroupInstanceId, MemberId, Timestamp, TopicName};

use crate::command::{Generation, GroupState, Protocol, Text};
use crate::members::Members;
use crate::subscription::add_topics;

/// The protocol type of consumers, whose metadata says which topics they want.
const CONSUMER: &str = "consumer";

/// A classic group.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) id: GroupId,
    pub(crate) state: GroupState,
    /// The state before this one.
    pub(crate) previous: GroupState,
    /// When it came into this state; `NONE` in what old brokers wrote.
    pub(crate) state_since: Timestamp,
    pub(crate) generation: Generation,
    pub(crate) protocol_type: Option<Text>,
    pub(crate) protocol: Option<Text>,
    pub(crate) leader: Option<MemberId>,
    pub(crate) members: Members,
    /// Told their id, expected to come back with it (KIP-394).
    pub(crate) pending_join: BTreeSet<MemberId>,
    /// Joined this generation, but have not sent SyncGroup.
    pub(crate) pending_sync: BTreeSet<MemberId>,
    /// The topics its consumers want; `None` where that cannot be said.
    pub(crate) subscribed: Option<BTreeSet<TopicName>>,
    /// The initial rebalance of an empty group.
    pub(crate) initial: Option<InitialRebalance>,
}

/// How long an empty group goes on waiting for its first members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InitialRebalance {
    /// The delay that is running.
    pub(crate) delay: Duration,
    /// What may still be added after it.
    pub(crate) remaining: Duration,
    /// Whether somebody joined during the delay.
    pub(crate) member_added: bool,
}

impl Group {
    /// A new group. One made by OffsetCommit alone stays like this: a "simple" group, without a protocol type.
    pub(crate) fn new(group_id: GroupId, now: Timestamp) -> Self {
        Self {
            id: group_id,
            state: GroupState::Empty,
            previous: GroupState::Dead,
            state_since: now,
            generation: Generation(0),
            protocol_type: None,
            protocol: None,
            leader: None,
            members: Members::default(),
            pending_join: BTreeSet::new(),
            pending_sync: BTreeSet::new(),
            subscribed: None,
            initial: None,
        }
    }

    pub(crate) fn is(&self, state: GroupState) -> bool {
        self.state == state
    }

    pub(crate) fn is_leader(&self, member_id: &MemberId) -> bool {
        self.leader.as_ref() == Some(member_id)
    }

    /// Nobody is still expected in the join phase.
    pub(crate) fn has_all_joined(&self) -> bool {
        self.members.len() == self.members.joining() && self.pending_join.is_empty()
    }

    pub(crate) fn is_consumer(&self) -> bool {
        self.protocol_type.as_deref() == Some(CONSUMER)
    }

    pub(crate) fn transition(&mut self, to: GroupState, now: Timestamp) {
        use GroupState::{CompletingRebalance, Dead, Empty, PreparingRebalance, Stable};
        let allowed = match to {
            Empty | CompletingRebalance => self.is(PreparingRebalance),
            PreparingRebalance => !self.is(Dead) && !self.is(PreparingRebalance),
            Stable => self.is(CompletingRebalance),
            Dead => true,
        };
        assert!(allowed, "group {} cannot go from {:?} to {to:?}", self.id, self.state);
        self.previous = self.state;
        self.state = to;
        self.state_since = now;
    }

    /// Begins the generation of those who joined.
    pub(crate) fn next_generation(&mut self, now: Timestamp) {
        self.generation = Generation(self.generation.0.checked_add(1).unwrap_or(0));
        self.protocol = self.members.elect_protocol();
        self.subscribed = self.subscription();
        let state = if self.members.is_empty() { GroupState::Empty } else { GroupState::CompletingRebalance };
        self.transition(state, now);
        self.pending_sync.clear();
    }

    /// Whether a member with these protocols can follow what the others do.
    pub(crate) fn supports(&self, protocol_type: &str, protocols: &[Protocol]) -> bool {
        if self.is(GroupState::Empty) {
            return !protocol_type.is_empty() && !protocols.is_empty();
        }
        self.protocol_type.as_deref() == Some(protocol_type)
            && protocols.iter().any(|p| self.members.all_support(&p.name))
    }

    /// Whether this is a member, and the one that its name belongs to.
    pub(crate) fn check_member(
        &self,
        member_id: &MemberId,
        instance: Option<&GroupInstanceId>,
    ) -> Result<(), ErrorCode> {
        match instance.map(|instance| self.members.static_id(instance)) {
            Some(None) => return Err(ErrorCode::UnknownMemberId),
            Some(Some(current)) if current != member_id => return Err(ErrorCode::FencedInstanceId),
            Some(Some(_)) | None => {}
        }
        if self.members.has(member_id) { Ok(()) } else { Err(ErrorCode::UnknownMemberId) }
    }

    /// Keeps the leader if it joined, else takes another that did. False if nobody did.
    pub(crate) fn elect_joined_leader(&mut self) -> bool {
        let joined = |id: &MemberId| self.members.get(id).is_some_and(|m| m.awaiting_join.is_some());
        match &self.leader {
            None => false,
            Some(leader) if joined(leader) => true,
            Some(_) => {
                let other = self.members.iter().find(|m| m.awaiting_join.is_some());
                let found = other.map(|m| m.id.clone());
                let elected = found.is_some();
                self.leader = found.or(self.leader.take());
                elected
            }
        }
    }

    /// Whether the topic is wanted. What is not known of consumers counts as wanted.
    pub(crate) fn is_subscribed_to(&self, topic: &TopicName) -> bool {
        self.subscribed.as_ref().map_or(self.is_consumer(), |topics| topics.contains(topic))
    }

    /// The topics that the consumers of this generation want.
    pub(crate) fn subscription(&self) -> Option<BTreeSet<TopicName>> {
        if !self.is_consumer() {
            return None;
        }
        let mut topics = BTreeSet::new();
        if self.members.is_empty() {
            return Some(topics);
        }
        let protocol = self.protocol.as_ref()?;
        for member in self.members.iter() {
            add_topics(member.metadata(protocol), &mut topics)?;
        }
        Some(topics)
    }
}
