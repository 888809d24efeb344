//! Where a node listens and what it tells its clients, checked by Kafka's rules and said in Kafka's words.
//!
//! `listeners` binds, `advertised.listeners` is what Metadata answers: a client only needs a listener to find the node,
//! and then goes where the advertised address sends it. Most trouble of newcomers is a wrong address there, so a mistake
//! is refused at start, with what to do about it.
//!
//! Kafka: `KafkaConfig.validateValues`, `SocketServerConfigs.listenerListToEndPoints`.

use std::collections::BTreeSet;
use std::fmt;

use metadata::config::Layers;

use super::Roles;

/// A host and a port. An empty host is every address, where it is about listening.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// A name or an IP address, IPv6 without brackets.
    pub host: String,
    /// The port; 0 takes any, where it is about listening.
    pub port: u16,
}

/// One listener of this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listener {
    /// Its name, in capitals.
    pub(crate) name: String,
    /// Where it listens.
    pub(crate) bind: Address,
    /// What clients are told; `None` for listeners that are not for clients.
    pub(crate) advertised: Option<Address>,
    /// What other nodes are told; `None` for listeners that are not a controller's.
    pub(crate) for_controllers: Option<Address>,
}

/// Why a node cannot listen as it was told to.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the message says what each field is")]
pub enum ListenerError {
    /// Not `NAME://HOST:PORT`.
    #[error(
        "Unable to parse {text} to a broker endpoint: {key} is a list of NAME://HOST:PORT, like PLAINTEXT://127.0.0.1:9092"
    )]
    Unparsable { key: &'static str, text: String },
    /// More than 16 bits.
    #[error("Unable to parse {text} to a broker endpoint: the port in {key} must be between 0 and 65535")]
    BadPort { key: &'static str, text: String },
    /// Two listeners of one name.
    #[error("Each listener must have a different name, {key}: {list}")]
    SameName { key: &'static str, list: String },
    /// Two listeners of one port.
    #[error(
        "Each listener must have a different port unless exactly one listener has an IPv4 address and the other an IPv6 address, listeners: {list}"
    )]
    SamePort { list: String },
    /// A name without a protocol.
    #[error(
        "No security protocol defined for listener {name}. Listeners are NAME://HOST:PORT, like PLAINTEXT://127.0.0.1:9092; \
         for a name of your own add {name}:PLAINTEXT to listener.security.protocol.map"
    )]
    NoProtocol { name: String },
    /// The map is not one.
    #[error("listener.security.protocol.map has the entry {entry}, which is not of the form NAME:PROTOCOL")]
    BadMap { entry: String },
    /// A protocol that is not there yet.
    #[error(
        "listener {name} has the security protocol {protocol}; this version of Ottla speaks PLAINTEXT only"
    )]
    NotPlaintext { name: String, protocol: String },
    /// Told, but not listened at.
    #[error(
        "advertised.listeners listener names must be equal to or a subset of the ones defined in listeners. \
         Found {found}. The valid options based on the current configuration are {valid}"
    )]
    NotListening { found: String, valid: String },
    /// 0.0.0.0 is not an address to connect to.
    #[error(
        "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP address. \
         Clients connect to what stands there: a name or an address of this machine, or localhost if they run on it"
    )]
    MetaAddress,
    /// No listener for clients.
    #[error(
        "There must be at least one broker advertised listener. Perhaps all listeners appear in controller.listener.names?"
    )]
    NoneForClients,
    /// The listener between brokers is unknown.
    #[error(
        "inter.broker.listener.name must be a listener name defined in advertised.listeners. \
         The valid options based on currently configured listeners are {valid}"
    )]
    InterBroker { valid: String },
    /// No controller listener is listened at.
    #[error(
        "controller.listener.names must contain at least one value appearing in the 'listeners' configuration \
         when running the KRaft controller role"
    )]
    NoController,
    /// A listener for controllers of a node that is none.
    #[error(
        "controller.listener.names must not contain a value appearing in the 'listeners' configuration when running \
         KRaft with just the broker role. Remove {name} from listeners"
    )]
    NotForControllers { name: String },
    /// A listener for clients, of whom a controller has none.
    #[error(
        "The listeners config must only contain KRaft controller listeners from controller.listener.names when \
         process.roles=controller. Remove {name}"
    )]
    NotForClients { name: String },
}

