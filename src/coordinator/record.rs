//! What the machine writes down: one offset, or one group (Kafka: `GroupCoordinatorRecordHelpers`).

use std::time::Duration;

use bytes::Bytes;
use model::{GroupId, GroupInstanceId, MemberId, PartitionIndex, Timestamp, TopicName};

use crate::command::{Generation, GroupState, Protocol, Text};
use crate::group::Group;
use crate::member::Member;
use crate::offsets::CommittedOffset;

/// One record of `__consumer_offsets`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CoordinatorRecord {
    /// A group's offset of a partition; `None` deletes it.
    OffsetCommit {
        /// The group.
        group_id: GroupId,
        /// The topic.
        topic: TopicName,
        /// The partition.
        partition: PartitionIndex,
        /// The offset.
        value: Option<CommittedOffset>,
    },
    /// A group's generation; `None` deletes the group.
    GroupMetadata {
        /// The group.
        group_id: GroupId,
        /// The generation.
        value: Option<GroupMetadata>,
    },
}

/// A group as it is written: at the end of a rebalance, and when a static member comes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMetadata {
    /// Empty for a group that never had a member.
    pub protocol_type: Text,
    /// The generation.
    pub generation: Generation,
    /// The protocol; none while there are no members.
    pub protocol: Option<Text>,
    /// The leader; none while there are no members.
    pub leader: Option<MemberId>,
    /// Since when the group is in its state.
    pub state_since: Timestamp,
    /// The members and their assignments.
    pub members: Vec<MemberMetadata>,
}

/// A member as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberMetadata {
    /// Its id.
    pub member_id: MemberId,
    /// Its name, if it is static.
    pub group_instance_id: Option<GroupInstanceId>,
    /// Its client's id.
    pub client_id: Text,
    /// Its client's address.
    pub client_host: Text,
    /// How long a rebalance waits for it.
    pub rebalance_timeout: Duration,
    /// How long it may be silent.
    pub session_timeout: Duration,
    /// What it said in the group's protocol.
    pub subscription: Bytes,
    /// What it is to do.
    pub assignment: Bytes,
}

impl CoordinatorRecord {
    pub(crate) fn offset_tombstone(group_id: &GroupId, topic: &TopicName, partition: PartitionIndex) -> Self {
        Self::OffsetCommit { group_id: group_id.clone(), topic: topic.clone(), partition, value: None }
    }
}

impl GroupMetadata {
    /// A group of which nothing is known yet.
    pub(crate) fn empty(now: Timestamp) -> Self {
        Self {
            protocol_type: "".into(),
            generation: Generation(0),
            protocol: None,
            leader: None,
            state_since: now,
            members: Vec::new(),
        }
    }

    /// The group as it stands, each member with the assignment that `assign` gives it.
    pub(crate) fn of(group: &Group, assign: impl Fn(&Member) -> Bytes) -> Self {
        let protocol = group.protocol.as_deref().unwrap_or_default();
        let members = group.members.iter().map(|member| MemberMetadata {
            member_id: member.id.clone(),
            group_instance_id: member.group_instance_id.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            rebalance_timeout: member.rebalance_timeout,
            session_timeout: member.session_timeout,
            subscription: member.metadata(protocol),
            assignment: assign(member),
        });
        Self {
            protocol_type: group.protocol_type.clone().unwrap_or_else(|| "".into()),
            generation: group.generation,
            protocol: group.protocol.clone(),
            leader: group.leader.clone(),
            state_since: group.state_since,
            members: members.collect(),
        }
    }

    /// The group that was written: stable, or empty.
    pub(crate) fn into_group(self, group_id: GroupId) -> Group {
        let mut group = Group::new(group_id, self.state_since);
        group.generation = self.generation;
        group.leader = self.leader;
        group.protocol_type = Some(self.protocol_type).filter(|protocol_type| !protocol_type.is_empty());
        if !self.members.is_empty() {
            group.state = GroupState::Stable;
        }
        for member in self.members {
            // A log may say anything; a group has a member once.
            group.members.remove(&member.member_id);
            group.members.add(member.into_member(self.protocol.as_ref()));
        }
        group.protocol = self.protocol;
        group.subscribed = group.subscription();
        group
    }
}

impl MemberMetadata {
    /// Of its protocols, only the one that was chosen is known again.
    fn into_member(self, protocol: Option<&Text>) -> Member {
        let metadata = self.subscription;
        Member {
            id: self.member_id,
            group_instance_id: self.group_instance_id,
            client_id: self.client_id,
            client_host: self.client_host,
            session_timeout: self.session_timeout,
            rebalance_timeout: self.rebalance_timeout,
            protocols: protocol.map(|name| Protocol { name: name.clone(), metadata }).into_iter().collect(),
            assignment: self.assignment,
            is_new: false,
            awaiting_join: None,
            awaiting_sync: None,
        }
    }
}
