//! This controller's registration with the active one: where it is and which features it can work with.
//!
//! Once for each run, and again until the metadata says so. Clients that ask any controller find all of them by it, and
//! a feature's level rises only to what every controller can do.
//!
//! Kafka: `ControllerRegistrationManager`; KIP-919.

use std::sync::Arc;
use std::time::Duration;

use env::Env;
use model::{Limits, Uuid};
use protocol::ToWire;
use protocol::messages::ControllerRegistrationRequest;
use protocol::messages::controller_registration_request::{Feature, Listener};
use protocol::records::metadata::RegisterControllerRecord;
use protocol::records::metadata::register_controller_record::{ControllerEndpoint, ControllerFeature};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};
use transport::{Peer, PeerConfig};

use crate::Cluster;

const TRY_AGAIN: Duration = Duration::from_millis(500);
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
const RECONNECT_BACKOFF: Duration = Duration::from_millis(50);

pub(crate) struct ControllerRegistration {
    env: Env,
    cluster: Arc<Cluster>,
    incarnation: Uuid,
    /// The leader that was asked last, and where it is.
    leader: Option<(String, Peer)>,
}

impl ControllerRegistration {
    pub(crate) fn new(env: &Env, cluster: Arc<Cluster>) -> Self {
        Self { env: env.clone(), cluster, incarnation: env.rng.uuid(), leader: None }
    }

    /// Runs until the node closes.
    pub(crate) async fn run(mut self, closing: CancellationToken) {
        tokio::select! {
            biased;
            () = closing.cancelled() => {}
            () = self.register() => info!("this controller is registered"),
        }
    }

    async fn register(&mut self) {
        while !self.is_registered() {
            self.ask().await;
            self.env.clock.sleep(TRY_AGAIN).await;
        }
    }

    fn is_registered(&self) -> bool {
        let (image, me) = (self.cluster.image(), self.cluster.node_id().0);
        let mut controllers = image.brokers.controllers();
        controllers.any(|known| known.controller_id == me && known.incarnation_id == self.incarnation)
    }

    /// Asks whoever leads; whether that worked shows in the metadata.
    async fn ask(&mut self) {
        let record = self.record();
        if self.cluster.leader() == Some(self.cluster.node_id()) {
            // It may have led until now.
            let _ = self.cluster.decide(move |controller| controller.register_controller(record)).await;
            return;
        }
        let Some(peer) = self.peer() else { return };
        let deadline = self.env.clock.now().plus(ANSWER_WITHIN);
        match peer.call::<ControllerRegistrationRequest>(deadline, move |_| request(&record)).await {
            Ok(answer) => {
                debug!(error_code = answer.response.error_code, "the leader answered a registration");
            }
            Err(error) => debug!(%error, "the leader did not answer a registration"),
        }
    }

    fn peer(&mut self) -> Option<Peer> {
        let address = self.cluster.view.load().leader_address.as_ref()?.to_string();
        if self.leader.as_ref().is_none_or(|(known, _)| *known != address) {
            let config = PeerConfig {
                client_id: format!("controller-{}", self.cluster.node_id()),
                frame_bytes_max: Limits::SMALL_FILE_BYTES_MAX,
                in_flight_max: 1,
                setup_timeout: ANSWER_WITHIN,
                reconnect_backoff: RECONNECT_BACKOFF,
                reconnect_backoff_max: TRY_AGAIN,
            };
            let peer = Peer::new(&self.env, config, &address, "controller registration");
            self.leader = Some((address, peer));
        }
        self.leader.as_ref().map(|(_, peer)| peer.clone())
    }

    fn record(&self) -> RegisterControllerRecord {
        let endpoint = |endpoint: &quorum::Endpoint| ControllerEndpoint {
            name: endpoint.name.clone(),
            host: endpoint.host.clone(),
            port: endpoint.port,
            // PLAINTEXT, as all listeners are.
            security_protocol: 0,
        };
        let feature = |feature: &controller::SupportedFeature| ControllerFeature {
            name: feature.name.to_owned(),
            min_supported_version: feature.min,
            max_supported_version: feature.max,
        };
        RegisterControllerRecord {
            controller_id: self.cluster.node_id().0,
            incarnation_id: self.incarnation,
            zk_migration_ready: false,
            end_points: self.cluster.place.endpoints.iter().map(endpoint).collect(),
            features: controller::SUPPORTED_FEATURES.iter().map(feature).collect(),
        }
    }
}

fn request(record: &RegisterControllerRecord) -> ControllerRegistrationRequest {
    let listener = |endpoint: &ControllerEndpoint| {
        Listener::default()
            .with_name(endpoint.name.clone().into())
            .with_host(endpoint.host.clone().into())
            .with_port(endpoint.port)
            .with_security_protocol(endpoint.security_protocol)
    };
    let feature = |feature: &ControllerFeature| {
        Feature::default()
            .with_name(feature.name.clone().into())
            .with_min_supported_version(feature.min_supported_version)
            .with_max_supported_version(feature.max_supported_version)
    };
    ControllerRegistrationRequest::default()
        .with_controller_id(record.controller_id)
        .with_incarnation_id(record.incarnation_id.to_wire())
        .with_zk_migration_ready(record.zk_migration_ready)
        .with_listeners(record.end_points.iter().map(listener).collect())
        .with_features(record.features.iter().map(feature).collect())
}