/// The listeners of a node that was started with this configuration.
///
/// # Errors
/// The first rule that is broken.
pub(crate) fn listeners(layers: &Layers<'_>, roles: Roles) -> Result<Vec<Listener>, ListenerError> {
    let bound = endpoints("listeners", &layers.list("listeners"))?;
    let controllers = controller_names(layers);
    let is_controller = |name: &str| controllers.iter().any(|each| each.eq_ignore_ascii_case(name));
    different_ports(&bound)?;
    plaintext(&bound, &layers.text("listener.security.protocol.map").unwrap_or_default(), is_controller)?;

    // A controller alone may be told what its brokers advertise: it has no use for it.
    let must_listen = |name: &str| roles != Roles::Controller && !is_controller(name);
    let told = advertised(layers, &bound, must_listen)?;
    let listeners: Vec<Listener> =
        bound.into_iter().map(|endpoint| listener(endpoint, told.as_deref(), is_controller)).collect();
    let votes_with_others = layers.list("controller.quorum.voters").len() > 1;
    let needs_controller = votes_with_others || !controllers.is_empty() || roles == Roles::Controller;
    if roles != Roles::Broker && needs_controller && !listeners.iter().any(|each| is_controller(&each.name)) {
        return Err(ListenerError::NoController);
    }
    match roles {
        Roles::Combined => for_clients_and_brokers(layers, &listeners)?,
        Roles::Broker => {
            if let Some(other) = listeners.iter().find(|each| is_controller(&each.name)) {
                return Err(ListenerError::NotForControllers { name: other.name.clone() });
            }
            for_clients_and_brokers(layers, &listeners)?;
        }
        Roles::Controller => {
            if let Some(other) = listeners.iter().find(|each| !is_controller(&each.name)) {
                return Err(ListenerError::NotForClients { name: other.name.clone() });
            }
        }
    }
    Ok(listeners)
}

/// `controller.listener.names`, in capitals.
pub(super) fn controller_names(layers: &Layers<'_>) -> Vec<String> {
    layers.list("controller.listener.names").iter().map(|name| name.to_uppercase()).collect()
}

type Endpoint = (String, Address);

fn listener(
    (name, bind): Endpoint,
    told: Option<&[Endpoint]>,
    is_controller: impl Fn(&str) -> bool,
) -> Listener {
    let named = told.unwrap_or_default().iter().find(|(each, _)| *each == name);
    let named = named.map(|(_, address)| address.clone());
    let by_itself = || Some(bind.reachable());
    let (advertised, for_controllers) = match told {
        _ if is_controller(&name) => (None, named.or_else(by_itself)),
        Some(_) => (named, None),
        None => (by_itself(), None),
    };
    Listener { name, bind, advertised, for_controllers }
}

/// `advertised.listeners`, if it is set. Its entries may share a port, since a proxy may stand before this node.
///
/// Controllers' listeners may stand there too, as in the `server.properties` that Kafka ships.
fn advertised(
    layers: &Layers<'_>,
    bound: &[Endpoint],
    must_listen: impl Fn(&str) -> bool,
) -> Result<Option<Vec<Endpoint>>, ListenerError> {
    let list = layers.list("advertised.listeners");
    if list.is_empty() {
        return Ok(None);
    }
    let told = endpoints("advertised.listeners", &list)?;
    if told.iter().any(|(_, address)| address.host == "0.0.0.0") {
        return Err(ListenerError::MetaAddress);
    }
    let names = |endpoints: &[Endpoint]| -> BTreeSet<String> {
        endpoints.iter().map(|each| each.0.clone()).filter(|name| must_listen(name)).collect()
    };
    if !names(&told).is_subset(&names(bound)) {
        let [found, valid] = [names(&told), names(bound)].map(joined);
        return Err(ListenerError::NotListening { found, valid });
    }
    Ok(Some(told.into_iter().map(|(name, address)| (name, address.reachable_by_name())).collect()))
}

fn for_clients_and_brokers(layers: &Layers<'_>, listeners: &[Listener]) -> Result<(), ListenerError> {
    let told: BTreeSet<String> =
        listeners.iter().filter(|each| each.advertised.is_some()).map(|each| each.name.clone()).collect();
    if told.is_empty() {
        return Err(ListenerError::NoneForClients);
    }
    match layers.text("inter.broker.listener.name") {
        Some(name) if !told.contains(&name.to_uppercase()) => {
            Err(ListenerError::InterBroker { valid: joined(told) })
        }
        _ => Ok(()),
    }
}

