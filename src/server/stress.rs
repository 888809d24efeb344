//! The same over real sockets, on two workers: what the simulator's one thread cannot show.

use std::io::IoSlice;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use env::{Chunk, Disk, Env, Exec as _, File, FileRange, Link, Open};
use host::{HostClock, HostDisk, HostExec, HostRng};
use model::Map;
use telemetry::Registry;
use tokio::runtime::Handle;
use transport::{TcpConfig, TcpNet};

use crate::{Bound, Config, Endpoint, Handler, Outcome};

const FILE_BYTES: usize = 1 << 20;

/// A request is a number; its answer that number, and as many bytes of a file.
struct Numbers {
    file: Arc<dyn File>,
}

impl Handler for Numbers {
    type Session = ();

    fn session(&self, _: &str, _: SocketAddr) {}

    async fn handle(&self, (): &mut (), mut frame: Bytes) -> Outcome {
        let number = frame.get_u32();
        let length = number as usize % FILE_BYTES;
        let mut head = (length as i32 + 4).to_be_bytes().to_vec();
        head.extend_from_slice(&number.to_be_bytes());
        let range = FileRange { file: Arc::clone(&self.file), position: 0, length };
        let chunks = vec![Chunk::Bytes(head.into()), Chunk::File(range)];
        if number.is_multiple_of(3) {
            return Outcome::Now(chunks);
        }
        Outcome::Later(Box::pin(async {
            tokio::task::yield_now().await;
            Ok(chunks)
        }))
    }
}

fn real(folder: &Path) -> (Env, HostExec, Numbers) {
    let exec = HostExec::new(Handle::current(), 1);
    let clock = Arc::new(HostClock::new());
    let net = TcpNet::new(Arc::clone(&clock) as _, Arc::new(exec.clone()), TcpConfig::default());
    let file = HostDisk.open(&folder.join("log"), Open::Create).unwrap();
    file.write_at(&[IoSlice::new(&vec![7; FILE_BYTES])], 0).unwrap();
    let env = Env {
        clock,
        exec: Arc::new(exec.clone()),
        net: Arc::new(net),
        disk: Arc::new(HostDisk),
        rng: Arc::new(HostRng),
    };
    (env, exec, Numbers { file })
}

fn config() -> Config {
    let endpoint = Endpoint { name: "PLAINTEXT".to_owned(), address: "127.0.0.1:0".to_owned() };
    Config {
        listeners: vec![endpoint],
        connections_max: 1000,
        connections_per_ip_max: 1000,
        connections_per_ip_overrides: Map::default(),
        idle_max: Duration::from_mins(10),
        request_bytes_max: 1 << 20,
        stop_wait: Duration::from_secs(3),
    }
}

/// Asks with these numbers, all at once, and checks the answers.
async fn ask(mut link: Link, numbers: Vec<u32>) {
    let requests = numbers.iter().flat_map(|number| [4u32.to_be_bytes(), number.to_be_bytes()].concat());
    let requests = vec![Chunk::Bytes(requests.collect())];
    let mut frames = Vec::new();
    let receive = async {
        while frames.len() < numbers.len() {
            link.reader.recv(&mut frames).await.unwrap();
        }
    };
    let (sent, ()) = tokio::join!(link.writer.send(requests), receive);
    sent.unwrap();
    for (mut frame, number) in frames.into_iter().zip(numbers) {
        assert_eq!(frame.get_u32(), number);
        assert_eq!(frame.len(), number as usize % FILE_BYTES);
        assert!(frame.iter().all(|byte| *byte == 7));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_connections_at_once_get_their_own_answers_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let (env, exec, numbers) = real(folder.path());
    let bound = Bound::bind(env.clone(), config()).await.unwrap();
    let address = bound.local("PLAINTEXT").unwrap().to_string();
    let server = bound.serve(Arc::new(numbers), Arc::new(Registry::new()));
    let (done, mut ended) = tokio::sync::mpsc::channel(100);
    for client in 0..20u32 {
        let (env, address, done) = (env.clone(), address.clone(), done.clone());
        let numbers = (0..100).map(|i| (client * 7919 + i * 104_729) % 60_000 + i / 99 * 300_000).collect();
        let task = async move {
            ask(env.net.connect(&address, 2 << 20).await.unwrap(), numbers).await;
            done.send(()).await.unwrap();
        };
        env.exec.spawn("client", Box::pin(task));
    }
    for _ in 0..20 {
        ended.recv().await.unwrap();
    }
    server.close().await;
    assert_eq!(exec.close(Duration::from_secs(5)).await, 0);
}
