//! Texts and nodes as messages spell them.

use model::NodeId;
use protocol::StrBytes;
use protocol::messages::BrokerId;

/// Copies a text into a message.
pub(crate) fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

/// An error's text, where the message has a place for it.
pub(crate) fn message(error: &impl std::fmt::Display) -> StrBytes {
    StrBytes::from_string(error.to_string())
}

/// Nodes in a message.
pub(crate) fn broker_ids(nodes: &[NodeId]) -> Vec<BrokerId> {
    nodes.iter().map(|node| BrokerId(node.0)).collect()
}

/// Nodes of a message.
pub(crate) fn nodes(ids: &[BrokerId]) -> Vec<NodeId> {
    ids.iter().map(|id| NodeId(id.0)).collect()
}
