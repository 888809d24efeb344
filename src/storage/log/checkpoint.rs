//! What a restart after a kill need not find out again: index entries and producers, written without the log.
//!
//! [`Log::checkpoint`] takes what is to be written, and [`CheckpointJob::run`] writes it, without the log. Nothing waits for it
//! to be on disk: what a power cut leaves of it is checked before it is used.
//!
//! Invariant: while a job writes nobody else touches its files. Whoever is about to settles first: a job that has not begun
//! then never does, one that has is waited for. Appends do not, but for one that rolls a segment.
//!
//! Kafka: `LogManager.checkpointLogRecoveryOffsets`, `ProducerStateManager.takeSnapshot`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use env::File;
use model::Offset;

use super::Log;
use crate::names::FileKind;
use crate::segment::{IndexTail, Place};
use crate::{LogCheckpoint, StorageError, snapshot};

/// What to write, and what the folder's checkpoints are to say of the log then.
pub struct CheckpointJob {
    turn: Arc<Turn>,
    number: u64,
    place: Place,
    index_tail: Option<IndexTail>,
    snapshot: Option<(Offset, Vec<u8>)>,
    stray_snapshots: Vec<Offset>,
    checkpoint: LogCheckpoint,
}

impl CheckpointJob {
    /// Writes it. Waits for the disk.
    ///
    /// # Errors
    /// The folder is offline; a full disk is not one.
    pub fn run(self) -> Result<LogCheckpoint, StorageError> {
        let mut turn = self.turn.lock();
        if turn.newest == self.number {
            let result = self.write();
            turn.written = Some(result.is_ok());
            if let Err(error) = result {
                self.place.folder.check()?;
                tracing::warn!(path = %self.place.path.display(), %error, "a restart after a kill will take longer");
            }
        }
        drop(turn);
        Ok(self.checkpoint)
    }

    fn write(&self) -> Result<(), StorageError> {
        let Place { folder, .. } = &self.place;
        folder.check()?;
        if let Some(tail) = &self.index_tail {
            tail.write(&self.place)?;
        }
        let path = |offset| self.place.file(FileKind::ProducerSnapshot, offset);
        if let Some((offset, bytes)) = &self.snapshot {
            folder.write_file(&path(*offset), bytes)?;
        }
        self.stray_snapshots.iter().try_for_each(|stray| folder.remove_file(&path(*stray)))
    }
}

/// Whose turn it is to write.
#[derive(Default)]
pub(super) struct Turn(Mutex<Turns>);

#[derive(Default)]
struct Turns {
    /// The job that may write.
    newest: u64,
    /// Whether it wrote all; none if it has not begun.
    written: Option<bool>,
}

impl Turn {
    fn lock(&self) -> MutexGuard<'_, Turns> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is true once the job that was handed out has written.
pub(super) struct HandedOut {
    index_end: Option<(usize, usize)>,
    snapshot: Option<Offset>,
    stray_snapshots: Vec<Offset>,
}

impl Log {
    /// The index entries and the producers so far, to be written by a job.
    ///
    /// # Errors
    /// The folder is offline.
    pub fn checkpoint(&mut self, high_watermark: Offset) -> Result<CheckpointJob, StorageError> {
        self.place.folder.check()?;
        self.settle_checkpoint();
        self.place.folder.gather(&self.topic_partition);
        let active = self.segments.last().expect("a log has an active segment");
        let index_tail = active.index_tail(&self.place);
        let is_missing = self.snapshots.last().is_none_or(|last| *last < self.log_end);
        let snapshot = is_missing.then(|| (self.log_end, snapshot::encode(&self.producers)));
        let stray_snapshots = self.stray_snapshots(snapshot.as_ref().map(|snapshot| snapshot.0));
        self.handed_out = Some(HandedOut {
            index_end: index_tail.as_ref().map(|tail| tail.end),
            snapshot: snapshot.as_ref().map(|snapshot| snapshot.0),
            stray_snapshots: stray_snapshots.clone(),
        });
        let checkpoint = LogCheckpoint {
            topic_partition: self.topic_partition.clone(),
            recovery_point: self.flushed_end,
            log_start: self.log_start,
            high_watermark,
        };
        let (turn, place) = (self.turn.clone(), self.place.clone());
        let number = turn.lock().newest;
        Ok(CheckpointJob { turn, number, place, index_tail, snapshot, stray_snapshots, checkpoint })
    }

    /// From here on no job writes, and what one wrote is known.
    pub(super) fn settle_checkpoint(&mut self) {
        let written = {
            let mut turn = self.turn.lock();
            turn.newest += 1;
            turn.written.take()
        };
        let (Some(is_whole), Some(job)) = (written, self.handed_out.take()) else { return };
        let active = self.segments.last_mut().expect("a log has an active segment");
        if let Some(end) = job.index_end {
            active.index_tail_written(end, is_whole);
        }
        if is_whole {
            self.snapshots.retain(|snapshot| !job.stray_snapshots.contains(snapshot));
            self.snapshots.extend(job.snapshot);
        }
    }

    /// Writes the producers as of `offset`, which is the log end. Gives back the file, where there was none yet.
    pub(super) fn write_snapshot(&mut self, offset: Offset) -> Result<Option<Arc<dyn File>>, StorageError> {
        if self.snapshots.last().is_some_and(|last| *last >= offset) {
            return Ok(None);
        }
        let path = self.place.file(FileKind::ProducerSnapshot, offset);
        let file = self.place.folder.write_file(&path, &snapshot::encode(&self.producers))?;
        self.snapshots.push(offset);
        Ok(Some(file))
    }

    /// Removes those that [`Self::stray_snapshots`] tells.
    pub(super) fn remove_stray_snapshots(&mut self) -> Result<(), StorageError> {
        let stray = self.stray_snapshots(None);
        self.remove_snapshots(|snapshot, _| stray.contains(&snapshot))
    }

    /// All snapshots but those at the segments' starts and the last two of those between, with one that is `coming`.
    fn stray_snapshots(&self, coming: Option<Offset>) -> Vec<Offset> {
        let is_base = |offset: &Offset| self.segments.binary_search_by_key(offset, |s| s.base_offset).is_ok();
        let between = self.snapshots.iter().copied().chain(coming).filter(|snapshot| !is_base(snapshot));
        let mut stray: Vec<Offset> = between.collect();
        stray.truncate(stray.len().saturating_sub(2));
        stray
    }

    /// Removes the producer snapshots that are `unwanted`, given their offset and the log end.
    pub(super) fn remove_snapshots(
        &mut self,
        unwanted: impl Fn(Offset, Offset) -> bool,
    ) -> Result<(), StorageError> {
        let log_end = self.log_end;
        let (gone, kept): (Vec<Offset>, _) =
            self.snapshots.iter().partition(|snapshot| unwanted(**snapshot, log_end));
        self.snapshots = kept;
        for snapshot in gone {
            self.place.folder.remove_file(&self.place.file(FileKind::ProducerSnapshot, snapshot))?;
        }
        Ok(())
    }
}
