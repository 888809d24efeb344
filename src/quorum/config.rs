//! The core's timing.

use std::time::Duration;

/// The timeouts of a quorum; the same on all its nodes. Kafka: `QuorumConfig`.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// `controller.quorum.election.timeout.ms`: an election, or a search for a leader, is given up after one
    /// to two of these.
    pub election_timeout: Duration,
    /// `controller.quorum.election.backoff.max.ms`: the longest wait before the next try after a lost election.
    pub election_backoff_max: Duration,
    /// `controller.quorum.fetch.timeout.ms`: a follower without a good answer from its leader for so long
    /// campaigns. A leader that a majority has not fetched from for one and a half of these resigns.
    pub fetch_timeout: Duration,
    /// `controller.quorum.request.timeout.ms`: an answer that takes longer is not waited for. More than
    /// `fetch_wait`.
    pub request_timeout: Duration,
    /// `controller.quorum.retry.backoff.ms`: the pause after a failed request to the same node.
    pub retry_backoff: Duration,
    /// How long a leader may hold back the answer to a Fetch that has nothing to bring.
    pub fetch_wait: Duration,
    /// The most bytes of a snapshot that are asked for at once.
    pub snapshot_piece_bytes: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            election_timeout: Duration::from_secs(1),
            election_backoff_max: Duration::from_secs(1),
            fetch_timeout: Duration::from_secs(2),
            request_timeout: Duration::from_secs(2),
            retry_backoff: Duration::from_millis(20),
            fetch_wait: Duration::from_millis(500),
            snapshot_piece_bytes: 1 << 20,
        }
    }
}

impl Config {
    /// How long a leader lives without a majority that fetches (Kafka:
    /// `LeaderState.CHECK_QUORUM_TIMEOUT_FACTOR`).
    pub(crate) fn check_quorum_timeout(&self) -> Duration {
        self.fetch_timeout * 3 / 2
    }
}
