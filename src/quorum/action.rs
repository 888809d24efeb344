//! What the driver must do, in order.

use model::{LeaderEpoch, NodeId, Offset};

use crate::{
    FetchResponse, HardState, Peer, ReplicaKey, Request, RequestId, Response, SnapshotId, Token,
    VoterChangeError, VoterSet,
};

/// One thing to do. The driver does them one after the other, each done before the next begins. A failure of
/// the disk in any of them ends the process: nothing is tried again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Write `quorum-state` (temporary file, fsync, rename, fsync of the folder).
    Persist(HardState),
    /// Append these control records as one batch.
    AppendControl(ControlBatch),
    /// Append the batches of the Fetch answer that was just handed in; with `count` of them, from the first.
    AppendFetched {
        /// How many batches.
        count: usize,
    },
    /// Cut the log: nothing at or after this offset stays.
    Truncate(Offset),
    /// Start flushing the log, without waiting for it. When done, call
    /// [`Quorum::handle_flushed`](crate::Quorum::handle_flushed) with these two numbers as they were when it
    /// began. Asked while a flush runs, one more has to follow it.
    Flush {
        /// The log's end, exclusive.
        end: Offset,
        /// How often the log was cut so far.
        truncations: u64,
    },
    /// Send a request. Its answer, or that there will be none, is reported under the same id.
    Send {
        /// To whom.
        to: Peer,
        /// Under which id.
        id: RequestId,
        /// What.
        request: Request,
    },
    /// Answer a peer's request.
    Respond {
        /// Which one.
        token: Token,
        /// With what. A FetchSnapshot answer without error gets the bytes that it announces.
        response: Response,
    },
    /// Answer a peer's Fetch with whole batches out of `start..end`, as many as the request's size allows and
    /// at least one.
    RespondRecords {
        /// Which one.
        token: Token,
        /// The rest of the answer.
        response: FetchResponse,
        /// The first offset; it starts a batch.
        start: Offset,
        /// The log's end, exclusive.
        end: Offset,
    },
    /// The role, the epoch or the known leader changed.
    RoleChanged {
        /// The role now.
        role: RoleName,
        /// The epoch now.
        epoch: LeaderEpoch,
        /// Who leads it, where known.
        leader: Option<NodeId>,
    },
    /// This node leads and may decide: its LeaderChange is committed. Comes after the high watermark that
    /// says so. The controller starts when it has applied everything before `end`.
    Activated {
        /// The epoch that it leads.
        epoch: LeaderEpoch,
        /// Where its epoch's first records end, exclusive.
        end: Offset,
    },
    /// Everything before this offset is committed. It only grows.
    HighWatermark(Offset),
    /// The voters that count changed.
    VotersChanged(VoterSet),
    /// Write the piece of the FetchSnapshot answer that was just handed in to the snapshot's `.part` file; at
    /// position 0 a new file is begun.
    WriteSnapshotPiece {
        /// Which snapshot.
        id: SnapshotId,
        /// Where in the file.
        position: u64,
    },
    /// The snapshot is complete: flush the `.part` file, rename it, sync the folder; then empty the log, to
    /// go on at the snapshot's end; load the state from it; and before anything else is handed in call
    /// [`Quorum::handle_snapshot_installed`](crate::Quorum::handle_snapshot_installed).
    InstallSnapshot(SnapshotId),
    /// Delete the log below this offset: a snapshot that is on disk covers it.
    DeleteBefore(Offset),
    /// Answer a change of voters that was asked for.
    VoterChangeDone {
        /// Under which token.
        token: Token,
        /// How it went; well means committed.
        result: Result<(), VoterChangeError>,
    },
}

/// Control records that the core itself writes, in one batch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ControlBatch {
    /// The offset of the first record.
    pub base_offset: Offset,
    /// The batch's leader epoch.
    pub epoch: LeaderEpoch,
    /// The records.
    pub records: Vec<ControlRecord>,
}

/// A control record of the metadata log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ControlRecord {
    /// The first record of a leader's epoch.
    LeaderChange {
        /// The new leader.
        leader: NodeId,
        /// All voters.
        voters: Vec<ReplicaKey>,
        /// Those that voted for it.
        granting: Vec<ReplicaKey>,
    },
    /// The finalized kraft.version.
    KRaftVersion(i16),
    /// The voters, from here on.
    Voters(VoterSet),
}

/// What a node is to the quorum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RoleName {
    /// Knows its epoch but no leader.
    Unattached,
    /// Asks whether it would be voted for (KIP-996).
    Prospective,
    /// Asks for votes in a new epoch.
    Candidate,
    /// Fetches from the leader, as a voter or as an observer.
    Follower,
    /// Leads.
    Leader,
    /// Led, and does no more.
    Resigned,
}
