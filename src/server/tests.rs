//! Connections over the simulated network, with a handler that does as it is told.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use env::{BoxFuture, Chunk, Clock, Env, FrameReader, FrameWriter, Link, RecvError};
use model::{Limits, Map};
use sim::{Node, World};
use telemetry::{Registry, metrics};
use tokio_util::sync::CancellationToken;

use crate::connection::{Context, serve};
use crate::{Bound, Config, Endpoint, Handler, Outcome, Reason, Server};

const SECOND: Duration = Duration::from_secs(1);
const MAX: usize = 32 << 20;

/// Requests are texts: `now NAME`, `later MS NAME`, `wait MS NAME`, `large BYTES`, `nothing`, `close`, `fail MS`.
struct Told {
    clock: Arc<dyn Clock>,
    started: AtomicUsize,
    closed: AtomicUsize,
}

impl Handler for Told {
    type Session = String;

    fn session(&self, listener: &str, _: SocketAddr) -> String {
        listener.to_owned()
    }

    async fn closed(&self, _: String) {
        self.closed.fetch_add(1, Ordering::SeqCst);
    }

    async fn handle(&self, session: &mut String, frame: Bytes) -> Outcome {
        self.started.fetch_add(1, Ordering::SeqCst);
        let text = String::from_utf8(frame.to_vec()).unwrap();
        let words: Vec<_> = text.split(' ').collect();
        match words[..] {
            ["now", name] => Outcome::Now(answer(name)),
            ["listener"] => Outcome::Now(answer(session)),
            ["nothing"] => Outcome::Nothing,
            ["close"] => Outcome::Close(Box::new("told to")),
            ["large", bytes] => Outcome::Now(answer(&"x".repeat(bytes.parse().unwrap()))),
            ["wait", ms, name] => {
                self.sleep(ms).await;
                Outcome::Now(answer(name))
            }
            ["later", ms, name] => {
                let (sleep, chunks) = (self.sleep(ms), answer(name));
                Outcome::Later(Box::pin(async move {
                    sleep.await;
                    Ok(chunks)
                }))
            }
            ["fail", ms] => {
                let sleep = self.sleep(ms);
                Outcome::Later(Box::pin(async move {
                    sleep.await;
                    Err(Box::new("told to") as Reason)
                }))
            }
            _ => panic!("what is {text}?"),
        }
    }
}

impl Told {
    fn new(env: &Env) -> Arc<Self> {
        Arc::new(Self {
            clock: Arc::clone(&env.clock),
            started: AtomicUsize::new(0),
            closed: AtomicUsize::new(0),
        })
    }

    fn sleep(&self, ms: &str) -> BoxFuture<'static, ()> {
        self.clock.sleep(Duration::from_millis(ms.parse().unwrap()))
    }

    fn started(&self) -> usize {
        self.started.load(Ordering::SeqCst)
    }
}

fn answer(text: &str) -> Vec<Chunk> {
    let length = Bytes::copy_from_slice(&(text.len() as i32).to_be_bytes());
    vec![Chunk::Bytes(length), Chunk::Bytes(Bytes::copy_from_slice(text.as_bytes()))]
}

fn config() -> Config {
    let endpoint = Endpoint { name: "PLAINTEXT".to_owned(), address: ":9092".to_owned() };
    Config {
        listeners: vec![endpoint],
        connections_max: 100,
        connections_per_ip_max: 100,
        connections_per_ip_overrides: Map::default(),
        idle_max: 600 * SECOND,
        request_bytes_max: 1000,
        stop_wait: 3 * SECOND,
    }
}

/// A server in a world, and a client.
struct Case {
    world: World,
    handler: Arc<Told>,
    registry: Arc<Registry>,
    server: Server,
    client: Env,
    _nodes: [Node; 2],
}

impl Case {
    fn new(seed: u64, config: Config) -> Self {
        let world = World::new(seed);
        let nodes = [world.node("server"), world.node("client")];
        let (env, client) = (nodes[0].boot(), nodes[1].boot());
        let (handler, registry) = (Told::new(&env), Arc::new(Registry::new()));
        let bound = world.run(Bound::bind(env, config)).unwrap();
        assert_eq!(bound.local("PLAINTEXT").unwrap().port(), 9092);
        let server = bound.serve(Arc::clone(&handler), Arc::clone(&registry));
        Self { world, handler, registry, server, client, _nodes: nodes }
    }

