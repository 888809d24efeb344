//! Whole nodes in a simulated world: what clients do to them, what happens to them, and what must hold.
//!
//! [`simulate`] is one seed: a broker, the same that runs in production, whose machine is killed, loses power and has a
//! disk that fails, fills up, slows down and hangs; clients that speak frames to it all the time (`client`, `producer`,
//! `consumer`, `committer`); and a `Ledger` of what they were told, which knows what may never be. `cargo run -p testing -- node` runs
//! many seeds. [`simulate_cluster`] is one seed of a cluster of pure machines (`cluster`): faster, and it sees more.
//!
//! Invariants: nothing here reads the real clock, disk, network or chance, so that a seed that failed fails again.

mod broker;
mod client;
mod cluster;
mod committer;
mod consumer;
mod ledger;
mod nemesis;
mod producer;
mod simulation;
#[cfg(test)]
mod trio;

pub use cluster::{Summary, simulate_cluster};
pub use nemesis::Fault;
pub use simulation::{Outcome, simulate};
