//! The simulator of metadata quorums, as `quorum`'s own tests have it, without its known faults.

#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "the files belong to the tests of `quorum`; a cluster uses a part"
)]

#[path = "../../quorum/tests/simulation/chance.rs"]
pub mod chance;
#[path = "../../quorum/tests/simulation/disk.rs"]
pub mod disk;
#[path = "../../quorum/tests/simulation/driver.rs"]
pub mod driver;
#[path = "../../quorum/tests/simulation/network.rs"]
pub mod network;
#[path = "../../quorum/tests/simulation/node.rs"]
pub mod node;
#[path = "../../quorum/tests/simulation/oracle.rs"]
pub mod oracle;
#[path = "../../quorum/tests/simulation/world.rs"]
pub mod world;

use quorum::Quorum;

/// No fault is put back here.
#[derive(Clone, Copy, Debug)]
pub enum Mutant {}

fn with_mutant(_quorum: Quorum, mutant: Mutant) -> Quorum {
    match mutant {}
}
