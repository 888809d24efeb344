//! ListConfigResources: what has configuration, by kind. Version 0 only knew client metrics.
//!
//! Kafka: `KafkaApis.handleListConfigResources`; KIP-1000, KIP-1142.

use metadata::{Image, ResourceType};
use model::ErrorCode;
use protocol::messages::list_config_resources_response::ConfigResource;
use protocol::messages::{ListConfigResourcesRequest, ListConfigResourcesResponse};

use crate::text::text;
use crate::{Node, Reply, Session};

const ALL: [ResourceType; 5] = [
    ResourceType::Group,
    ResourceType::ClientMetrics,
    ResourceType::BrokerLogger,
    ResourceType::Broker,
    ResourceType::Topic,
];

pub(crate) async fn handle(
    node: &Node,
    _session: &mut Session,
    request: ListConfigResourcesRequest,
    version: i16,
) -> Reply<ListConfigResourcesResponse> {
    let Some(kinds) = lift(&request, version) else {
        return Reply::Now(error(ErrorCode::UnsupportedVersion));
    };
    let image = node.image();
    let resources =
        kinds.into_iter().flat_map(|kind| names(&image, kind).into_iter().map(move |name| (kind, name)));
    let resources = resources.map(|(kind, name)| {
        ConfigResource::default().with_resource_name(text(&name)).with_resource_type(kind.code())
    });
    Reply::Now(ListConfigResourcesResponse::default().with_config_resources(resources.collect()))
}

/// The kinds that are asked for, an empty list being all; `None` if one of them is unknown.
fn lift(request: &ListConfigResourcesRequest, version: i16) -> Option<Vec<ResourceType>> {
    if version == 0 {
        return Some(vec![ResourceType::ClientMetrics]);
    }
    if request.resource_types.is_empty() {
        return Some(ALL.to_vec());
    }
    let asked: Option<Vec<_>> =
        request.resource_types.iter().map(|code| ResourceType::from_code(*code)).collect();
    let asked = asked?;
    Some(ALL.into_iter().filter(|kind| asked.contains(kind)).collect())
}

fn names(image: &Image, kind: ResourceType) -> Vec<String> {
    match kind {
        ResourceType::Topic => image.topics.iter().map(|topic| topic.name.to_string()).collect(),
        ResourceType::Broker | ResourceType::BrokerLogger => {
            image.brokers.unfenced().map(|broker| broker.id.to_string()).collect()
        }
        ResourceType::Group | ResourceType::ClientMetrics => {
            let set = image.configs.resources().filter(|resource| resource.kind == kind);
            set.map(|resource| resource.name.clone()).collect()
        }
    }
}

fn error(code: ErrorCode) -> ListConfigResourcesResponse {
    ListConfigResourcesResponse::default().with_error_code(code.code())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_zero_asks_for_client_metrics_and_an_empty_list_for_all() {
        let ask = |codes: &[i8]| ListConfigResourcesRequest::default().with_resource_types(codes.to_vec());
        assert_eq!(lift(&ask(&[]), 0), Some(vec![ResourceType::ClientMetrics]));
        assert_eq!(lift(&ask(&[]), 1), Some(ALL.to_vec()));
        assert_eq!(lift(&ask(&[2, 4]), 1), Some(vec![ResourceType::Broker, ResourceType::Topic]));
        assert_eq!(lift(&ask(&[3]), 1), None);
    }
}
