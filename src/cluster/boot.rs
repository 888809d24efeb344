//! What a node finds when it starts: quorum-state, snapshot, metadata log; or nothing, and then what it begins with.
//!
//! A first start writes what `kafka-storage format --standalone` does: the snapshot of end offset 0 with kraft.version,
//! and this node as the only voter. The feature levels are the controller's first records.
//!
//! Kafka: `KafkaMetadataLog`, `Formatter`, `BootstrapMetadata`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use env::Env;
use metadata::Image;
use model::{LeaderEpoch, NodeId, Offset, Timestamp};
use protocol::records::ControlRecord;
use protocol::records::metadata::MetadataRecord;
use quorum::{EpochStart, LogView, ReplicaKey, SnapshotId, Voter, VoterHistory, VoterSet};
use storage::{Log, LogConfig, LogFolder};

use crate::snapshot::Snapshot;
use crate::{Beginning, BootError, convert, metadata_log, newcomer, quorum_state, snapshot};

const FIRST: SnapshotId = SnapshotId { end: Offset(0), epoch: LeaderEpoch(0) };

/// Everything to start the quorum with.
pub struct Boot {
    pub(crate) me: ReplicaKey,
    pub(crate) folder: PathBuf,
    /// The log folder that has the metadata log.
    pub(crate) log_folder: Arc<LogFolder>,
    pub(crate) log: Log,
    pub(crate) quorum: quorum::Boot,
    pub(crate) image: Image,
    /// What the first leader of a cluster writes first, where the folder was formatted with that.
    pub(crate) bootstrap: Vec<MetadataRecord>,
    pub(crate) kraft_version: i16,
}

/// Reads the metadata log in `folders[at]`, or makes a first one: as a newcomer found out, or with this node alone.
///
/// # Errors
/// The disk, or files that do not fit together.
pub fn boot(
    env: &Env,
    (folders, at): (&[Arc<LogFolder>], usize),
    me: NodeId,
    beginning: Option<&Beginning>,
) -> Result<Boot, BootError> {
    let (folder, now) = (&folders[at], env.clock.wall());
    let me = ReplicaKey::new(me, folder.directory_id());
    let alone = || [Voter::new(me)].into_iter().collect();
    let first = beginning.map_or_else(alone, |beginning| beginning.voters.clone());
    let name = metadata_log::topic_partition();
    let config = LogConfig { retention_ms: -1, message_bytes_max: usize::MAX, ..LogConfig::default() };
    let mut log = folder.open_log(&name, metadata_log::TOPIC_ID, config, now)?;
    let path = folder.path().join(name.to_string());
    let io = |cause| BootError::Io { path: path.clone(), cause };
    if !folder.was_clean() {
        // A process that was killed while it replaced a file may have left the new name in memory alone.
        env.disk.sync_dir(&path).map_err(io)?;
    }
    let mut snapshots = snapshot::list(env.disk.as_ref(), &path).map_err(io)?;
    if snapshots.is_empty() && log.log_end() == Offset(0) && !first.is_empty() {
        let bytes = first_snapshot(first, now);
        log.write_beside(&snapshot::name(FIRST), &bytes)?;
        snapshots.push((FIRST, bytes.len() as u64));
        newcomer::forget_directory_id(env.disk.as_ref(), folder.path())?;
    }
    let (latest, found) = latest(env, &path, &snapshots)?;
    if is_behind(&log, latest) {
        log.truncate_fully_and_start_at(latest.end, now)?;
    } else if log.log_start() < latest.end {
        // What the snapshot covers counts no more, whether or not its deletion was on disk.
        log.advance_log_start(latest.end)?;
    }
    let view = view(&log, latest, &path)?;
    let mut history = if latest == FIRST {
        // The first leader writes them down, for those who come later and have no such snapshot.
        VoterHistory::bootstrap(found.voters)
    } else {
        VoterHistory::of_snapshot(found.voters)
    };
    let mut kraft_version = found.kraft_version;
    replay_control(&log, latest.end, &mut history, &mut kraft_version)
        .map_err(|error| BootError::Damaged { path: path.clone(), what: error.to_string() })?;
    // The records of the first snapshot are on this disk alone: they count when a leader has written them into the log.
    let (records, bootstrap) =
        if latest == FIRST { (Vec::new(), found.records) } else { (found.records, Vec::new()) };
    let image = Image::from_snapshot(&records, latest.end)
        .map_err(|error| BootError::Damaged { path: path.clone(), what: error.to_string() })?;
    snapshots.retain(|(id, _)| *id != FIRST);
    let hard = quorum_state::read(env.disk.as_ref(), &path)?;
    let quorum = quorum::Boot { hard, log: view, voters: history, snapshots };
    let log_folder = folder.clone();
    Ok(Boot { me, folder: path, log_folder, log, quorum, image, bootstrap, kraft_version })
}

