//! The network between nodes, in frames.
//!
//! Within a connection nothing is lost, doubled or overtaken, as in TCP; between connections anything may overtake. A
//! cut holds back what goes one way until it is mended. A process that dies closes or resets its connections; a machine
//! that loses power says nothing, and resets what it does not know when it is up again and hears of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Poll, Waker};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use env::{BoxFuture, Chunk, FrameReader, FrameWriter, Link, Listener, Net, RecvError};

use crate::executor::{Executor, NodeKey, Sleep, Time, lock};
use crate::pipe::{Pipe, frames_of};

type PipeId = u64;

/// How frames go from one node to another.
#[derive(Clone, Debug)]
pub struct LinkSpeed {
    /// How long a frame is on its way.
    pub latency: Range<Duration>,
    /// Bytes that go through in a second.
    pub bytes_per_second: u64,
}

pub(crate) struct Network {
    executor: Arc<Executor>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    hosts: BTreeMap<NodeKey, Host>,
    listeners: BTreeMap<(NodeKey, u16), Accepting>,
    pipes: BTreeMap<PipeId, Pipe>,
    cuts: BTreeSet<(NodeKey, NodeKey)>,
    speeds: BTreeMap<(NodeKey, NodeKey), LinkSpeed>,
    next_pipe: PipeId,
    next_port: u16,
}

struct Host {
    name: String,
    ip: IpAddr,
    power: Power,
    life: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Power {
    /// The node runs.
    Up,
    /// The machine runs, the node does not.
    Killed,
    /// Nothing runs.
    Off,
}

struct Accepting {
    id: u64,
    waiting: VecDeque<(PipeId, SocketAddr)>,
    waker: Option<Waker>,
}

/// The network as one life of a node sees it.
#[derive(Clone)]
pub(crate) struct SimNet {
    pub(crate) network: Arc<Network>,
    pub(crate) node: NodeKey,
    pub(crate) life: u64,
}

/// How often a connection is tried where nothing answers.
const CONNECT_AGAIN: Duration = Duration::from_secs(1);

impl Default for LinkSpeed {
    fn default() -> Self {
        let latency = Duration::from_micros(100)..Duration::from_millis(2);
        Self { latency, bytes_per_second: 1 << 30 }
    }
}

impl Network {
    pub(crate) fn new(executor: &Arc<Executor>) -> Arc<Self> {
        let state = State { next_port: 40_000, ..State::default() };
        Arc::new(Self { executor: Arc::clone(executor), state: Mutex::new(state) })
    }

    pub(crate) fn add_host(&self, node: NodeKey, name: &str) {
        let [_, _, high, low] = node.to_be_bytes();
        let ip = Ipv4Addr::new(10, 0, high, low).into();
        self.state().hosts.insert(node, Host { name: name.to_owned(), ip, power: Power::Off, life: 0 });
    }

    /// A node starts: who still waits for its former life is told when something of that arrives.
    pub(crate) fn start(&self, node: NodeKey, life: u64) {
        let mut state = self.state();
        if let Some(host) = state.hosts.get_mut(&node) {
            (host.power, host.life) = (Power::Up, life);
        }
        let forgotten = |(id, pipe): (&PipeId, &Pipe)| {
            (pipe.to == node && pipe.is_forgotten && pipe.is_busy()).then_some(*id)
        };
        let heard: Vec<_> = state.pipes.iter().filter_map(forgotten).collect();
        for pipe in heard {
            state.reset(pipe);
        }
    }

    /// A node ends, saying so (`Killed`) or not (`Off`).
    pub(crate) fn stop(&self, node: NodeKey, power: Power) {
        let mut state = self.state();
        if let Some(host) = state.hosts.get_mut(&node) {
            (host.power, host.life) = (power, 0);
        }
        state.listeners.retain(|(at, _), _| *at != node);
        let ids: Vec<_> =
            state.pipes.iter().filter(|(_, pipe)| pipe.from == node).map(|(id, _)| *id).collect();
        for id in ids {
            match power {
                // Bytes that were not read make a reset of it.
                Power::Killed if self.executor.rng().bool() => state.reset(id),
                Power::Killed => state.close(id),
                Power::Off | Power::Up => {
                    let kept =
                        state.pipes.get(&id).map_or(0, |pipe| self.executor.rng().usize(..=pipe.len()));
                    state.forget(id, kept);
                }
            }
        }
    }

