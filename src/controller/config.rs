//! What the controller goes by.

use std::time::Duration;

use metadata::config::BrokerConfig;
use model::{ClusterId, NodeId};

/// The controller's configuration: that of the node it runs on.
#[derive(Clone, Debug)]
pub struct Config {
    /// The node.
    pub node: NodeId,
    /// The cluster.
    pub cluster_id: ClusterId,
    /// What the node was started with.
    pub broker: BrokerConfig,
}

impl Config {
    pub(crate) fn session_timeout(&self) -> Duration {
        self.duration("broker.session.timeout.ms", Duration::from_millis)
    }

    /// How often leaders that are not the preferred ones are looked for; `None` is never.
    pub(crate) fn balance_interval(&self) -> Option<Duration> {
        let is_on = self.broker.layers().boolean("auto.leader.rebalance.enable");
        is_on.then(|| self.duration("leader.imbalance.check.interval.seconds", Duration::from_secs))
    }

    fn duration(&self, key: &str, unit: impl Fn(u64) -> Duration) -> Duration {
        unit(u64::try_from(self.broker.layers().integer(key)).unwrap_or_default().max(1))
    }
}
