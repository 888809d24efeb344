//! Snapshots: which there are, pieces of them served and fetched, and the log that they cover.
//!
//! Invariants: a snapshot ends at or below the high watermark; log is deleted only below a snapshot that is
//! on disk; a download goes on where it stopped, and begins anew under another leader, for two leaders' files
//! of one id need not be the same bytes.
//!
//! Kafka: `Snapshots`, `KafkaRaftClient.handleFetchSnapshotRequest`, KIP-630.

use std::collections::BTreeMap;

use model::{ErrorCode, Instant, LeaderEpoch, Offset};

use crate::log_view::OFFSET_MAX;
use crate::role::Role;
use crate::{
    Action, CurrentLeader, FetchSnapshotRequest, FetchSnapshotResponse, LogView, Peer, Quorum, Request,
    Response, Token, VoterHistory, VoterSet,
};

/// A snapshot of all records before `end`, the last of which has `epoch`: `<end>-<epoch>.checkpoint`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotId {
    /// The end offset, exclusive.
    pub end: Offset,
    /// The epoch of the record before it.
    pub epoch: LeaderEpoch,
}

/// The snapshots on disk and their sizes in bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshots(BTreeMap<SnapshotId, u64>);

/// A snapshot on its way here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Download {
    id: SnapshotId,
    /// Of the whole file, as the first piece said.
    size: Option<u64>,
    position: u64,
    /// All of it is here and the driver installs it.
    complete: bool,
}

impl Snapshots {
    pub(crate) fn found(snapshots: Vec<(SnapshotId, u64)>, log: &LogView) -> Self {
        let snapshots = Self(snapshots.into_iter().collect());
        let covered = snapshots.latest().map_or(Offset(0), |id| id.end);
        assert!(log.start() <= covered, "the log starts at {} and snapshots end at {covered}", log.start());
        assert!(log.end() >= covered, "the log ends at {}, before a snapshot to {covered}", log.end());
        snapshots
    }

    pub(crate) fn latest(&self) -> Option<SnapshotId> {
        self.0.last_key_value().map(|(id, _)| *id)
    }
}

impl Quorum {
    /// The latest snapshot on disk.
    pub fn latest_snapshot(&self) -> Option<SnapshotId> {
        self.snapshots.latest()
    }

    /// The driver made a snapshot of `size` bytes of everything before `id.end`, and it is on disk.
    ///
    /// # Panics
    /// Where the snapshot holds what is not committed, or its epoch is not the log's.
    pub fn handle_snapshot_made(&mut self, now: Instant, id: SnapshotId, size: u64) {
        self.event(now, |quorum| {
            let Offset(end) = id.end;
            assert!(id.end <= quorum.high_watermark, "a snapshot to {end} of what is not committed");
            assert!(id.end < quorum.log.start() || quorum.log.epoch_before(id.end) == id.epoch, "{id:?}");
            quorum.snapshots.0.insert(id, size);
        });
    }

    /// The driver deleted a snapshot. The latest stays.
    ///
    /// # Panics
    /// Where it is the latest.
    pub fn handle_snapshot_deleted(&mut self, id: SnapshotId) {
        assert!(self.snapshots.latest() != Some(id), "the latest snapshot stays");
        self.snapshots.0.remove(&id);
    }

    /// The driver wants to delete the log below `offset`. It may where a snapshot covers that; the action
    /// says how far.
    pub fn delete_before(&mut self, now: Instant, offset: Offset) {
        self.event(now, |quorum| {
            let most = offset.min(quorum.log.flushed());
            let covered = quorum.snapshots.0.keys().rev().find(|id| id.end <= most);
            let to = covered.map_or(Offset(0), |id| id.end);
            if to > quorum.log.start() {
                quorum.log.advance_start(to);
                quorum.voters.advance_start(to);
                quorum.actions.push(Action::DeleteBefore(to));
            }
        });
    }

    pub(crate) fn handle_fetch_snapshot(&mut self, token: Token, request: &FetchSnapshotRequest) {
        let response = match self.find_piece(request) {
            Ok((size, length)) => self.piece(request, ErrorCode::None, size, length),
            Err(error) => self.piece(request, error, 0, 0),
        };
        self.respond(token, Response::FetchSnapshot(response));
    }

