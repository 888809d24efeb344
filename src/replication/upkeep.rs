//! What a node does for its partitions now and then: retention, rolling by time, checkpoints.
//!
//! The first round of retention is at start, so that the disk's reserve is there from then on. Each round visits one
//! partition after the other in bounded steps where it may block, so that no append waits for a long delete.
//!
//! Kafka: `LogManager.cleanupLogs`, `flushDirtyLogs`, `checkpointLogRecoveryOffsets`, `ReplicaManager.checkpointHighWatermarks`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use env::{BoxFuture, Exec};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::{Partition, Replication};

/// What recovery kept is soon known to be safe: a node that is killed again and again does not read it anew each time.
const FIRST_CHECKPOINT: Duration = Duration::from_millis(500);

/// How often.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// `log.retention.check.interval.ms`.
    pub retention_check: Duration,
    /// How often `flush.ms` of topics that cache writes is looked at: `log.flush.scheduler.interval.ms`, at most a second.
    pub flush_check: Duration,
    /// `replica.high.watermark.checkpoint.interval.ms` and the recovery points with it.
    pub checkpoint: Duration,
}

pub(crate) fn start(replication: &Arc<Replication>, closing: &CancellationToken) {
    let exec: &Arc<dyn Exec> = &replication.env.exec;
    let Config { retention_check, flush_check, checkpoint } = replication.config.upkeep;
    let repeat =
        |times, pause, work| Box::pin(repeat(replication.clone(), closing.clone(), times, pause, work));
    let first_checkpoint = checkpoint.min(FIRST_CHECKPOINT);
    exec.spawn("flushes", repeat((flush_check, flush_check), by_time, flushes));
    exec.spawn("retention", repeat((Duration::ZERO, retention_check), by_time, maintain));
    exec.spawn("checkpoints", repeat((first_checkpoint, checkpoint), by_time_or_bytes, checkpoints));
}

async fn repeat(
    replication: Arc<Replication>,
    closing: CancellationToken,
    (first, every): (Duration, Duration),
    pause: fn(&Replication, Duration) -> BoxFuture<'_, ()>,
    work: fn(&Arc<Replication>),
) {
    let mut wait = first;
    loop {
        tokio::select! {
            biased;
            () = closing.cancelled() => return,
            () = pause(&replication, wait) => {}
        }
        wait = every;
        let target = replication.clone();
        if env::try_blocking(replication.env.exec.as_ref(), move || work(&target)).await.is_none() {
            return;
        }
    }
}

fn by_time(replication: &Replication, wait: Duration) -> BoxFuture<'_, ()> {
    replication.env.clock.sleep(wait)
}

fn by_time_or_bytes(replication: &Replication, wait: Duration) -> BoxFuture<'_, ()> {
    Box::pin(async move {
        tokio::select! {
            biased;
            () = replication.recovery_debt.due() => {}
            () = by_time(replication, wait) => {}
        }
    })
}

fn maintain(replication: &Arc<Replication>) {
    for (_, folder) in replication.folders.iter() {
        while folder.logs.maintain().unwrap_or(false) {}
    }
    for partition in replication.partitions.all() {
        while partition.maintain(replication.env.clock.wall()) {}
    }
}

/// Flushes what may no longer stay in the cache alone.
fn flushes(replication: &Arc<Replication>) {
    for partition in replication.partitions.all() {
        partition.flush_if_due(replication.config.upkeep.flush_check);
    }
}

/// Writes recovery points, log starts and high watermarks of each folder.
pub(crate) fn checkpoints(replication: &Arc<Replication>) {
    if !replication.is_open.load(Ordering::Acquire) {
        return;
    }
    replication.reopen();
    replication.recovery_debt.settle();
    let partitions = replication.partitions.all();
    partitions.iter().for_each(Partition::try_again);
    for (at, folder) in replication.folders.iter() {
        let mut here: Vec<_> = partitions
            .iter()
            .filter(|partition| partition.folder == at)
            .filter_map(|partition| partition.checkpoint())
            .collect();
        // Of what could not be opened they go on saying what they said.
        let failed = replication.failed.in_folder(at);
        here.extend(failed.iter().map(|name| folder.logs.checkpointed(name)));
        if let Err(error) = folder.logs.checkpoint(&here) {
            warn!(folder = %folder.logs.path().display(), %error, "checkpoints were not written; the next round tries again");
        }
    }
}
