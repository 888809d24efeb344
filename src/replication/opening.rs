//! Opening the logs of many partitions: several at once, each as far as nobody leads it.
//!
//! Invariant: what recovery kept is flushed before its partition can be led, so it counts from the first moment, and the
//! high watermark of a partition with one replica never shows less than it did before the stop.
//!
//! Kafka: `LogManager.loadLogs`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};

use model::Offset;
use storage::{Log, StorageError};
use tracing::error;

use crate::assignment::Assignment;
use crate::failed::{FailedPartition, OpenError};
use crate::{Partition, Replication};

impl Replication {
    /// Opens those that are not open yet.
    pub(crate) async fn open_missing(self: &Arc<Self>, assigned: &Arc<[Assignment]>) {
        let missing = assigned.iter().filter(|assignment| self.is_missing(assignment)).count();
        let jobs_max = self.config.recovery_threads * self.folders.iter().count();
        let next = Arc::new(AtomicUsize::new(0));
        let jobs: Vec<_> = (0..missing.min(jobs_max))
            .map(|_| {
                let (replication, assigned, next) = (self.clone(), assigned.clone(), next.clone());
                self.env.exec.blocking(Box::new(move || replication.open_each(&assigned, &next)))
            })
            .collect();
        for job in jobs {
            job.await;
        }
    }

    fn is_missing(&self, assignment: &Assignment) -> bool {
        self.partitions.by_id(assignment.id).is_err()
    }

    /// One job of several that share `next`.
    fn open_each(&self, assigned: &[Assignment], next: &AtomicUsize) {
        while let Some(assignment) = assigned.get(next.fetch_add(1, Ordering::Relaxed)) {
            let _changing = self.changing.read().unwrap_or_else(PoisonError::into_inner);
            if self.is_missing(assignment) {
                self.open_or_note(assignment, self.is_new(assignment));
            }
        }
    }

    /// Whether this node was given the partition just now, so that nothing of it can lie in a folder that is offline. What
    /// is found at start may be of any age, whatever its leader epoch.
    fn is_new(&self, assignment: &Assignment) -> bool {
        self.failed.was_new(assignment.id).unwrap_or_else(|| self.is_open.load(Ordering::Acquire))
    }

    pub(crate) fn open_or_note(&self, assignment: &Assignment, is_new: bool) {
        match self.open(assignment, is_new) {
            Ok(()) => self.failed.remove(assignment.id),
            Err(why) => {
                error!(partition = %assignment.name, error = %why, "a partition could not be opened");
                self.failed.insert(FailedPartition { assignment: assignment.clone(), is_new, why });
            }
        }
    }

    fn open(&self, assignment: &Assignment, is_new: bool) -> Result<(), OpenError> {
        let now = self.env.clock.wall();
        let at = self.folders.choose(&assignment.name, is_new, now).ok_or(OpenError::NoFolder)?;
        let folder = self.folders.get(at);
        let log = folder
            .logs
            .open_log(&assignment.name, assignment.id.topic_id, assignment.config.clone(), now)
            .and_then(|log| flushed(log, folder.logs.is_crowded()))
            .map_err(|error| {
                self.folders.doubt(at);
                self.folders.gone(at);
                OpenError::Storage { at, error }
            })?;
        let restored = folder.logs.high_watermark(&assignment.name).unwrap_or(Offset(0));
        let partition = Arc::new(Partition::new(
            (assignment.name.clone(), assignment.id, at),
            (folder.committer.clone(), self.outlets.clone()),
            log,
            restored,
        ));
        self.partitions.insert(partition.clone());
        // Who registers meanwhile finds it, or is found here.
        if let Some(epoch) = self.outlets.fetchers.registered() {
            partition.registered(epoch);
        }
        Ok(())
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
