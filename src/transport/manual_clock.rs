//! A clock for tests, which goes on when it is told to.

use std::time::Duration;

use env::{BoxFuture, Clock};
use model::{Instant, Timestamp};
use tokio::sync::watch;

#[derive(Default)]
pub(crate) struct ManualClock(watch::Sender<u64>);

impl ManualClock {
    /// Goes on, and lets those who wait for it run.
    pub(crate) async fn advance(&self, by: Duration) {
        self.0.send_modify(|now| *now += by.as_nanos() as u64);
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Instant {
        Instant(*self.0.borrow())
    }

    fn wall(&self) -> Timestamp {
        Timestamp::NONE
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        let mut now = self.0.subscribe();
        Box::pin(async move {
            if now.wait_for(|now| *now >= at.0).await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    }
}
