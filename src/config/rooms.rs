//! What each room is given of a configuration: the room says what it needs, here it is put together.

use std::net::IpAddr;
use std::time::Duration;

use std::net::SocketAddr;
use std::sync::Arc;

use api::Side;
use cluster::Config as ClusterConfig;
use controller::{ConnectionId, Registration, SUPPORTED_FEATURES};
use env::Env;
use metadata::{FeatureRange, SecurityProtocol};
use model::{ClusterId, Map};
use replication::{Config as ReplicationConfig, FetchConfig, MachineConfig, ReplicasConfig, UpkeepConfig};
use server::Endpoint;
use storage::LogFolder;

use super::{Config, ConfigError};

/// The longest wait before a look at what is not flushed.
const FLUSH_CHECK_MAX: Duration = Duration::from_secs(1);

/// How long requests that have started may take after a stop: Docker kills after ten seconds.
const STOP_WAIT: Duration = Duration::from_secs(5);

impl Config {
    /// The server's on one side: listeners and their limits.
    pub(crate) fn server(&self, side: Side) -> server::Config {
        let layers = self.broker.layers();
        let count = |name| usize::try_from(layers.integer(name)).unwrap_or_default();
        let endpoint = |listener: &super::Listener| Endpoint {
            name: listener.name.clone(),
            address: listener.bind.to_string(),
        };
        let is_meant =
            |listener: &&super::Listener| listener.for_controllers.is_some() == (side == Side::Controller);
        let listeners = self.listeners.iter().filter(is_meant);
        server::Config {
            listeners: listeners.map(endpoint).collect(),
            connections_max: count("max.connections"),
            connections_per_ip_max: count("max.connections.per.ip"),
            connections_per_ip_overrides: self.connections_per_ip.clone(),
            idle_max: idle(layers.integer("connections.max.idle.ms")),
            request_bytes_max: count("socket.request.max.bytes"),
            stop_wait: STOP_WAIT,
        }
    }
}

impl Config {
    /// The partitions'.
    pub(crate) fn replication(&self) -> ReplicationConfig {
        let layers = self.broker.layers();
        let millis = |name| Duration::from_millis(layers.integer(name).max(1) as u64);
        ReplicationConfig {
            node_id: self.node_id(),
            fixed: self.broker.values().clone(),
            recovery_threads: layers.integer("num.recovery.threads.per.data.dir").max(1) as usize,
            upkeep: UpkeepConfig {
                retention_check: millis("log.retention.check.interval.ms"),
                flush_check: millis("log.flush.scheduler.interval.ms").min(FLUSH_CHECK_MAX),
                checkpoint: millis("replica.high.watermark.checkpoint.interval.ms"),
            },
            replicas: self.replicas(),
        }
    }

    fn replicas(&self) -> ReplicasConfig {
        let layers = self.broker.layers();
        let millis = |name| Duration::from_millis(layers.integer(name).max(0) as u64);
        let number = |name| i32::try_from(layers.integer(name)).unwrap_or(i32::MAX);
        ReplicasConfig {
            machine: MachineConfig {
                replica_lag_time_max: millis("replica.lag.time.max.ms"),
                fetch_backoff: millis("replica.fetch.backoff.ms"),
                ..MachineConfig::default()
            },
            listener: self.inter_broker_listener(),
            fetch: FetchConfig {
                partition_bytes_max: number("replica.fetch.max.bytes"),
                bytes_max: number("replica.fetch.response.max.bytes"),
                bytes_min: number("replica.fetch.min.bytes"),
                wait_max: millis("replica.fetch.wait.max.ms"),
                patience: millis("replica.socket.timeout.ms"),
            },
        }
    }

    /// Brokers reach each other by the listener of that name; else by the one of the security protocol, or the first.
    fn inter_broker_listener(&self) -> String {
        let layers = self.broker.layers();
        let text = |name| layers.text(name).map(|text| text.to_uppercase());
        let told = || self.listeners.iter().filter(|listener| listener.advertised.is_some());
        let of_protocol = || {
            let protocol = text("security.inter.broker.protocol")?;
            told().any(|listener| listener.name == protocol).then_some(protocol)
        };
        let first = || told().next().map(|listener| listener.name.clone());
        text("inter.broker.listener.name").or_else(of_protocol).or_else(first).unwrap_or_default()
    }

