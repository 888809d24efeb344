//! A simulator of a partition's replicas: one loop of events, one seed, one history; no task, no clock, no file.
//!
//! The replicas run the real machine. The network loses, doubles, delays, reorders and is cut in one direction; power
//! cuts take what was not flushed; flushes are slow; disks are replaced; replicas are reassigned. `oracle` checks after
//! every event, and a healed partition must come to rest.

#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "shared by several test programs, each of which uses a part"
)]

pub mod controller;
pub mod disk;
pub mod driver;
pub mod network;
pub mod node;
pub mod oracle;
pub mod random;
pub mod steps;
pub mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

pub use replica::Mutant;
use replica::Replica;

fn with_mutant(replica: Replica, mutant: Mutant) -> Replica {
    replica.with_mutant(mutant)
}

/// What a run came to: its value, or the violation that ended it.
pub fn outcome<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => {
            panic.downcast::<&str>().map_or_else(|_| "a panic".to_owned(), |text| (*text).to_owned())
        }
    })
}
