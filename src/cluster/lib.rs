//! Metadata as a running thing: the quorum's driver, the controller on top of it, the image below it, this broker's
//! registration.
//!
//! One task, the driver, owns the quorum, the metadata log and the controller's image. A decision is made on the image of
//! all that was *appended*, and appended itself. When it is committed the driver hands it to a second task, the publisher,
//! which makes it true on this node's partitions and shards, shows it to readers, and answers. Where another node's
//! controller is the active one, requests for it are passed on ([`Forwarding`]).
//!
//! Invariants: the published image holds committed records only; a disk that fails below the metadata log ends the
//! process; nothing is decided before the leader's first record is committed.
//!
//! Kafka: `KafkaRaftClient`, `QuorumController`, `MetadataLoader`, `BrokerLifecycleManager`.

mod alterations;
mod answering;
mod assignments;
mod boot;
mod cluster;
mod controller_peer;
mod controller_registration;
mod convert;
mod description;
mod driver;
mod error;
mod flusher;
mod forwarding;
#[cfg(test)]
mod forwarding_tests;
mod lifecycle;
mod metadata_log;
mod newcomer;
mod peers;
mod publisher;
mod questions;
mod quorum_state;
#[cfg(test)]
mod quorum_tests;
mod snapshot;
#[cfg(test)]
mod tests;
mod wire;

pub use boot::{Boot, boot};
pub use cluster::{Cluster, Config, QuorumConfig};
pub use description::{QuorumDescription, QuorumReplica};
pub use error::{BootError, ClusterError, FatalError};
pub use forwarding::Forwarding;
pub use lifecycle::{Lifecycle, RegistrationError};
pub use metadata_log::topic_partition as metadata_partition;
pub use newcomer::{Beginning, Newcomer, directory_id, has_log, is_empty};
pub use quorum::{Config as Timing, Endpoint, FormationError};
pub use transport::{RelayedAnswer, RelayedRequest};