    /// Holds back, or no more, what goes from one node to another.
    pub(crate) fn set_cut(&self, from: NodeKey, to: NodeKey, is_cut: bool) {
        let mut state = self.state();
        if is_cut {
            state.cuts.insert((from, to));
            return;
        }
        state.cuts.remove(&(from, to));
        state.pipes.values_mut().for_each(Pipe::wake_reader);
    }

    pub(crate) fn mend_all(&self) {
        let mut state = self.state();
        state.cuts.clear();
        state.pipes.values_mut().for_each(Pipe::wake_reader);
    }

    pub(crate) fn set_speed(&self, from: NodeKey, to: NodeKey, speed: LinkSpeed) {
        self.state().speeds.insert((from, to), speed);
    }

    /// Breaks all connections between two nodes.
    pub(crate) fn reset(&self, a: NodeKey, b: NodeKey) {
        let mut state = self.state();
        let ids: Vec<_> = state
            .pipes
            .iter()
            .filter(|(_, pipe)| (pipe.from, pipe.to) == (a, b))
            .map(|(id, _)| *id)
            .collect();
        for id in ids {
            state.reset(id);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn poll_send(&self, id: PipeId, frame: &Bytes, waker: &Waker) -> Poll<io::Result<()>> {
        let mut state = self.state();
        let Some(pipe) = state.pipes.get(&id) else {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        };
        let (from, to) = (pipe.from, pipe.to);
        if pipe.is_forgotten && state.is_up(to) {
            state.reset(id);
        }
        let speed = state.speeds.get(&(from, to)).cloned().unwrap_or_default();
        let transfer = (frame.len() as u64).saturating_mul(1_000_000_000) / speed.bytes_per_second.max(1);
        let arrives = self.executor.now() + self.executor.some_time(&speed.latency) + transfer;
        let is_cut = state.cuts.contains(&(from, to));
        let Some(pipe) = state.pipes.get_mut(&id) else { return Poll::Ready(Ok(())) };
        let result = pipe.poll_send(frame, arrives, waker);
        let Poll::Ready(result) = result else { return Poll::Pending };
        self.executor.history.add("send", &[id, *result.as_ref().unwrap_or(&0)], frame);
        if !is_cut {
            self.wake_at_arrival(pipe);
        }
        Poll::Ready(result.map(|_| ()))
    }

    fn poll_recv(
        &self,
        id: PipeId,
        frames: &mut Vec<Bytes>,
        frame_bytes_max: usize,
        waker: &Waker,
    ) -> Poll<Result<(), RecvError>> {
        let mut state = self.state();
        let State { pipes, cuts, .. } = &mut *state;
        let Some(pipe) = pipes.get_mut(&id) else { return Poll::Ready(Err(RecvError::Closed)) };
        let is_cut = cuts.contains(&(pipe.from, pipe.to));
        let result = pipe.poll_recv(frames, frame_bytes_max, self.executor.now(), is_cut, waker);
        if result.is_pending() && !is_cut {
            self.wake_at_arrival(pipe);
        }
        result
    }

    /// A timer for who waits for the next frame. One too many does no harm; behind a cut it would never end.
    fn wake_at_arrival(&self, pipe: &Pipe) {
        if let Some((at, waker)) = pipe.next_arrival() {
            self.executor.set_timer(0, at, waker);
        }
    }
}

impl State {
    fn is_up(&self, node: NodeKey) -> bool {
        self.hosts.get(&node).is_some_and(|host| host.power == Power::Up)
    }

    /// The other direction of the same connection.
    fn back(&mut self, id: PipeId) -> Option<&mut Pipe> {
        self.pipes.get_mut(&(id ^ 1))
    }

    fn reset(&mut self, id: PipeId) {
        self.pipes.get_mut(&id).into_iter().for_each(Pipe::reset);
        self.back(id).into_iter().for_each(Pipe::reset);
    }

    /// The sender of this pipe closes: it writes and reads no more.
    fn close(&mut self, id: PipeId) {
        self.pipes.get_mut(&id).into_iter().for_each(Pipe::finish);
        let Some(back) = self.back(id) else { return };
        back.is_unread = true;
        back.wake_writer();
        if self.pipes.get(&id).is_some_and(|pipe| pipe.is_unread) {
            self.pipes.remove(&id);
            self.pipes.remove(&(id ^ 1));
        }
    }

    /// The sender of this pipe is gone without a word.
    fn forget(&mut self, id: PipeId, kept: usize) {
        self.pipes.get_mut(&id).into_iter().for_each(|pipe| pipe.lose(kept));
        if let Some(back) = self.back(id) {
            back.is_forgotten = true;
        }
    }

    fn find(&self, host: &str, from: NodeKey) -> io::Result<NodeKey> {
        if ["localhost", "127.0.0.1", "::1"].contains(&host) {
            return Ok(from);
        }
        let ip = host.parse::<IpAddr>().ok();
        let is_it = |other: &Host| other.name == host || Some(other.ip) == ip;
        let found = self.hosts.iter().find(|(_, other)| is_it(other)).map(|(node, _)| *node);
        found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("no host is named {host}")))
    }

