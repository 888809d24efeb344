//! What an operator may set.

use std::time::Duration;

/// Kafka's `group.*` and `offsets.*` keys that the group machine needs.
#[derive(Clone, Debug)]
pub struct Config {
    /// `group.min.session.timeout.ms`.
    pub session_timeout_min: Duration,
    /// `group.max.session.timeout.ms`.
    pub session_timeout_max: Duration,
    /// `group.initial.rebalance.delay.ms`: how long a new group waits for more members.
    pub initial_rebalance_delay: Duration,
    /// `group.max.size`: members of one group.
    pub group_size_max: usize,
    /// How long a new member's JoinGroup may wait: it cannot send heartbeats meanwhile.
    pub new_member_join_timeout: Duration,
    /// `offset.metadata.max.bytes`, which Kafka counts in UTF-16 units.
    pub offset_metadata_bytes_max: usize,
    /// `offsets.retention.minutes`.
    pub offsets_retention: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            session_timeout_min: Duration::from_secs(6),
            session_timeout_max: Duration::from_mins(30),
            initial_rebalance_delay: Duration::from_secs(3),
            group_size_max: i32::MAX as usize,
            new_member_join_timeout: Duration::from_mins(5),
            offset_metadata_bytes_max: 4096,
            offsets_retention: Duration::from_hours(7 * 24),
        }
    }
}
