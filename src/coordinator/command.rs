//! What a group is asked, and what it answers: today's meaning of each API, whatever its version.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::{
    ErrorCode, GroupId, GroupInstanceId, LeaderEpoch, MemberId, Offset, PartitionIndex, TopicId, TopicName,
    Uuid,
};

/// Text that many hold.
pub type Text = Arc<str>;

/// A group's rebalance, counted. -1 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Generation(pub i32);

impl Generation {
    /// No generation: the caller is no member.
    pub const NONE: Self = Self(-1);
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Names a JoinGroup or SyncGroup whose answer comes later. The caller gives it, and never the same one twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// A protocol that a member can follow, with what it has to say in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// The assignor's name for consumers.
    pub name: Text,
    /// Opaque.
    pub metadata: Bytes,
}

/// JoinGroup.
#[derive(Clone, Debug)]
pub struct Join {
    /// The group.
    pub group_id: GroupId,
    /// Empty where the member has none yet.
    pub member_id: MemberId,
    /// A static member's name (KIP-345).
    pub group_instance_id: Option<GroupInstanceId>,
    /// The client's id.
    pub client_id: Text,
    /// The client's address as Kafka shows it: `/127.0.0.1`.
    pub client_host: Text,
    /// `consumer`, `connect`, or whatever the members agree on.
    pub protocol_type: Text,
    /// Best first.
    pub protocols: Vec<Protocol>,
    /// How long the member may be silent.
    pub session_timeout: Duration,
    /// How long a rebalance waits for the member.
    pub rebalance_timeout: Duration,
    /// Whether a new dynamic member is first told its id, and has to come back with it (KIP-394).
    pub member_id_required: bool,
    /// Whether a leader understands that nothing is to be assigned (KIP-814).
    pub skip_assignment: bool,
    /// Random: part of a new member's id.
    pub fresh_id: Uuid,
}

impl Protocol {
    /// Memory that all of them take.
    pub(crate) fn bytes_of(protocols: &[Self]) -> usize {
        protocols.iter().map(|one| size_of::<Self>() + one.name.len() + one.metadata.len()).sum()
    }
}

/// JoinGroup's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinReply {
    /// None, or why not.
    pub error: ErrorCode,
    /// The generation that was joined.
    pub generation: Generation,
    /// The group's protocol type.
    pub protocol_type: Option<Text>,
    /// The protocol that the members voted for.
    pub protocol_name: Option<Text>,
    /// The leader's id; empty if none.
    pub leader: MemberId,
    /// Whether the leader must not assign anew (KIP-814).
    pub skip_assignment: bool,
    /// The member's own id.
    pub member_id: MemberId,
    /// For the leader: all members.
    pub members: Vec<JoinMember>,
}

/// A member as the leader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinMember {
    /// Its id.
    pub member_id: MemberId,
    /// Its name, if it is static.
    pub group_instance_id: Option<GroupInstanceId>,
    /// What it said in the chosen protocol.
    pub metadata: Bytes,
}

impl JoinReply {
    /// A refusal.
    pub fn refused(member_id: MemberId, error: ErrorCode) -> Self {
        Self {
            error,
            generation: Generation::NONE,
            protocol_type: None,
            protocol_name: None,
            leader: MemberId::default(),
            skip_assignment: false,
            member_id,
            members: Vec::new(),
        }
    }
}

/// SyncGroup.
#[derive(Clone, Debug)]
pub struct Sync {
    /// The group.
    pub group_id: GroupId,
    /// The generation that the member joined.
    pub generation: Generation,
    /// The member.
    pub member_id: MemberId,
    /// Its name, if it is static.
    pub group_instance_id: Option<GroupInstanceId>,
    /// The protocol type it joined with, where its version says so.
    pub protocol_type: Option<Text>,
    /// The protocol it was told, where its version says so.
    pub protocol_name: Option<Text>,
    /// From the leader: what each member is to do.
    pub assignments: Vec<(MemberId, Bytes)>,
}

/// SyncGroup's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncReply {
    /// None, or why not.
    pub error: ErrorCode,
    /// The group's protocol type.
    pub protocol_type: Option<Text>,
    /// The group's protocol.
    pub protocol_name: Option<Text>,
    /// What the member is to do; opaque.
    pub assignment: Bytes,
}

impl SyncReply {
    /// A refusal.
    pub fn refused(error: ErrorCode) -> Self {
        Self { error, protocol_type: None, protocol_name: None, assignment: Bytes::new() }
    }
}

/// Heartbeat. Its answer is an error code.
#[derive(Clone, Debug)]
pub struct Heartbeat {
    /// The group.
    pub group_id: GroupId,
    /// The generation that the member believes in.
    pub generation: Generation,
    /// The member.
    pub member_id: MemberId,
    /// Its name, if it is static.
    pub group_instance_id: Option<GroupInstanceId>,
}

/// LeaveGroup.
#[derive(Clone, Debug)]
pub struct Leave {
    /// The group.
    pub group_id: GroupId,
    /// Who leaves.
    pub members: Vec<LeavingMember>,
}

/// A member that leaves, by its id or, for an administrator, by its name alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeavingMember {
    /// Its id; empty where only the name is known.
    pub member_id: MemberId,
    /// Its name, if it is static.
    pub group_instance_id: Option<GroupInstanceId>,
}

/// LeaveGroup's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaveReply {
    /// An error of the request as a whole.
    pub error: ErrorCode,
    /// What became of each.
    pub members: Vec<(LeavingMember, ErrorCode)>,
}

