//! Whatever stands in a metadata log, an image takes it or refuses it, and a snapshot of it is the same image.

use model::{Offset, Uuid};
use proptest::collection::vec;
use proptest::prelude::*;
use protocol::records::metadata as record;
use protocol::records::metadata::MetadataRecord;

use crate::Image;

fn id() -> impl Strategy<Value = Uuid> {
    (0..3_u8).prop_map(|id| Uuid([id; 16]))
}

fn number() -> impl Strategy<Value = i32> {
    prop_oneof![0..3_i32, Just(-2), Just(-1), Just(i32::MIN), Just(i32::MAX)]
}

fn nodes() -> impl Strategy<Value = Vec<i32>> {
    vec(number(), 0..4)
}

fn partition() -> impl Strategy<Value = record::PartitionRecord> {
    (number(), id(), nodes(), nodes(), number(), number(), vec(id(), 0..4)).prop_map(
        |(partition_id, topic_id, replicas, isr, leader, epoch, directories)| record::PartitionRecord {
            partition_id,
            topic_id,
            replicas,
            isr,
            leader,
            leader_epoch: epoch,
            partition_epoch: epoch,
            directories,
            leader_recovery_state: 7,
            ..record::PartitionRecord::default()
        },
    )
}

fn change() -> impl Strategy<Value = record::PartitionChangeRecord> {
    let lists = || proptest::option::of(nodes());
    (number(), id(), lists(), lists(), lists(), number(), proptest::option::of(vec(id(), 0..4))).prop_map(
        |(partition_id, topic_id, replicas, isr, elr, leader, directories)| record::PartitionChangeRecord {
            partition_id,
            topic_id,
            replicas,
            isr,
            eligible_leader_replicas: elr,
            leader,
            directories,
            ..record::PartitionChangeRecord::default()
        },
    )
}

fn any_record() -> impl Strategy<Value = MetadataRecord> {
    let name = || prop_oneof![Just(String::new()), Just("a".to_owned()), Just("b".to_owned())];
    let epoch = || number().prop_map(i64::from);
    prop_oneof![
        (name(), id()).prop_map(|(name, topic_id)| record::TopicRecord { name, topic_id }.into()),
        partition().prop_map(Into::into),
        change().prop_map(Into::into),
        name().prop_map(|topic_name| record::ClearElrRecord { topic_name }.into()),
        id().prop_map(|topic_id| record::RemoveTopicRecord { topic_id }.into()),
        (any::<i8>(), name(), name(), proptest::option::of(name())).prop_map(
            |(resource_type, resource_name, name, value)| record::ConfigRecord {
                resource_type,
                resource_name,
                name,
                value
            }
            .into()
        ),
        (number(), epoch()).prop_map(|(broker_id, broker_epoch)| record::RegisterBrokerRecord {
            broker_id,
            broker_epoch,
            ..record::RegisterBrokerRecord::default()
        }
        .into()),
        (number(), epoch(), any::<i8>()).prop_map(|(broker_id, broker_epoch, fenced)| {
            record::BrokerRegistrationChangeRecord {
                broker_id,
                broker_epoch,
                fenced,
                ..record::BrokerRegistrationChangeRecord::default()
            }
            .into()
        }),
        (name(), any::<i16>()).prop_map(|(name, feature_level)| record::FeatureLevelRecord {
            name,
            feature_level
        }
        .into()),
        Just(record::BeginTransactionRecord::default().into()),
        Just(record::EndTransactionRecord::default().into()),
        Just(record::AbortTransactionRecord::default().into()),
    ]
}

proptest! {
    #[test]
    fn any_record_is_taken_or_refused_and_a_snapshot_is_the_same_image(records in vec(any_record(), 0..60)) {
        let mut image = Image::default();
        for (offset, record) in (1..).zip(&records) {
            if let Ok((next, _)) = image.apply(std::slice::from_ref(record), Offset(offset)) {
                image = next;
            }
        }
        let snapshot = Image::from_snapshot(&image.to_records(), image.end());
        // A transaction that is still open is no part of a snapshot.
        let committed = image.apply(&[record::AbortTransactionRecord::default().into()], image.end());
        let expected = committed.map_or(image, |(image, _)| image);
        prop_assert_eq!(snapshot, Ok(expected));
    }
}
