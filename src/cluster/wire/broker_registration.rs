//! BrokerRegistration: a broker's run begins.
//!
//! An Ottla broker says with a tagged field, empty, that it flushes before it acknowledges: see `Registration::durable`.
//! Kafka's controllers skip the tag, and Kafka's brokers do not send it.
//!
//! Kafka: `ControllerApis.handleBrokerRegistration`, `BrokerLifecycleManager.sendBrokerRegistration`; KIP-631, 858, 966.

use bytes::Bytes;
use controller::{ConnectionId, Controller, Decision, Registration};
use metadata::{Endpoint, FeatureRange, SecurityProtocol};
use model::{BrokerEpoch, ClusterId, ErrorCode, Instant, NodeId, Uuid};
use protocol::messages::broker_registration_request::{Feature, Listener};
use protocol::messages::{BrokerRegistrationRequest, BrokerRegistrationResponse};
use protocol::{FromWire, ToWire};
use tracing::info;

use super::{ControllerApi, text};

const DURABLE_TAG: i32 = 20_342;
/// No run before that is known of.
const NO_EPOCH: i64 = -1;

impl ControllerApi for Registration {
    type Request = BrokerRegistrationRequest;
    type Reply = BrokerEpoch;

    fn decide(self, controller: &mut Controller, now: Instant) -> Decision<Result<Self::Reply, ErrorCode>> {
        let log_end = controller.image().end();
        let Decision { records, reply } = controller.register_broker(&self, log_end, now);
        let reply = reply.map_err(|error| {
            info!(broker_id = self.id.0, %error, "a broker was not registered");
            ErrorCode::from(&error)
        });
        Decision { records, reply }
    }

    fn ask(self, version: i16) -> Self::Request {
        let log_dirs = self.directories.iter().filter(|_| version >= 2).map(ToWire::to_wire);
        let mut request = BrokerRegistrationRequest::default()
            .with_broker_id(self.id.to_wire())
            .with_cluster_id(self.cluster_id.to_wire())
            .with_incarnation_id(self.incarnation.to_wire())
            .with_listeners(self.endpoints.iter().map(listener).collect())
            .with_features(self.features.iter().map(feature).collect())
            .with_rack(self.rack.as_deref().map(text))
            .with_log_dirs(log_dirs.collect());
        if version >= 3 {
            request.previous_broker_epoch = self.previous_epoch.map_or(NO_EPOCH, |epoch| epoch.0);
        }
        if self.durable {
            request.unknown_tagged_fields.insert(DURABLE_TAG, Bytes::new());
        }
        request
    }

    fn read(request: &Self::Request, connection: ConnectionId) -> Result<Self, ErrorCode> {
        let previous = request.previous_broker_epoch;
        Ok(Self {
            cluster_id: ClusterId::from_wire(&request.cluster_id),
            id: NodeId::from_wire(&request.broker_id),
            incarnation: Uuid::from_wire(&request.incarnation_id),
            endpoints: request.listeners.iter().map(endpoint).collect::<Result<_, _>>()?,
            features: request.features.iter().map(range).collect(),
            rack: request.rack.as_deref().map(str::to_owned),
            directories: request.log_dirs.iter().map(Uuid::from_wire).collect(),
            previous_epoch: (previous >= 0).then_some(BrokerEpoch(previous)),
            durable: request.unknown_tagged_fields.contains_key(&DURABLE_TAG),
            connection,
        })
    }

    fn answer(result: Result<Self::Reply, ErrorCode>) -> BrokerRegistrationResponse {
        match result {
            Ok(epoch) => BrokerRegistrationResponse::default().with_broker_epoch(epoch.0),
            Err(error) => BrokerRegistrationResponse::default().with_error_code(error.code()),
        }
    }

    fn hear(response: BrokerRegistrationResponse) -> Result<Self::Reply, ErrorCode> {
        match ErrorCode::told(response.error_code) {
            ErrorCode::None => Ok(BrokerEpoch(response.broker_epoch)),
            error => Err(error),
        }
    }
}

fn listener(endpoint: &Endpoint) -> Listener {
    Listener::default()
        .with_name(text(&endpoint.listener))
        .with_host(text(&endpoint.host))
        .with_port(endpoint.port)
        .with_security_protocol(endpoint.protocol as i16)
}

fn endpoint(listener: &Listener) -> Result<Endpoint, ErrorCode> {
    Ok(Endpoint {
        listener: listener.name.to_string(),
        host: listener.host.to_string(),
        port: listener.port,
        protocol: SecurityProtocol::of_code(listener.security_protocol)
            .ok_or(ErrorCode::InvalidRegistration)?,
    })
}

fn feature(range: &FeatureRange) -> Feature {
    Feature::default()
        .with_name(text(&range.name))
        .with_min_supported_version(range.min)
        .with_max_supported_version(range.max)
}

fn range(feature: &Feature) -> FeatureRange {
    FeatureRange {
        name: feature.name.to_string(),
        min: feature.min_supported_version,
        max: feature.max_supported_version,
    }
}
