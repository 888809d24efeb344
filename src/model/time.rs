//! Two kinds of time: what a clock on the wall shows, and what only ever goes forward.

use std::time::Duration;

/// Wall-clock time: milliseconds since 1970-01-01 UTC. -1 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub i64);

/// Monotonic time: nanoseconds since some moment before the node started. Comparable within one node only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(pub u64);

impl Timestamp {
    /// No time.
    pub const NONE: Self = Self(-1);
}

impl Instant {
    /// How much later this is than `earlier`; zero if it is not.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// `after` later than this; the end of time where that cannot be said.
    #[must_use]
    pub fn plus(self, after: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(after.as_nanos()).unwrap_or(u64::MAX)))
    }
}
