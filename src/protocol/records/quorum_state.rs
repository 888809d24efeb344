//! The `quorum-state` file of the metadata log: whom this node voted for, in which epoch.
//!
//! One line of JSON in Kafka's own field names. Version 1 (KIP-853) is written; version 0, which also names the voters of
//! a static quorum, is read.
//!
//! Kafka: `FileQuorumStateStore`, `QuorumStateData.json`.

use serde_json::{Value, json};

use super::RecordError;

/// The vote and the leader of the latest epoch. -1 and the zero id are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuorumState {
    /// The leader of the epoch, where it is known.
    pub leader_id: i32,
    /// The latest epoch that this node has seen.
    pub leader_epoch: i32,
    /// Whom this node voted for in that epoch.
    pub voted_id: i32,
    /// That candidate's directory.
    pub voted_directory_id: model::Uuid,
}

impl Default for QuorumState {
    fn default() -> Self {
        Self { leader_id: -1, leader_epoch: -1, voted_id: -1, voted_directory_id: model::Uuid::ZERO }
    }
}

impl QuorumState {
    /// The text of the file.
    pub fn encode(&self) -> String {
        // Kafka writes the keys in this order; serde_json would sort them.
        format!(
            "{{\"leaderId\":{},\"leaderEpoch\":{},\"votedId\":{},\"votedDirectoryId\":{},\"data_version\":1}}",
            self.leader_id,
            self.leader_epoch,
            self.voted_id,
            json!(self.voted_directory_id.to_string()),
        )
    }

    /// Reads the text of the file.
    ///
    /// # Errors
    /// Where it is not such JSON, a number is missing or out of range, or the version is newer than 1.
    pub fn decode(text: &[u8]) -> Result<Self, RecordError> {
        let malformed = |what: &str| RecordError::Text(format!("quorum-state: {what}"));
        let state: Value = serde_json::from_slice(text).map_err(|error| malformed(&error.to_string()))?;
        let number = |name: &str| {
            let number = state.get(name).and_then(Value::as_i64).and_then(|n| i32::try_from(n).ok());
            number.ok_or_else(|| malformed(name))
        };
        let version = number("data_version")?;
        let voted_directory_id = match version {
            0 => model::Uuid::ZERO,
            1 => {
                let id = state.get("votedDirectoryId").and_then(Value::as_str);
                id.and_then(|id| id.parse().ok()).ok_or_else(|| malformed("votedDirectoryId"))?
            }
            version => return Err(RecordError::UnknownVersion { record_type: 0, version }),
        };
        Ok(Self {
            leader_id: number("leaderId")?,
            leader_epoch: number("leaderEpoch")?,
            voted_id: number("votedId")?,
            voted_directory_id,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KAFKAS: &str = r#"{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}"#;

    #[test]
    fn a_file_that_kafka_wrote_comes_back() {
        let state = QuorumState::decode(KAFKAS.as_bytes()).expect("decodes");
        assert_eq!(state, QuorumState { leader_id: 1, leader_epoch: 1, ..QuorumState::default() });
        assert_eq!(state.encode(), KAFKAS);
    }

    #[test]
    fn version_0_has_no_directory() {
        let old = r#"{"clusterId":"","leaderId":3,"leaderEpoch":9,"votedId":2,"appliedOffset":0,
            "currentVoters":[{"voterId":2},{"voterId":3}],"data_version":0}"#;
        let state = QuorumState::decode(old.as_bytes()).expect("decodes");
        assert_eq!((state.leader_id, state.leader_epoch, state.voted_id), (3, 9, 2));
    }

    #[test]
    fn other_text_is_an_error() {
        let newer = KAFKAS.replace("_version\":1", "_version\":2");
        let large = KAFKAS.replace("Epoch\":1", "Epoch\":4294967296");
        for text in ["", "{}", "[1]", "{\"data_version\":1}", &KAFKAS[..50], &newer, &large] {
            assert!(QuorumState::decode(text.as_bytes()).is_err(), "{text}");
        }
    }
}
