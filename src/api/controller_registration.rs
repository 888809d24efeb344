//! ControllerRegistration: a controller says where it is and which features it can work with.
//!
//! Kafka: `ControllerApis.handleControllerRegistration`; KIP-919.

use model::ErrorCode;
use protocol::FromWire;
use protocol::messages::{ControllerRegistrationRequest, ControllerRegistrationResponse};
use protocol::records::metadata::RegisterControllerRecord;
use protocol::records::metadata::register_controller_record::{ControllerEndpoint, ControllerFeature};

use crate::text::message;
use crate::{Node, Reply, Session};

pub(crate) async fn handle(
    node: &Node,
    session: &mut Session,
    request: ControllerRegistrationRequest,
    _version: i16,
) -> Reply<ControllerRegistrationResponse> {
    let registration = lift(&request);
    let decided =
        node.decide(session.until, move |controller| controller.register_controller(registration)).await;
    Reply::Now(match decided {
        Ok(()) => ControllerRegistrationResponse::default(),
        Err(cause) => ControllerRegistrationResponse::default()
            .with_error_code(ErrorCode::from(cause).code())
            .with_error_message(Some(message(&cause))),
    })
}

fn lift(request: &ControllerRegistrationRequest) -> RegisterControllerRecord {
    let endpoints = request.listeners.iter().map(|listener| ControllerEndpoint {
        name: listener.name.to_string(),
        host: listener.host.to_string(),
        port: listener.port,
        security_protocol: listener.security_protocol,
    });
    let features = request.features.iter().map(|feature| ControllerFeature {
        name: feature.name.to_string(),
        min_supported_version: feature.min_supported_version,
        max_supported_version: feature.max_supported_version,
    });
    RegisterControllerRecord {
        controller_id: request.controller_id,
        incarnation_id: FromWire::from_wire(&request.incarnation_id),
        zk_migration_ready: request.zk_migration_ready,
        end_points: endpoints.collect(),
        features: features.collect(),
    }
}
