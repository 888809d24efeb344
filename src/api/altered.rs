//! What the two APIs that alter configurations share: the decision, and what is told of each resource.

use controller::{AlterResource, AlteredResource};
use model::ErrorCode;
use protocol::StrBytes;

use crate::Node;
use crate::text::{message, text};

/// What came of a resource, as both answers say it.
pub(crate) struct Altered {
    pub(crate) kind: i8,
    pub(crate) name: StrBytes,
    pub(crate) code: i16,
    pub(crate) message: Option<StrBytes>,
}

/// Alters all, or says of all why not.
pub(crate) async fn alter(node: &Node, resources: Vec<AlterResource>, validate_only: bool) -> Vec<Altered> {
    let names: Vec<_> = resources.iter().map(|resource| (resource.kind, text(&resource.name))).collect();
    let receiver = node.cluster.node_id();
    let decided = node
        .cluster
        .decide(move |controller| controller.alter_configs(&resources, receiver, validate_only))
        .await;
    match decided {
        Ok(altered) => altered.into_iter().map(Altered::from).collect(),
        Err(cause) => {
            let refused = |(kind, name)| Altered {
                kind,
                name,
                code: ErrorCode::from(cause).code(),
                message: Some(message(&cause)),
            };
            names.into_iter().map(refused).collect()
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
    use controller::AlterConfigError;

    use super::*;

    /// What may come of a resource.
    pub(crate) fn outcomes() -> Vec<Altered> {
        let results = [Ok(()), Err(AlterConfigError::DuplicateKeys)];
        let altered = |result| Altered::from(AlteredResource { kind: 2, name: "t".into(), result });
        results.into_iter().map(altered).collect()
    }

    #[test]
    fn a_refusal_has_a_code_and_a_message_and_success_has_neither() {
        let [done, refused] = outcomes().try_into().ok().expect("two");
        assert_eq!((done.code, done.message), (0, None));
        assert_eq!(refused.code, ErrorCode::InvalidRequest.code());
        assert!(refused.message.is_some());
    }
}
