//! Opening the logs of many partitions: several at once, each as far as nobody leads it.
//!
//! Invariant: what recovery kept is flushed before its partition can be led, so it counts from the first moment, and the
//! high watermark of a partition with one replica never shows less than it did before the stop. Reading is for a few threads
//! at once; flushes are for more, for the disk takes several together.
//!
//! Kafka: `LogManager.loadLogs`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use model::{Limits, Offset};
use storage::{Log, StorageError};
use tracing::error;

use crate::assignment::Assignment;
use crate::failed::{FailedPartition, OpenError};
use crate::{Partition, Replication};

/// Logs that may wait to be flushed together: more would hold too many files open.
const UNFLUSHED_MAX: usize = 128;

/// A log in its folder, of which not all need be on disk.
struct Opened {
    assignment: Assignment,
    is_new: bool,
    at: usize,
    log: Log,
}

/// What the jobs of one opening share.
pub(crate) struct Opening {
    assigned: Arc<[Assignment]>,
    next: AtomicUsize,
    unflushed: Mutex<Vec<Opened>>,
}

impl Opening {
    /// Keeps a log whose records are to be flushed for later, unless too many wait already.
    fn put_off(&self, opened: Opened) -> Option<Opened> {
        let mut unflushed = self.unflushed.lock().unwrap_or_else(PoisonError::into_inner);
        if opened.log.flushed_end() == opened.log.log_end() || unflushed.len() >= UNFLUSHED_MAX {
            return Some(opened);
        }
        unflushed.push(opened);
        None
    }

    fn take_unflushed(&self) -> Option<Opened> {
        self.unflushed.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}

impl Replication {
    /// Opens those that are not open yet.
    pub(crate) async fn open_missing(self: &Arc<Self>, assigned: &Arc<[Assignment]>) {
        let opening = self.read_missing(assigned).await;
        self.flush_read(&opening).await;
    }

    /// Opens them as far as no flush is needed.
    pub(crate) async fn read_missing(self: &Arc<Self>, assigned: &Arc<[Assignment]>) -> Arc<Opening> {
        let missing = assigned.iter().filter(|assignment| self.is_missing(assignment)).count();
        let folders = self.folders.iter().count();
        let (assigned, next) = (assigned.clone(), AtomicUsize::new(0));
        let opening = Arc::new(Opening { assigned, next, unflushed: Mutex::default() });
        self.jobs(missing.min(self.config.recovery_threads * folders), &opening, Self::open_each).await;
        opening
    }

    /// Flushes the others, and holds them.
    pub(crate) async fn flush_read(self: &Arc<Self>, opening: &Arc<Opening>) {
        let folders = self.folders.iter().count();
        let unflushed = opening.unflushed.lock().unwrap_or_else(PoisonError::into_inner).len();
        self.jobs(unflushed.min(Limits::FLUSHES_AT_ONCE * folders), opening, Self::flush_each).await;
    }

    /// So many jobs at once, until all are done.
    async fn jobs(self: &Arc<Self>, count: usize, opening: &Arc<Opening>, job: fn(&Self, &Opening)) {
        let jobs: Vec<_> = (0..count)
            .map(|_| {
                let (replication, opening) = (self.clone(), opening.clone());
                self.env.exec.blocking(Box::new(move || job(&replication, &opening)))
            })
            .collect();
        for job in jobs {
            job.await;
        }
    }

    fn is_missing(&self, assignment: &Assignment) -> bool {
        self.partitions.by_id(assignment.id).is_err()
    }

    fn open_each(&self, opening: &Opening) {
        while let Some(assignment) = opening.assigned.get(opening.next.fetch_add(1, Ordering::Relaxed)) {
            let _changing = self.changing.read().unwrap_or_else(PoisonError::into_inner);
            if !self.is_missing(assignment) {
                continue;
            }
            let is_new = self.is_new(assignment);
            match self.open(assignment, is_new).map(|opened| opening.put_off(opened)) {
                Ok(Some(opened)) => self.finish(opened),
                // Upkeep must not open it, too.
                Ok(None) => self.failed.remove(assignment.id),
                Err(why) => self.note(FailedPartition { assignment: assignment.clone(), is_new, why }),
            }
        }
    }

    fn flush_each(&self, opening: &Opening) {
        while let Some(opened) = opening.take_unflushed() {
            let _changing = self.changing.read().unwrap_or_else(PoisonError::into_inner);
            self.finish(opened);
        }
    }

    /// Whether this node was given the partition just now, so that nothing of it can lie in a folder that is offline. What
    /// is found at start may be of any age, whatever its leader epoch.
    fn is_new(&self, assignment: &Assignment) -> bool {
        self.failed.was_new(assignment.id).unwrap_or_else(|| self.is_open.load(Ordering::Acquire))
    }

    pub(crate) fn open_or_note(&self, assignment: &Assignment, is_new: bool) {
        match self.open(assignment, is_new) {
            Ok(opened) => self.finish(opened),
            Err(why) => self.note(FailedPartition { assignment: assignment.clone(), is_new, why }),
        }
    }

    fn note(&self, failed: FailedPartition) {
        let (partition, error) = (&failed.assignment.name, &failed.why);
        error!(%partition, %error, "a partition could not be opened");
        if let OpenError::Storage { at, .. } = failed.why {
            self.folders.doubt(at);
        }
        if let Some(at) = failed.why.folder() {
            self.folders.gone(at);
        }
        self.failed.insert(failed);
    }

    fn open(&self, assignment: &Assignment, is_new: bool) -> Result<Opened, OpenError> {
        let now = self.env.clock.wall();
        let at = self.folders.choose(&assignment.name, is_new, now).ok_or(OpenError::NoFolder)?;
        let (topic_id, config) = (assignment.id.topic_id, assignment.config.clone());
        let log = self.folders.get(at).logs.open_log(&assignment.name, topic_id, config, now);
        let log = log.map_err(|error| OpenError::Storage { at, error })?;
        Ok(Opened { assignment: assignment.clone(), is_new, at, log })
    }

    /// What was opened is flushed, and held from now on.
    fn finish(&self, opened: Opened) {
        let Opened { assignment, is_new, at, log } = opened;
        let folder = self.folders.get(at);
        let log = match flushed(log, folder.logs.is_crowded()) {
            Ok(log) => log,
            Err(error) => {
                return self.note(FailedPartition {
                    assignment,
                    is_new,
                    why: OpenError::Storage { at, error },
                });
            }
        };
        let (end, restored) =
            (log.log_end(), folder.logs.high_watermark(&assignment.name).unwrap_or(Offset(0)));
        if restored > end && self.lost.is_known() {
            let why = OpenError::Lost { at, end, restored };
            return self.note(FailedPartition { assignment, is_new, why });
        }
        let partition = Arc::new(Partition::new(
            (assignment.name.clone(), assignment.id, at),
            (folder.committer.clone(), self.outlets.clone()),
            log,
            restored,
        ));
        self.partitions.insert(partition.clone());
        self.failed.remove(assignment.id);
        // Who registers meanwhile finds it, or is found here.
        if let Some(epoch) = self.outlets.fetchers.registered() {
            partition.registered(epoch);
        }
    }
}

/// The log, with all its records on disk, and where files are scarce all the rest too.
fn flushed(mut log: Log, is_crowded: bool) -> Result<Log, StorageError> {
    if (is_crowded || log.flushed_end() < log.log_end())
        && let Some(job) = log.flush_job()
    {
        let result = job.files.iter().try_for_each(|file| file.sync());
        log.flush_done(&job, result)?;
    }
    Ok(log)
}
