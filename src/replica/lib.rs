//! The partition machine: one replica of a partition, leader or follower, as a pure machine.
//!
//! No task, no clock, no file, no socket: events go in, [`Action`]s come out, and `now` and the log's shape
//! ([`LogView`]) are arguments. It keeps Kafka's ISR protocol at the level of KIP-966: records are committed when all
//! in-sync replicas hold them safely, the controller decides who is in sync and who leads, and whoever follows cuts its
//! log to a prefix of its leader's by leader epochs.
//!
//! How a driver uses it, all under one lock:
//!
//! 1. Open the log, then [`Replica::new`] and, as soon as the process is registered as a broker,
//!    [`Replica::handle_registered`]; hand in each image of the metadata that changes the partition, its topic's
//!    `min.insync.replicas`, or a broker that has a replica: [`Replica::apply_metadata`].
//! 2. After each call do what [`Replica::poll_action`] gives, in order, until it gives nothing.
//! 3. Call [`Replica::handle_tick`] at [`Replica::deadline`]; ask again for it after each call.
//! 4. A leader's appends: [`Replica::check_append`], append in the epoch that it gives, ask for a flush, call
//!    [`Replica::handle_log_changed`], and wait for [`Replica::verdict`].
//! 5. A leader's reads: [`Replica::check_fetch`] or [`Replica::check_follower_fetch`], read, and for a follower
//!    [`Replica::handle_follower_fetch`]. A Fetch that waited is checked again before it is answered.
//!
//! Invariants, checked by the simulator (`tests/simulation`) after every event: the high watermark never goes back on a
//! leader; nothing counts that a power cut could take back; everything that is committed is in the log of every replica
//! that may be elected.
//!
//! What is absent: bytes of records, transactions, who a broker is. Those are the driver's.
//!
//! Kafka: `kafka.cluster.Partition`, `AbstractFetcherThread`; KIP-101, KIP-207, KIP-279, KIP-320, KIP-497, KIP-595,
//! KIP-841, KIP-903, KIP-966.

mod action;
mod alter;
mod config;
mod error;
mod fetch;
mod fetched;
mod follow;
mod isr;
mod lead;
mod log_view;
mod mutant;
mod partition_state;
mod produce;
mod progress;
mod replica;
mod serve;

pub use action::{Action, AlterPartition, FetchState, IsrMember, QuestionId};
pub use config::Config;
pub use error::{FetchError, ProduceError};
pub use fetch::{FetchRequest, FollowerFetch, Position};
pub use fetched::LeaderOffsets;
pub use follow::{BatchRange, FetchAnswer};
pub use isr::AlteredPartition;
pub use log_view::{EpochEnd, LogView};
#[cfg(feature = "mutants")]
pub use mutant::Mutant;
pub use partition_state::{PartitionState, ReplicaBroker};
pub use replica::Replica;
