//! Opening listeners and connections.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use env::{BoxFuture, Clock, Exec, Link, Listener, Net};
use tokio::net::{TcpStream, lookup_host};

use crate::budget::Budget;
use crate::buffers::Buffers;
use crate::listener::Accepting;
use crate::reader::Reader;
use crate::writer::Writer;

/// Bounds over all connections.
#[derive(Clone, Copy, Debug)]
pub struct TcpConfig {
    /// Buffers of `Limits::RECEIVE_BUFFER_BYTES` in use at once; beyond that connections get small ones.
    pub buffers_at_once: usize,
    /// Bytes of clients' frames too large for their buffer, received or being handled, at once; beyond that they wait.
    pub large_frame_bytes_at_once: usize,
}

/// The TCP of this machine. Must be used within a tokio runtime.
#[derive(Clone)]
pub struct TcpNet {
    shared: Arc<Shared>,
}

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) clock: Arc<dyn Clock>,
    exec: Arc<dyn Exec>,
    buffers: Arc<Buffers>,
    /// For what clients send, and for what peers answer: that is bounded by what they were asked for, and waits for no client.
    requests: Budget,
    answers: Budget,
}

impl Default for TcpConfig {
    fn default() -> Self {
        Self { buffers_at_once: 64, large_frame_bytes_at_once: 128 << 20 }
    }
}

impl TcpNet {
    /// `exec` reads files that are not in memory.
    pub fn new(clock: Arc<dyn Clock>, exec: Arc<dyn Exec>, config: TcpConfig) -> Self {
        let buffers = Buffers::new(config.buffers_at_once);
        let requests = Budget::new(config.large_frame_bytes_at_once, Arc::clone(&clock));
        let answers = Budget::new(usize::MAX, Arc::clone(&clock));
        Self { shared: Arc::new(Shared { clock, exec, buffers, requests, answers }) }
    }
}

impl Net for TcpNet {
    fn listen<'a>(
        &'a self,
        address: &'a str,
        frame_bytes_max: usize,
    ) -> BoxFuture<'a, io::Result<Box<dyn Listener>>> {
        Box::pin(async move {
            let addresses = match address.strip_prefix(':') {
                // Kafka: no host is every address.
                Some(port) => everywhere(port)?,
                None => lookup_host(address).await?.collect(),
            };
            let listener = Accepting::bind(addresses, Arc::clone(&self.shared), frame_bytes_max)?;
            Ok(Box::new(listener) as Box<dyn Listener>)
        })
    }

    fn connect<'a>(&'a self, address: &'a str, frame_bytes_max: usize) -> BoxFuture<'a, io::Result<Link>> {
        Box::pin(async move {
            let stream = TcpStream::connect(address).await?;
            let _missing = rustix::net::sockopt::set_tcp_congestion(&stream, "cubic");
            let peer = stream.peer_addr()?;
            self.shared.link(stream, peer, (&self.shared.answers, frame_bytes_max))
        })
    }
}

impl Shared {
    /// A connection that was accepted.
    pub(crate) fn accepted(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        frame_bytes_max: usize,
    ) -> io::Result<Link> {
        self.link(stream, peer, (&self.requests, frame_bytes_max))
    }

    fn link(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        (budget, frame_bytes_max): (&Budget, usize),
    ) -> io::Result<Link> {
        stream.set_nodelay(true)?;
        let local = canonical(stream.local_addr()?);
        let (read, write) = stream.into_split();
        let reader = Reader::new(read, Arc::clone(&self.buffers), budget.clone(), frame_bytes_max);
        let writer = Writer::new(write, Arc::clone(&self.buffers), Arc::clone(&self.exec));
        Ok(Link { peer: canonical(peer), local, reader: Box::new(reader), writer: Box::new(writer) })
    }
}

/// One socket for both families; IPv4's own where the machine has no IPv6.
fn everywhere(port: &str) -> io::Result<Vec<SocketAddr>> {
    let port: u16 = port.parse().map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "not a port"))?;
    let has_ipv6 = socket2::Socket::new(socket2::Domain::IPV6, socket2::Type::STREAM, None).is_ok();
    let address = if has_ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    Ok(vec![SocketAddr::new(address, port)])
}

/// An IPv4 peer of a socket for both families as what it is.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
pub(crate) mod tests {
    use host::{HostClock, HostExec};

    use super::*;

    /// A link of ours, and the plain socket at its other end.
    pub(crate) async fn link(frame_bytes_max: usize) -> (Link, TcpStream) {
        let mut listener = net().listen("127.0.0.1:0", frame_bytes_max).await.unwrap();
        let address = listener.local();
        let (link, peer) = tokio::join!(listener.accept(), TcpStream::connect(address));
        (link.unwrap(), peer.unwrap())
    }

    pub(crate) fn net() -> TcpNet {
        let exec = Arc::new(HostExec::new(tokio::runtime::Handle::current(), 1));
        TcpNet::new(Arc::new(HostClock::new()), exec, TcpConfig::default())
    }

    async fn ports_of(address: &str, clients: &[&str]) {
        let net = net();
        let mut listener = net.listen(address, 100).await.unwrap();
        for client in clients {
            let target = format!("{client}:{}", listener.local().port());
            let (accepted, connected) = tokio::join!(listener.accept(), net.connect(&target, 100));
            let (accepted, connected) = (accepted.unwrap(), connected.unwrap());
            assert_eq!(accepted.peer, connected.local);
            assert_eq!(accepted.local, connected.peer);
        }
    }

    #[tokio::test]
    async fn no_host_and_the_empty_ipv6_address_are_both_families() {
        ports_of(":0", &["127.0.0.1", "[::1]"]).await;
        ports_of("[::]:0", &["127.0.0.1", "[::1]"]).await;
    }

    #[tokio::test]
    async fn a_name_is_all_its_addresses() {
        ports_of("localhost:0", &["localhost"]).await;
    }

    #[tokio::test]
    async fn ipv6_alone_can_be_listened_at() {
        ports_of("[::1]:0", &["[::1]"]).await;
    }

    #[tokio::test]
    async fn a_port_in_use_is_an_error() {
        let net = net();
        let first = net.listen("127.0.0.1:0", 100).await.unwrap();
        let error = net.listen(&first.local().to_string(), 100).await.err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        assert!(net.listen(":port", 100).await.is_err());
    }
}
