//! `quorum-state`: the quorum's hard state on disk, in Kafka's JSON.
//!
//! Written whole: temporary file, sync, rename, sync of the folder, before anything that counts on it leaves the node.
//!
//! Kafka: `FileQuorumStateStore`.

use std::io;
use std::path::{Path, PathBuf};

use env::Disk;
use model::{LeaderEpoch, Limits, NodeId};
use protocol::records::QuorumState;
use quorum::{HardState, ReplicaKey};
use storage::{Log, StorageError};

use crate::BootError;

const NAME: &str = "quorum-state";

fn path(folder: &Path) -> PathBuf {
    folder.join(NAME)
}

/// Reads it; the default where there is none.
pub(crate) fn read(disk: &dyn Disk, folder: &Path) -> Result<HardState, BootError> {
    let path = path(folder);
    let text = match disk.read(&path, Limits::SMALL_FILE_BYTES_MAX) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(HardState::default()),
        Err(cause) => return Err(BootError::Io { path, cause }),
    };
    let state =
        QuorumState::decode(&text).map_err(|error| BootError::Damaged { path, what: error.to_string() })?;
    let voted =
        (state.voted_id >= 0).then(|| ReplicaKey::new(NodeId(state.voted_id), state.voted_directory_id));
    let leader = (state.leader_id >= 0).then_some(NodeId(state.leader_id));
    Ok(HardState { epoch: LeaderEpoch(state.leader_epoch.max(0)), voted, leader })
}

/// Writes it durably.
pub(crate) fn write(log: &Log, hard: &HardState) -> Result<(), StorageError> {
    let none = QuorumState::default();
    let state = QuorumState {
        leader_id: hard.leader.map_or(none.leader_id, |leader| leader.0),
        leader_epoch: hard.epoch.0,
        voted_id: hard.voted.map_or(none.voted_id, |voted| voted.id.0),
        voted_directory_id: hard.voted.map_or(none.voted_directory_id, |voted| voted.directory),
    };
    log.write_beside(NAME, state.encode().as_bytes())
}
