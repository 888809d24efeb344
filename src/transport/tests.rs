//! Asking a peer in a simulated network, where the peer misbehaves.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use env::{Chunk, Env, Link};
use model::Instant;
use protocol::messages::api_versions_response::{ApiVersion, SupportedFeatureKey};
use protocol::messages::{ApiVersionsResponse, HeartbeatRequest, HeartbeatResponse, VoteRequest};
use protocol::{RequestHeader, StrBytes};
use sim::{Node, World};

use crate::{CallError, Peer, PeerConfig, RelayedRequest};

const MAX: usize = 1 << 20;
const HEARTBEAT: i16 = 12;

/// What the peer does with a request; an answer, or nothing.
type Behaviour = Arc<dyn Fn(&RequestHeader) -> Vec<Bytes> + Send + Sync>;

/// A node that answers ApiVersions with what it serves, and everything else as `behaviour` says.
fn boot_peer(node: &Node, api_versions: ApiVersionsResponse, behaviour: Behaviour) {
    let env = node.boot();
    let task = accept(env.clone(), api_versions, behaviour);
    env.exec.spawn("peer", Box::pin(task));
}

async fn accept(env: Env, api_versions: ApiVersionsResponse, behaviour: Behaviour) {
    let mut listener = env.net.listen(":9093", MAX).await.unwrap();
    while let Ok(link) = listener.accept().await {
        let connection = serve(link, api_versions.clone(), behaviour.clone());
        env.exec.spawn("peer's connection", Box::pin(connection));
    }
}

async fn serve(mut link: Link, api_versions: ApiVersionsResponse, behaviour: Behaviour) {
    let mut frames = Vec::new();
    while link.reader.recv(&mut frames).await.is_ok() {
        let mut answers = Vec::new();
        for mut frame in frames.drain(..) {
            let header = protocol::decode_request_header(&mut frame).unwrap();
            if header.api_key == 18 {
                answers.push(api_versions_frame(&header, &api_versions));
            } else {
                answers.extend(behaviour(&header));
            }
        }
        if link.writer.send(answers.into_iter().map(Chunk::Bytes).collect()).await.is_err() {
            return;
        }
    }
}

/// As Kafka answers, whose newest version is 4 here.
fn api_versions_frame(header: &RequestHeader, served: &ApiVersionsResponse) -> Bytes {
    if header.api_version <= 4 {
        return protocol::encode_response(header.correlation_id, 18, header.api_version, served).unwrap();
    }
    let own = served.api_keys.iter().filter(|api| api.api_key == 18).cloned().collect();
    let too_new = ApiVersionsResponse::default().with_error_code(35).with_api_keys(own);
    protocol::encode_response(header.correlation_id, 18, 0, &too_new).unwrap()
}

fn serving(apis: &[(i16, i16, i16)]) -> ApiVersionsResponse {
    let api = |(key, min, max): &(i16, i16, i16)| {
        ApiVersion::default().with_api_key(*key).with_min_version(*min).with_max_version(*max)
    };
    let feature = SupportedFeatureKey::default()
        .with_name(StrBytes::from_static_str("kraft.version"))
        .with_max_version(1);
    ApiVersionsResponse::default()
        .with_api_keys(apis.iter().chain(&[(18, 0, 4)]).map(api).collect())
        .with_supported_features(vec![feature])
}

/// A good answer, that carries the request's own number back.
fn heartbeat(header: &RequestHeader) -> Bytes {
    let response = HeartbeatResponse::default().with_throttle_time_ms(header.correlation_id);
    protocol::encode_response(header.correlation_id, HEARTBEAT, header.api_version, &response).unwrap()
}

fn heartbeats() -> Behaviour {
    Arc::new(|header| vec![heartbeat(header)])
}

fn config() -> PeerConfig {
    PeerConfig {
        client_id: "ottla-1".to_owned(),
        frame_bytes_max: MAX,
        in_flight_max: 3,
        setup_timeout: Duration::from_secs(2),
        reconnect_backoff: Duration::from_millis(50),
        reconnect_backoff_max: Duration::from_millis(500),
    }
}

fn in_ms(env: &Env, ms: u64) -> Instant {
    env.clock.now().plus(Duration::from_millis(ms))
}

/// The throttle time of the answer, which is the number of the request.
async fn beat(env: &Env, peer: &Peer) -> Result<i32, CallError> {
    let call = peer.call(in_ms(env, 1000), |_| HeartbeatRequest::default()).await?;
    Ok(call.response.throttle_time_ms)
}

struct Scene {
    world: World,
    there: Node,
    here: Node,
    env: Env,
}

/// A peer as told, and a client of it.
fn scene(apis: &[(i16, i16, i16)], behaviour: Behaviour) -> (Scene, Peer) {
    let world = World::new(1);
    let (there, here) = (world.node("there"), world.node("here"));
    boot_peer(&there, serving(apis), behaviour);
    let env = here.boot();
    let peer = Peer::new(&env, config(), "there:9093", "test");
    (Scene { world, there, here, env }, peer)
}

