//! This controller's registration with the active one: where it is and which features it can work with.
//!
//! Once for each run, and again until the metadata says so. Clients that ask any controller find all of them by it, and
//! a feature's level rises only to what every controller can do.
//!
//! Kafka: `ControllerRegistrationManager`; KIP-919.

use std::sync::Arc;
use std::time::Duration;

use env::Env;
use model::Uuid;
use protocol::ToWire;
use protocol::messages::ControllerRegistrationRequest;
use protocol::messages::controller_registration_request::{Feature, Listener};
use protocol::records::metadata::RegisterControllerRecord;
use protocol::records::metadata::register_controller_record::{ControllerEndpoint, ControllerFeature};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};

use crate::Cluster;
use crate::controller_peer::ControllerPeer;

const TRY_AGAIN: Duration = Duration::from_millis(500);
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

pub(crate) struct ControllerRegistration {
    env: Env,
    cluster: Arc<Cluster>,
    incarnation: Uuid,
    controller: ControllerPeer,
}

impl ControllerRegistration {
    pub(crate) fn new(env: &Env, cluster: Arc<Cluster>) -> Self {
        let controller = ControllerPeer::new(env, cluster.clone(), "controller registration", 1);
        Self { env: env.clone(), cluster, incarnation: env.rng.uuid(), controller }
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
        let Some(peer) = self.controller.peer() else { return };
        let deadline = self.env.clock.now().plus(ANSWER_WITHIN);
        match peer.call::<ControllerRegistrationRequest>(deadline, move |_| request(&record)).await {
            Ok(answer) => {
                debug!(error_code = answer.response.error_code, "the leader answered a registration");
            }
            Err(error) => debug!(%error, "the leader did not answer a registration"),
        }
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
