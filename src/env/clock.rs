//! Time.

use std::pin::pin;
use std::time::Duration;

use model::{Instant, Timestamp};

use crate::BoxFuture;

/// A node's two clocks, which in the simulator may run fast, slow, or jump.
pub trait Clock: Send + Sync {
    /// Monotonic time.
    fn now(&self) -> Instant;

    /// Wall-clock time; may jump either way.
    fn wall(&self) -> Timestamp;

    /// Ends when `now()` has reached `at`. Resolution is a millisecond.
    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()>;

    /// Ends after `wait`.
    fn sleep(&self, wait: Duration) -> BoxFuture<'static, ()> {
        self.sleep_until(self.now().plus(wait))
    }
}

/// What `work` gives, or `None` where `deadline` comes first. Work that is done at the deadline counts as done.
pub async fn timeout<T>(clock: &dyn Clock, deadline: Instant, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    let mut sleep = clock.sleep_until(deadline);
    std::future::poll_fn(|cx| {
        if let std::task::Poll::Ready(value) = work.as_mut().poll(cx) {
            return std::task::Poll::Ready(Some(value));
        }
        sleep.as_mut().poll(cx).map(|()| None)
    })
    .await
}
