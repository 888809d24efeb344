//! Accepting connections.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use env::{BoxFuture, Link, Listener};
use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};

use crate::net::Shared;

/// Connections that the kernel keeps until they are accepted.
const BACKLOG: i32 = 1024;
/// How long to wait where no more files may be open.
const FULL_WAIT: Duration = Duration::from_millis(100);

/// One port, on each address of a host.
pub(crate) struct Accepting {
    sockets: Vec<TcpListener>,
    local: SocketAddr,
    shared: Arc<Shared>,
    frame_bytes_max: usize,
    full: bool,
}

impl Accepting {
    /// Listens at the addresses; where their port is 0, at the one that the first is given.
    pub(crate) fn bind(
        addresses: Vec<SocketAddr>,
        shared: Arc<Shared>,
        frame_bytes_max: usize,
    ) -> io::Result<Self> {
        let mut sockets: Vec<TcpListener> = Vec::new();
        let mut missing = io::Error::new(io::ErrorKind::AddrNotAvailable, "the host has no address");
        for mut address in addresses {
            if let Some(first) = sockets.first() {
                address.set_port(first.local_addr()?.port());
            }
            match bind(address) {
                Ok(socket) => sockets.push(socket),
                // A name may have an address of a family that this machine does not speak.
                Err(error) if is_missing(&error) => missing = error,
                Err(error) => return Err(error),
            }
        }
        let local = sockets.first().ok_or(missing)?.local_addr()?;
        Ok(Self { sockets, local, shared, frame_bytes_max, full: false })
    }

    async fn accept_any(&self) -> io::Result<(TcpStream, SocketAddr)> {
        std::future::poll_fn(|cx| {
            for socket in &self.sockets {
                if let Poll::Ready(accepted) = socket.poll_accept(cx) {
                    return Poll::Ready(accepted);
                }
            }
            Poll::Pending
        })
        .await
    }

    async fn accept_next(&mut self) -> io::Result<Link> {
        loop {
            match self.accept_any().await {
                Ok((stream, peer)) => {
                    self.full = false;
                    match self.shared.accepted(stream, peer, self.frame_bytes_max) {
                        Ok(link) => return Ok(link),
                        Err(error) => tracing::debug!(%peer, %error, "connection ended at once"),
                    }
                }
                Err(error) if is_full(&error) => self.wait_for_files(&error).await,
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    async fn wait_for_files(&mut self, error: &io::Error) {
        if !self.full {
            tracing::warn!(local = %self.local, %error, "no more files may be open: new connections wait");
        }
        self.full = true;
        self.shared.clock.sleep(FULL_WAIT).await;
    }
}

impl Listener for Accepting {
    fn local(&self) -> SocketAddr {
        self.local
    }

    fn accept(&mut self) -> BoxFuture<'_, io::Result<Link>> {
        Box::pin(self.accept_next())
    }
}

/// `[::]` is IPv4 too.
fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    socket.set_reuse_address(true)?;
    socket.set_keepalive(true)?;
    socket.set_nonblocking(true)?;
    // Accepted connections inherit it. Where it is missing, the system's default does.
    let _missing = rustix::net::sockopt::set_tcp_congestion(&socket, "cubic");
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

fn errno(error: &io::Error) -> Option<Errno> {
    Errno::from_io_error(error)
}

fn is_full(error: &io::Error) -> bool {
    matches!(errno(error), Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM))
}

/// accept(2): these are errors of the connection that is no more, not of the listener.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        errno(error),
        Some(
            Errno::CONNABORTED
                | Errno::CONNRESET
                | Errno::INTR
                | Errno::PROTO
                | Errno::PERM
                | Errno::NETDOWN
                | Errno::NOPROTOOPT
                | Errno::HOSTDOWN
                | Errno::HOSTUNREACH
                | Errno::OPNOTSUPP
                | Errno::NETUNREACH
                | Errno::TIMEDOUT
        )
    )
}

fn is_missing(error: &io::Error) -> bool {
    matches!(errno(error), Some(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL))
}