#[test]
fn the_newest_common_version_is_spoken_also_with_a_peer_that_knows_older_ones_only() {
    let (scene, peer) = scene(&[(HEARTBEAT, 0, 2)], heartbeats());
    scene.world.run(async {
        let call = peer.call(in_ms(&scene.env, 1000), |version| {
            assert_eq!(version, 2);
            HeartbeatRequest::default()
        });
        assert_eq!(call.await.unwrap().version, 2);
        let versions = peer.watch().borrow().versions.clone().unwrap();
        assert_eq!(versions.feature("kraft.version"), Some(0..=1));
        assert_eq!(versions.feature("metadata.version"), None);
    });
}

#[test]
fn an_api_that_the_peer_does_not_serve_is_not_sent_and_ends_nothing() {
    let (scene, peer) = scene(&[(HEARTBEAT, 0, 4)], heartbeats());
    scene.world.run(async {
        let refused = peer.call(in_ms(&scene.env, 1000), |_| VoteRequest::default()).await.unwrap_err();
        assert!(matches!(refused, CallError::Unsupported(52)) && !refused.may_have_arrived());
        assert_eq!(beat(&scene.env, &peer).await.unwrap(), 1);
    });
}

/// A heartbeat of another client.
fn relayed(api_version: i16) -> RelayedRequest {
    let client_id = Some(StrBytes::from_static_str("somebody"));
    let header = RequestHeader { api_key: HEARTBEAT, api_version, correlation_id: 77, client_id };
    let mut body = protocol::encode_request(&header, &HeartbeatRequest::default()).unwrap().slice(4..);
    protocol::decode_request_header(&mut body).unwrap();
    RelayedRequest { header, body }
}

#[test]
fn a_request_of_somebody_else_is_passed_on_as_it_came_and_the_errors_in_its_answer_are_told() {
    let refusing: Behaviour = Arc::new(|header| {
        assert_eq!((header.api_version, header.client_id.as_deref()), (2, Some("somebody")));
        let response = HeartbeatResponse::default().with_error_code(41);
        vec![protocol::encode_response(header.correlation_id, HEARTBEAT, 2, &response).unwrap()]
    });
    let (scene, peer) = scene(&[(HEARTBEAT, 0, 2)], refusing);
    scene.world.run(async {
        let answer = peer.relay(in_ms(&scene.env, 1000), relayed(2)).await.unwrap();
        assert_eq!(answer.error_codes, [41].into());
        assert_eq!(answer.frame[..], [0, 0, 0, 1, 0, 0, 0, 0, 0, 41]);
        let newer = peer.relay(in_ms(&scene.env, 1000), relayed(3)).await.unwrap_err();
        assert!(matches!(newer, CallError::Unsupported(HEARTBEAT)), "{newer}");
    });
}

#[test]
fn answers_in_another_order_find_their_questions() {
    let held: std::sync::Mutex<Vec<RequestHeader>> = std::sync::Mutex::default();
    let backwards: Behaviour = Arc::new(move |header| {
        let mut held = held.lock().unwrap();
        held.push(header.clone());
        if held.len() < 3 { Vec::new() } else { held.drain(..).rev().map(|h| heartbeat(&h)).collect() }
    });
    let (scene, peer) = scene(&[(HEARTBEAT, 0, 4)], backwards);
    scene.world.run(async {
        let env = &scene.env;
        let (a, b, c) = tokio::join!(beat(env, &peer), beat(env, &peer), beat(env, &peer));
        assert_eq!([a.unwrap(), b.unwrap(), c.unwrap()], [1, 2, 3]);
    });
}

#[test]
fn no_more_are_in_flight_than_allowed_and_the_rest_waits_its_turn() {
    let asked = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counter = asked.clone();
    let silent: Behaviour = Arc::new(move |_| {
        counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Vec::new()
    });
    let (scene, peer) = scene(&[(HEARTBEAT, 0, 4)], silent);
    scene.world.run(async {
        let env = &scene.env;
        let beat = || beat(env, &peer);
        let results: [_; 5] = tokio::join!(beat(), beat(), beat(), beat(), beat()).into();
        assert!(results.iter().all(|result| matches!(result, Err(CallError::TimedOut))), "{results:?}");
        assert_eq!(asked.load(std::sync::atomic::Ordering::Relaxed), 3);
    });
}

#[test]
fn a_peer_that_never_answers_costs_the_deadline_and_its_connection() {
    let (scene, peer) = scene(&[(HEARTBEAT, 0, 4)], Arc::new(|_| Vec::new()));
    scene.world.run(async {
        let (before, mut state) = (scene.env.clock.now(), peer.watch());
        let error = beat(&scene.env, &peer).await.unwrap_err();
        assert!(matches!(error, CallError::TimedOut) && error.may_have_arrived());
        assert_eq!(scene.env.clock.now().since(before).as_millis(), 1000);
        state.wait_for(|state| state.closed == 1).await.unwrap();
    });
}

