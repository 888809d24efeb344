//! Durations, shown as quantiles.
//!
//! Buckets grow with the duration, eight for each power of two, so a quantile is off by at most an eighth. There are two
//! sets: the present window and the one before. Quantiles are over both, so that they speak of now and yet are not
//! empty just after [`Summary::rotate`]; count and sum are over all time, as Prometheus wants.
//!
//! Kafka: its histograms forget in about five minutes (`ExponentiallyDecayingReservoir`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Buckets for each power of two, as a power of two itself.
const FINE_BITS: u32 = 3;
const FINE: usize = 1 << FINE_BITS;
/// Up to 2^36 microseconds, 19 hours; what is longer counts as that.
const BUCKETS: usize = (36 - FINE_BITS as usize + 1) * FINE;

/// Durations. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Summary(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    windows: [[AtomicU32; BUCKETS]; 2],
    /// Even: the first window is the present one.
    rotations: AtomicU32,
    count: AtomicU64,
    sum_micros: AtomicU64,
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            windows: std::array::from_fn(|_| std::array::from_fn(|_| AtomicU32::new(0))),
            rotations: AtomicU32::new(0),
            count: AtomicU64::new(0),
            sum_micros: AtomicU64::new(0),
        }
    }
}

impl Summary {
    /// One more of this duration.
    pub fn record(&self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let window = self.0.rotations.load(Ordering::Relaxed) as usize % 2;
        self.0.windows[window][bucket(micros)].fetch_add(1, Ordering::Relaxed);
        self.0.sum_micros.fetch_add(micros, Ordering::Relaxed);
        self.0.count.fetch_add(1, Ordering::Relaxed);
    }

    /// How many there were, ever.
    pub fn count(&self) -> u64 {
        self.0.count.load(Ordering::Relaxed)
    }

    /// Forgets the window before this one, and begins another.
    pub(crate) fn rotate(&self) {
        let next = self.0.rotations.load(Ordering::Relaxed).wrapping_add(1);
        for bucket in &self.0.windows[next as usize % 2] {
            bucket.store(0, Ordering::Relaxed);
        }
        self.0.rotations.store(next, Ordering::Relaxed);
    }

    /// All durations ever, in microseconds.
    pub(crate) fn sum_micros(&self) -> u64 {
        self.0.sum_micros.load(Ordering::Relaxed)
    }

    /// For each of `quantiles`, in growing order, the microseconds that this part of both windows does not exceed; 0
    /// where there were none.
    pub(crate) fn quantiles<const N: usize>(&self, quantiles: [f64; N]) -> [u64; N] {
        let [one, other] = &self.0.windows;
        let count_of = |i: usize| {
            u64::from(one[i].load(Ordering::Relaxed)) + u64::from(other[i].load(Ordering::Relaxed))
        };
        let counts: [u64; BUCKETS] = std::array::from_fn(count_of);
        let total: u64 = counts.iter().sum();
        quantiles.map(|quantile| quantile_of(&counts, (quantile * total as f64).ceil() as u64))
    }
}

fn quantile_of(counts: &[u64; BUCKETS], rank: u64) -> u64 {
    let mut seen = 0;
    for (i, count) in counts.iter().enumerate() {
        seen += count;
        if *count > 0 && seen >= rank {
            return micros_max(i);
        }
    }
    0
}

// Below 2^FINE_BITS each number has a bucket; above, the highest bit chooses the row and the next bits the column.
fn bucket(micros: u64) -> usize {
    let Some(row) = micros.checked_ilog2().filter(|log| *log >= FINE_BITS) else {
        return micros as usize;
    };
    let column = (micros >> (row - FINE_BITS)) as usize - FINE;
    let row = (row - FINE_BITS + 1) as usize;
    (row * FINE + column).min(BUCKETS - 1)
}

/// The largest number of a bucket.
fn micros_max(bucket: usize) -> u64 {
    let (row, column) = (bucket / FINE, (bucket % FINE) as u64);
    match row.checked_sub(1) {
        None => column,
        Some(shift) => ((FINE as u64 + column + 1) << shift) - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bucket_holds_its_largest_number_and_the_next_holds_the_one_after() {
        for i in 0..BUCKETS - 1 {
            assert_eq!((bucket(micros_max(i)), bucket(micros_max(i) + 1)), (i, i + 1));
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_right_to_an_eighth() {
        let summary = Summary::default();
        for micros in 1..=10_000 {
            summary.record(Duration::from_micros(micros));
        }
        for (quantile, micros) in [0.5, 0.99, 1.0].into_iter().zip(summary.quantiles([0.5, 0.99, 1.0])) {
            let exact = quantile * 10_000.0;
            assert!((exact..exact * 1.125).contains(&(micros as f64)), "{quantile}: {micros}");
        }
        assert_eq!((summary.count(), summary.sum_micros()), (10_000, 50_005_000));
    }

    #[test]
    fn quantiles_forget_after_two_windows_but_the_count_does_not() {
        let summary = Summary::default();
        summary.record(Duration::from_secs(1));
        summary.rotate();
        assert!(summary.quantiles([0.5])[0] >= 1_000_000);
        summary.rotate();
        assert_eq!((summary.quantiles([0.5]), summary.count()), ([0], 1));
    }
}
