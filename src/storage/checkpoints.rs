//! What the three checkpoints of a log folder say, and how they are kept true.
//!
//! Invariants
//! * A log that is cut below its recovery point and written again is not on disk up to there any more; below its high
//!   watermark, what is written then is not committed; below its start, it begins there: the checkpoints are lowered before
//!   the cut. One that was being gathered at that moment does not raise them again.
//! * A log that is made anew under an old name inherits nothing: its rows are gone before its folder is there.
//! * After a write that failed a file may say the old or the new: who relies on what it says writes it again.
//!
//! Kafka: `LogManager.checkpointRecoveryOffsetsInDir`, `checkpointLogStartOffsetsInDir`, `ReplicaManager.checkpointHighWatermarks`.

use std::io;
use std::sync::{MutexGuard, PoisonError};

use env::write_atomic;
use model::{Limits, Offset, TopicPartition};

use crate::checkpoint::{self, HIGH_WATERMARK, LOG_START, Offsets, RECOVERY_POINT};
use crate::folder_state::FolderState;
use crate::{LogCheckpoint, StorageError};

/// All three.
pub(crate) struct Checkpoints {
    recovery_points: Table,
    log_starts: Table,
    high_watermarks: Table,
    /// Where logs were cut since what they are was last gathered.
    cut: Offsets,
}

/// One checkpoint.
struct Table {
    name: &'static str,
    rows: Offsets,
    /// Whether the file is known to have these rows.
    is_written: bool,
}

impl FolderState {
    /// Reads the three files.
    pub(crate) fn read_checkpoints(&self) -> io::Result<()> {
        let mut checkpoints = self.lock_checkpoints();
        for table in checkpoints.tables() {
            table.rows = read(self, table.name)?;
        }
        Ok(())
    }

    /// Below it everything of this log was on disk.
    pub(crate) fn recovery_point(&self, log: &TopicPartition) -> Offset {
        self.lock_checkpoints().recovery_points.rows.get(log).copied().unwrap_or(Offset(0))
    }

    /// Where this log began.
    pub(crate) fn log_start(&self, log: &TopicPartition) -> Offset {
        self.lock_checkpoints().log_starts.rows.get(log).copied().unwrap_or(Offset(0))
    }

    /// This log's high watermark.
    pub(crate) fn high_watermark(&self, log: &TopicPartition) -> Option<Offset> {
        self.lock_checkpoints().high_watermarks.rows.get(log).copied()
    }

    /// What this log is now is being gathered for a checkpoint.
    pub(crate) fn gather(&self, log: &TopicPartition) {
        self.lock_checkpoints().cut.remove(log);
    }

    /// The log is about to be cut at `end`. Waits for the disk where the checkpoints say more.
    pub(crate) fn lower_checkpoints(&self, log: &TopicPartition, end: Offset) -> Result<(), StorageError> {
        let mut checkpoints = self.lock_checkpoints();
        let cut = checkpoints.cut.entry(log.clone()).or_insert(end);
        *cut = end.min(*cut);
        for table in checkpoints.tables() {
            match table.rows.get_mut(log).filter(|written| **written > end) {
                Some(written) => *written = end,
                None if table.is_written => continue,
                None => {}
            }
            self.write_table(table)?;
        }
        Ok(())
    }

    /// A log of this name is about to be made. Waits for the disk where the checkpoints know another one.
    pub(crate) fn forget_checkpoints(&self, log: &TopicPartition) -> Result<(), StorageError> {
        let mut checkpoints = self.lock_checkpoints();
        checkpoints.cut.remove(log);
        for table in checkpoints.tables() {
            if table.rows.remove(log).is_some() || !table.is_written {
                self.write_table(table)?;
            }
        }
        Ok(())
    }

    /// Replaces all three by what these logs say.
    pub(crate) fn write_checkpoints(&self, logs: &[LogCheckpoint]) -> Result<(), StorageError> {
        self.check()?;
        let mut checkpoints = self.lock_checkpoints();
        let cut = |log: &LogCheckpoint| {
            checkpoints.cut.get(&log.topic_partition).copied().unwrap_or(Offset(i64::MAX))
        };
        let recovery_points = rows(logs, |log| log.recovery_point.min(cut(log)));
        let log_starts = rows(logs, |log| log.log_start.min(cut(log)));
        let high_watermarks = rows(logs, |log| log.high_watermark.min(cut(log)));
        for (table, rows) in
            checkpoints.tables().into_iter().zip([recovery_points, log_starts, high_watermarks])
        {
            table.rows = rows;
            table.is_written = false;
        }
        checkpoints.tables().into_iter().try_for_each(|table| self.write_table(table))
    }

    fn write_table(&self, table: &mut Table) -> Result<(), StorageError> {
        table.is_written = false;
        let rows: Vec<_> = table.rows.iter().map(|(log, offset)| (log, *offset)).collect();
        let (path, text) = (self.path.join(table.name), checkpoint::encode_offsets(&rows));
        self.with_reserve(&path, || write_atomic(&*self.disk, &path, text.as_bytes()))?;
        table.is_written = true;
        Ok(())
    }

    fn lock_checkpoints(&self) -> MutexGuard<'_, Checkpoints> {
        self.checkpoints.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Checkpoints {
    fn default() -> Self {
        let table = |name| Table { name, rows: Offsets::default(), is_written: true };
        Self {
            recovery_points: table(RECOVERY_POINT),
            log_starts: table(LOG_START),
            high_watermarks: table(HIGH_WATERMARK),
            cut: Offsets::default(),
        }
    }
}

impl Checkpoints {
    fn tables(&mut self) -> [&mut Table; 3] {
        [&mut self.recovery_points, &mut self.log_starts, &mut self.high_watermarks]
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
