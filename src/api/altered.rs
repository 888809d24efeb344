//! What the two APIs that alter configurations share: who decides, and what is told of each resource.
//!
//! A broker refuses by itself what is not its business or makes no sense, and asks the controller for the rest.
//!
//! Kafka: `ConfigAdminManager.preprocess`, `ConfigAdminManager.reassembleLegacyResponse`.

use std::collections::BTreeMap;

use cluster::ClusterError;
use controller::{AlterConfigError, AlterResource, AlteredResource, check_alterations};
use model::{ErrorCode, Instant, NodeId};
use protocol::{Request, StrBytes};

use crate::forwarding::ask;
use crate::text::{message, text};
use crate::{Node, Session, Side};

/// The request of one of the two.
pub(crate) trait AlterRequest: Request + Sized {
    /// Its resources, and whether nothing is to be done about them but to look.
    fn lift(&self) -> (Vec<AlterResource>, bool);

    /// Leaves the resources for which the answer is true.
    fn retain(&mut self, keep: impl Fn(i8, &str) -> bool);

    /// What an answer says of each resource.
    fn altered(response: Self::Response) -> Vec<Altered>;
}

/// What came of a resource, as both answers say it.
#[derive(Clone)]
pub(crate) struct Altered {
    pub(crate) kind: i8,
    pub(crate) name: StrBytes,
    pub(crate) code: i16,
    pub(crate) message: Option<StrBytes>,
}

/// Alters all, or says of each why not.
pub(crate) async fn alter<R: AlterRequest>(node: &Node, session: &Session, request: R) -> Vec<Altered> {
    let (resources, validate_only) = request.lift();
    if session.side == Side::Controller {
        return decide(node, session.until, resources, None, validate_only).await;
    }
    let me = Some(node.cluster.node_id());
    let (asked, refused) = split(request, &resources, me);
    if asked.lift().0.is_empty() {
        return merge(&resources, &refused, Ok(Vec::new()));
    }
    let answered = match ask(node, session.until, &asked).await {
        Ok(None) => return decide(node, session.until, resources, me, validate_only).await,
        Ok(Some(response)) => Ok(R::altered(response)),
        Err(cause) => Err(cause),
    };
    merge(&resources, &refused, answered)
}

type Refused = BTreeMap<(i8, String), AlterConfigError>;

/// What the controller is asked for, and what it is not.
fn split<R: AlterRequest>(mut request: R, resources: &[AlterResource], me: Option<NodeId>) -> (R, Refused) {
    let checked = resources.iter().zip(check_alterations(resources, me));
    let refused: Refused = checked
        .filter_map(|(resource, checked)| Some(((resource.kind, resource.name.clone()), checked.err()?)))
        .collect();
    request.retain(|kind, name| !refused.contains_key(&(kind, name.to_owned())));
    (request, refused)
}

/// What came of all resources, in the order of the request.
fn merge(
    resources: &[AlterResource],
    refused: &Refused,
    answered: Result<Vec<Altered>, ClusterError>,
) -> Vec<Altered> {
    let answers: BTreeMap<_, _> =
        answered.iter().flatten().map(|altered| ((altered.kind, altered.name.as_str()), altered)).collect();
    let cause = answered.as_ref().err().copied().unwrap_or(ClusterError::TimedOut);
    let merged = resources.iter().map(|resource| {
        let (kind, name) = (resource.kind, resource.name.as_str());
        match (refused.get(&(kind, name.to_owned())), answers.get(&(kind, name))) {
            (Some(cause), _) => Altered::refused(resource, cause.into(), &cause),
            (None, Some(answer)) => (*answer).clone(),
            (None, None) => Altered::refused(resource, cause.into(), &cause),
        }
    });
    merged.collect()
}

