//! The simulator of a partition, as `replica`'s own tests have it, without its known faults.

#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "the files belong to the tests of `replica`; a cluster uses a part"
)]

#[path = "../../replica/tests/simulation/controller.rs"]
pub mod controller;
#[path = "../../replica/tests/simulation/disk.rs"]
pub mod disk;
#[path = "../../replica/tests/simulation/driver.rs"]
pub mod driver;
#[path = "../../replica/tests/simulation/network.rs"]
pub mod network;
#[path = "../../replica/tests/simulation/node.rs"]
pub mod node;
#[path = "../../replica/tests/simulation/oracle.rs"]
pub mod oracle;
#[path = "../../replica/tests/simulation/steps.rs"]
pub mod steps;
#[path = "../../replica/tests/simulation/world.rs"]
pub mod world;

use replica::Replica;

/// No fault is put back here.
#[derive(Clone, Copy, Debug)]
pub enum Mutant {}

fn with_mutant(_replica: Replica, mutant: Mutant) -> Replica {
    match mutant {}
}
