//! OffsetCommit, by members and by those who only keep their offsets here.
//!
//! Kafka: `OffsetMetadataManager.commitOffset`, `ClassicGroup.validateOffsetCommit`.

use model::{ErrorCode, Limits, Timestamp};

use crate::command::{Commit, CommitPartition, CommitTopic, GroupState, TopicErrors};
use crate::group::Group;
use crate::groups::Groups;
use crate::offsets::CommittedOffset;
use crate::outcome::{Moment, Outcome};
use crate::record::CoordinatorRecord;

impl Groups {
    /// OffsetCommit. It does not depend on other commits that are not yet applied, so a run of them may be decided
    /// together and appended as one batch.
    pub fn handle_commit(&mut self, commit: Commit, at: Moment) -> Outcome<Vec<TopicErrors>> {
        if let Err(error) = self.check_commit(&commit) {
            return Outcome::reply(all_failed(commit.topics, error));
        }
        self.prolong_session(&commit, at);
        let mut records = Vec::new();
        let topics =
            commit.topics.iter().map(|topic| self.commit_topic(&commit, topic, at.wall, &mut records));
        let reply = topics.collect();
        Outcome::records(reply, records)
    }

    fn check_commit(&self, commit: &Commit) -> Result<(), ErrorCode> {
        // Its record could not be written, nor those of the commits that are written with it.
        if commit.group_id.as_str().len() > Limits::GROUP_ID_BYTES_MAX {
            return Err(ErrorCode::InvalidGroupId);
        }
        match self.group(&commit.group_id) {
            Some(group) => check_member_commit(group, commit),
            None if commit.generation.0 < 0 => Ok(()),
            None if commit.knows_group_id_not_found => Err(ErrorCode::GroupIdNotFound),
            None => Err(ErrorCode::IllegalGeneration),
        }
    }

    /// A commit is a sign of life.
    fn prolong_session(&mut self, commit: &Commit, at: Moment) {
        if let Some(mut turn) = self.turn(&commit.group_id, at)
            && matches!(turn.group.state, GroupState::Stable | GroupState::PreparingRebalance)
        {
            turn.restart_session(&commit.member_id);
        }
    }

    fn commit_topic(
        &self,
        commit: &Commit,
        topic: &CommitTopic,
        now: Timestamp,
        records: &mut Vec<CoordinatorRecord>,
    ) -> TopicErrors {
        let partitions = topic.partitions.iter().map(|partition| {
            if partition.metadata.encode_utf16().count() > self.config.offset_metadata_bytes_max {
                return (partition.partition, ErrorCode::OffsetMetadataTooLarge);
            }
            records.push(commit_record(commit, topic, partition, now));
            (partition.partition, ErrorCode::None)
        });
        let partitions = partitions.collect();
        TopicErrors { topic: topic.topic.clone(), topic_id: topic.topic_id, partitions }
    }
}

fn check_member_commit(group: &Group, commit: &Commit) -> Result<(), ErrorCode> {
    let is_empty = group.is(GroupState::Empty);
    if commit.generation.0 < 0 && is_empty {
        return Ok(());
    }
    let instance = commit.group_instance_id.as_ref();
    if commit.generation.0 >= 0 || !commit.member_id.as_str().is_empty() || instance.is_some() {
        group.check_member(&commit.member_id, instance)?;
        if commit.generation != group.generation {
            return Err(ErrorCode::IllegalGeneration);
        }
    } else if !is_empty {
        return Err(ErrorCode::UnknownMemberId);
    }
    // The member knows the new generation, but not yet what it is to do in it.
    if group.is(GroupState::CompletingRebalance) { Err(ErrorCode::RebalanceInProgress) } else { Ok(()) }
}

fn commit_record(
    commit: &Commit,
    topic: &CommitTopic,
    partition: &CommitPartition,
    now: Timestamp,
) -> CoordinatorRecord {
    let retention =
        commit.retention.map(|retention| i64::try_from(retention.as_millis()).unwrap_or(i64::MAX));
    let value = CommittedOffset {
        offset: partition.offset,
        leader_epoch: partition.leader_epoch,
        metadata: partition.metadata.clone(),
        commit_timestamp: now,
        expire_timestamp: retention.map(|retention| Timestamp(now.0.saturating_add(retention))),
        topic_id: topic.topic_id,
    };
    CoordinatorRecord::OffsetCommit {
        group_id: commit.group_id.clone(),
        topic: topic.topic.clone(),
        partition: partition.partition,
        value: Some(value),
    }
}

/// Every partition with the same error: the request was refused as a whole.
pub fn all_failed(topics: Vec<CommitTopic>, error: ErrorCode) -> Vec<TopicErrors> {
    let failed = |topic: CommitTopic| TopicErrors {
        topic: topic.topic,
        topic_id: topic.topic_id,
        partitions: topic.partitions.iter().map(|p| (p.partition, error)).collect(),
    };
    topics.into_iter().map(failed).collect()
}
