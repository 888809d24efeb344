//! What happened, as one number: two runs of one seed must come to the same.

use std::hash::Hasher;
use std::sync::{Arc, Mutex, PoisonError};

use model::FixedHasher;

/// The hash of all events so far, and their count. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct History(Arc<Mutex<(FixedHasher, u64)>>);

impl History {
    /// Takes an event in: what it is, its numbers and its bytes.
    pub fn add(&self, what: &str, numbers: &[u64], bytes: &[u8]) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.0.write(what.as_bytes());
        for number in numbers {
            state.0.write_u64(*number);
        }
        state.0.write(bytes);
        state.0.write_usize(bytes.len());
        state.1 += 1;
    }

    /// The hash of all events.
    pub fn hash(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0.finish()
    }

    /// How many events there were.
    pub fn events(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1
    }
}
