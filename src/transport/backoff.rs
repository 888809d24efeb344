//! When a peer is connected to again: later with each failure, and not everybody at the same moment.
//!
//! Kafka: `ClusterConnectionStates`, `ExponentialBackoff`.

use std::time::Duration;

use env::Rng;
use model::Instant;

/// How much a wait may be shorter or longer, in percent.
const JITTER_PERCENT: u64 = 20;

/// The pauses between connections to one peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    first: Duration,
    max: Duration,
    failures: u32,
    until: Instant,
}

impl Backoff {
    pub(crate) fn new(first: Duration, max: Duration) -> Self {
        Self { first, max, failures: 0, until: Instant(0) }
    }

    pub(crate) fn is_over(&self, now: Instant) -> bool {
        now >= self.until
    }

    /// A connection was made: the next pause is the first again.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// A connection failed or broke.
    pub(crate) fn failed(&mut self, now: Instant, rng: &dyn Rng) {
        let pause = self.first.saturating_mul(1 << self.failures.min(16)).min(self.max);
        let percent = 100 - JITTER_PERCENT + rng.below(2 * JITTER_PERCENT + 1);
        self.until = now.plus(pause.mul_f64(percent as f64 / 100.0));
        self.failures = self.failures.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed(u64);

    impl Rng for Fixed {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.copy_from_slice(&self.0.to_le_bytes()[..bytes.len()]);
        }
    }

    #[test]
    fn pauses_double_to_their_limit_and_begin_anew_after_a_connection() {
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_millis(150));
        let pause = |backoff: &mut Backoff| {
            backoff.failed(Instant(0), &Fixed(JITTER_PERCENT));
            backoff.until.0 / 1_000_000
        };
        assert_eq!([0; 4].map(|_| pause(&mut backoff)), [50, 100, 150, 150]);
        backoff.reset();
        assert_eq!(pause(&mut backoff), 50);
    }

    #[test]
    fn a_pause_varies_by_a_fifth() {
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_millis(50));
        backoff.failed(Instant(0), &Fixed(0));
        assert!(!backoff.is_over(Instant(39_999_999)) && backoff.is_over(Instant(40_000_000)));
        backoff.failed(Instant(0), &Fixed(2 * JITTER_PERCENT));
        assert!(!backoff.is_over(Instant(59_999_999)) && backoff.is_over(Instant(60_000_000)));
    }
}
