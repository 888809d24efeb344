//! Hash maps that behave the same in every run.
//!
//! FxHash: fast on short keys, no random seed, so that one seed of the simulator is one history. But who chooses the keys
//! can make them collide, and then each look-up walks over all of them: names and numbers that a client chooses, many at a
//! time, belong in a `BTreeMap`.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A hash map with the fixed hasher.
pub type Map<K, V> = HashMap<K, V, BuildHasherDefault<FixedHasher>>;
/// A hash set with the fixed hasher.
pub type Set<K> = HashSet<K, BuildHasherDefault<FixedHasher>>;

/// FxHash, as in rustc: rotate, xor, multiply by a constant, a word at a time.
#[derive(Clone, Copy, Debug, Default)]
pub struct FixedHasher(u64);

const SEED: u64 = 0x51_7c_c1_b7_27_22_0a_95;

impl FixedHasher {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(SEED);
    }
}

impl Hasher for FixedHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, n: u8) {
        self.add(u64::from(n));
    }

    fn write_u32(&mut self, n: u32) {
        self.add(u64::from(n));
    }

    fn write_u64(&mut self, n: u64) {
        self.add(n);
    }

    fn write_usize(&mut self, n: usize) {
        self.add(n as u64);
    }

    // The multiplication leaves the low bits weak, and the map takes its bucket from them.
    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }
}