fn endpoints(key: &'static str, list: &[String]) -> Result<Vec<Endpoint>, ListenerError> {
    let parsed = list.iter().map(|text| endpoint(text).ok_or_else(|| unparsable(key, text.clone())));
    let parsed: Vec<Endpoint> = parsed.collect::<Result<_, _>>()?;
    let names: BTreeSet<&String> = parsed.iter().map(|(name, _)| name).collect();
    if names.len() < parsed.len() {
        return Err(ListenerError::SameName { key, list: list.join(",") });
    }
    Ok(parsed)
}

fn unparsable(key: &'static str, text: String) -> ListenerError {
    let port = text.rsplit_once(':').map_or("", |(_, port)| port.trim());
    if port.parse::<u64>().is_ok_and(|port| port > u64::from(u16::MAX)) {
        ListenerError::BadPort { key, text }
    } else {
        ListenerError::Unparsable { key, text }
    }
}

/// `NAME://HOST:PORT`, an IPv6 address in brackets.
fn endpoint(text: &str) -> Option<Endpoint> {
    let (name, address) = text.trim().split_once("://")?;
    let (host, port) = address.rsplit_once(':')?;
    let host = match host.strip_prefix('[') {
        Some(bracketed) => bracketed.strip_suffix(']')?,
        None if host.contains(':') => return None,
        None => host,
    };
    let is_name =
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    let port = port.parse().ok().filter(|_| is_name)?;
    Some((name.to_uppercase(), Address { host: host.to_owned(), port }))
}

/// Listeners may share a port if one is IPv4 and the other IPv6.
fn different_ports(bound: &[Endpoint]) -> Result<(), ListenerError> {
    let shares = |(a, b): (&Address, &Address)| {
        a.port == b.port
            && a.port != 0
            && (a.host.contains(':') == b.host.contains(':') || a.host.is_empty() || b.host.is_empty())
    };
    let clash = bound.iter().enumerate().any(|(i, (_, a))| bound[..i].iter().any(|(_, b)| shares((a, b))));
    let list =
        || bound.iter().map(|(name, address)| format!("{name}://{address}")).collect::<Vec<_>>().join(",");
    if clash { Err(ListenerError::SamePort { list: list() }) } else { Ok(()) }
}

/// Every listener has the protocol PLAINTEXT. A controller's listener without an entry has it, as in Kafka.
fn plaintext(
    bound: &[Endpoint],
    map: &str,
    is_controller: impl Fn(&str) -> bool,
) -> Result<(), ListenerError> {
    let mut protocols = Vec::new();
    for entry in map.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        let pair = entry.split_once(':').ok_or_else(|| ListenerError::BadMap { entry: entry.to_owned() })?;
        protocols.push((pair.0.trim().to_uppercase(), pair.1.trim().to_uppercase()));
    }
    for (name, _) in bound {
        match protocols.iter().find(|(each, _)| each == name) {
            Some((_, protocol)) if protocol == "PLAINTEXT" => {}
            None if is_controller(name) => {}
            Some((_, protocol)) => {
                return Err(ListenerError::NotPlaintext { name: name.clone(), protocol: protocol.clone() });
            }
            None => return Err(ListenerError::NoProtocol { name: name.clone() }),
        }
    }
    Ok(())
}

fn joined(names: BTreeSet<String>) -> String {
    names.into_iter().collect::<Vec<_>>().join(",")
}

impl Address {
    /// What clients are told where nothing else was said: this machine's name instead of "every address".
    pub(super) fn reachable(&self) -> Self {
        let every = matches!(self.host.as_str(), "" | "0.0.0.0" | "::");
        if every { Self { host: host_name(), port: self.port } } else { self.clone() }
    }