#[test]
fn a_reset_fails_what_is_in_flight_at_once_and_a_later_call_connects_again() {
    let (scene, peer) = scene(&[(HEARTBEAT, 0, 4)], Arc::new(|_| Vec::new()));
    scene.world.run(async {
        let (env, before) = (&scene.env, scene.env.clock.now());
        let reset = async {
            env.clock.sleep(Duration::from_millis(100)).await;
            scene.world.reset(&scene.here, &scene.there);
        };
        let (call, ()) = tokio::join!(beat(env, &peer), reset);
        assert!(matches!(call, Err(CallError::Closed)), "{call:?}");
        assert_eq!(env.clock.now().since(before).as_millis(), 100);
        assert_eq!(peer.watch().borrow().closed, 1);

        scene.there.kill();
        boot_peer(&scene.there, serving(&[(HEARTBEAT, 0, 4)]), heartbeats());
        assert!(matches!(beat(env, &peer).await, Err(CallError::BackingOff)), "too early");
        env.clock.sleep(Duration::from_millis(60)).await;
        assert_eq!(beat(env, &peer).await.unwrap(), 1);
    });
}

#[test]
fn a_peer_that_is_not_there_is_tried_less_and_less_often() {
    let (scene, peer) = scene(&[(HEARTBEAT, 0, 4)], heartbeats());
    scene.there.kill();
    scene.world.run(async {
        let (mut tries, end) = (0, in_ms(&scene.env, 10_000));
        while scene.env.clock.now() < end {
            match beat(&scene.env, &peer).await.unwrap_err() {
                CallError::Connect(_) => tries += 1,
                CallError::BackingOff => scene.env.clock.sleep(Duration::from_millis(5)).await,
                other => panic!("{other}"),
            }
        }
        assert!((18..30).contains(&tries), "{tries}");
    });
}

#[test]
fn garbage_for_an_answer_fails_its_call_and_ends_the_connection() {
    let garbage: Behaviour = Arc::new(|header| {
        // A response whose header names the question and whose body is one byte short of its version's.
        let whole = heartbeat(header);
        let mut cut = whole[..whole.len() - 1].to_vec();
        let length = (cut.len() as i32 - 4).to_be_bytes();
        cut[..4].copy_from_slice(&length);
        vec![cut.into()]
    });
    let (scene, peer) = scene(&[(HEARTBEAT, 0, 4)], garbage);
    scene.world.run(async {
        let error = beat(&scene.env, &peer).await.unwrap_err();
        assert!(matches!(error, CallError::Answer(_)) && error.may_have_arrived(), "{error}");
        peer.watch().wait_for(|state| state.closed == 1).await.unwrap();
    });
}

#[test]
fn an_answer_that_nobody_asked_for_ends_the_connection() {
    let foreign: Behaviour = Arc::new(|header| {
        vec![heartbeat(&RequestHeader { correlation_id: header.correlation_id + 7, ..header.clone() })]
    });
    let (scene, peer) = scene(&[(HEARTBEAT, 0, 4)], foreign);
    scene.world.run(async {
        assert!(matches!(beat(&scene.env, &peer).await, Err(CallError::Closed)));
    });
}

#[test]
fn a_frame_over_the_limit_ends_the_connection() {
    let large: Behaviour = Arc::new(|_| vec![Bytes::from(vec![1; MAX + 5])]);
    let (scene, peer) = scene(&[(HEARTBEAT, 0, 4)], large);
    scene.world.run(async {
        assert!(matches!(beat(&scene.env, &peer).await, Err(CallError::Closed)));
    });
}

#[test]
fn a_peer_that_refuses_the_handshake_is_told_from_one_that_is_not_there() {
    let world = World::new(1);
    let (there, here) = (world.node("there"), world.node("here"));
    boot_peer(&there, ApiVersionsResponse::default().with_error_code(58), heartbeats());
    let env = here.boot();
    let peer = Peer::new(&env, config(), "there:9093", "test");
    world.run(async {
        assert!(matches!(beat(&env, &peer).await, Err(CallError::Handshake(_))));
    });
}

#[test]
fn a_slow_peer_is_waited_for_until_the_deadline() {
    let (scene, peer) = scene(&[(HEARTBEAT, 0, 4)], heartbeats());
    let latency = Duration::from_millis(300)..Duration::from_millis(301);
    let speed = sim::LinkSpeed { latency, bytes_per_second: 1 << 20 };
    scene.world.set_speed(&scene.there, &scene.here, speed);
    scene.world.run(async {
        // The handshake takes two round trips and the call one.
        assert_eq!(beat(&scene.env, &peer).await.unwrap(), 1);
        let deadline = in_ms(&scene.env, 250);
        let late = peer.call(deadline, |_| HeartbeatRequest::default()).await.map(|_| ());
        assert!(matches!(late, Err(CallError::TimedOut)), "{late:?}");
    });
}
