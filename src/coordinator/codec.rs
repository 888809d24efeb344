//! Typed records to and from Kafka's bytes in `__consumer_offsets`.

use std::time::Duration;

use bytes::Bytes;
use model::{LeaderEpoch, Offset, Timestamp};
use protocol::records::RecordError;
use protocol::records::offsets::{
    GroupMetadataKey, GroupMetadataValue, LegacyOffsetCommitValue, OffsetCommitKey, OffsetCommitValue,
    OffsetsKey, group_metadata_value,
};

use crate::command::Generation;
use crate::offsets::CommittedOffset;
use crate::record::{CoordinatorRecord, GroupMetadata, MemberMetadata};

impl CoordinatorRecord {
    /// Key and value; no value is a tombstone.
    ///
    /// # Errors
    /// A name or a text is longer than its length field can say.
    pub fn encode(&self) -> Result<(Bytes, Option<Bytes>), RecordError> {
        match self {
            Self::OffsetCommit { group_id, topic, partition, value } => {
                let key = OffsetCommitKey::default()
                    .with_group(group_id.to_string())
                    .with_topic(topic.to_string())
                    .with_partition(*partition);
                let value = value.as_ref().map(|value| offset_value(value).encode()).transpose()?;
                Ok((OffsetsKey::OffsetCommit(key).encode()?, value))
            }
            Self::GroupMetadata { group_id, value } => {
                let key = GroupMetadataKey::default().with_group(group_id.to_string());
                let value = value.as_ref().map(|value| group_value(value).encode()).transpose()?;
                Ok((OffsetsKey::GroupMetadata(key).encode()?, value))
            }
        }
    }

    /// The record of these bytes.
    ///
    /// # Errors
    /// `UnknownType` for what other kinds of groups write; else the bytes are malformed.
    pub fn decode(key: &[u8], value: Option<&[u8]>) -> Result<Self, RecordError> {
        Ok(match OffsetsKey::decode(key)? {
            OffsetsKey::LegacyOffsetCommit(key) => {
                let value = value.map(LegacyOffsetCommitValue::decode).transpose()?;
                let key = (key.group, key.topic, key.partition);
                offset_commit(key, value.map(|value| legacy_offset(&value)))
            }
            OffsetsKey::OffsetCommit(key) => {
                let value = value.map(OffsetCommitValue::decode).transpose()?;
                offset_commit((key.group, key.topic, key.partition), value.map(|value| offset(&value)))
            }
            OffsetsKey::GroupMetadata(key) => {
                let value = value.map(GroupMetadataValue::decode).transpose()?;
                Self::GroupMetadata { group_id: key.group.into(), value: value.map(group) }
            }
        })
    }
}

fn offset_commit(
    (group, topic, partition): (String, String, i32),
    value: Option<CommittedOffset>,
) -> CoordinatorRecord {
    CoordinatorRecord::OffsetCommit { group_id: group.into(), topic: topic.into(), partition, value }
}

fn offset_value(value: &CommittedOffset) -> OffsetCommitValue {
    OffsetCommitValue::default()
        .with_offset(value.offset.0)
        .with_leader_epoch(value.leader_epoch.0)
        .with_metadata(value.metadata.to_string())
        .with_commit_timestamp(value.commit_timestamp.0)
        .with_expire_timestamp(value.expire_timestamp.map_or(-1, |at| at.0))
        .with_topic_id(value.topic_id)
}

fn offset(value: &OffsetCommitValue) -> CommittedOffset {
    CommittedOffset {
        offset: Offset(value.offset),
        leader_epoch: LeaderEpoch(value.leader_epoch),
        metadata: value.metadata.as_str().into(),
        commit_timestamp: Timestamp(value.commit_timestamp),
        expire_timestamp: Some(Timestamp(value.expire_timestamp)).filter(|at| *at != Timestamp::NONE),
        topic_id: value.topic_id,
    }
}

fn legacy_offset(value: &LegacyOffsetCommitValue) -> CommittedOffset {
    let same = OffsetCommitValue::default()
        .with_offset(value.offset)
        .with_metadata(value.metadata.clone())
        .with_commit_timestamp(value.commit_timestamp);
    offset(&same)
}

fn group_value(value: &GroupMetadata) -> GroupMetadataValue {
    GroupMetadataValue::default()
        .with_protocol_type(value.protocol_type.to_string())
        .with_generation(value.generation.0)
        .with_protocol(value.protocol.as_ref().map(ToString::to_string))
        .with_leader(value.leader.as_ref().map(ToString::to_string))
        .with_current_state_timestamp(value.state_since.0)
        .with_members(value.members.iter().map(member_value).collect())
}

fn group(value: GroupMetadataValue) -> GroupMetadata {
    GroupMetadata {
        protocol_type: value.protocol_type.into(),
        generation: Generation(value.generation),
        protocol: value.protocol.map(Into::into),
        leader: value.leader.map(Into::into),
        state_since: Timestamp(value.current_state_timestamp),
        members: value.members.into_iter().map(member).collect(),
    }
}