/// Whether a snapshot was fetched that was still to take the log's place when the process ended.
fn is_behind(log: &Log, snapshot: SnapshotId) -> bool {
    let latest_epoch = log.latest_epoch().unwrap_or(LeaderEpoch(0));
    let begins_there = (log.log_start(), log.log_end()) == (snapshot.end, snapshot.end);
    !begins_there && (log.log_end() < snapshot.end || latest_epoch < snapshot.epoch)
}

fn first_snapshot(voters: VoterSet, now: Timestamp) -> Vec<u8> {
    let first = Snapshot { kraft_version: 1, voters, records: Vec::new() };
    snapshot::encode(&first, FIRST.epoch, Timestamp(0), now)
}

fn latest(
    env: &Env,
    path: &Path,
    snapshots: &[(SnapshotId, u64)],
) -> Result<(SnapshotId, Snapshot), BootError> {
    let Some((id, _)) = snapshots.last() else { return Ok((FIRST, Snapshot::default())) };
    let file = path.join(snapshot::name(*id));
    let bytes = snapshot::read(env.disk.as_ref(), path, *id)
        .map_err(|cause| BootError::Io { path: file.clone(), cause })?;
    let snapshot = snapshot::decode(&bytes).map_err(|what| BootError::Damaged { path: file, what })?;
    Ok((*id, snapshot))
}

/// The log as the core sees it; it must go on where the snapshot ends, or before.
fn view(log: &Log, snapshot: SnapshotId, path: &Path) -> Result<LogView, BootError> {
    let damaged = |what: String| BootError::Damaged { path: path.to_owned(), what };
    let (start, end) = (log.log_start(), log.log_end());
    if start != snapshot.end {
        return Err(damaged(format!(
            "the log holds {start} to {end}, the snapshot ends at {}",
            snapshot.end
        )));
    }
    let epochs: Vec<EpochStart> =
        log.epochs().into_iter().map(|(epoch, start)| EpochStart { epoch, start }).collect();
    if start == Offset(0) && end > Offset(0) && epochs.first().is_none_or(|first| first.start != start) {
        return Err(damaged("the leader epochs do not cover the log".to_owned()));
    }
    let before = if start == Offset(0) { LeaderEpoch(0) } else { snapshot.epoch };
    let epochs: Vec<_> = epochs.into_iter().filter(|entry| entry.start < end).collect();
    Ok(LogView::found(start, before, &epochs, end))
}

/// Voters and kraft.version count when they are appended, committed or not.
fn replay_control(
    log: &Log,
    from: Offset,
    history: &mut VoterHistory,
    kraft_version: &mut i16,
) -> Result<(), crate::FatalError> {
    let mut next = from;
    while next < log.log_end() {
        let batches = metadata_log::read(log, next, log.log_end())?;
        let Some(last) = batches.last() else { break };
        next = last.end;
        for (offset, record) in batches.into_iter().flat_map(|batch| batch.control) {
            match record {
                ControlRecord::KRaftVersion(record) => *kraft_version = record.k_raft_version,
                ControlRecord::KRaftVoters(record) => history.append(offset, convert::voters(&record)),
                _ => {}
            }
        }
    }
    Ok(())
}
