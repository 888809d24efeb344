//! Offsets that nobody has wanted for long, and groups of which nothing is left (KIP-211).
//!
//! The retention counts from the moment the group became empty, while it has no members; from the commit, for topics
//! that a stable group of consumers no longer wants, and for groups that only keep offsets here. In any other state
//! nothing expires. A commit that brought its own retention expires by that.
//!
//! Kafka: `OffsetMetadataManager.cleanupExpiredOffsets`, `ClassicGroup.offsetExpirationCondition`.

use model::Timestamp;

use crate::command::GroupState;
use crate::group::Group;
use crate::groups::Groups;
use crate::offsets::CommittedOffset;
use crate::outcome::Outcome;
use crate::record::CoordinatorRecord;

/// From when an offset's retention counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Since {
    Commit,
    Time(Timestamp),
    Never,
}

impl Groups {
    /// Tombstones for what has expired. To be called every `offsets.retention.check.interval.ms`.
    pub fn handle_expiry(&mut self, now: Timestamp) -> Outcome<()> {
        let mut records = Vec::new();
        for group in self.by_id.values() {
            let all_expired = self.expire_offsets(group, now, &mut records);
            // A member that was told its id will come back with it.
            if all_expired && group.is(GroupState::Empty) && group.pending_join.is_empty() {
                let group_id = group.id.clone();
                records.push(CoordinatorRecord::GroupMetadata { group_id, value: None });
            }
        }
        Outcome::records((), records)
    }

    /// Whether no offset is left.
    fn expire_offsets(&self, group: &Group, now: Timestamp, records: &mut Vec<CoordinatorRecord>) -> bool {
        let since = expires_since(group);
        let mut all_expired = true;
        for (topic, partitions) in self.offsets.of(&group.id).into_iter().flatten() {
            let keep = group.is_subscribed_to(topic);
            for (partition, offset) in partitions {
                if keep || !self.is_expired(offset, since, now) {
                    all_expired = false;
                } else {
                    records.push(CoordinatorRecord::offset_tombstone(&group.id, topic, *partition));
                }
            }
        }
        all_expired
    }

    fn is_expired(&self, offset: &CommittedOffset, since: Since, now: Timestamp) -> bool {
        let since = match since {
            Since::Never => return false,
            Since::Commit => offset.commit_timestamp,
            Since::Time(since) => since,
        };
        let retention = i64::try_from(self.config.offsets_retention.as_millis()).unwrap_or(i64::MAX);
        let expires = offset.expire_timestamp.map_or_else(|| since.0.saturating_add(retention), |at| at.0);
        now.0 >= expires
    }
}

fn expires_since(group: &Group) -> Since {
    match group.state {
        _ if group.protocol_type.is_none() => Since::Commit,
        GroupState::Empty if group.state_since == Timestamp::NONE => Since::Commit,
        GroupState::Empty => Since::Time(group.state_since),
        GroupState::Stable if group.is_consumer() && group.subscribed.is_some() => Since::Commit,
        GroupState::Stable
        | GroupState::PreparingRebalance
        | GroupState::CompletingRebalance
        | GroupState::Dead => Since::Never,
    }
}