    fn address(&self, node: NodeKey, port: u16) -> SocketAddr {
        SocketAddr::new(self.hosts.get(&node).map_or(Ipv4Addr::UNSPECIFIED.into(), |host| host.ip), port)
    }

    fn next_port(&mut self) -> u16 {
        self.next_port = self.next_port.checked_add(1).unwrap_or(40_000);
        self.next_port
    }
}

impl SimNet {
    fn is_alive(&self) -> bool {
        self.network.state().hosts.get(&self.node).is_some_and(|host| host.life == self.life)
    }

    fn bind(&self, address: &str, frame_bytes_max: usize) -> io::Result<SimListener> {
        let (host, port) = split(address)?;
        let mut state = self.network.state();
        let is_any = ["", "0.0.0.0", "::"].contains(&host);
        if !is_any && state.find(host, self.node)? != self.node {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        }
        let port = if port == 0 { state.next_port() } else { port };
        if state.listeners.contains_key(&(self.node, port)) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        state.next_pipe += 2;
        let id = state.next_pipe;
        let accepting = Accepting { id, waiting: VecDeque::new(), waker: None };
        state.listeners.insert((self.node, port), accepting);
        Ok(SimListener { net: self.clone(), id, local: state.address(self.node, port), frame_bytes_max })
    }

    /// A connection, if the other side answers now.
    fn try_connect(&self, host: &str, port: u16, frame_bytes_max: usize) -> io::Result<Option<Link>> {
        let mut state = self.network.state();
        let to = state.find(host, self.node)?;
        let is_cut = state.cuts.contains(&(self.node, to)) || state.cuts.contains(&(to, self.node));
        if is_cut || state.hosts.get(&to).is_none_or(|host| host.power == Power::Off) {
            return Ok(None);
        }
        if !state.listeners.contains_key(&(to, port)) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let there = state.next_pipe + 2;
        state.next_pipe = there;
        state.pipes.insert(there, Pipe::new(self.node, to));
        state.pipes.insert(there + 1, Pipe::new(to, self.node));
        let own_port = state.next_port();
        let (local, peer) = (state.address(self.node, own_port), state.address(to, port));
        self.network.executor.history.add("connect", &[u64::from(self.node), u64::from(to), there], &[]);
        if let Some(listener) = state.listeners.get_mut(&(to, port)) {
            listener.waiting.push_back((there, local));
            listener.waker.take().into_iter().for_each(Waker::wake);
        }
        Ok(Some(self.link(there + 1, there, local, peer, frame_bytes_max)))
    }

    fn link(
        &self,
        incoming: PipeId,
        outgoing: PipeId,
        local: SocketAddr,
        peer: SocketAddr,
        max: usize,
    ) -> Link {
        let ends = Arc::new(Ends { net: self.clone(), outgoing });
        let reader = SimReader { ends: Arc::clone(&ends), incoming, frame_bytes_max: max };
        Link { peer, local, reader: Box::new(reader), writer: Box::new(SimWriter { ends }) }
    }

    async fn wait(&self, time: Time) {
        Sleep::new(&self.network.executor, self.node, time).await;
    }
}

impl Net for SimNet {
    fn listen<'a>(
        &'a self,
        address: &'a str,
        frame_bytes_max: usize,
    ) -> BoxFuture<'a, io::Result<Box<dyn Listener>>> {
        let listener =
            self.bind(address, frame_bytes_max).map(|listener| Box::new(listener) as Box<dyn Listener>);
        Box::pin(std::future::ready(listener))
    }

    fn connect<'a>(&'a self, address: &'a str, frame_bytes_max: usize) -> BoxFuture<'a, io::Result<Link>> {
        Box::pin(async move {
            let (host, port) = split(address)?;
            loop {
                let round_trip = self.network.executor.some_time(&LinkSpeed::default().latency);
                self.wait(round_trip).await;
                if let Some(link) = self.try_connect(host, port, frame_bytes_max)? {
                    return Ok(link);
                }
                self.wait(CONNECT_AGAIN.as_nanos() as u64).await;
            }
        })
    }
}