    /// An advertised address without a host is that of this machine.
    fn reachable_by_name(self) -> Self {
        if self.host.is_empty() { Self { host: host_name(), port: self.port } } else { self }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

fn host_name() -> String {
    let name = rustix::system::uname();
    name.nodename().to_str().map_or_else(|_| "localhost".to_owned(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use metadata::config::{Layers, Overrides};

    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Result<Vec<Listener>, ListenerError> {
        let values: Overrides = pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        listeners(&Layers::fixed(&values), Roles::Combined)
    }

    fn refusal(pairs: &[(&str, &str)]) -> String {
        of(pairs).expect_err("refused").to_string()
    }

    fn told(listener: &Listener) -> String {
        listener.advertised.as_ref().map_or_else(|| "nobody".to_owned(), ToString::to_string)
    }

    const MAP: (&str, &str) =
        ("listener.security.protocol.map", "IN:PLAINTEXT,OUT:PLAINTEXT,C:PLAINTEXT,S:SSL");

    #[test]
    fn clients_are_told_where_the_node_listens() {
        let listeners = of(&[("listeners", "PLAINTEXT://127.0.0.1:9092")]).expect("valid");
        assert_eq!(told(&listeners[0]), "127.0.0.1:9092");
        let listeners = of(&[("listeners", "PLAINTEXT://[::1]:9092")]).expect("valid");
        assert_eq!(listeners[0].bind.host, "::1");
        assert_eq!(told(&listeners[0]), "[::1]:9092");
    }

    #[test]
    fn clients_are_told_this_machines_name_instead_of_every_address() {
        for every in ["", "0.0.0.0", "[::]"] {
            let listeners = of(&[("listeners", &format!("PLAINTEXT://{every}:9092"))]).expect("valid");
            assert_eq!(told(&listeners[0]), format!("{}:9092", host_name()));
        }
    }

    #[test]
    fn each_listener_is_told_by_its_name() {
        let both = ("listeners", "IN://:29092, out://:9092");
        let listeners = of(&[both, ("advertised.listeners", "OUT://localhost:9092,IN://kafka:29092"), MAP]);
        let listeners = listeners.expect("valid");
        assert_eq!(listeners.iter().map(told).collect::<Vec<_>>(), ["kafka:29092", "localhost:9092"]);
    }

    #[test]
    fn a_controllers_listener_is_told_to_nobody() {
        let both = ("listeners", "PLAINTEXT://:9092,CONTROLLER://:9093");
        let listeners = of(&[both, ("controller.listener.names", "CONTROLLER")]).expect("valid");
        assert_eq!(told(&listeners[1]), "nobody");
    }

    #[test]
    fn a_controllers_listener_may_be_advertised_to_other_nodes() {
        let both = ("listeners", "PLAINTEXT://:9092,CONTROLLER://:9093");
        let advertised = ("advertised.listeners", "PLAINTEXT://h:9092,CONTROLLER://h:9093");
        let listeners = of(&[both, ("controller.listener.names", "CONTROLLER"), advertised]).expect("valid");
        assert_eq!((told(&listeners[0]).as_str(), told(&listeners[1]).as_str()), ("h:9092", "nobody"));
        let others = listeners[1].for_controllers.as_ref().map(ToString::to_string);
        assert_eq!(others.as_deref(), Some("h:9093"));
        let nowhere = ("advertised.listeners", "PLAINTEXT://h:9092,CONTROLLER://0.0.0.0:9093");
        let why = refusal(&[both, ("controller.listener.names", "CONTROLLER"), nowhere]);
        assert!(why.contains("nonroutable meta-address"), "{why}");
    }

    #[test]
    fn mistakes_are_refused_in_kafkas_words() {
        let plain = ("listeners", "PLAINTEXT://:9092");
        for (pairs, words) in [
            (vec![("listeners", "localhost:9092")], "Unable to parse localhost:9092 to a broker endpoint"),
            (vec![("listeners", "PLAINTEXT://::1:9092")], "Unable to parse"),
            (vec![("listeners", "PLAINTEXT://:70000")], "must be between 0 and 65535"),
            (vec![("listeners", "http://:9092")], "Listeners are NAME://HOST:PORT"),
            (
                vec![("listeners", "PLAINTEXT://:1,PLAINTEXT://:2")],
                "Each listener must have a different name",
            ),
            (vec![("listeners", "IN://:1,OUT://:1"), MAP], "Each listener must have a different port"),
            (vec![("listeners", "X://:1")], "No security protocol defined for listener X"),
            (vec![("listeners", "S://:1"), MAP], "speaks PLAINTEXT only"),
            (
                vec![plain, ("advertised.listeners", "PLAINTEXT://0.0.0.0:9092")],
                "nonroutable meta-address 0.0.0.0",
            ),
            (vec![plain, ("advertised.listeners", "OUT://h:1")], "Found OUT. The valid options"),
            (vec![plain, ("inter.broker.listener.name", "OUT")], "configured listeners are PLAINTEXT"),
            (
                vec![plain, ("controller.listener.names", "C")],
                "at least one value appearing in the 'listeners'",
            ),
            (
                vec![("listeners", "C://:1"), ("controller.listener.names", "C"), MAP],
                "at least one broker advertised",
            ),
        ] {
            let why = refusal(&pairs);
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn two_families_may_share_a_port() {
        assert!(of(&[("listeners", "IN://127.0.0.1:1,OUT://[::1]:1"), MAP]).is_ok());
    }
}
