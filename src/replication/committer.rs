//! The committer of one log folder: at most one flush in flight a partition, up to eight at once a folder.
//!
//! Who asks during a flush joins the next one. There is no linger: the flush in flight is the batching window.
//!
//! Invariant: a partition stands in the queue at most once, so the queue is bounded by the partitions.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use env::Exec;
use model::Limits;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::Partition;
use crate::partition::Flushed;
use crate::recovery_debt::RecoveryDebt;

/// Flushes the partitions of one log folder.
pub(crate) struct Committer {
    queue: Mutex<VecDeque<Arc<Partition>>>,
    asked: Notify,
    pub(crate) debt: Arc<RecoveryDebt>,
}

impl Committer {
    /// Starts its lanes, which end with `closing`: what is still queued then is flushed as the logs are closed.
    pub(crate) fn start(
        exec: &Arc<dyn Exec>,
        closing: &CancellationToken,
        debt: &Arc<RecoveryDebt>,
    ) -> Arc<Self> {
        let committer = Arc::new(Self { queue: Mutex::default(), asked: Notify::new(), debt: debt.clone() });
        for _ in 0..Limits::FLUSHES_AT_ONCE {
            exec.spawn("committer", Box::pin(lane(committer.clone(), exec.clone(), closing.clone())));
        }
        committer
    }

    /// Puts a partition in the queue. Its flush state keeps it from standing there twice.
    pub(crate) fn ask(&self, partition: Arc<Partition>) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).push_back(partition);
        self.asked.notify_one();
    }

    async fn next(&self) -> Arc<Partition> {
        loop {
            if let Some(partition) = self.take() {
                return partition;
            }
            self.asked.notified().await;
        }
    }

    fn take(&self) -> Option<Arc<Partition>> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let partition = queue.pop_front();
        if !queue.is_empty() {
            // One permit may stand for several partitions: pass it on to the next lane.
            self.asked.notify_one();
        }
        partition
    }
}

/// A flush that has begun is waited for, also at the end: if it failed and nobody heard of it, the next one would
/// succeed, and what was lost would count as flushed.
async fn lane(committer: Arc<Committer>, exec: Arc<dyn Exec>, closing: CancellationToken) {
    while let Some(partition) = closing.run_until_cancelled(committer.next()).await {
        match partition.flush(exec.as_ref()).await {
            Flushed::Done => {}
            Flushed::Again => committer.ask(partition),
            Flushed::Hindered => {
                exec.spawn("committer", Box::pin(later(committer.clone(), partition, closing.clone())));
            }
        }
    }
}

/// Apart from the lanes, which others go on using.
async fn later(committer: Arc<Committer>, partition: Arc<Partition>, closing: CancellationToken) {
    if closing.run_until_cancelled(partition.rest()).await.is_some() {
        committer.ask(partition);
    }
}
