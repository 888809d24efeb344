//! Room `shards`.
