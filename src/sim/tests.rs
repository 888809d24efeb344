//! What happens to nodes of a world.

use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use env::{Chunk, Env, Link, Open, RecvError};
use model::Timestamp;

use crate::{Kind, LinkSpeed, Node, World};

const MAX: usize = 1 << 20;
const SECOND: Duration = Duration::from_secs(1);

fn frame(text: &str) -> Chunk {
    let mut bytes = (text.len() as i32).to_be_bytes().to_vec();
    bytes.extend_from_slice(text.as_bytes());
    Chunk::Bytes(bytes.into())
}

/// A node that answers each frame with itself.
fn boot_echo(node: &Node) {
    let env = node.boot();
    let task = echo(env.clone());
    env.exec.spawn("echo", Box::pin(task));
}

async fn echo(env: Env) {
    let mut listener = env.net.listen(":9092", MAX).await.unwrap();
    while let Ok(link) = listener.accept().await {
        env.exec.spawn("echo connection", Box::pin(echo_link(link)));
    }
}

async fn echo_link(mut link: Link) {
    let mut frames = Vec::new();
    while link.reader.recv(&mut frames).await.is_ok() {
        let answers = frames.drain(..).map(|bytes| frame(std::str::from_utf8(&bytes).unwrap())).collect();
        if link.writer.send(answers).await.is_err() {
            return;
        }
    }
}

async fn ask(link: &mut Link, text: &str) -> Result<Bytes, RecvError> {
    link.writer.send(vec![frame(text)]).await.map_err(RecvError::Io)?;
    let mut frames = Vec::new();
    link.reader.recv(&mut frames).await?;
    Ok(frames.remove(0))
}

/// The answer, or `None` where there is none for a minute.
async fn ask_within_a_minute(env: &Env, link: &mut Link, text: &str) -> Option<Result<Bytes, RecvError>> {
    let deadline = env.clock.now().plus(60 * SECOND);
    env::timeout(&*env.clock, deadline, ask(link, text)).await
}

fn is_reset(result: Result<Bytes, RecvError>) -> bool {
    matches!(result, Err(RecvError::Io(error)) if error.kind() == io::ErrorKind::ConnectionReset)
}

#[test]
fn nodes_reach_each_other_by_name() {
    let world = World::new(1);
    let (server, client) = (world.node("server"), world.node("client"));
    boot_echo(&server);
    let env = client.boot();
    world.run(async {
        let mut link = env.net.connect("server:9092", MAX).await.unwrap();
        assert_eq!(ask(&mut link, "hello").await.unwrap(), "hello");
        let refused = env.net.connect("server:9093", MAX).await.err().unwrap();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        assert!(env.net.connect("nobody:9092", MAX).await.is_err());
    });
}

#[test]
fn frames_of_a_connection_arrive_in_order_and_later() {
    for seed in 0..20 {
        let world = World::new(seed);
        let (server, client) = (world.node("server"), world.node("client"));
        boot_echo(&server);
        let env = client.boot();
        world.run(async {
            let mut link = env.net.connect("server:9092", MAX).await.unwrap();
            let before = world.elapsed();
            let sent: Vec<_> = (0..50).map(|i| i.to_string()).collect();
            for text in &sent {
                link.writer.send(vec![frame(text)]).await.unwrap();
            }
            let mut frames = Vec::new();
            while frames.len() < sent.len() {
                link.reader.recv(&mut frames).await.unwrap();
            }
            assert_eq!(frames, sent);
            assert!(world.elapsed() > before);
        });
    }
}

#[test]
fn a_cut_holds_back_one_way_until_it_is_mended() {
    let world = World::new(3);
    let (server, client) = (world.node("server"), world.node("client"));
    boot_echo(&server);
    let env = client.boot();
    world.run(async {
        let mut link = env.net.connect("server:9092", MAX).await.unwrap();
        world.cut(&server, &client);
        assert!(ask_within_a_minute(&env, &mut link, "held").await.is_none());
        world.mend(&server, &client);
        let mut frames = Vec::new();
        link.reader.recv(&mut frames).await.unwrap();
        assert_eq!(frames, ["held"]);
        world.cut(&client, &server);
        let deadline = env.clock.now().plus(60 * SECOND);
        assert!(env::timeout(&*env.clock, deadline, env.net.connect("server:9092", MAX)).await.is_none());
        world.mend_all();
        assert_eq!(ask(&mut link, "again").await.unwrap(), "again");
    });
}

#[test]
fn a_killed_node_ends_its_connections_and_refuses_new_ones() {
    for seed in 0..10 {
        let world = World::new(seed);
        let (server, client) = (world.node("server"), world.node("client"));
        boot_echo(&server);
        let env = client.boot();
        world.run(async {
            let mut link = env.net.connect("server:9092", MAX).await.unwrap();
            server.kill();
            ask(&mut link, "nobody").await.unwrap_err();
            let refused = env.net.connect("server:9092", MAX).await.err().unwrap();
            assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
            boot_echo(&server);
            env.clock.sleep(SECOND).await;
            env.net.connect("server:9092", MAX).await.unwrap();
        });
    }
}

