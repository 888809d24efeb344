//! Texts and nodes as messages spell them.

use model::NodeId;
use protocol::StrBytes;
use protocol::messages::BrokerId;

/// Longer error messages are shortened.
const MESSAGE_BYTES_MAX: usize = 1000;

/// Copies a text into a message.
pub(crate) fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

/// An error's text, where the message has a place for it. A client's own string may be in it, as long as a message can
/// carry: of a long text the middle is left out, so that it still says what is wrong.
pub(crate) fn message(error: &impl std::fmt::Display) -> StrBytes {
    let mut text = error.to_string();
    if text.len() > MESSAGE_BYTES_MAX {
        let start = text.floor_char_boundary(MESSAGE_BYTES_MAX / 2);
        let end = text.ceil_char_boundary(text.len() - MESSAGE_BYTES_MAX / 2);
        text.replace_range(start..end, "...");
    }
    StrBytes::from_string(text)
}

/// Nodes in a message.
pub(crate) fn broker_ids(nodes: &[NodeId]) -> Vec<BrokerId> {
    nodes.iter().map(|node| BrokerId(node.0)).collect()
}

/// Nodes of a message.
pub(crate) fn nodes(ids: &[BrokerId]) -> Vec<NodeId> {
    ids.iter().map(|id| NodeId(id.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_keeps_its_beginning_and_its_end() {
        assert_eq!(message(&"x".repeat(1000)).as_str(), "x".repeat(1000));
        let long = message(&format!("the name '{}' is too long", "\u{20ac}".repeat(10_000)));
        assert!(long.starts_with("the name '\u{20ac}") && long.ends_with("\u{20ac}' is too long"), "{long}");
        assert!(long.len() <= 1003, "{}", long.len());
    }
}