/// OffsetCommit.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The group.
    pub group_id: GroupId,
    /// The member's generation; `NONE` for who is no member.
    pub generation: Generation,
    /// The member; empty for who is no member.
    pub member_id: MemberId,
    /// Its name, if it is static.
    pub group_instance_id: Option<GroupInstanceId>,
    /// How long to keep the offsets, where the client's version lets it say so.
    pub retention: Option<Duration>,
    /// Whether the client's version knows `GROUP_ID_NOT_FOUND` as an answer.
    pub knows_group_id_not_found: bool,
    /// What is committed.
    pub topics: Vec<CommitTopic>,
}

/// One topic's offsets.
#[derive(Clone, Debug)]
pub struct CommitTopic {
    /// Its name.
    pub topic: TopicName,
    /// Its id; zero if not known.
    pub topic_id: TopicId,
    /// One offset a partition.
    pub partitions: Vec<CommitPartition>,
}

/// One offset.
#[derive(Clone, Debug)]
pub struct CommitPartition {
    /// The partition.
    pub partition: PartitionIndex,
    /// The next offset to read.
    pub offset: Offset,
    /// The leader epoch of the last record read; `NONE` if not known.
    pub leader_epoch: LeaderEpoch,
    /// The client's own note.
    pub metadata: Text,
}

/// The outcome for partitions of one topic: of OffsetCommit and OffsetDelete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicErrors {
    /// Its name.
    pub topic: TopicName,
    /// Its id, as the request had it.
    pub topic_id: TopicId,
    /// None, or why not.
    pub partitions: Vec<(PartitionIndex, ErrorCode)>,
}

/// OffsetFetch for one group.
#[derive(Clone, Debug)]
pub struct FetchOffsets {
    /// The group.
    pub group_id: GroupId,
    /// `None` asks for all that there are.
    pub topics: Option<Vec<TopicPartitions>>,
}

/// Partitions of one topic.
#[derive(Clone, Debug)]
pub struct TopicPartitions {
    /// Its name.
    pub topic: TopicName,
    /// Its id; zero if not known.
    pub topic_id: TopicId,
    /// Their numbers.
    pub partitions: Vec<PartitionIndex>,
}

/// One topic's committed offsets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedTopic {
    /// Its name.
    pub topic: TopicName,
    /// Its id, as the request had it, or as it was committed.
    pub topic_id: TopicId,
    /// One a partition.
    pub partitions: Vec<FetchedPartition>,
}

/// One committed offset; offset -1 is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedPartition {
    /// The partition.
    pub partition: PartitionIndex,
    /// The next offset to read.
    pub offset: Offset,
    /// As committed; `NONE` if not known.
    pub leader_epoch: LeaderEpoch,
    /// As committed.
    pub metadata: Text,
}

/// OffsetDelete.
#[derive(Clone, Debug)]
pub struct DeleteOffsets {
    /// The group.
    pub group_id: GroupId,
    /// Whose offsets to delete.
    pub topics: Vec<TopicPartitions>,
}

/// A group as DescribeGroups shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedGroup {
    /// The group.
    pub group_id: GroupId,
    /// None, or `GROUP_ID_NOT_FOUND`.
    pub error: ErrorCode,
    /// The error in words.
    pub error_message: Option<String>,
    /// Its state.
    pub state: GroupState,
    /// Its protocol type; empty if none.
    pub protocol_type: Text,
    /// Its protocol, where it is stable; else empty.
    pub protocol: Text,
    /// Its members.
    pub members: Vec<DescribedMember>,
}

/// A member as DescribeGroups shows it. Metadata and assignment are empty unless the group is stable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedMember {
    /// Its id.
    pub member_id: MemberId,
    /// Its name, if it is static.
    pub group_instance_id: Option<GroupInstanceId>,
    /// Its client's id.
    pub client_id: Text,
    /// Its client's address.
    pub client_host: Text,
    /// What it said in the chosen protocol.
    pub metadata: Bytes,
    /// What it is to do.
    pub assignment: Bytes,
}

/// ListGroups: empty filters let all through; case does not matter.
#[derive(Clone, Debug, Default)]
pub struct List {
    /// Names of states.
    pub states: Vec<String>,
    /// Names of group types.
    pub types: Vec<String>,
}

/// A group as ListGroups shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedGroup {
    /// The group.
    pub group_id: GroupId,
    /// Its protocol type; empty if none.
    pub protocol_type: Text,
    /// Its state.
    pub state: GroupState,
    /// `classic`.
    pub group_type: &'static str,
}

/// What became of one group of a DeleteGroups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletedGroup {
    /// The group.
    pub group_id: GroupId,
    /// None, or why not.
    pub error: ErrorCode,
    /// The error in words.
    pub error_message: Option<String>,
}

/// Where a classic group stands (Kafka: `ClassicGroupState`).
///
/// ```text
/// Empty -> PreparingRebalance -> CompletingRebalance -> Stable
///   ^            |  ^                    |                |
///   +------------+  +--------------------+----------------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupState {
    /// No members; perhaps offsets.
    Empty,
    /// Waiting for the members to join.
    PreparingRebalance,
    /// Waiting for the leader's assignment.
    CompletingRebalance,
    /// Every member has its assignment.
    Stable,
    /// There is no such group.
    Dead,
}

impl GroupState {
    /// As Kafka writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Stable => "Stable",
            Self::Dead => "Dead",
        }
    }
}
