//! Kafka's names as Rust's.

/// `HostName` as `host_name`, `ISRNodes` as `isr_nodes`.
pub(crate) fn snake(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut snake = String::new();
    for (i, letter) in letters.iter().enumerate() {
        let after_small = i > 0 && !letters[i - 1].is_uppercase();
        let before_small = letters.get(i + 1).is_some_and(|next| next.is_lowercase());
        if letter.is_uppercase() && i > 0 && (after_small || before_small) {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

/// The name of a field; Rust's own words get a leading underscore, `_type`, as in kafka-protocol.
pub(crate) fn field(name: &str) -> String {
    let snake = snake(name);
    if matches!(snake.as_str(), "type" | "match" | "ref" | "use") { format!("_{snake}") } else { snake }
}

/// `HostName` as `HOST_NAME`.
pub(crate) fn constant(name: &str) -> String {
    snake(name).to_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_start_at_capitals() {
        assert_eq!(snake("OffsetCommitRequest"), "offset_commit_request");
        assert_eq!(snake("KRaftVersionRecord"), "k_raft_version_record");
        assert_eq!(snake("groupId"), "group_id");
        assert_eq!(snake("EligibleLeaderReplicasV2"), "eligible_leader_replicas_v2");
        assert_eq!(field("Type"), "_type");
    }
}
