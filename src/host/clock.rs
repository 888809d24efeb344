//! The system's clocks.

use std::time::{Duration, Instant as Moment, SystemTime, UNIX_EPOCH};

use env::{BoxFuture, Clock};
use model::{Instant, Timestamp};

/// Monotonic time since this was made, and the system's wall clock.
#[derive(Clone, Debug)]
pub struct HostClock {
    start: Moment,
}

/// Far enough for any wait, and still within what the timer can count.
const SLEEP_MAX: Duration = Duration::from_hours(365 * 24);

impl HostClock {
    /// Starts at the instant 0.
    pub fn new() -> Self {
        Self { start: Moment::now() }
    }
}

impl Default for HostClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for HostClock {
    fn now(&self) -> Instant {
        Instant(0).plus(self.start.elapsed())
    }

    fn wall(&self) -> Timestamp {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)),
            Err(before) => Timestamp(-i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX)),
        }
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        let clock = self.clone();
        Box::pin(async move {
            loop {
                let left = at.since(clock.now());
                if left.is_zero() {
                    return;
                }
                tokio::time::sleep(left.min(SLEEP_MAX)).await;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_sleep_ends_at_its_instant_and_not_before() {
        let clock = HostClock::new();
        let at = clock.now().plus(Duration::from_millis(3));
        clock.sleep_until(at).await;
        assert!(clock.now() >= at);
        clock.sleep_until(Instant(0)).await;
    }

    #[tokio::test]
    async fn a_sleep_to_the_end_of_time_can_be_asked_for() {
        let clock = HostClock::new();
        let soon = clock.now().plus(Duration::from_millis(1));
        let done = env::timeout(&clock, soon, clock.sleep_until(Instant(u64::MAX))).await;
        assert_eq!(done, None);
    }

    #[test]
    fn the_wall_clock_is_after_2025() {
        assert!(HostClock::new().wall() > Timestamp(1_735_689_600_000));
    }
}