#[test]
fn a_machine_without_power_says_nothing_and_resets_what_it_forgot() {
    let world = World::new(5);
    let (server, client) = (world.node("server"), world.node("client"));
    boot_echo(&server);
    let env = client.boot();
    world.run(async {
        let mut link = env.net.connect("server:9092", MAX).await.unwrap();
        server.power_loss();
        assert!(ask_within_a_minute(&env, &mut link, "nobody").await.is_none());
        boot_echo(&server);
        assert!(is_reset(ask(&mut link, "who are you").await));
    });
}

#[test]
fn a_broken_connection_is_broken_at_both_ends() {
    let world = World::new(5);
    let (server, client) = (world.node("server"), world.node("client"));
    boot_echo(&server);
    let env = client.boot();
    world.run(async {
        let mut link = env.net.connect("server:9092", MAX).await.unwrap();
        world.reset(&client, &server);
        assert!(is_reset(ask(&mut link, "anyone").await));
    });
}

#[test]
fn a_sender_waits_for_a_slow_link_and_a_closed_one_is_told() {
    let world = World::new(5);
    let (server, client) = (world.node("server"), world.node("client"));
    let (there, env) = (server.boot(), client.boot());
    let speed =
        LinkSpeed { latency: Duration::from_millis(1)..Duration::from_millis(2), bytes_per_second: 1 << 20 };
    world.set_speed(&client, &server, speed);
    world.run(async {
        let mut listener = there.net.listen("server:9092", MAX).await.unwrap();
        let (link, accepted) = (env.net.connect("server:9092", MAX), listener.accept());
        let mut link = link.await.unwrap();
        let mut accepted = accepted.await.unwrap();
        assert_eq!(accepted.peer, link.local);
        let large = "x".repeat(200 << 10);
        link.writer.send(vec![frame(&large)]).await.unwrap();
        let deadline = env.clock.now().plus(60 * SECOND);
        assert!(env::timeout(&*env.clock, deadline, link.writer.send(vec![frame(&large)])).await.is_none());
        let mut frames = Vec::new();
        accepted.reader.recv(&mut frames).await.unwrap();
        assert_eq!(frames[0].len(), large.len());
        drop(link);
        assert!(matches!(accepted.reader.recv(&mut frames).await, Err(RecvError::Closed)));
        accepted.writer.send(vec![frame("late")]).await.unwrap_err();
    });
}

#[test]
fn a_length_over_the_limit_is_refused_with_its_first_bytes() {
    let world = World::new(5);
    let node = world.node("node");
    let env = node.boot();
    world.run(async {
        let mut listener = env.net.listen(":9092", 100).await.unwrap();
        let mut link = env.net.connect("localhost:9092", MAX).await.unwrap();
        let hello = Bytes::from_static(b"GET / HTTP/1.1\r\n");
        link.writer.send(vec![frame("good"), Chunk::Bytes(hello)]).await.unwrap();
        let mut accepted = listener.accept().await.unwrap();
        let mut frames = Vec::new();
        let error = loop {
            if let Err(error) = accepted.reader.recv(&mut frames).await {
                break error;
            }
        };
        assert_eq!(frames, ["good"]);
        assert!(matches!(error, RecvError::Length { head, .. } if &head == b"GET / HT"));
    });
}

#[test]
fn a_paused_node_does_nothing_while_time_goes_on() {
    let world = World::new(5);
    let (paused, other) = (world.node("paused"), world.node("other"));
    let (env, outside) = (paused.boot(), other.boot());
    let ticks = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&ticks);
    let clock = Arc::clone(&env.clock);
    env.exec.spawn(
        "ticks",
        Box::pin(async move {
            loop {
                clock.sleep(SECOND).await;
                count.fetch_add(1, Ordering::SeqCst);
            }
        }),
    );
    let ticks = || ticks.load(Ordering::SeqCst);
    world.run(async {
        outside.clock.sleep(10 * SECOND).await;
        assert!((9..=10).contains(&ticks()));
        paused.pause();
        let before = ticks();
        outside.clock.sleep(10 * SECOND).await;
        assert_eq!(ticks(), before);
        paused.resume();
        outside.clock.sleep(10 * SECOND).await;
        assert!((before + 10..before + 12).contains(&ticks()));
    });
}