/// Lets this node's controller decide.
async fn decide(
    node: &Node,
    until: Instant,
    resources: Vec<AlterResource>,
    receiver: Option<NodeId>,
    validate_only: bool,
) -> Vec<Altered> {
    let asked = resources.clone();
    let decided =
        node.decide(until, move |controller| controller.alter_configs(&asked, receiver, validate_only)).await;
    match decided {
        Ok(altered) => altered.into_iter().map(Altered::from).collect(),
        Err(cause) => {
            resources.iter().map(|resource| Altered::refused(resource, cause.into(), &cause)).collect()
        }
    }
}

impl Altered {
    fn refused(resource: &AlterResource, code: ErrorCode, cause: &impl std::fmt::Display) -> Self {
        Self {
            kind: resource.kind,
            name: text(&resource.name),
            code: code.code(),
            message: Some(message(cause)),
        }
    }
}

impl From<AlteredResource> for Altered {
    fn from(altered: AlteredResource) -> Self {
        let cause = altered.result.err();
        Self {
            kind: altered.kind,
            name: text(&altered.name),
            code: cause.as_ref().map_or(ErrorCode::None, ErrorCode::from).code(),
            message: cause.as_ref().map(message),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use protocol::messages::IncrementalAlterConfigsRequest;
    use protocol::messages::incremental_alter_configs_request::AlterConfigsResource;

    use super::*;

    /// What may come of a resource.
    pub(crate) fn outcomes() -> Vec<Altered> {
        let results = [Ok(()), Err(AlterConfigError::DuplicateKeys)];
        let altered = |result| Altered::from(AlteredResource { kind: 2, name: "t".into(), result });
        results.into_iter().map(altered).collect()
    }

    fn resources(named: &[(i8, &str)]) -> Vec<AlterResource> {
        let resource = |(kind, name): &(i8, &str)| AlterResource {
            kind: *kind,
            name: (*name).to_owned(),
            changes: Vec::new(),
            replace: false,
        };
        named.iter().map(resource).collect()
    }

    fn asking_for(named: &[(i8, &str)]) -> IncrementalAlterConfigsRequest {
        let resources = named.iter().map(|(kind, name)| {
            AlterConfigsResource::default().with_resource_type(*kind).with_resource_name(text(name))
        });
        IncrementalAlterConfigsRequest::default().with_resources(resources.collect())
    }

    #[test]
    fn the_controller_is_asked_for_what_the_broker_does_not_refuse_and_all_is_told_in_order() {
        const TOPIC: i8 = 2;
        const BROKER: i8 = 4;
        let named = [(BROKER, "9"), (TOPIC, "t"), (BROKER, "1"), (TOPIC, "u")];
        let resources = resources(&named);
        let (asked, refused) = split(asking_for(&named), &resources, Some(NodeId(1)));
        let names: Vec<_> = asked.resources.iter().map(|one| one.resource_name.as_str()).collect();
        assert_eq!(names, ["t", "1", "u"]);

        let answer = |kind, name, code| Altered { kind, name: text(name), code, message: None };
        let answers = vec![answer(TOPIC, "u", 3), answer(BROKER, "1", 0), answer(TOPIC, "t", 0)];
        let merged = merge(&resources, &refused, Ok(answers));
        let told: Vec<_> = merged.iter().map(|one| (one.name.as_str(), one.code)).collect();
        let invalid = ErrorCode::InvalidRequest.code();
        assert_eq!(told, [("9", invalid), ("t", 0), ("1", 0), ("u", 3)]);

        let merged = merge(&resources, &refused, Err(ClusterError::TimedOut));
        let codes: Vec<_> = merged.iter().map(|one| one.code).collect();
        let late = ErrorCode::RequestTimedOut.code();
        assert_eq!(codes, [invalid, late, late, late]);
    }

    #[test]
    fn a_refusal_has_a_code_and_a_message_and_success_has_neither() {
        let [done, refused] = outcomes().try_into().ok().expect("two");
        assert_eq!((done.code, done.message), (0, None));
        assert_eq!(refused.code, ErrorCode::InvalidRequest.code());
        assert!(refused.message.is_some());
    }
}
