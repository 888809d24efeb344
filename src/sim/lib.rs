//! The world in memory, where a seed decides everything: for tests.
//!
//! [`SimDisk`] can be used alone and without async code.
//!
//! Invariants: one seed, one history ([`History`] is its hash); nothing here reads a clock, a file, a thread or the
//! system's randomness; a dead node changes nothing any more.

mod disk;
mod history;
mod inode;

pub use disk::{Kind, SimDisk};
pub use history::History;
