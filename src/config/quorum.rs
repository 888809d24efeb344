//! Who is in the quorum of controllers, and whether this version can be what `process.roles` says.
//!
//! Kafka: `KafkaConfig.validateValues`, `QuorumConfig.parseVoterConnections`.

use std::collections::BTreeMap;
use std::time::Duration;

use metadata::config::Layers;
use model::NodeId;

use super::{Address, Config, ConfigError, listeners};

/// Which parts of a node run in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Roles {
    /// Broker and controller.
    Combined,
    /// A broker alone: it follows the metadata and does not vote.
    Broker,
    /// A controller alone: no partitions, no clients.
    Controller,
}

/// What `process.roles` and the voters say.
#[derive(Clone, Debug)]
pub(crate) struct Quorum {
    pub(crate) roles: Roles,
    /// `controller.quorum.voters`; empty where a node is alone.
    pub(crate) voters: BTreeMap<NodeId, Address>,
    /// `controller.quorum.bootstrap.servers`.
    pub(crate) bootstrap_servers: Vec<String>,
}

impl Quorum {
    /// Reads and checks the keys.
    ///
    /// # Errors
    /// What this version is not, or what contradicts itself.
    pub(crate) fn of(layers: &Layers<'_>) -> Result<Self, ConfigError> {
        let roles = roles(&layers.list("process.roles"));
        let (list, node_id) = (layers.list("controller.quorum.voters"), layers.integer("node.id"));
        // The registry has checked their form.
        let voters: BTreeMap<_, _> = list.iter().filter_map(|text| voter(text)).collect();
        let bootstrap_servers = match roles {
            Roles::Controller | Roles::Broker => layers.list("controller.quorum.bootstrap.servers"),
            Roles::Combined => Vec::new(),
        };
        let is_named = voters.keys().any(|id| i64::from(id.0) == node_id);
        let named = list.join(",");
        match roles {
            Roles::Broker if is_named => return Err(ConfigError::VotingBroker { node_id, voters: named }),
            Roles::Broker if voters.is_empty() && bootstrap_servers.is_empty() => {
                return Err(ConfigError::NoControllers);
            }
            Roles::Combined | Roles::Controller if !is_named && !voters.is_empty() => {
                return Err(ConfigError::NotAVoter { node_id, voters: named });
            }
            Roles::Broker | Roles::Combined | Roles::Controller => {}
        }
        Ok(Self { roles, voters, bootstrap_servers })
    }
}

/// The registry has checked that there are no others.
fn roles(list: &[String]) -> Roles {
    match list {
        [role] if role == "controller" => Roles::Controller,
        [role] if role == "broker" => Roles::Broker,
        _ => Roles::Combined,
    }
}

/// `ID@HOST:PORT`.
fn voter(text: &str) -> Option<(NodeId, Address)> {
    let (id, address) = text.trim().split_once('@')?;
    let (host, port) = address.rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    Some((NodeId(id.parse().ok()?), Address { host, port: port.parse().ok()? }))
}

impl Config {
    /// The names of this node's controller listeners, in capitals.
    pub(crate) fn controller_listeners(&self) -> Vec<String> {
        listeners::controller_names(&self.broker.layers())
    }

    /// Whether this node is one of several voters.
    pub(crate) fn is_one_of_several(&self) -> bool {
        self.quorum.voters.len() > 1
    }

    /// Whether an empty folder has to ask others what it is a part of.
    pub(crate) fn begins_with_others(&self) -> bool {
        self.is_one_of_several() || self.quorum.roles == Roles::Broker && !self.quorum.voters.is_empty()
    }

    /// This node's place in the quorum, for the metadata.
    pub(crate) fn quorum_place(&self) -> cluster::QuorumConfig {
        let listeners = self.listeners.iter().filter_map(|listener| {
            // The others are told where this node is by the same key.
            let advertised = listener.for_controllers.as_ref()?;
            let known = self.quorum.voters.get(&self.node_id());
            let Address { host, port } = known.unwrap_or(advertised).clone();
            Some(cluster::Endpoint { name: listener.name.clone(), host, port })
        });
        let voters = self.quorum.voters.iter();
        cluster::QuorumConfig {
            listeners: listeners.collect(),
            voters: voters.map(|(id, address)| (*id, (address.host.clone(), address.port))).collect(),
            bootstrap_servers: self.quorum.bootstrap_servers.clone(),
            timing: self.quorum_timing(),
        }
    }

    fn quorum_timing(&self) -> cluster::Timing {
        let layers = self.broker.layers();
        let millis = |name| Duration::from_millis(layers.integer(name).max(1) as u64);
        let request_timeout = millis("controller.quorum.request.timeout.ms");
        let fetch_timeout = millis("controller.quorum.fetch.timeout.ms");
        let default = cluster::Timing::default();
        cluster::Timing {
            election_timeout: millis("controller.quorum.election.timeout.ms"),
            election_backoff_max: millis("controller.quorum.election.backoff.max.ms"),
            fetch_timeout,
            request_timeout,
            retry_backoff: millis("controller.quorum.retry.backoff.ms"),
            // Neither the answer nor the leader may be given up while the leader may still hold the answer back.
            fetch_wait: default.fetch_wait.min(request_timeout / 2).min(fetch_timeout / 2),
            ..default
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quorums_timing_is_what_its_keys_say_and_a_fetch_is_answered_before_it_is_given_up() {
        let timing = |set: &[&str]| {
            let set = set.iter().map(|pair| (*pair).to_owned()).collect();
            let sources = crate::config::Sources { set, ..crate::config::Sources::default() };
            Config::load(&sources).expect("valid").quorum_timing()
        };
        assert_eq!(format!("{:?}", timing(&[])), format!("{:?}", cluster::Timing::default()));
        let short = timing(&["controller.quorum.request.timeout.ms=200"]);
        assert_eq!(short.fetch_wait, Duration::from_millis(100));
    }

    #[test]
    fn a_voter_is_an_id_and_an_address() {
        let address = |host: &str, port| Address { host: host.to_owned(), port };
        assert_eq!(voter("1@a:9093"), Some((NodeId(1), address("a", 9093))));
        assert_eq!(voter(" 2@[::1]:9093"), Some((NodeId(2), address("::1", 9093))));
        assert_eq!(voter("a:9093"), None);
    }
}
