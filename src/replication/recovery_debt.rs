//! What a start after a kill would have to read and write again: the bytes that were appended since the last checkpoints.
//!
//! Checkpoints come by time; where much is written they come sooner, so that such a start takes no longer than a disk
//! needs for [`Limits::RECOVERY_BYTES_MAX`]. A checkpoint costs some files for each partition that was appended to: where
//! those are few it comes sooner still.

use std::sync::atomic::{AtomicU64, Ordering};

use model::Limits;
use tokio::sync::Notify;

/// Of all log folders together.
#[derive(Default)]
pub(crate) struct RecoveryDebt {
    bytes: AtomicU64,
    partitions: AtomicU64,
    due: Notify,
}

impl RecoveryDebt {
    /// So many bytes were appended to a partition, its first ones since its checkpoint or not.
    pub(crate) fn add(&self, bytes: usize, are_first: bool) {
        let added = u64::from(are_first);
        let limit = limit(self.partitions.fetch_add(added, Ordering::Relaxed) + added);
        let before = self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        if (before..before + bytes as u64).contains(&(limit - 1)) {
            self.due.notify_one();
        }
    }

    /// Checkpoints are about to be written.
    pub(crate) fn settle(&self) {
        self.bytes.store(0, Ordering::Relaxed);
        self.partitions.store(0, Ordering::Relaxed);
    }

    /// Ends when checkpoints are due, whatever the time.
    pub(crate) async fn due(&self) {
        self.due.notified().await;
    }
}

/// The bytes with which checkpoints are due, where so many partitions were appended to.
fn limit(partitions: u64) -> u64 {
    let limit = Limits::RECOVERY_BYTES_MIN + partitions * Limits::RECOVERY_BYTES_PER_PARTITION;
    limit.min(Limits::RECOVERY_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    fn is_due(debt: &RecoveryDebt) -> bool {
        pin!(debt.due()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn it_is_due_once_when_the_limit_is_reached() {
        let debt = RecoveryDebt::default();
        debt.add(limit(1) as usize - 1, true);
        assert!(!is_due(&debt));
        debt.add(2, false);
        assert!(is_due(&debt));
        debt.add(1, false);
        assert!(!is_due(&debt), "what is due is being settled");
        debt.settle();
        debt.add(limit(1) as usize, true);
        assert!(is_due(&debt));
    }

    #[test]
    fn it_is_due_later_where_many_partitions_are_written() {
        let debt = RecoveryDebt::default();
        (0..100).for_each(|_| debt.add(limit(1) as usize / 100, true));
        assert!(!is_due(&debt));
        debt.add((limit(100) - limit(1)) as usize + 100, false);
        assert!(is_due(&debt));
        assert_eq!(limit(u64::from(u32::MAX)), Limits::RECOVERY_BYTES_MAX);
    }
}