fn member_value(member: &MemberMetadata) -> group_metadata_value::MemberMetadata {
    group_metadata_value::MemberMetadata::default()
        .with_member_id(member.member_id.to_string())
        .with_group_instance_id(member.group_instance_id.as_ref().map(ToString::to_string))
        .with_client_id(member.client_id.to_string())
        .with_client_host(member.client_host.to_string())
        .with_rebalance_timeout(millis(member.rebalance_timeout))
        .with_session_timeout(millis(member.session_timeout))
        .with_subscription(member.subscription.clone())
        .with_assignment(member.assignment.clone())
}

fn member(member: group_metadata_value::MemberMetadata) -> MemberMetadata {
    // Brokers before 0.10.1 knew only of the session.
    let rebalance =
        if member.rebalance_timeout == -1 { member.session_timeout } else { member.rebalance_timeout };
    MemberMetadata {
        member_id: member.member_id.into(),
        group_instance_id: member.group_instance_id.map(Into::into),
        client_id: member.client_id.into(),
        client_host: member.client_host.into(),
        rebalance_timeout: duration(rebalance),
        session_timeout: duration(member.session_timeout),
        subscription: member.subscription,
        assignment: member.assignment,
    }
}

fn millis(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis()).unwrap_or(i32::MAX)
}

fn duration(millis: i32) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use model::Uuid;

    prop_compose! {
        fn offsets()(
            offset: i64, epoch in -1..5, metadata in ".{0,9}", time in 0..i64::MAX, expires in proptest::option::of(0..i64::MAX),
            id: [u8; 16],
        ) -> CommittedOffset {
            CommittedOffset {
                offset: Offset(offset),
                // Version 1, which has a time of expiry, has neither epoch nor id.
                leader_epoch: if expires.is_some() { LeaderEpoch::NONE } else { LeaderEpoch(epoch) },
                metadata: metadata.as_str().into(),
                commit_timestamp: Timestamp(time),
                expire_timestamp: expires.map(Timestamp),
                topic_id: if expires.is_some() { Uuid::ZERO } else { Uuid(id) },
            }
        }
    }

    prop_compose! {
        fn members()(
            id in ".{0,9}", instance in proptest::option::of(".{0,9}"), timeouts in (0..i32::MAX, 0..i32::MAX),
            subscription: Vec<u8>, assignment: Vec<u8>,
        ) -> MemberMetadata {
            MemberMetadata {
                member_id: id.as_str().into(),
                group_instance_id: instance.map(|instance| instance.as_str().into()),
                client_id: "client".into(),
                client_host: "/10.0.0.1".into(),
                rebalance_timeout: duration(timeouts.0),
                session_timeout: duration(timeouts.1),
                subscription: subscription.into(),
                assignment: assignment.into(),
            }
        }
    }

    fn again(record: &CoordinatorRecord) -> CoordinatorRecord {
        let (key, value) = record.encode().expect("it is short");
        CoordinatorRecord::decode(&key, value.as_deref()).expect("it is what was encoded")
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            value in proptest::option::of(offsets()), members in proptest::collection::vec(members(), 0..3),
            generation: i32, protocol in proptest::option::of(".{0,9}"), partition: i32,
        ) {
            let offset = CoordinatorRecord::OffsetCommit { group_id: "g".into(), topic: "t".into(), partition, value };
            prop_assert_eq!(again(&offset), offset);
            let value = GroupMetadata {
                protocol_type: "consumer".into(),
                generation: Generation(generation),
                leader: members.first().map(|m| m.member_id.clone()),
                protocol: protocol.map(Into::into),
                state_since: Timestamp(7),
                members,
            };
            let group = CoordinatorRecord::GroupMetadata { group_id: "g".into(), value: Some(value) };
            prop_assert_eq!(again(&group), group);
        }

        #[test]
        fn whatever_bytes_come_give_a_record_or_an_error(key: Vec<u8>, value in proptest::option::of(any::<Vec<u8>>())) {
            let _ = CoordinatorRecord::decode(&key, value.as_deref());
        }
    }

    #[test]
    fn the_bytes_are_kafkas() {
        let value = CommittedOffset {
            offset: Offset(5),
            leader_epoch: LeaderEpoch::NONE,
            metadata: "m".into(),
            commit_timestamp: Timestamp(1),
            expire_timestamp: None,
            topic_id: Uuid::ZERO,
        };
        let record = CoordinatorRecord::OffsetCommit {
            group_id: "g".into(),
            topic: "t".into(),
            partition: 2,
            value: Some(value),
        };
        let (key, value) = record.encode().expect("it is short");
        assert_eq!(key[..], *b"\0\x01\0\x01g\0\x01t\0\0\0\x02");
        assert_eq!(
            value.expect("no tombstone")[..],
            *b"\0\x04\0\0\0\0\0\0\0\x05\xff\xff\xff\xff\x02m\0\0\0\0\0\0\0\x01\0"
        );
        let value = Some(GroupMetadata::empty(Timestamp(1)));
        let record = CoordinatorRecord::GroupMetadata { group_id: "g".into(), value };
        let (key, value) = record.encode().expect("it is short");
        assert_eq!(key[..], *b"\0\x02\0\x01g");
        assert_eq!(
            value.expect("no tombstone")[..],
            *b"\0\x03\0\0\0\0\0\0\xff\xff\xff\xff\0\0\0\0\0\0\0\x01\0\0\0\0"
        );
    }
}
