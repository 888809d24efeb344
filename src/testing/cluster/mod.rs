//! Clusters of machines: the real quorum, the real controller on whoever leads it, and the real replicas of some
//! partitions, in one loop of virtual time; no task, no clock, no file.
//!
//! The quorum and each partition run in their own simulators, which go on a millisecond at a time, in turns; between them
//! a [`Cluster`](cluster::Cluster) does what the rooms above the machines do: applies what is committed, runs the
//! controller, registers brokers, carries their requests. Every rule of both simulators is checked after every event, and
//! that of [`random`]: a healed cluster becomes whole.

mod active;
#[expect(clippy::module_inception, reason = "the noun of this folder")]
mod cluster;
mod mail;
mod quorum_world;
mod random;
mod replica_world;
mod view;

pub use random::{Summary, simulate_cluster};