#[test]
fn a_clock_runs_fast_and_jumps_and_sleepers_follow_it() {
    let world = World::new(5);
    let node = world.node("node");
    let env = node.boot();
    world.run(async {
        let (start, wall) = (env.clock.now(), env.clock.wall());
        let sleep = env.clock.sleep(100 * SECOND);
        node.set_clock_rate(2_000_000);
        sleep.await;
        assert!((50..51).contains(&world.elapsed().as_secs()));
        assert_eq!(env.clock.now().since(start).as_secs(), 100);
        node.jump_wall_clock(-5000);
        let passed = env.clock.wall().0 - wall.0;
        assert!((95_000..95_002).contains(&passed), "{passed}");
        assert!(wall > Timestamp(0));
    });
}

#[test]
fn a_hung_disk_ends_no_flush_until_it_goes_on() {
    let world = World::new(5);
    let node = world.node("node");
    let env = node.boot();
    let file = env.disk.open(Path::new("/a"), Open::Create).unwrap();
    world.run(async {
        node.set_disk_hung(true);
        let flush = env.exec.flush(vec![Arc::clone(&file)]);
        let minute = env.clock.now().plus(60 * SECOND);
        assert!(env::timeout(&*env.clock, minute, flush).await.is_none());
        node.set_disk_hung(false);
        env.exec.flush(vec![Arc::clone(&file)]).await.unwrap();
        node.disk().fail(Kind::Sync, "/a", 0, 1);
        env.exec.flush(vec![file]).await.unwrap_err();
        assert_eq!(env::blocking(&*env.exec, || 42).await, 42);
    });
}

#[test]
#[should_panic(expected = "a destructor of node wrote")]
fn a_destructor_that_writes_is_caught() {
    struct Writes(Arc<dyn env::File>);
    impl Drop for Writes {
        fn drop(&mut self) {
            let _refused = self.0.write_at(&[IoSlice::new(b"late")], 0);
        }
    }
    let world = World::new(5);
    let node = world.node("node");
    let env = node.boot();
    let held = Writes(env.disk.open(Path::new("/a"), Open::Create).unwrap());
    env.exec.spawn(
        "holds",
        Box::pin(async move {
            let _held = held;
            std::future::pending::<()>().await;
        }),
    );
    node.kill();
}

#[test]
#[should_panic(expected = "waits for what will never happen")]
fn a_scenario_that_can_never_end_is_a_failure() {
    World::new(5).run(std::future::pending::<()>());
}

/// Nodes that call each other, wait on a `watch` together, write, flush, and are killed.
fn a_life(seed: u64) -> (u64, u64) {
    let world = World::new(seed);
    let (server, client) = (world.node("server"), world.node("client"));
    boot_echo(&server);
    let env = client.boot();
    let order = Arc::new(Mutex::new(Vec::new()));
    let (send, receive) = tokio::sync::watch::channel(0);
    for waiter in 0..16u64 {
        let (mut receive, order) = (receive.clone(), Arc::clone(&order));
        let waits = async move {
            while receive.changed().await.is_ok() {
                order.lock().unwrap().push(waiter);
            }
        };
        env.exec.spawn("waits", Box::pin(waits));
    }
    world.run(async {
        let file = env.disk.open(Path::new("/log"), Open::Create).unwrap();
        for round in 0..20 {
            send.send(round).unwrap();
            file.write_at(&[IoSlice::new(&env.rng.next_u64().to_be_bytes())], round * 8).unwrap();
            env.exec.flush(vec![Arc::clone(&file)]).await.unwrap();
            let mut link = env.net.connect("server:9092", MAX).await.unwrap();
            let answer = ask_within_a_minute(&env, &mut link, &round.to_string()).await;
            env.clock.sleep(Duration::from_millis(world.below(100))).await;
            if answer.is_some() && world.below(4) == 0 {
                server.power_loss();
                boot_echo(&server);
            }
        }
    });
    let order = order.lock().unwrap();
    let order: Vec<u8> = order.iter().map(|waiter| *waiter as u8).collect();
    world.history().add("order", &[], &order);
    (world.history().hash(), world.history().events())
}

#[test]
fn one_seed_is_one_history() {
    for seed in 0..10 {
        assert_eq!(a_life(seed), a_life(seed), "seed {seed}");
    }
    assert_ne!(a_life(1).0, a_life(2).0);
}

#[test]
fn a_process_that_ends_waits_for_its_tasks_and_drops_those_that_do_not_end() {
    let world = World::new(1);
    let node = world.node("node-1");
    let env = node.boot();
    let left = Arc::new(Mutex::new(None));
    let (told, process) = (Arc::clone(&left), env.clone());
    node.run(async move {
        let clock = Arc::clone(&process.clock);
        process.exec.spawn("ends", Box::pin(async move { clock.sleep(Duration::from_millis(100)).await }));
        process.exec.spawn("stays", Box::pin(std::future::pending()));
        let count = process.exec.close(Duration::from_secs(3)).await;
        *told.lock().unwrap() = Some(count);
    });
    world.run(async { env.clock.sleep(Duration::from_secs(4)).await });
    assert_eq!(*left.lock().unwrap(), Some(1));
}
