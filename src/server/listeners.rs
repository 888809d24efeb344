//! Named listeners: `listeners`, `advertised.listeners`, `listener.security.protocol.map`.
//!
//! Kafka: `SocketServerConfigs.listenerListToEndPoints`, `KafkaConfig.validateAdvertisedControllerListenersNonEmptyForBroker`
//! and its neighbours; the texts of errors are Kafka's where people know them.

use std::fmt;

/// A listener, or what clients of it are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The listener's name, upper case.
    pub name: String,
    /// A name or an address, without brackets. Empty is every address of this machine.
    pub host: String,
    /// 0 takes any.
    pub port: u16,
    /// How it is secured.
    pub protocol: SecurityProtocol,
}

/// How a listener is secured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecurityProtocol {
    /// Not at all.
    Plaintext,
}

/// What is wrong with a listener setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListenerError {
    /// It is not NAME://host:port.
    #[error(
        "Unable to parse {0} to a broker endpoint: write NAME://host:port, with an IPv6 address in brackets"
    )]
    Unreadable(String),
    /// Two of one name.
    #[error("Each listener must have a different name, listeners: {0}")]
    SameName(String),
    /// Two of one port, and not one for IPv4 and one for IPv6.
    #[error(
        "Each listener must have a different port unless exactly one of them is IPv4 and one IPv6, listeners: {0}"
    )]
    SamePort(String),
    /// The map does not have it.
    #[error(
        "No security protocol defined for listener {0}: add {0}:PLAINTEXT to listener.security.protocol.map"
    )]
    NoProtocol(String),
    /// Ottla does not have it.
    #[error("security protocol {protocol} of listener {listener} is not supported yet: use PLAINTEXT")]
    Unsupported {
        /// The listener's name.
        listener: String,
        /// As it is written.
        protocol: String,
    },
    /// None is left.
    #[error("listeners must have at least one NAME://host:port")]
    Empty,
    /// Nobody can connect to that.
    #[error("advertised.listeners cannot use the nonroutable meta-address {0}. Use a routable IP address.")]
    MetaAddress(String),
    /// An advertised one that does not exist.
    #[error(
        "advertised.listeners listener names must be equal to or a subset of the ones defined in listeners. \
         {0} is not one of them"
    )]
    NotAListener(String),
}

/// Reads `listeners` with the map of their protocols, both as in Kafka's configuration.
///
/// # Errors
/// The first thing that is wrong.
pub fn listeners(listeners: &[String], protocol_map: &str) -> Result<Vec<Endpoint>, ListenerError> {
    let endpoints = parse_all(listeners, protocol_map)?;
    if endpoints.is_empty() {
        return Err(ListenerError::Empty);
    }
    for (i, one) in endpoints.iter().enumerate() {
        for other in &endpoints[..i] {
            if one.port != 0 && one.port == other.port && !are_of_two_families(&one.host, &other.host) {
                return Err(ListenerError::SamePort(listeners.join(",")));
            }
        }
    }
    Ok(endpoints)
}

/// What clients are told: `advertised.listeners` where it is set, else the listeners themselves. An empty host becomes
/// `host_name`. Port 0 stays for the caller, who knows what was bound.
///
/// # Errors
/// The first thing that is wrong.
pub fn advertised(
    listeners: &[Endpoint],
    advertised: Option<&[String]>,
    protocol_map: &str,
    host_name: &str,
) -> Result<Vec<Endpoint>, ListenerError> {
    let mut endpoints = match advertised {
        Some(advertised) => parse_all(advertised, protocol_map)?,
        None => listeners.to_vec(),
    };
    for endpoint in &mut endpoints {
        if !listeners.iter().any(|listener| listener.name == endpoint.name) {
            return Err(ListenerError::NotAListener(endpoint.name.clone()));
        }
        let is_meta = ["0.0.0.0", "::"].contains(&endpoint.host.as_str());
        if is_meta && advertised.is_some() {
            return Err(ListenerError::MetaAddress(endpoint.host.clone()));
        }
        if is_meta || endpoint.host.is_empty() {
            host_name.clone_into(&mut endpoint.host);
        }
    }
    Ok(endpoints)
}

impl Endpoint {
    /// `host:port`, an IPv6 address in brackets.
    pub fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.name, self.address())
    }
}

fn parse_all(texts: &[String], protocol_map: &str) -> Result<Vec<Endpoint>, ListenerError> {
    let mut endpoints: Vec<Endpoint> = Vec::new();
    // Testcontainers leaves an empty one at the end.
    for text in texts.iter().map(|text| text.trim()).filter(|text| !text.is_empty()) {
        let endpoint = parse(text, protocol_map)?;
        if endpoints.iter().any(|other| other.name == endpoint.name) {
            return Err(ListenerError::SameName(texts.join(",")));
        }
        endpoints.push(endpoint);
    }
    Ok(endpoints)
}

