//! What a start after a kill would have to read and write again: the bytes that were appended since the last checkpoints.
//!
//! Checkpoints come by time; where much is written they come sooner, so that such a start takes no longer than a disk
//! needs for [`Limits::RECOVERY_BYTES`].

use std::sync::atomic::{AtomicU64, Ordering};

use model::Limits;
use tokio::sync::Notify;

/// Of all log folders together.
#[derive(Default)]
pub(crate) struct RecoveryDebt {
    bytes: AtomicU64,
    due: Notify,
}

impl RecoveryDebt {
    /// So many bytes were appended.
    pub(crate) fn add(&self, bytes: usize) {
        let before = self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        if (before..before + bytes as u64).contains(&(Limits::RECOVERY_BYTES - 1)) {
            self.due.notify_one();
        }
    }

    /// Checkpoints are about to be written.
    pub(crate) fn settle(&self) {
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// Ends when checkpoints are due, whatever the time.
    pub(crate) async fn due(&self) {
        self.due.notified().await;
    }
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
        debt.add(Limits::RECOVERY_BYTES as usize - 1);
        assert!(!is_due(&debt));
        debt.add(2);
        assert!(is_due(&debt));
        debt.add(1);
        assert!(!is_due(&debt), "what is due is being settled");
        debt.settle();
        debt.add(Limits::RECOVERY_BYTES as usize);
        assert!(is_due(&debt));
    }
}