    async fn connect(&self) -> Link {
        self.client.net.connect("server:9092", MAX).await.unwrap()
    }

    async fn sleep(&self, time: Duration) {
        self.client.clock.sleep(time).await;
    }

    fn open(&self) -> i64 {
        self.registry.get(&metrics::CONNECTIONS, ["PLAINTEXT"]).get()
    }
}

async fn send(link: &mut Link, requests: &[&str]) {
    link.writer.send(requests.iter().flat_map(|request| answer(request)).collect()).await.unwrap();
}

/// Answers until there are `count`, or the connection ends.
async fn receive(link: &mut Link, count: usize) -> Vec<String> {
    let mut frames = Vec::new();
    while frames.len() < count && link.reader.recv(&mut frames).await.is_ok() {}
    frames.iter().map(|frame| String::from_utf8_lossy(frame).into_owned()).collect()
}

async fn is_closed(link: &mut Link) -> bool {
    link.reader.recv(&mut Vec::new()).await.is_err()
}

#[test]
fn answers_leave_in_the_order_of_their_requests() {
    let case = Case::new(1, config());
    case.world.run(async {
        let mut link = case.connect().await;
        send(&mut link, &["later 500 a", "now b", "later 10 c", "nothing", "wait 20 d", "listener"]).await;
        case.sleep(SECOND / 4).await;
        assert_eq!(case.handler.started(), 6);
        assert_eq!(receive(&mut link, 5).await, ["a", "b", "c", "d", "PLAINTEXT"]);
    });
}

#[test]
fn a_request_that_is_awaited_whole_holds_back_the_next() {
    let case = Case::new(1, config());
    case.world.run(async {
        let mut link = case.connect().await;
        send(&mut link, &["now a", "wait 1000 b", "now c"]).await;
        assert_eq!(receive(&mut link, 1).await, ["a"]);
        assert_eq!(case.handler.started(), 2);
        assert_eq!(receive(&mut link, 2).await, ["b", "c"]);
    });
}

#[test]
fn only_so_many_requests_wait_behind_their_ordered_point() {
    let case = Case::new(1, config());
    case.world.run(async {
        let mut link = case.connect().await;
        send(&mut link, &["later 1000 x"; 40]).await;
        case.sleep(SECOND / 2).await;
        assert_eq!(case.handler.started(), Limits::REQUESTS_LATER_MAX);
        assert_eq!(receive(&mut link, 40).await.len(), 40);
    });
}

#[test]
fn a_slow_reader_does_not_make_the_queue_grow() {
    let case = Case::new(1, config());
    case.world.run(async {
        let mut link = case.connect().await;
        let mib = 1 << 20;
        send(&mut link, &vec![&*format!("large {mib}"); 60]).await;
        case.sleep(10 * SECOND).await;
        // What is queued, what is on its way, and the one that went over the limit.
        assert!(
            case.handler.started() <= Limits::CONNECTION_QUEUE_BYTES / mib + 3,
            "{}",
            case.handler.started()
        );
        let answers = receive(&mut link, 60).await;
        assert!(answers.len() == 60 && answers.iter().all(|answer| answer.len() == mib));
    });
}

#[test]
fn an_idle_connection_is_closed_and_a_busy_one_is_not() {
    let case = Case::new(1, Config { idle_max: 10 * SECOND, ..config() });
    case.world.run(async {
        let mut idle = case.connect().await;
        let mut busy = case.connect().await;
        let mut later = case.connect().await;
        send(&mut busy, &["wait 60000 a"]).await;
        send(&mut later, &["later 60000 a"]).await;
        let before = case.client.clock.now();
        assert!(is_closed(&mut idle).await);
        assert!((9..12).contains(&case.client.clock.now().since(before).as_secs()));
        assert_eq!(receive(&mut busy, 1).await, ["a"]);
        assert_eq!(receive(&mut later, 1).await, ["a"]);
        case.sleep(8 * SECOND).await;
        send(&mut busy, &["now b"]).await;
        case.sleep(8 * SECOND).await;
        assert_eq!(receive(&mut busy, 1).await, ["b"]);
        assert!(is_closed(&mut busy).await);
        assert!(is_closed(&mut later).await);
        assert_eq!(case.open(), 0);
    });
}

