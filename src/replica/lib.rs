//! The partition machine: what a replica may count as committed.
//!
//! A leader counts, for each member of the ISR, the end up to which that member holds the log safely: its own *flushed*
//! end (or the written end where the topic caches writes), and a follower's fetch offset. The high watermark is the
//! lowest of them. Pure: no clock, no file, no task.
//!
//! Invariants: the high watermark never goes back while the machine lives, and never passes the leader's counted end.
//!
//! Kafka: `kafka.cluster.Partition`; KIP-101, KIP-279, KIP-966.

mod leader;

pub use leader::Leader;
