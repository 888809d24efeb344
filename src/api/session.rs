//! What is known of one connection.

use std::net::SocketAddr;

/// A client's connection. Owned by the connection's task, lent to one handler at a time.
#[derive(Debug)]
pub struct Session {
    /// The name of the listener it came in by, upper case: clients are told this listener's addresses.
    pub listener: String,
    /// The other end.
    pub peer: SocketAddr,
    /// `client.id` of the last request.
    pub client_id: String,
    /// `ClientSoftwareName` and version of ApiVersions v3+ (KIP-511), for logs.
    pub software: Option<(String, String)>,
}

impl Session {
    /// A connection that has not said anything yet.
    pub fn new(listener: impl Into<String>, peer: SocketAddr) -> Self {
        Self { listener: listener.into(), peer, client_id: String::new(), software: None }
    }
}