#[test]
fn a_connection_whose_answers_are_never_read_is_closed() {
    let case = Case::new(1, Config { idle_max: 10 * SECOND, ..config() });
    case.world.run(async {
        let mut link = case.connect().await;
        send(&mut link, &["large 1000000"; 3]).await;
        case.sleep(30 * SECOND).await;
        assert_eq!(case.open(), 0);
    });
}

#[test]
fn an_address_has_only_so_many_connections() {
    let case = Case::new(1, Config { connections_per_ip_max: 2, ..config() });
    case.world.run(async {
        let mut first = case.connect().await;
        let second = case.connect().await;
        send(&mut first, &["now a"]).await;
        assert_eq!(receive(&mut first, 1).await, ["a"]);
        assert!(is_closed(&mut case.connect().await).await);
        drop(second);
        case.sleep(SECOND).await;
        let mut next = case.connect().await;
        send(&mut next, &["now b"]).await;
        assert_eq!(receive(&mut next, 1).await, ["b"]);
    });
}

#[test]
fn at_the_limit_of_all_connections_the_next_one_waits_for_a_place() {
    let case = Case::new(1, Config { connections_max: 1, ..config() });
    case.world.run(async {
        let first = case.connect().await;
        let mut second = case.connect().await;
        send(&mut second, &["now a"]).await;
        case.sleep(10 * SECOND).await;
        assert_eq!((case.handler.started(), case.open()), (0, 1));
        drop(first);
        assert_eq!(receive(&mut second, 1).await, ["a"]);
    });
}

#[test]
fn http_tls_and_frames_over_the_limit_are_closed() {
    let case = Case::new(1, config());
    case.world.run(async {
        for hello in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[22, 3, 1, 2, 0, 1, 0, 1, 252], &[0, 0, 4, 0, 1]] {
            let mut link = case.connect().await;
            link.writer.send(vec![Chunk::Bytes(Bytes::from_static(hello))]).await.unwrap();
            assert!(is_closed(&mut link).await);
        }
        assert_eq!((case.handler.started(), case.open()), (0, 0));
    });
}

#[test]
fn a_handler_that_closes_lets_earlier_answers_leave() {
    let case = Case::new(1, config());
    case.world.run(async {
        let mut link = case.connect().await;
        send(&mut link, &["later 500 a", "close", "now b"]).await;
        assert_eq!(receive(&mut link, 9).await, ["a"]);
        assert_eq!(case.handler.started(), 2);
    });
}

#[test]
fn a_later_answer_that_fails_ends_the_connection_after_the_earlier_ones() {
    let case = Case::new(1, config());
    case.world.run(async {
        let mut link = case.connect().await;
        send(&mut link, &["later 500 a", "fail 10", "now b", "later 10 c"]).await;
        assert_eq!(receive(&mut link, 9).await, ["a"]);
        assert_eq!(case.open(), 0);
    });
}

#[test]
fn a_peer_that_is_done_still_gets_its_answers() {
    let case = Case::new(1, config());
    case.world.run(async {
        let Link { mut reader, mut writer, .. } = case.connect().await;
        writer.send(answer("later 500 a")).await.unwrap();
        drop(writer);
        let mut frames = Vec::new();
        reader.recv(&mut frames).await.unwrap();
        assert_eq!(frames, ["a"]);
        assert!(matches!(reader.recv(&mut frames).await, Err(RecvError::Closed)));
    });
}

