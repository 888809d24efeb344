//! A log as the replica's machine sees it.

use model::{LeaderEpoch, Offset};
use replica::{EpochEnd, LogView};
use storage::Log;

/// The shape of a log, and how much of it counts.
pub(crate) struct LogShape<'a>(pub(crate) &'a Log);

impl LogView for LogShape<'_> {
    fn log_start(&self) -> Offset {
        self.0.log_start()
    }

    fn log_end(&self) -> Offset {
        self.0.log_end()
    }

    // A follower's log may come to start behind what is flushed.
    fn counted_end(&self) -> Offset {
        if self.0.config().write_caching {
            return self.0.log_end();
        }
        self.0.flushed_end().max(self.0.log_start())
    }

    fn latest_epoch(&self) -> Option<LeaderEpoch> {
        self.0.latest_epoch()
    }

    fn epoch_end(&self, epoch: LeaderEpoch) -> Option<EpochEnd> {
        self.0.epoch_end(epoch).map(|(epoch, end)| EpochEnd { epoch, end })
    }
}
