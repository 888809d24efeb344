//! The members of one group, and what must be known of all of them at once.
//!
//! Invariants: `by_instance` names exactly the static members; `joining` counts those with a waiting JoinGroup;
//! `supported` counts, for each protocol, the members that have it; `bytes` is what all protocols take.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::{GroupInstanceId, MemberId};

use crate::command::{Join, Protocol, Text, Token};
use crate::member::Member;

/// All members, by id.
#[derive(Debug, Default)]
pub(crate) struct Members {
    by_id: BTreeMap<MemberId, Member>,
    by_instance: BTreeMap<GroupInstanceId, MemberId>,
    joining: usize,
    supported: BTreeMap<Text, usize>,
    bytes: usize,
}

impl Members {
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub(crate) fn has(&self, member_id: &MemberId) -> bool {
        self.by_id.contains_key(member_id)
    }

    pub(crate) fn get(&self, member_id: &MemberId) -> Option<&Member> {
        self.by_id.get(member_id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Member> {
        self.by_id.values()
    }

    pub(crate) fn ids(&self) -> Vec<MemberId> {
        self.by_id.keys().cloned().collect()
    }

    /// The member of that name.
    pub(crate) fn static_id(&self, instance: &GroupInstanceId) -> Option<&MemberId> {
        self.by_instance.get(instance)
    }

    /// Memory that all protocols take, with these in the place of the member's own, if it is one.
    pub(crate) fn bytes_with(&self, member_id: &MemberId, protocols: &[Protocol]) -> usize {
        let own = self.get(member_id).map_or(0, |member| Protocol::bytes_of(&member.protocols));
        self.bytes - own + Protocol::bytes_of(protocols)
    }

    /// How many wait for the answer to a JoinGroup.
    pub(crate) fn joining(&self) -> usize {
        self.joining
    }

    pub(crate) fn add(&mut self, member: Member) {
        assert!(!self.has(&member.id), "a member id is given once");
        if let Some(instance) = &member.group_instance_id {
            self.by_instance.insert(instance.clone(), member.id.clone());
        }
        self.joining += usize::from(member.awaiting_join.is_some());
        self.count(&member.protocols, 1);
        self.bytes += Protocol::bytes_of(&member.protocols);
        self.by_id.insert(member.id.clone(), member);
    }

    pub(crate) fn remove(&mut self, member_id: &MemberId) -> Option<Member> {
        let member = self.by_id.remove(member_id)?;
        if let Some(instance) = &member.group_instance_id {
            self.by_instance.remove(instance);
        }
        self.joining -= usize::from(member.awaiting_join.is_some());
        self.count(&member.protocols, -1);
        self.bytes -= Protocol::bytes_of(&member.protocols);
        Some(member)
    }

    /// Takes what a rejoining member says of itself.
    pub(crate) fn update(&mut self, member_id: &MemberId, join: &Join) {
        self.bytes = self.bytes_with(member_id, &join.protocols);
        let Some(mut member) = self.by_id.remove(member_id) else { return };
        self.count(&member.protocols, -1);
        self.count(&join.protocols, 1);
        member.protocols.clone_from(&join.protocols);
        member.rebalance_timeout = join.rebalance_timeout;
        member.session_timeout = join.session_timeout;
        self.by_id.insert(member_id.clone(), member);
    }

    /// Lets a JoinGroup wait; gives the one that waited before, if any.
    pub(crate) fn await_join(&mut self, member_id: &MemberId, token: Token) -> Option<Token> {
        let before = self.by_id.get_mut(member_id)?.awaiting_join.replace(token);
        self.joining += usize::from(before.is_none());
        before
    }

    /// The JoinGroup that waits, which from now on does not.
    pub(crate) fn take_join(&mut self, member_id: &MemberId) -> Option<Token> {
        let token = self.by_id.get_mut(member_id)?.awaiting_join.take()?;
        self.joining -= 1;
        Some(token)
    }

    /// Lets a SyncGroup wait; gives the one that waited before, if any.
    pub(crate) fn await_sync(&mut self, member_id: &MemberId, token: Token) -> Option<Token> {
        self.by_id.get_mut(member_id)?.awaiting_sync.replace(token)
    }

    /// The SyncGroup that waits, which from now on does not.
    pub(crate) fn take_sync(&mut self, member_id: &MemberId) -> Option<Token> {
        self.by_id.get_mut(member_id)?.awaiting_sync.take()
    }

    pub(crate) fn set_assignment(&mut self, member_id: &MemberId, assignment: bytes::Bytes) {
        if let Some(member) = self.by_id.get_mut(member_id) {
            member.assignment = assignment;
        }
    }

    /// It has been told its id.
    pub(crate) fn set_known(&mut self, member_id: &MemberId) {
        if let Some(member) = self.by_id.get_mut(member_id) {
            member.is_new = false;
        }
    }

    /// The longest that a member wants to have for a rebalance.
    pub(crate) fn rebalance_timeout(&self) -> Duration {
        self.iter().map(|m| m.rebalance_timeout).max().unwrap_or_default()
    }

    /// Whether every member has the protocol.
    pub(crate) fn all_support(&self, protocol: &str) -> bool {
        self.supported.get(protocol).copied().unwrap_or_default() == self.len()
    }

    /// The protocol with the most votes: each member votes for its best one that all have.
    pub(crate) fn elect_protocol(&self) -> Option<Text> {
        let mut votes: BTreeMap<&Text, usize> = BTreeMap::new();
        for member in self.iter() {
            if let Some(vote) = member.protocols.iter().find(|p| self.all_support(&p.name)) {
                *votes.entry(&vote.name).or_default() += 1;
            }
        }
        votes.into_iter().rev().max_by_key(|(_, count)| *count).map(|(name, _)| name.clone())
    }

    fn count(&mut self, protocols: &[Protocol], by: isize) {
        // A client may name a protocol twice.
        let names: BTreeSet<&Text> = protocols.iter().map(|protocol| &protocol.name).collect();
        for name in names {
            let count = self.supported.entry(name.clone()).or_default();
            *count = count.checked_add_signed(by).expect("only what was counted is taken back");
            if *count == 0 {
                self.supported.remove(name);
            }
        }
    }
}