    /// The group coordinators'.
    pub(crate) fn shards(&self) -> shards::Config {
        let layers = self.broker.layers();
        let count = |name| usize::try_from(layers.integer(name)).unwrap_or_default();
        let millis = |name| Duration::from_millis(layers.integer(name).max(0) as u64);
        shards::Config {
            node_id: self.node_id(),
            groups: coordinator::Config {
                session_timeout_min: millis("group.min.session.timeout.ms"),
                session_timeout_max: millis("group.max.session.timeout.ms"),
                initial_rebalance_delay: millis("group.initial.rebalance.delay.ms"),
                group_size_max: count("group.max.size"),
                offset_metadata_bytes_max: count("offset.metadata.max.bytes"),
                offsets_retention: Duration::from_mins(layers.integer("offsets.retention.minutes") as u64),
                ..coordinator::Config::default()
            },
            commit_timeout: millis("offsets.commit.timeout.ms"),
            expiry_interval: millis("offsets.retention.check.interval.ms"),
        }
    }

    /// The metadata's.
    pub(crate) fn cluster(&self, cluster_id: ClusterId) -> ClusterConfig {
        ClusterConfig {
            node_id: self.node_id(),
            cluster_id,
            broker: self.broker.clone(),
            snapshot_bytes: self
                .broker
                .layers()
                .integer("metadata.log.max.record.bytes.between.snapshots")
                .max(1) as u64,
            quorum: self.quorum_place(),
        }
    }

    /// The handlers'.
    pub(crate) fn api(&self) -> api::Config {
        let layers = self.broker.layers();
        let count = |name| usize::try_from(layers.integer(name)).unwrap_or_default();
        api::Config {
            fetch_bytes_max: count("fetch.max.bytes"),
            fetch_session_slots: count("max.incremental.fetch.session.cache.slots"),
            controller_listeners: self.controller_listeners(),
        }
    }

    /// How this broker registers. `bound` tells where a listener listens: port 0 was any.
    pub(crate) fn registration(
        &self,
        env: &Env,
        cluster_id: &ClusterId,
        folders: &[Arc<LogFolder>],
        bound: impl Fn(&str) -> Option<SocketAddr>,
    ) -> Registration {
        let endpoints = self.listeners.iter().filter_map(|listener| {
            let told = listener.advertised.as_ref()?;
            let port = if told.port == 0 { bound(&listener.name)?.port() } else { told.port };
            Some(metadata::Endpoint {
                listener: listener.name.clone(),
                host: told.host.clone(),
                port,
                protocol: SecurityProtocol::Plaintext,
            })
        });
        let features = SUPPORTED_FEATURES.iter().map(|feature| FeatureRange {
            name: feature.name.to_owned(),
            min: feature.min,
            max: feature.max,
        });
        Registration {
            cluster_id: cluster_id.clone(),
            id: self.node_id(),
            incarnation: env.rng.uuid(),
            endpoints: endpoints.collect(),
            features: features.collect(),
            rack: self.broker.layers().text("broker.rack"),
            directories: folders
                .iter()
                .filter(|folder| folder.offline().is_none())
                .map(|folder| folder.directory_id())
                .collect(),
            previous_epoch: folders
                .iter()
                .all(|folder| folder.was_clean())
                .then(|| folders.first().and_then(|folder| folder.last_broker_epoch()))
                .flatten(),
            durable: true,
            connection: ConnectionId::LOCAL,
        }
    }
}

/// A century.
const NEVER: Duration = Duration::from_hours(24 * 365 * 100);

/// Negative is never, as in Kafka.
fn idle(millis: i64) -> Duration {
    u64::try_from(millis).map_or(NEVER, Duration::from_millis)
}

/// `max.connections.per.ip.overrides`: `address:count` pairs. Names are not looked up.
pub(super) fn connections_per_ip(text: &str) -> Result<Map<IpAddr, usize>, ConfigError> {
    let pair = |entry: &str| {
        let (address, count) = entry.rsplit_once(':')?;
        let address = address.trim().trim_start_matches('[').trim_end_matches(']');
        Some((address.parse().ok()?, count.trim().parse().ok()?))
    };
    let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    entries.map(|entry| pair(entry).ok_or_else(|| ConfigError::NotAnOverride(entry.to_owned()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overrides_are_pairs_of_address_and_count() {
        let overrides = connections_per_ip("127.0.0.1:5, [::1]:7,").expect("valid");
        let of = |text: &str| overrides.get(&text.parse::<IpAddr>().expect("an address")).copied();
        assert_eq!((of("127.0.0.1"), of("::1"), of("10.0.0.1")), (Some(5), Some(7), None));
        assert!(connections_per_ip("localhost:5").is_err());
    }

    #[test]
    fn a_negative_idle_time_is_never() {
        assert_eq!((idle(-1), idle(10)), (NEVER, Duration::from_millis(10)));
    }
}
