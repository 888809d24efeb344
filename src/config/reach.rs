//! The start-up check of what clients are told: a client finds a node by one address and is then sent to another, and if
//! it cannot go there, it says little that helps. So the node says it.

use std::net::{IpAddr, ToSocketAddrs};
use std::path::Path;

use super::{Address, Listener};

/// An address that clients probably cannot reach.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Doubt {
    /// The listener.
    pub(crate) listener: String,
    /// What its clients are told.
    pub(crate) told: Address,
    /// Why they cannot go there, and what to do.
    pub(crate) why: &'static str,
}

/// The listeners whose advertised address clients probably cannot reach. Names are looked up, which may take seconds:
/// call it where that hinders nobody.
pub(crate) fn unreachable(listeners: &[Listener], in_container: bool) -> Vec<Doubt> {
    let doubt_of = |listener: &Listener| {
        let told = listener.advertised.clone()?;
        let why = doubt(&told.host, &listener.bind.host, in_container, resolves)?;
        Some(Doubt { listener: listener.name.clone(), told, why })
    };
    listeners.iter().filter_map(doubt_of).collect()
}

/// Whether this process runs in a container.
pub(super) fn in_container(in_kubernetes: bool) -> bool {
    in_kubernetes || ["/.dockerenv", "/run/.containerenv"].iter().any(|path| Path::new(path).exists())
}

fn doubt(
    advertised: &str,
    bound: &str,
    in_container: bool,
    resolves: impl Fn(&str) -> bool,
) -> Option<&'static str> {
    if is_loopback(advertised) && is_loopback(bound) {
        return None;
    }
    if is_loopback(advertised) && in_container {
        return Some(
            "only clients of this machine, by a published port, can reach that. For other containers add a listener \
             that advertises this container's name",
        );
    }
    if is_loopback(advertised) {
        return Some(
            "only clients on this machine can reach that. Set advertised.listeners to its name or address",
        );
    }
    if is_loopback(bound) {
        return Some(
            "this node listens on its loopback address only. Set listeners to an address that can be reached",
        );
    }
    if advertised.parse::<IpAddr>().is_err() && !resolves(advertised) {
        return Some(
            "this name does not resolve here. Set advertised.listeners to one that clients can resolve",
        );
    }
    None
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn resolves(host: &str) -> bool {
    (host, 0).to_socket_addrs().is_ok_and(|mut addresses| addresses.next().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(advertised: &str, bound: &str, in_container: bool) -> &'static str {
        doubt(advertised, bound, in_container, |host| host == "kafka").unwrap_or("")
    }

    #[test]
    fn an_address_that_is_listened_at_gives_no_doubt() {
        for (advertised, bound) in
            [("127.0.0.1", "127.0.0.1"), ("10.0.0.1", "0.0.0.0"), ("kafka", ""), ("::1", "::1")]
        {
            assert_eq!(says(advertised, bound, false), "", "{advertised} {bound}");
        }
    }

    #[test]
    fn addresses_that_clients_cannot_reach_are_told() {
        assert!(says("localhost", "0.0.0.0", true).contains("other containers"));
        assert!(says("localhost", "0.0.0.0", false).contains("on this machine"));
        assert!(says("kafka", "127.0.0.1", false).contains("loopback"));
        assert!(says("nobody.invalid", "", false).contains("does not resolve"));
    }
}
