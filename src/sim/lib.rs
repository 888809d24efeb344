//! The world in memory, where a seed decides everything: for tests.
//!
//! A [`World`] has [`Node`]s; `Node::boot` gives the `Env` that the node is started with, as the real one would be. A
//! scenario runs in `World::run`, on one thread and on virtual time, and does to the nodes what happens to real ones.
//! [`SimDisk`] can also be used alone and without async code.
//!
//! Invariants: one seed, one history ([`History`] is its hash); nothing here reads a clock, a file, a thread or the
//! system's randomness; a dead node changes nothing any more.

mod clock;
mod disk;
mod exec;
mod executor;
mod history;
mod inode;
mod net;
mod pipe;
mod rng;
#[cfg(test)]
mod tests;
mod world;

pub use disk::{Kind, SimDisk};
pub use history::History;
pub use net::LinkSpeed;
pub use world::{Node, World};