#[test]
fn the_handler_hears_of_a_connection_that_has_ended_unless_the_server_stops() {
    let case = Case::new(1, config());
    case.world.run(async {
        let mut first = case.connect().await;
        send(&mut first, &["now a"]).await;
        assert_eq!(receive(&mut first, 1).await, ["a"]);
        let _second = case.connect().await;
        drop(first);
        case.sleep(SECOND).await;
        assert_eq!(case.handler.closed.load(Ordering::SeqCst), 1);
        case.server.close().await;
        assert_eq!(case.handler.closed.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn a_stop_lets_what_has_started_finish_and_starts_nothing() {
    let case = Case::new(1, config());
    case.world.run(async {
        let mut idle = case.connect().await;
        let mut busy = case.connect().await;
        let mut endless = case.connect().await;
        send(&mut busy, &["later 2000 a", "wait 1000 b", "now c"]).await;
        send(&mut endless, &["wait 600000 d"]).await;
        case.sleep(SECOND / 2).await;
        let before = case.client.clock.now();
        case.server.close().await;
        assert_eq!(case.client.clock.now().since(before).as_secs(), 3);
        assert!(is_closed(&mut idle).await);
        assert_eq!(receive(&mut busy, 9).await, ["a", "b"]);
        assert_eq!(receive(&mut endless, 9).await, Vec::<String>::new());
        assert!(case.client.net.connect("server:9092", MAX).await.is_err());
    });
}

#[test]
fn a_listener_that_cannot_be_bound_is_named() {
    let world = World::new(1);
    let node = world.node("server");
    let config =
        Config { listeners: vec![config().listeners[0].clone(), config().listeners[0].clone()], ..config() };
    let error = world.run(Bound::bind(node.boot(), config)).err().unwrap();
    assert!(error.to_string().contains("listener PLAINTEXT://:9092 cannot be bound"), "{error}");
}

/// Frames at hand once, and an account of what is sent.
struct Scripted(Vec<Bytes>);
struct Recording(Arc<Mutex<Vec<usize>>>);

impl FrameReader for Scripted {
    fn recv<'a>(&'a mut self, frames: &'a mut Vec<Bytes>) -> BoxFuture<'a, Result<(), RecvError>> {
        let result = if self.0.is_empty() { Err(RecvError::Closed) } else { Ok(()) };
        frames.append(&mut self.0);
        Box::pin(std::future::ready(result))
    }
}

impl FrameWriter for Recording {
    fn send(&mut self, chunks: Vec<Chunk>) -> BoxFuture<'_, std::io::Result<()>> {
        self.0.lock().unwrap().push(chunks.len() / 2);
        Box::pin(std::future::ready(Ok(())))
    }
}

#[test]
fn all_answers_at_hand_leave_in_one_send() {
    let world = World::new(1);
    let node = world.node("node");
    let env = node.boot();
    let context = Context {
        handler: Told::new(&env),
        clock: Arc::clone(&env.clock),
        listener: "PLAINTEXT".into(),
        idle_max: SECOND,
        stop_wait: SECOND,
        stop: CancellationToken::new(),
    };
    let sent = Arc::new(Mutex::new(Vec::new()));
    let frames = ["now a", "now b", "now c", "nothing", "now d"].map(|text| Bytes::from(text.to_owned()));
    let address = SocketAddr::from(([127, 0, 0, 1], 1));
    let (reader, writer) = (Scripted(frames.to_vec()), Recording(Arc::clone(&sent)));
    let link = Link { peer: address, local: address, reader: Box::new(reader), writer: Box::new(writer) };
    world.run(serve(&context, link));
    assert_eq!(*sent.lock().unwrap(), [4]);
}

/// Many clients at once, each checking its own answers; what happened, as a number.
fn many_clients(seed: u64) -> u64 {
    let case = Case::new(seed, config());
    let client = async |number: u64| {
        for _ in 0..5 {
            let mut link = case.connect().await;
            let names: Vec<_> = (0..30).map(|i| format!("{number}-{i}")).collect();
            let request = |name: &String| match case.world.below(4) {
                0 => format!("now {name}"),
                1 => format!("wait {} {name}", case.world.below(20)),
                _ => format!("later {} {name}", case.world.below(50)),
            };
            let requests: Vec<_> = names.iter().map(request).collect();
            for some in requests.chunks(7) {
                send(&mut link, &some.iter().map(|request| &**request).collect::<Vec<_>>()).await;
                case.sleep(Duration::from_millis(case.world.below(5))).await;
            }
            assert_eq!(receive(&mut link, names.len()).await, names);
        }
    };
    case.world.run(async {
        tokio::join!(biased; client(0), client(1), client(2), client(3));
    });
    case.world.history().hash()
}

#[test]
fn many_clients_get_their_own_answers_in_order_and_one_seed_is_one_history() {
    for seed in 0..10 {
        assert_eq!(many_clients(seed), many_clients(seed), "seed {seed}");
    }
}
