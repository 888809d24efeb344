//! What an operator may set.

use std::time::Duration;

use model::NodeId;

/// Settings of all shards.
#[derive(Clone, Debug)]
pub struct Config {
    /// This node.
    pub node_id: NodeId,
    /// Settings of the machines.
    pub groups: coordinator::Config,
    /// `offsets.commit.timeout.ms`: how long an answer waits for what was appended to be committed.
    pub commit_timeout: Duration,
    /// `offsets.retention.check.interval.ms`.
    pub expiry_interval: Duration,
}

impl Config {
    /// Kafka's defaults.
    pub fn new(node_id: NodeId) -> Self {
        Self {
            node_id,
            groups: coordinator::Config::default(),
            commit_timeout: Duration::from_secs(5),
            expiry_interval: Duration::from_mins(10),
        }
    }
}
