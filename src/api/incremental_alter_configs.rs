//! IncrementalAlterConfigs: values of topics and brokers are set, deleted, and lists added to and taken from.
//!
//! Kafka: `ConfigAdminManager`, `ControllerApis.handleIncrementalAlterConfigs`; KIP-339.

use controller::{AlterConfig, AlterOp, AlterResource};
use protocol::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use protocol::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use protocol::messages::{IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse};

use crate::altered::{AlterRequest, Altered, alter};
use crate::{Node, Reply, Session};

pub(crate) async fn handle(
    node: &Node,
    session: &mut Session,
    request: IncrementalAlterConfigsRequest,
    _version: i16,
) -> Reply<IncrementalAlterConfigsResponse> {
    Reply::Now(lower(alter(node, session, request).await))
}

impl AlterRequest for IncrementalAlterConfigsRequest {
    fn lift(&self) -> (Vec<AlterResource>, bool) {
        (self.resources.iter().map(lift).collect(), self.validate_only)
    }

    fn retain(&mut self, keep: impl Fn(i8, &str) -> bool) {
        self.resources.retain(|resource| keep(resource.resource_type, &resource.resource_name));
    }

    fn altered(response: IncrementalAlterConfigsResponse) -> Vec<Altered> {
        let altered = response.responses.into_iter().map(|response| Altered {
            kind: response.resource_type,
            name: response.resource_name,
            code: response.error_code,
            message: response.error_message,
        });
        altered.collect()
    }
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

fn lower(altered: Vec<Altered>) -> IncrementalAlterConfigsResponse {
    let responses = altered.into_iter().map(|altered| {
        AlterConfigsResourceResponse::default()
            .with_resource_type(altered.kind)
            .with_resource_name(altered.name)
            .with_error_code(altered.code)
            .with_error_message(altered.message)
    });
    IncrementalAlterConfigsResponse::default().with_responses(responses.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::altered::tests::outcomes;
    use crate::testing::encodes;

    #[test]
    fn every_version_can_say_what_came_of_a_resource() {
        encodes("IncrementalAlterConfigs", |_| lower(outcomes()));
    }
}
