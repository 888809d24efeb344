//! What a topic may be named.
//!
//! Kafka: `org.apache.kafka.common.internals.Topic`.

use crate::TopicError;

const LENGTH_MAX: usize = 249;

/// The topic of the metadata log itself, which is no topic to clients.
pub(crate) const CLUSTER_METADATA: &str = "__cluster_metadata";

/// Whether a topic may have this name.
///
/// # Errors
/// [`TopicError::InvalidName`] with what is wrong with it.
pub fn validate_topic_name(name: &str) -> Result<(), TopicError> {
    let refuse = |reason: String| Err(TopicError::InvalidName(reason));
    if name.is_empty() {
        return refuse("the empty string is not allowed".into());
    }
    if name == "." || name == ".." {
        return refuse(format!("'{name}' is not allowed"));
    }
    // Kafka counts UTF-16 units, and so do names of other than ASCII letters, which are refused next.
    if name.encode_utf16().count() > LENGTH_MAX {
        return refuse(format!("the length of '{name}' is longer than the max allowed length {LENGTH_MAX}"));
    }
    if !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)) {
        return refuse(format!(
            "'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
        ));
    }
    Ok(())
}

/// Whether the two would be one name in metrics, where `.` becomes `_`.
pub(crate) fn collide(name: &str, other: &str) -> bool {
    let same = |(a, b): (u8, u8)| a == b || (b"._".contains(&a) && b"._".contains(&b));
    name != other && name.len() == other.len() && name.bytes().zip(other.bytes()).all(same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_refused_in_kafkas_words() {
        let text =
            |name: &str| validate_topic_name(name).map_or_else(|error| error.to_string(), |()| "ok".into());
        assert_eq!(text("a.b_c-9"), "ok");
        assert_eq!(text(""), "Topic name is invalid: the empty string is not allowed");
        assert_eq!(text(".."), "Topic name is invalid: '..' is not allowed");
        assert_eq!(
            text("a b"),
            "Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
        );
        assert_eq!(text(&"x".repeat(249)), "ok");
        assert!(text(&"x".repeat(250)).ends_with("is longer than the max allowed length 249"));
    }

    #[test]
    fn a_dot_collides_with_an_underscore() {
        assert!(collide("a.b", "a_b"));
        assert!(!collide("a.b", "a.b"));
        assert!(!collide("a-b", "a_b"));
    }
}
