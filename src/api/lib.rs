//! One file per Kafka API, and one table for all of them.
//!
//! A handler is `async fn handle(&Node, &mut Session, Request, version) -> Reply<Response>`. It is awaited up to its
//! *ordered point*: what it did by then happened before the connection's next request. Only an append may be overtaken,
//! so only Produce and the offset commits answer with [`Reply::Later`].
//!
//! Invariants: no spawn, no clock of its own, no file; kafka-protocol types come in and go out here and nowhere below.
//! `version` is compared only where an old request is lifted to today's meaning or an answer lowered to an old version.
//!
//! Kafka: `KafkaApis`, `ApiVersionManager`.

#![expect(clippy::unused_async, reason = "one signature for all handlers; some need no await")]

mod adapter;
mod allocate_producer_ids;
mod alter_configs;
mod alter_partition;
mod alter_partition_reassignments;
mod altered;
mod api_versions;
mod assign_replicas_to_dirs;
mod authorized;
mod auto_creation;
mod begin_quorum_epoch;
mod broker_heartbeat;
mod broker_registration;
mod controller_registration;
mod create_partitions;
mod create_topics;
mod delete_groups;
mod delete_topics;
mod describe_cluster;
mod describe_configs;
mod describe_groups;
mod describe_log_dirs;
mod describe_quorum;
mod describe_topic_partitions;
mod elect_leaders;
mod end_quorum_epoch;
mod fetch;
mod fetch_answer;
mod fetch_metadata;
mod fetch_session;
mod fetch_snapshot;
mod find_coordinator;
mod forming;
mod forwarding;
mod group_wire;
mod heartbeat;
mod incremental_alter_configs;
mod init_producer_id;
mod join_group;
mod leave_group;
mod list_config_resources;
mod list_groups;
mod list_offsets;
mod list_partition_reassignments;
mod metadata;
mod node;
mod offset_commit;
mod offset_delete;
mod offset_fetch;
mod offset_for_leader_epoch;
mod partition_view;
mod produce;
mod producer_ids;
mod rejection;
mod reply;
mod session;
mod sync_group;
mod table;
#[cfg(test)]
mod testing;
mod text;
mod unregister_broker;
mod vote;

pub use adapter::{CloseReason, Outcome, handle};
pub use forming::Forming;
pub use node::{Config, Node};
pub use reply::{Answer, Reply};
pub use session::{Session, Side};
pub use table::{Row, Runs, TABLE, Throttle};
