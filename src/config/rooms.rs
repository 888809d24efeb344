//! What each room is given of a configuration: the room says what it needs, here it is put together.

use std::net::IpAddr;
use std::time::Duration;

use model::Map;
use server::Endpoint;

use super::{Config, ConfigError};

/// How long requests that have started may take after a stop: Docker kills after ten seconds.
const STOP_WAIT: Duration = Duration::from_secs(5);

impl Config {
    /// The server's: listeners and their limits.
    pub(crate) fn server(&self) -> server::Config {
        let layers = self.broker.layers();
        let count = |name| usize::try_from(layers.integer(name)).unwrap_or_default();
        let endpoint = |listener: &super::Listener| Endpoint {
            name: listener.name.clone(),
            address: listener.bind.to_string(),
        };
        server::Config {
            listeners: self.listeners.iter().map(endpoint).collect(),
            connections_max: count("max.connections"),
            connections_per_ip_max: count("max.connections.per.ip"),
            connections_per_ip_overrides: self.connections_per_ip.clone(),
            idle_max: idle(layers.integer("connections.max.idle.ms")),
            request_bytes_max: count("socket.request.max.bytes"),
            stop_wait: STOP_WAIT,
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