    // The size of the whole, and of the piece.
    fn find_piece(&mut self, request: &FetchSnapshotRequest) -> Result<(u64, u32), ErrorCode> {
        self.check_fetch(request.replica, request.epoch)?;
        self.replica_fetched(request.replica);
        let size = *self.snapshots.0.get(&request.id).ok_or(ErrorCode::SnapshotNotFound)?;
        let left = size.checked_sub(request.position).filter(|left| *left > 0 || size == 0);
        let left = left.ok_or(ErrorCode::PositionOutOfRange)?;
        Ok((size, u32::try_from(left).unwrap_or(u32::MAX).min(request.bytes_max)))
    }

    fn piece(
        &self,
        request: &FetchSnapshotRequest,
        error: ErrorCode,
        size: u64,
        length: u32,
    ) -> FetchSnapshotResponse {
        let current: CurrentLeader = self.current();
        FetchSnapshotResponse { error, current, id: request.id, size, position: request.position, length }
    }

    /// The leader's log no longer has what this node needs.
    pub(crate) fn begin_download(&mut self, leader: Peer, id: SnapshotId) {
        if id.end <= self.high_watermark || id.end >= OFFSET_MAX || id.epoch > self.hard.epoch {
            return self.back_off(leader);
        }
        if let Role::Follower(role) = &mut self.role {
            role.download = Some(Download { id, size: None, position: 0, complete: false });
        }
    }

    pub(crate) fn fetch_snapshot(&mut self, from: Peer, download: Download) {
        if download.complete {
            return;
        }
        let (replica, epoch, bytes_max) = (self.me, self.hard.epoch, self.config.snapshot_piece_bytes);
        let Download { id, position, .. } = download;
        self.send(
            from,
            Request::FetchSnapshot(FetchSnapshotRequest { replica, epoch, id, position, bytes_max }),
        );
    }

    pub(crate) fn handle_fetch_snapshot_response(&mut self, peer: Peer, response: &FetchSnapshotResponse) {
        if response.error == ErrorCode::SnapshotNotFound {
            // It was deleted in the meantime: the next Fetch names a later one.
            self.heard_from_leader();
        }
        if !response.error.is_none() {
            return self.follow_refusal(peer, false);
        }
        let Role::Follower(role) = &mut self.role else { return };
        let Some(download) = role.download.as_mut().filter(|download| download.is_next(response)) else {
            return self.back_off(peer);
        };
        download.position += u64::from(response.length);
        download.size = Some(response.size);
        download.complete = download.position >= response.size;
        let complete = download.complete;
        self.actions.push(Action::WriteSnapshotPiece { id: response.id, position: response.position });
        if complete {
            self.actions.push(Action::InstallSnapshot(response.id));
        }
        self.heard_from_leader();
    }

    /// The snapshot that was fetched, of `size` bytes, is on disk, the log goes on at its end, and these are
    /// its voters.
    ///
    /// # Panics
    /// Where the snapshot ends below the high watermark.
    pub fn handle_snapshot_installed(&mut self, now: Instant, id: SnapshotId, size: u64, voters: VoterSet) {
        self.event(now, |quorum| {
            assert!(id.end >= quorum.high_watermark, "{id:?} ends below {}", quorum.high_watermark);
            quorum.snapshots.0.insert(id, size);
            quorum.log.restart_at(id.end, id.epoch);
            quorum.voters = VoterHistory::of_snapshot(voters);
            quorum.actions.push(Action::VotersChanged(quorum.voters.current().clone()));
            quorum.move_high_watermark(id.end);
            if let Role::Follower(role) = &mut quorum.role {
                role.download = None;
            }
        });
    }
}

impl Download {
    fn is_next(&self, response: &FetchSnapshotResponse) -> bool {
        let same_size = self.size.is_none_or(|size| size == response.size);
        let ends_well = same_size && self.position + u64::from(response.length) <= response.size;
        let moves = response.length > 0 || response.size == 0;
        response.id == self.id && response.position == self.position && ends_well && moves && !self.complete
    }
}
