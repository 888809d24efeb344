//! What the three checkpoints of a log folder say, and how they are kept true.
//!
//! Invariants
//! * A log that is cut below its recovery point and written again is not on disk up to there any more: the checkpoint is
//!   lowered before the cut. One that was being gathered at that moment does not raise it again.
//! * A log that is made anew under an old name inherits nothing: its rows are gone before its folder is there.
//!
//! Kafka: `LogManager.checkpointRecoveryOffsetsInDir`, `checkpointLogStartOffsetsInDir`, `ReplicaManager.checkpointHighWatermarks`.

use std::io;
use std::sync::{MutexGuard, PoisonError};

use env::write_atomic;
use model::{Limits, Offset, TopicPartition};

use crate::checkpoint::{self, HIGH_WATERMARK, LOG_START, Offsets, RECOVERY_POINT};
use crate::folder_state::FolderState;
use crate::{LogCheckpoint, StorageError};

/// The rows of all three, as they were last written.
#[derive(Default)]
pub(crate) struct Checkpoints {
    recovery_points: Offsets,
    log_starts: Offsets,
    high_watermarks: Offsets,
    /// Where logs were cut since what they are was last gathered.
    cut: Offsets,
}

impl FolderState {
    /// Reads the three files.
    pub(crate) fn read_checkpoints(&self) -> io::Result<()> {
        let mut checkpoints = self.lock_checkpoints();
        checkpoints.recovery_points = read(self, RECOVERY_POINT)?;
        checkpoints.log_starts = read(self, LOG_START)?;
        checkpoints.high_watermarks = read(self, HIGH_WATERMARK)?;
        Ok(())
    }

    /// Below it everything of this log was on disk.
    pub(crate) fn recovery_point(&self, log: &TopicPartition) -> Offset {
        self.lock_checkpoints().recovery_points.get(log).copied().unwrap_or(Offset(0))
    }

    /// Where this log began.
    pub(crate) fn log_start(&self, log: &TopicPartition) -> Offset {
        self.lock_checkpoints().log_starts.get(log).copied().unwrap_or(Offset(0))
    }

    /// This log's high watermark.
    pub(crate) fn high_watermark(&self, log: &TopicPartition) -> Option<Offset> {
        self.lock_checkpoints().high_watermarks.get(log).copied()
    }

    /// What this log is now is being gathered for a checkpoint.
    pub(crate) fn gather_recovery_point(&self, log: &TopicPartition) {
        self.lock_checkpoints().cut.remove(log);
    }

    /// The log is about to be cut at `end`. Waits for the disk where the checkpoint says more.
    pub(crate) fn lower_recovery_point(&self, log: &TopicPartition, end: Offset) -> Result<(), StorageError> {
        let mut checkpoints = self.lock_checkpoints();
        let cut = checkpoints.cut.entry(log.clone()).or_insert(end);
        *cut = end.min(*cut);
        match checkpoints.recovery_points.get_mut(log).filter(|written| **written > end) {
            Some(written) => *written = end,
            None => return Ok(()),
        }
        self.write_all(RECOVERY_POINT, &checkpoints.recovery_points)
    }

    /// A log of this name is about to be made. Waits for the disk where the checkpoints know another one.
    pub(crate) fn forget_checkpoints(&self, log: &TopicPartition) -> Result<(), StorageError> {
        let mut checkpoints = self.lock_checkpoints();
        checkpoints.cut.remove(log);
        for (name, offsets) in checkpoints.files() {
            if offsets.remove(log).is_some() {
                self.write_all(name, offsets)?;
            }
        }
        Ok(())
    }

    /// Replaces all three by what these logs say.
    pub(crate) fn write_checkpoints(&self, logs: &[LogCheckpoint]) -> Result<(), StorageError> {
        self.check()?;
        let mut checkpoints = self.lock_checkpoints();
        let cut = |log: &LogCheckpoint| checkpoints.cut.get(&log.topic_partition).copied();
        let recovery_point =
            |log: &LogCheckpoint| cut(log).map_or(log.recovery_point, |cut| log.recovery_point.min(cut));
        checkpoints.recovery_points = rows(logs, recovery_point);
        checkpoints.log_starts = rows(logs, |log| log.log_start);
        checkpoints.high_watermarks = rows(logs, |log| log.high_watermark);
        for (name, offsets) in checkpoints.files() {
            self.write_all(name, offsets)?;
        }
        Ok(())
    }

    fn write_all(&self, name: &str, offsets: &Offsets) -> Result<(), StorageError> {
        let mut rows: Vec<_> = offsets.iter().map(|(log, offset)| (log, *offset)).collect();
        rows.sort_unstable();
        let text = checkpoint::encode_offsets(&rows);
        let path = self.path.join(name);
        self.with_reserve(&path, || write_atomic(&*self.disk, &path, text.as_bytes()))
    }

    fn lock_checkpoints(&self) -> MutexGuard<'_, Checkpoints> {
        self.checkpoints.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Checkpoints {
    fn files(&mut self) -> [(&'static str, &mut Offsets); 3] {
        [
            (RECOVERY_POINT, &mut self.recovery_points),
            (LOG_START, &mut self.log_starts),
            (HIGH_WATERMARK, &mut self.high_watermarks),
        ]
    }
}

fn rows(logs: &[LogCheckpoint], offset: impl Fn(&LogCheckpoint) -> Offset) -> Offsets {
    logs.iter().map(|log| (log.topic_partition.clone(), offset(log))).collect()
}

/// A checkpoint's offsets. One that is damaged counts as missing: the logs are then read from their start.
fn read(folder: &FolderState, name: &str) -> io::Result<Offsets> {
    let path = folder.path.join(name);
    let bytes = match folder.disk.read(&path, Limits::SMALL_FILE_BYTES_MAX) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Offsets::default()),
        result => result?,
    };
    Ok(checkpoint::parse_offsets(&bytes).unwrap_or_else(|error| {
        tracing::warn!(path = %path.display(), error, "checkpoint is not used");
        Offsets::default()
    }))
}