struct SimListener {
    net: SimNet,
    id: u64,
    local: SocketAddr,
    frame_bytes_max: usize,
}

impl SimListener {
    fn poll_accept(&self, waker: &Waker) -> Poll<io::Result<(PipeId, SocketAddr)>> {
        let mut state = self.net.network.state();
        let accepting = state.listeners.get_mut(&(self.net.node, self.local.port()));
        let Some(accepting) = accepting.filter(|accepting| accepting.id == self.id) else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        accepting.waker = Some(waker.clone());
        accepting.waiting.pop_front().map_or(Poll::Pending, |next| Poll::Ready(Ok(next)))
    }
}

impl Listener for SimListener {
    fn local(&self) -> SocketAddr {
        self.local
    }

    fn accept(&mut self) -> BoxFuture<'_, io::Result<Link>> {
        Box::pin(async move {
            let (incoming, peer) = std::future::poll_fn(|cx| self.poll_accept(cx.waker())).await?;
            Ok(self.net.link(incoming, incoming + 1, self.local, peer, self.frame_bytes_max))
        })
    }
}

impl Drop for SimListener {
    fn drop(&mut self) {
        let mut state = self.net.network.state();
        let key = (self.net.node, self.local.port());
        if state.listeners.get(&key).is_some_and(|accepting| accepting.id == self.id)
            && let Some(accepting) = state.listeners.remove(&key)
        {
            accepting.waiting.into_iter().for_each(|(pipe, _)| state.reset(pipe));
        }
    }
}

/// This end of a connection; gone when both halves are.
struct Ends {
    net: SimNet,
    outgoing: PipeId,
}

impl Drop for Ends {
    fn drop(&mut self) {
        // The dead do not close: `Network::stop` has said what their peers see.
        if self.net.is_alive() {
            self.net.network.state().close(self.outgoing);
        }
    }
}

struct SimReader {
    ends: Arc<Ends>,
    incoming: PipeId,
    frame_bytes_max: usize,
}

impl FrameReader for SimReader {
    fn recv<'a>(&'a mut self, frames: &'a mut Vec<Bytes>) -> BoxFuture<'a, Result<(), RecvError>> {
        Box::pin(std::future::poll_fn(move |cx| {
            self.ends.net.network.poll_recv(self.incoming, frames, self.frame_bytes_max, cx.waker())
        }))
    }
}

struct SimWriter {
    ends: Arc<Ends>,
}

impl FrameWriter for SimWriter {
    fn send(&mut self, chunks: Vec<Chunk>) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(async move {
            for frame in frames_of(gather(chunks)?) {
                std::future::poll_fn(|cx| {
                    self.ends.net.network.poll_send(self.ends.outgoing, &frame, cx.waker())
                })
                .await?;
            }
            Ok(())
        })
    }
}

impl Drop for SimWriter {
    fn drop(&mut self) {
        if self.ends.net.is_alive() {
            let mut state = self.ends.net.network.state();
            state.pipes.get_mut(&self.ends.outgoing).into_iter().for_each(Pipe::finish);
        }
    }
}

/// The bytes of all chunks.
fn gather(chunks: Vec<Chunk>) -> io::Result<Bytes> {
    let mut bytes = BytesMut::new();
    for chunk in chunks {
        match chunk {
            Chunk::Bytes(some) => bytes.extend_from_slice(&some),
            Chunk::File(range) => {
                let start = bytes.len();
                bytes.resize(start + range.length, 0);
                if range.file.read_at(&mut bytes[start..], range.position)? < range.length {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
        }
    }
    Ok(bytes.freeze())
}

fn split(address: &str) -> io::Result<(&str, u16)> {
    let bad = || io::Error::new(io::ErrorKind::InvalidInput, format!("{address} is not host:port"));
    let (host, port) = address.rsplit_once(':').ok_or_else(bad)?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    Ok((host, port.parse().map_err(|_| bad())?))
}
