//! What nodes ask and answer each other, in the core's words.
//!
//! The driver turns these into Kafka's Vote, BeginQuorumEpoch, EndQuorumEpoch, Fetch and FetchSnapshot and
//! back. It checks the cluster id and the topic; it adds and learns endpoints; it puts record and snapshot
//! bytes into answers and takes them out. Everything here comes from a peer: it is checked, never asserted.
//!
//! Kafka: `VoteRequest.json` and its kin.

use model::{ErrorCode, LeaderEpoch, NodeId, Offset};

use crate::{EpochEnd, ReplicaKey, SnapshotId, VoterSet};

/// A question that waits for its answer: given by the core, unique in the life of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A peer's question that waits for our answer: given by the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// Where a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Peer {
    /// To a node, whose endpoints the driver knows from the voters, from answers, or from configuration.
    Node(NodeId),
    /// To the n-th of `controller.quorum.bootstrap.servers`.
    Bootstrap(usize),
}

/// Who leads, as the answering node knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct CurrentLeader {
    /// The epoch that it is in.
    pub epoch: LeaderEpoch,
    /// That epoch's leader, where it is known and has not resigned.
    pub leader: Option<NodeId>,
}

/// A request to a peer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are Kafka's")]
pub enum Request {
    Vote(VoteRequest),
    BeginQuorumEpoch(BeginQuorumEpochRequest),
    EndQuorumEpoch(EndQuorumEpochRequest),
    Fetch(FetchRequest),
    FetchSnapshot(FetchSnapshotRequest),
}

/// An answer to a peer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are Kafka's")]
pub enum Response {
    Vote(VoteResponse),
    BeginQuorumEpoch(EpochResponse),
    EndQuorumEpoch(EpochResponse),
    Fetch(FetchResponse),
    FetchSnapshot(FetchSnapshotResponse),
}

/// Asks for a vote, or (KIP-996) whether one would be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VoteRequest {
    /// The candidate's epoch: the new one, or of a pre-vote the one that it is in.
    pub epoch: LeaderEpoch,
    /// Who wants to lead.
    pub candidate: ReplicaKey,
    /// Who is asked.
    pub voter: ReplicaKey,
    /// Where the candidate's log ends.
    pub log_end: EpochEnd,
    /// Whether nothing is promised yet.
    pub pre_vote: bool,
}

/// A vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VoteResponse {
    /// Why the request was not even looked at.
    pub error: ErrorCode,
    /// Who leads.
    pub current: CurrentLeader,
    /// Whether the candidate has the vote.
    pub granted: bool,
}

/// A new leader makes itself known to a voter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BeginQuorumEpochRequest {
    /// The leader's epoch.
    pub epoch: LeaderEpoch,
    /// The leader.
    pub leader: NodeId,
    /// The voter that is told.
    pub voter: ReplicaKey,
}

/// A leader steps down.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EndQuorumEpochRequest {
    /// Its epoch.
    pub epoch: LeaderEpoch,
    /// The leader that was.
    pub leader: NodeId,
    /// Who should campaign, the best first.
    pub preferred: Vec<ReplicaKey>,
}

/// The answer to BeginQuorumEpoch and EndQuorumEpoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EpochResponse {
    /// Why it was refused.
    pub error: ErrorCode,
    /// Who leads.
    pub current: CurrentLeader,
}

/// Asks for records from an offset on, and so acknowledges all before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FetchRequest {
    /// Who asks; an id of -1 is a reader that is no replica.
    pub replica: ReplicaKey,
    /// The epoch that the asking node is in.
    pub epoch: LeaderEpoch,
    /// Its flushed log end.
    pub fetch_offset: Offset,
    /// The epoch of the record before that.
    pub last_fetched_epoch: LeaderEpoch,
    /// The high watermark that it knows; `i64::MAX` where the request's version has none.
    pub high_watermark: Offset,
    /// How long the answer may be held back while there is nothing new.
    pub wait: std::time::Duration,
}

/// Records, or why there are none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FetchResponse {
    /// Why it was refused.
    pub error: ErrorCode,
    /// Who leads.
    pub current: CurrentLeader,
    /// Only in a good answer of a leader that has committed in its epoch.
    pub high_watermark: Option<Offset>,
    /// The leader's log start.
    pub log_start: Offset,
    /// The logs agree at most up to here: cut and ask again.
    pub diverging: Option<EpochEnd>,
    /// The records are gone: fetch this snapshot.
    pub snapshot: Option<SnapshotId>,
    /// The batches that the answer brings, as the driver found and checked them. Empty in an answer that the
    /// core gives: the driver reads what [`Action::RespondRecords`](crate::Action::RespondRecords) says.
    pub batches: Vec<Batch>,
}

/// One record batch of a Fetch answer, its CRC checked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Batch {
    /// Its first offset.
    pub base_offset: Offset,
    /// The offset after its last.
    pub end: Offset,
    /// Its leader epoch.
    pub epoch: LeaderEpoch,
    /// The voters records in it, by offset.
    pub voters: Vec<(Offset, VoterSet)>,
}

/// Asks for a piece of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FetchSnapshotRequest {
    /// Who asks.
    pub replica: ReplicaKey,
    /// The epoch that it is in.
    pub epoch: LeaderEpoch,
    /// Which snapshot.
    pub id: SnapshotId,
    /// From which byte on.
    pub position: u64,
    /// At most so many bytes.
    pub bytes_max: u32,
}

/// A piece of a snapshot. The driver adds the bytes, or has taken them out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FetchSnapshotResponse {
    /// Why it was refused.
    pub error: ErrorCode,
    /// Who leads.
    pub current: CurrentLeader,
    /// Which snapshot.
    pub id: SnapshotId,
    /// The size of the whole, in bytes.
    pub size: u64,
    /// Where the piece starts.
    pub position: u64,
    /// How many bytes it has.
    pub length: u32,
}

impl Response {
    /// Who leads, as the answer says.
    pub fn current(&self) -> CurrentLeader {
        match self {
            Self::Vote(response) => response.current,
            Self::BeginQuorumEpoch(response) | Self::EndQuorumEpoch(response) => response.current,
            Self::Fetch(response) => response.current,
            Self::FetchSnapshot(response) => response.current,
        }
    }
}

impl FetchResponse {
    /// An answer that refuses: it carries nothing but the reason.
    pub(crate) fn refusal(error: ErrorCode, current: CurrentLeader) -> Self {
        Self {
            error,
            current,
            high_watermark: None,
            log_start: Offset(-1),
            diverging: None,
            snapshot: None,
            batches: Vec::new(),
        }
    }
}
