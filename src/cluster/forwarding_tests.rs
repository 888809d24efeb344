//! Requests that come to a controller which is not the active one, in a simulated network.

use std::sync::Arc;
use std::time::Duration;

use model::{Instant, Uuid};
use protocol::messages::{ControllerRegistrationRequest, ControllerRegistrationResponse};
use protocol::{Request, RequestHeader, ToWire, decode_request_header, decode_response};

use crate::quorum_tests::{ALL, NEVER, Trio, without};
use crate::*;

/// A client's request: that controller 9 is known, in its run of this number.
fn request(run: u8) -> RelayedRequest {
    let client_id = Some("somebody".into());
    let header = RequestHeader {
        api_key: ControllerRegistrationRequest::KEY,
        api_version: 0,
        correlation_id: 77,
        client_id,
    };
    let request = ControllerRegistrationRequest::default()
        .with_controller_id(9)
        .with_incarnation_id(Uuid([run; 16]).to_wire());
    let mut body = protocol::encode_request(&header, &request).expect("encodes").slice(4..);
    decode_request_header(&mut body).expect("decodes");
    RelayedRequest { header, body }
}

fn read(answer: &RelayedAnswer) -> ControllerRegistrationResponse {
    let mut body = answer.frame.clone();
    protocol::decode_response_header(&mut body, ControllerRegistrationRequest::KEY, 0).expect("a header");
    decode_response::<ControllerRegistrationRequest>(0, body).expect("a body")
}

/// The run of controller 9 that this node knows.
fn known(cluster: &Cluster) -> Option<Uuid> {
    let image = cluster.image();
    let known = image.brokers.controllers().find(|known| known.controller_id == 9);
    known.map(|known| known.incarnation_id)
}

/// A node, and its way to the controller.
fn forwarding(trio: &Trio, id: i32) -> (Arc<Cluster>, Arc<Forwarding>) {
    trio.running(id).expect("it runs")
}

fn within(cluster: &Cluster, wait: Duration) -> Instant {
    cluster.clock.now().plus(wait)
}

const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn a_request_at_a_follower_is_answered_by_the_leader_and_is_true_at_the_follower_by_then() {
    for seed in 0..3 {
        let trio = Trio::new(seed, NEVER);
        trio.world.run(async {
            trio.start_all();
            let leader = trio.leader_of(&ALL).await;
            for (run, follower) in (1..).zip(without(leader)) {
                let (cluster, forwarding) = forwarding(&trio, follower);
                let answer = forwarding.forward(&request(run), within(&cluster, PATIENCE)).await;
                let answer = answer.expect("answered").expect("elsewhere");
                assert_eq!(read(&answer).error_code, 0);
                assert_eq!(known(&cluster), Some(Uuid([run; 16])), "seed {seed}");
            }
            let (cluster, forwarding) = forwarding(&trio, leader);
            let here = forwarding.forward(&request(9), within(&cluster, PATIENCE)).await;
            assert!(here.expect("no detour").is_none());
        });
    }
}

#[test]
fn a_request_outlives_the_leader_that_it_was_for() {
    for seed in 0..3 {
        let trio = Trio::new(seed, NEVER);
        trio.world.run(async {
            trio.start_all();
            let leader = trio.leader_of(&ALL).await;
            let left = without(leader);
            let (cluster, forwarding) = forwarding(&trio, left[0]);
            trio.kill(leader);
            let answer = forwarding.forward(&request(1), within(&cluster, PATIENCE)).await.expect("answered");
            match answer {
                Some(answer) => {
                    assert_eq!(read(&answer).error_code, 0);
                    assert_eq!(known(&cluster), Some(Uuid([1; 16])), "seed {seed}");
                }
                None => assert_eq!(trio.leader_of(&left).await, left[0], "it leads by now"),
            }
        });
    }
}

#[test]
fn without_a_majority_a_request_is_given_back_when_its_time_is_over() {
    let trio = Trio::new(5, NEVER);
    trio.world.run(async {
        trio.start_all();
        let leader = trio.leader_of(&ALL).await;
        let [stays, goes] = without(leader)[..] else { panic!("three") };
        let (cluster, forwarding) = forwarding(&trio, stays);
        trio.kill(leader);
        trio.kill(goes);
        let before = cluster.clock.now();
        let answer = forwarding.forward(&request(1), within(&cluster, PATIENCE)).await;
        assert_eq!(answer.map(|_| ()), Err(ClusterError::TimedOut));
        assert_eq!(cluster.clock.now().since(before).as_secs(), PATIENCE.as_secs());
    });
}

#[test]
fn a_leader_that_stands_still_is_left_for_the_next_one() {
    let trio = Trio::new(6, NEVER);
    trio.world.run(async {
        trio.start_all();
        let leader = trio.leader_of(&ALL).await;
        let follower = without(leader)[0];
        let (cluster, forwarding) = forwarding(&trio, follower);
        trio.machine(leader).pause();
        let answer = forwarding.forward(&request(1), within(&cluster, PATIENCE)).await.expect("answered");
        match answer {
            Some(answer) => {
                assert_eq!(read(&answer).error_code, 0);
                assert_eq!(known(&cluster), Some(Uuid([1; 16])));
            }
            None => assert_eq!(cluster.leader(), Some(cluster.node_id()), "it leads by now"),
        }
    });
}

#[test]
fn a_request_whose_time_is_over_breaks_no_connection_that_others_wait_on() {
    let trio = Trio::new(8, NEVER);
    trio.world.run(async {
        trio.start_all();
        let leader = trio.leader_of(&ALL).await;
        let (cluster, forwarding) = forwarding(&trio, without(leader)[0]);
        let connected = forwarding.forward(&request(1), within(&cluster, PATIENCE)).await;
        assert_eq!(read(&connected.expect("answered").expect("elsewhere")).error_code, 0);
        trio.machine(leader).pause();
        let (hasty, patient, late) = (request(2), request(3), Duration::from_millis(100));
        let hasty = async {
            let answer = forwarding.forward(&hasty, within(&cluster, late)).await;
            trio.machine(leader).resume();
            answer
        };
        let patient = forwarding.forward(&patient, within(&cluster, PATIENCE));
        let (hasty, patient) = tokio::join!(biased; hasty, patient);
        assert_eq!(hasty.map(|_| ()), Err(ClusterError::TimedOut));
        assert_eq!(read(&patient.expect("answered").expect("elsewhere")).error_code, 0);
        assert_eq!(forwarding.connections_closed(), 0);
    });
}

#[test]
fn a_version_that_the_leader_does_not_serve_is_not_sent() {
    let trio = Trio::new(7, NEVER);
    trio.world.run(async {
        trio.start_all();
        let (cluster, forwarding) = forwarding(&trio, without(trio.leader_of(&ALL).await)[0]);
        let mut newer = request(1);
        newer.header.api_version = 1;
        let answer = forwarding.forward(&newer, within(&cluster, PATIENCE)).await;
        assert_eq!(answer.map(|_| ()), Err(ClusterError::Unsupported));
    });
}
