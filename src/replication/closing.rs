//! Closing the logs of all partitions: several at once, for each waits for its own flushes.
//!
//! Invariant: a log folder is marked clean only when every log in it was closed.
//!
//! Kafka: `LogManager.shutdown`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use model::{BrokerEpoch, Limits};
use storage::LogCheckpoint;
use tracing::{error, info, warn};

use crate::{Partition, Replication};

/// What several jobs share.
struct Closing {
    partitions: Vec<Arc<Partition>>,
    next: AtomicUsize,
    /// Of each that was tried its log folder, and what the checkpoints say of it if it was closed.
    tried: Mutex<Vec<(usize, Option<LogCheckpoint>)>>,
}

impl Replication {
    /// The clean end, after everything else that uses partitions has ended: all is flushed, indexes and producer
    /// snapshots are written, and the folders are marked clean, unless one of their logs was not opened or not closed.
    pub async fn close(self: &Arc<Self>, broker_epoch: BrokerEpoch) {
        let partitions = self.partitions.all();
        let jobs = partitions.len().min(Limits::FLUSHES_AT_ONCE * self.folders.iter().count());
        let closing = Arc::new(Closing { partitions, next: AtomicUsize::new(0), tried: Mutex::default() });
        let jobs: Vec<_> = (0..jobs)
            .map(|_| {
                let (replication, closing) = (self.clone(), closing.clone());
                self.env.exec.blocking(Box::new(move || replication.close_each(&closing)))
            })
            .collect();
        for job in jobs {
            job.await;
        }
        let replication = self.clone();
        let mark = move || replication.close_folders(&closing, broker_epoch);
        if env::try_blocking(self.env.exec.as_ref(), mark).await.is_none() {
            warn!("the node ended before its log folders were closed; the next start recovers them");
        }
    }

    /// One job of several.
    fn close_each(&self, closing: &Closing) {
        while let Some(partition) = closing.partitions.get(closing.next.fetch_add(1, Ordering::Relaxed)) {
            let checkpoint = partition.close().unwrap_or_else(|error| {
                self.folders.doubt(partition.folder);
                error!(partition = %partition.name, %error, "a partition was not closed cleanly");
                None
            });
            closing.tried.lock().unwrap_or_else(PoisonError::into_inner).push((partition.folder, checkpoint));
        }
    }

    fn close_folders(&self, closing: &Closing, broker_epoch: BrokerEpoch) {
        let tried = closing.tried.lock().unwrap_or_else(PoisonError::into_inner);
        let is_complete = tried.len() == closing.partitions.len();
        for (at, folder) in self.folders.iter() {
            if !is_complete || !folder.is_in_order() {
                warn!(folder = %folder.logs.path().display(), "the next start recovers this log folder");
                continue;
            }
            let here = tried.iter().filter(|(folder, _)| *folder == at);
            let checkpoints: Vec<_> = here.filter_map(|(_, checkpoint)| checkpoint.clone()).collect();
            match folder.logs.close(&checkpoints, broker_epoch) {
                Ok(()) => info!(folder = %folder.logs.path().display(), "log folder closed"),
                Err(error) => error!(%error, "a log folder was not closed cleanly"),
            }
        }
    }
}
