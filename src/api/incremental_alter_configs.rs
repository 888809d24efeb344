//! IncrementalAlterConfigs: values of topics and brokers are set, deleted, and lists added to and taken from.
//!
//! Kafka: `ConfigAdminManager`, `ControllerApis.handleIncrementalAlterConfigs`; KIP-339.

use cluster::ClusterError;
use controller::{AlterConfig, AlterOp, AlterResource, AlteredResource};
use model::ErrorCode;
use protocol::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use protocol::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use protocol::messages::{IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse};

use crate::text::{message, text};
use crate::{Node, Reply, Session};

pub(crate) async fn handle(
    node: &Node,
    _session: &mut Session,
    request: IncrementalAlterConfigsRequest,
    _version: i16,
) -> Reply<IncrementalAlterConfigsResponse> {
    let resources: Vec<AlterResource> = request.resources.iter().map(lift).collect();
    let (receiver, validate_only) = (node.cluster.node_id(), request.validate_only);
    let altered = node
        .cluster
        .decide(move |controller| controller.alter_configs(&resources, receiver, validate_only))
        .await;
    Reply::Now(match altered {
        Ok(altered) => lower(altered),
        Err(cause) => error(&request, cause),
    })
}

fn lift(resource: &AlterConfigsResource) -> AlterResource {
    AlterResource {
        kind: resource.resource_type,
        name: resource.resource_name.to_string(),
        changes: resource.configs.iter().map(lift_change).collect(),
        replace: false,
    }
}

fn lift_change(config: &AlterableConfig) -> AlterConfig {
    AlterConfig {
        name: config.name.to_string(),
        op: AlterOp::from_code(config.config_operation),
        value: config.value.as_ref().map(ToString::to_string),
    }
}

fn lower(altered: Vec<AlteredResource>) -> IncrementalAlterConfigsResponse {
    let responses = altered.into_iter().map(|resource| {
        let response = AlterConfigsResourceResponse::default()
            .with_resource_type(resource.kind)
            .with_resource_name(text(&resource.name))
            .with_error_message(None);
        match resource.result {
            Ok(()) => response,
            Err(cause) => response
                .with_error_code(ErrorCode::from(&cause).code())
                .with_error_message(Some(message(&cause))),
        }
    });
    IncrementalAlterConfigsResponse::default().with_responses(responses.collect())
}

fn error(request: &IncrementalAlterConfigsRequest, cause: ClusterError) -> IncrementalAlterConfigsResponse {
    let responses = request.resources.iter().map(|resource| {
        AlterConfigsResourceResponse::default()
            .with_resource_type(resource.resource_type)
            .with_resource_name(resource.resource_name.clone())
            .with_error_code(ErrorCode::from(cause).code())
            .with_error_message(Some(message(&cause)))
    });
    IncrementalAlterConfigsResponse::default().with_responses(responses.collect())
}

#[cfg(test)]
mod tests {
    use controller::AlterConfigError;

    use super::*;
    use crate::testing::encodes;

    #[test]
    fn every_version_can_say_what_came_of_a_resource() {
        for result in [Ok(()), Err(AlterConfigError::DuplicateKeys)] {
            let altered = || vec![AlteredResource { kind: 2, name: "t".into(), result: result.clone() }];
            encodes("IncrementalAlterConfigs", |_| lower(altered()));
        }
    }
}