fn parse(text: &str, protocol_map: &str) -> Result<Endpoint, ListenerError> {
    let unreadable = || ListenerError::Unreadable(text.to_owned());
    let (name, address) = text.split_once("://").ok_or_else(unreadable)?;
    let (host, port) = address.rsplit_once(':').ok_or_else(unreadable)?;
    let is_bracketed = host.starts_with('[') && host.ends_with(']');
    let host = if is_bracketed { &host[1..host.len() - 1] } else { host };
    let is_host = |c: char| c.is_ascii_alphanumeric() || "-%._:".contains(c);
    if name.is_empty() || !host.chars().all(is_host) || (host.contains(':') && !is_bracketed) {
        return Err(unreadable());
    }
    let name = name.to_ascii_uppercase();
    let protocol = protocol_of(&name, protocol_map)?;
    Ok(Endpoint { name, host: host.to_owned(), port: port.parse().map_err(|_| unreadable())?, protocol })
}

/// A name that is not in the map may be a protocol itself.
fn protocol_of(name: &str, protocol_map: &str) -> Result<SecurityProtocol, ListenerError> {
    let pairs = protocol_map.split(',').filter_map(|pair| pair.split_once(':'));
    let found = pairs
        .map(|(name, protocol)| (name.trim(), protocol.trim()))
        .rfind(|pair| pair.0.eq_ignore_ascii_case(name));
    let known = ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"].into_iter().find(|known| *known == name);
    match found.map(|(_, protocol)| protocol).or(known) {
        None => Err(ListenerError::NoProtocol(name.to_owned())),
        Some(protocol) if protocol.eq_ignore_ascii_case("PLAINTEXT") => Ok(SecurityProtocol::Plaintext),
        Some(protocol) => {
            Err(ListenerError::Unsupported { listener: name.to_owned(), protocol: protocol.to_owned() })
        }
    }
}

/// One address of IPv4 and one of IPv6: they may share a port.
fn are_of_two_families(a: &str, b: &str) -> bool {
    let is_ipv4 = |host: &str| host.parse::<std::net::Ipv4Addr>().is_ok();
    let is_ipv6 = |host: &str| host.parse::<std::net::Ipv6Addr>().is_ok();
    (is_ipv4(a) && is_ipv6(b)) || (is_ipv6(a) && is_ipv4(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: &str = "PLAINTEXT:PLAINTEXT,SSL:SSL,BROKER:PLAINTEXT,TC-0:PLAINTEXT";

    fn list(text: &str) -> Vec<String> {
        text.split(',').map(str::to_owned).collect()
    }

    fn read(text: &str) -> Result<Vec<String>, ListenerError> {
        Ok(listeners(&list(text), MAP)?.iter().map(Endpoint::to_string).collect())
    }

    fn told(listening: &str, telling: Option<&str>) -> Result<Vec<String>, ListenerError> {
        let listening = listeners(&list(listening), MAP)?;
        let telling = telling.map(list);
        let endpoints = advertised(&listening, telling.as_deref(), MAP, "box")?;
        Ok(endpoints.iter().map(Endpoint::to_string).collect())
    }

    #[test]
    fn names_hosts_and_ports_are_read() {
        let text = "PLAINTEXT://:9092,broker://kafka-1.local:9093,TC-0://[::1]:0,";
        let read = read(text).unwrap();
        assert_eq!(read, ["PLAINTEXT://:9092", "BROKER://kafka-1.local:9093", "TC-0://[::1]:0"]);
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        for text in [
            "9092",
            "://a:1",
            "PLAINTEXT://a",
            "PLAINTEXT://a:99999",
            "PLAINTEXT://::1:9092",
            "PLAINTEXT://a b:1",
        ] {
            assert_eq!(read(text), Err(ListenerError::Unreadable(text.into())));
        }
        assert_eq!(read(""), Err(ListenerError::Empty));
        assert_eq!(read("OTHER://a:1"), Err(ListenerError::NoProtocol("OTHER".into())));
        let ssl = ListenerError::Unsupported { listener: "SSL".into(), protocol: "SSL".into() };
        assert_eq!(read("SSL://a:1"), Err(ssl));
    }

    #[test]
    fn two_listeners_differ_in_name_and_port() {
        let same_name = "PLAINTEXT://:1,PLAINTEXT://:2";
        assert_eq!(read(same_name), Err(ListenerError::SameName(same_name.into())));
        let same_port = "PLAINTEXT://:1,BROKER://:1";
        assert_eq!(read(same_port), Err(ListenerError::SamePort(same_port.into())));
        assert!(read("PLAINTEXT://127.0.0.1:1,BROKER://[::1]:1").is_ok());
        assert!(read("PLAINTEXT://:0,BROKER://:0").is_ok());
    }

    #[test]
    fn clients_are_told_the_listeners_unless_something_else_is_set() {
        assert_eq!(
            told("PLAINTEXT://:1,BROKER://[::]:2", None).unwrap(),
            ["PLAINTEXT://box:1", "BROKER://box:2"]
        );
        assert_eq!(told("PLAINTEXT://0.0.0.0:1", Some("PLAINTEXT://b:5,")).unwrap(), ["PLAINTEXT://b:5"]);
    }

    #[test]
    fn what_clients_cannot_use_is_refused() {
        let meta = ListenerError::MetaAddress("0.0.0.0".into());
        assert_eq!(told("PLAINTEXT://:1", Some("PLAINTEXT://0.0.0.0:1")), Err(meta));
        let other = ListenerError::NotAListener("BROKER".into());
        assert_eq!(told("PLAINTEXT://:1", Some("BROKER://a:1")), Err(other));
    }
}
