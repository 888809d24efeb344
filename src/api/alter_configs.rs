//! AlterConfigs, the older way: the values that are given replace all that a topic or broker had.
//!
//! Kafka: `ConfigAdminManager`, `ControllerApis.handleLegacyAlterConfigs`; KIP-133.

use controller::{AlterConfig, AlterOp, AlterResource};
use protocol::messages::alter_configs_request::{AlterConfigsResource, AlterableConfig};
use protocol::messages::alter_configs_response::AlterConfigsResourceResponse;
use protocol::messages::{AlterConfigsRequest, AlterConfigsResponse};

use crate::altered::{AlterRequest, Altered, alter};
use crate::{Node, Reply, Session};

pub(crate) async fn handle(
    node: &Node,
    session: &mut Session,
    request: AlterConfigsRequest,
    _version: i16,
) -> Reply<AlterConfigsResponse> {
    Reply::Now(lower(alter(node, session, request).await))
}

impl AlterRequest for AlterConfigsRequest {
    fn lift(&self) -> (Vec<AlterResource>, bool) {
        (self.resources.iter().map(lift).collect(), self.validate_only)
    }

    fn retain(&mut self, keep: impl Fn(i8, &str) -> bool) {
        self.resources.retain(|resource| keep(resource.resource_type, &resource.resource_name));
    }

    fn altered(response: AlterConfigsResponse) -> Vec<Altered> {
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
        replace: true,
    }
}

fn lift_change(config: &AlterableConfig) -> AlterConfig {
    AlterConfig {
        name: config.name.to_string(),
        op: AlterOp::Set,
        value: config.value.as_ref().map(ToString::to_string),
    }
}

fn lower(altered: Vec<Altered>) -> AlterConfigsResponse {
    let responses = altered.into_iter().map(|altered| {
        AlterConfigsResourceResponse::default()
            .with_resource_type(altered.kind)
            .with_resource_name(altered.name)
            .with_error_code(altered.code)
            .with_error_message(altered.message)
    });
    AlterConfigsResponse::default().with_responses(responses.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::altered::tests::outcomes;
    use crate::testing::encodes;

    #[test]
    fn every_version_can_say_what_came_of_a_resource() {
        encodes("AlterConfigs", |_| lower(outcomes()));
    }
}
