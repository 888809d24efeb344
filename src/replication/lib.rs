//! Room `replication`.
