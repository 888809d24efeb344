//! DescribeCluster: the cluster's id and its brokers.
//!
//! Kafka: `KafkaApis.handleDescribeCluster`, `RequestHandlerHelper`; KIP-700, KIP-919, KIP-1073.

use metadata::Broker;
use model::ErrorCode;
use protocol::ToWire;
use protocol::messages::describe_cluster_response::DescribeClusterBroker;
use protocol::messages::{BrokerId, DescribeClusterRequest, DescribeClusterResponse};

use crate::authorized::{self, if_asked};
use crate::text::{message, text};
use crate::{Node, Reply, Session, Side};

const BROKERS: i8 = 1;
const CONTROLLERS: i8 = 2;

/// Why the cluster is not described.
#[derive(Debug, thiserror::Error)]
enum DescribeClusterError {
    #[error(
        "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
    )]
    SentToBroker,
    #[error(
        "The request was sent to an endpoint of type CONTROLLER, but we wanted an endpoint of type BROKER"
    )]
    SentToController,
    #[error("Unsupported endpoint type {0}")]
    UnknownType(i8),
}

pub(crate) async fn handle(
    node: &Node,
    session: &mut Session,
    request: DescribeClusterRequest,
    _version: i16,
) -> Reply<DescribeClusterResponse> {
    Reply::Now(match (request.endpoint_type, session.side) {
        (BROKERS, Side::Broker) => lower(node, session, &request),
        (BROKERS, Side::Controller) => error(&DescribeClusterError::SentToController),
        (CONTROLLERS, Side::Controller) => node.cluster.describe_controllers(&request),
        (CONTROLLERS, Side::Broker) => error(&DescribeClusterError::SentToBroker),
        (other, _) => error(&DescribeClusterError::UnknownType(other)),
    })
}

fn lower(node: &Node, session: &Session, request: &DescribeClusterRequest) -> DescribeClusterResponse {
    let image = node.image();
    let wanted = image.brokers.iter().filter(|broker| request.include_fenced_brokers || !broker.fenced);
    DescribeClusterResponse::default()
        .with_endpoint_type(BROKERS)
        .with_cluster_id(node.cluster.cluster_id().to_wire())
        .with_controller_id(node.any_broker(&image, &session.listener).to_wire())
        .with_brokers(wanted.filter_map(|broker| lower_broker(broker, &session.listener)).collect())
        .with_cluster_authorized_operations(if_asked(
            request.include_cluster_authorized_operations,
            authorized::CLUSTER,
        ))
}

fn lower_broker(broker: &Broker, listener: &str) -> Option<DescribeClusterBroker> {
    let endpoint = broker.endpoint(listener)?;
    Some(
        DescribeClusterBroker::default()
            .with_broker_id(broker.id.to_wire())
            .with_host(text(&endpoint.host))
            .with_port(i32::from(endpoint.port))
            .with_rack(broker.rack.as_deref().map(text))
            .with_is_fenced(broker.fenced),
    )
}

fn error(cause: &DescribeClusterError) -> DescribeClusterResponse {
    let code = match cause {
        DescribeClusterError::SentToBroker | DescribeClusterError::SentToController => {
            ErrorCode::MismatchedEndpointType
        }
        DescribeClusterError::UnknownType(_) => ErrorCode::UnsupportedEndpointType,
    };
    DescribeClusterResponse::default()
        .with_error_code(code.code())
        .with_error_message(Some(message(cause)))
        .with_controller_id(BrokerId(-1))
}
