//! Chance of the simulator: SplitMix64, so that one seed is one history.

/// A stream of random numbers.
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(seed ^ 0x5157_4f52_4d21_9e37)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 up to `end`, exclusive; 0 where `end` is.
    pub fn below(&mut self, end: u64) -> u64 {
        if end == 0 { 0 } else { self.next() % end }
    }

    /// From `start` to `end`, exclusive.
    pub fn between(&mut self, start: u64, end: u64) -> u64 {
        start + self.below(end.saturating_sub(start))
    }

    /// True so many times out of a thousand.
    pub fn per_mille(&mut self, times: u64) -> bool {
        self.below(1000) < times
    }

    /// One of them.
    pub fn pick<T: Copy>(&mut self, among: &[T]) -> Option<T> {
        if among.is_empty() { None } else { Some(among[self.below(among.len() as u64) as usize]) }
    }
}
