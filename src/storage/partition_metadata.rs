//! `partition.metadata`: the id of the topic that a partition's folder belongs to.
//!
//! ```text
//! version: 0
//! topic_id: 0Uwn7iIGTKO9dlEUFIYrRw
//! ```
//!
//! Kafka: `PartitionMetadataFile`; KIP-516.

use model::TopicId;

pub(crate) const FILE: &str = "partition.metadata";

/// The file's text.
pub(crate) fn encode(topic_id: TopicId) -> String {
    format!("version: 0\ntopic_id: {topic_id}")
}

/// Reads the file.
///
/// # Errors
/// What is wrong, in words.
pub(crate) fn parse(bytes: &[u8]) -> Result<TopicId, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "is not text".to_owned())?;
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    match field("version").map(str::trim) {
        Some("0") => {}
        version => return Err(format!("has the unknown version {version:?}")),
    }
    let id = field("topic_id").ok_or("has no topic_id")?.trim();
    let id: TopicId = id.parse().map_err(|error| format!("has the topic_id {id:?}: {error}"))?;
    if id.is_zero() { Err("has the topic_id zero".to_owned()) } else { Ok(id) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_goes_both_ways_and_a_cut_file_is_an_error() {
        let id = model::Uuid([9; 16]);
        let text = encode(id);
        assert_eq!(parse(text.as_bytes()), Ok(id));
        for end in 0..text.len() {
            assert!(parse(&text.as_bytes()[..end]).is_err(), "cut at {end}");
        }
        assert!(parse(&[0; 43]).is_err());
        assert!(parse(encode(TopicId::ZERO).as_bytes()).is_err());
    }
}
