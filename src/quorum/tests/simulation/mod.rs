//! A simulator of metadata quorums: one loop of events, one seed, one history; no task, no clock, no file.
//!
//! The nodes run the real core. The network loses, doubles, delays, reorders and is cut in one direction;
//! power cuts take what was not flushed; flushes are slow; disks are replaced; snapshots are made, fetched in
//! pieces and deleted under; voters come and go. `oracle` checks after every event, and a healed quorum must
//! come to rest.

#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "shared by several test programs, each of which uses a part"
)]

pub mod chance;
pub mod disk;
pub mod driver;
pub mod network;
pub mod node;
pub mod oracle;
pub mod random;
pub mod steps;
pub mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

pub use quorum::Mutant;
use quorum::Quorum;

fn with_mutant(quorum: Quorum, mutant: Mutant) -> Quorum {
    quorum.with_mutant(mutant)
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
