//! How much memory all large frames together may take.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use env::Clock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What is counted: a permit is a KiB.
const UNIT: usize = 1 << 10;
/// How long a begun frame waits for its share. Frames that wait for one another must end some time.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// Bytes that frames too large for a receive buffer may hold at once, over all connections.
#[derive(Clone)]
pub(crate) struct Budget {
    left: Arc<Semaphore>,
    all: usize,
    clock: Arc<dyn Clock>,
}

/// What one frame holds of the budget, until it is dropped.
pub(crate) struct Share(OwnedSemaphorePermit);

impl Budget {
    pub(crate) fn new(bytes: usize, clock: Arc<dyn Clock>) -> Self {
        let all = (bytes / UNIT).clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
        Self { left: Arc::new(Semaphore::new(all)), all, clock }
    }

    /// Waits until `bytes` may be held.
    ///
    /// # Errors
    /// `TimedOut` where others did not give theirs back in time.
    pub(crate) async fn share(&self, bytes: usize) -> io::Result<Share> {
        self.acquire(self.units(bytes)).await.map(Share)
    }

    /// As `share`, for one that has become `bytes` in all.
    pub(crate) async fn grow(&self, share: &mut Share, bytes: usize) -> io::Result<()> {
        let more = self.units(bytes).saturating_sub(share.0.num_permits());
        share.0.merge(self.acquire(more).await?);
        Ok(())
    }

    /// A frame larger than the whole budget may come when it is alone.
    fn units(&self, bytes: usize) -> usize {
        bytes.div_ceil(UNIT).min(self.all)
    }

    async fn acquire(&self, units: usize) -> io::Result<OwnedSemaphorePermit> {
        let left = Arc::clone(&self.left);
        if let Ok(permit) = Arc::clone(&left).try_acquire_many_owned(units as u32) {
            return Ok(permit);
        }
        let deadline = self.clock.now().plus(WAIT_MAX);
        match env::timeout(&*self.clock, deadline, left.acquire_many_owned(units as u32)).await {
            Some(permit) => permit.map_err(io::Error::other),
            None => Err(io::Error::new(io::ErrorKind::TimedOut, "too many large requests at once")),
        }
    }
}

#[cfg(test)]
mod tests {
    use host::HostClock;

    use super::*;

    fn budget(bytes: usize) -> Budget {
        Budget::new(bytes, Arc::new(HostClock::new()))
    }

    #[tokio::test]
    async fn a_share_comes_back_when_it_is_dropped() {
        let budget = budget(100 << 10);
        let mut share = budget.share(10 << 10).await.unwrap();
        budget.grow(&mut share, 40 << 10).await.unwrap();
        assert_eq!(budget.left.available_permits(), 60);
        drop(share);
        assert_eq!(budget.left.available_permits(), 100);
    }

    #[tokio::test]
    async fn a_frame_larger_than_the_budget_takes_all_of_it() {
        let budget = budget(100 << 10);
        let mut share = budget.share(1).await.unwrap();
        budget.grow(&mut share, 1 << 30).await.unwrap();
        assert_eq!(budget.left.available_permits(), 0);
    }

    #[tokio::test]
    async fn who_waits_too_long_for_a_share_is_refused() {
        let budget = Budget::new(8 << 10, Arc::new(Hasty));
        let _all = budget.share(8 << 10).await.unwrap();
        let error = budget.share(1).await.err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    /// Every wait is over at once.
    struct Hasty;

    impl Clock for Hasty {
        fn now(&self) -> model::Instant {
            model::Instant(0)
        }
        fn wall(&self) -> model::Timestamp {
            model::Timestamp::NONE
        }
        fn sleep_until(&self, _: model::Instant) -> env::BoxFuture<'static, ()> {
            Box::pin(std::future::ready(()))
        }
    }
}
