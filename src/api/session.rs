//! What is known of one connection.

use std::net::SocketAddr;

use controller::ConnectionId;
use model::{BrokerEpoch, Instant, NodeId};

/// For whom a listener is. Each side serves its own APIs, as in Kafka.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Clients and brokers.
    Broker,
    /// Controllers, and brokers that ask them.
    Controller,
}

/// A client's connection. Owned by the connection's task, lent to one handler at a time.
#[derive(Debug)]
pub struct Session {
    /// The name of the listener it came in by, upper case: clients are told this listener's addresses.
    pub listener: String,
    /// For whom that listener is.
    pub side: Side,
    /// Its number: a later connection has a greater one.
    pub connection: ConnectionId,
    /// The other end.
    pub peer: SocketAddr,
    /// `client.id` of the last request.
    pub client_id: String,
    /// `ClientSoftwareName` and version of ApiVersions v3+ (KIP-511), for logs.
    pub software: Option<(String, String)>,
    /// Until when the controller may take for the request that is handled.
    pub(crate) until: Instant,
    /// The run of a broker that the active controller, here, heard on this connection.
    pub broker: Option<(NodeId, BrokerEpoch)>,
}

impl Session {
    /// A connection that has not said anything yet.
    pub(crate) fn new(listener: &str, peer: SocketAddr, side: Side, connection: ConnectionId) -> Self {
        Self {
            listener: listener.to_owned(),
            side,
            connection,
            peer,
            client_id: String::new(),
            software: None,
            broker: None,
            until: Instant(0),
        }
    }
}
