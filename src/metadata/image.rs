//! The metadata of the cluster at one offset of the metadata log.
//!
//! An image never changes: [`Image::apply`] gives a new one, which shares with the old one what the records did not
//! touch. So it costs a few pointers to clone, and a request works on one and the same image from its first line to its
//! last.
//!
//! Invariants: an image is a function of the records below `end()` alone; `to_records()` of it gives the same image
//! again; records between BeginTransaction and EndTransaction count all at once, at the end, or not at all.
//!
//! Kafka: `MetadataImage`, `MetadataDelta`, `MetadataBatchLoader`; KIP-630 (snapshots), KIP-868 (transactions).

use std::sync::Arc;

use model::{NodeId, Offset, PartitionIndex, TopicId};
use protocol::records::metadata::MetadataRecord;

use crate::{Brokers, Configs, Delta, Features, ProducerIds, Security, Topics};

/// All metadata as it stands after some record. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Image {
    /// Topics and their partitions.
    pub topics: Topics,
    /// Brokers and controllers that are registered.
    pub brokers: Brokers,
    /// Values that were set at run time.
    pub configs: Configs,
    /// The levels that features are finalized at.
    pub features: Features,
    /// Which producer ids were given out.
    pub producer_ids: ProducerIds,
    /// Quotas, access control, credentials and tokens, kept as they are.
    pub security: Security,
    transaction: Option<Arc<Vec<MetadataRecord>>>,
    end: Offset,
}

/// A record does not fit the image: the log is not one that a controller wrote, or this node missed a part of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// The topic id is not there.
    #[error("record for topic {0}, which does not exist")]
    UnknownTopic(TopicId),
    /// The topic is there and the partition is not.
    #[error("record for partition {partition} of topic {topic}, which does not exist")]
    UnknownPartition {
        /// The topic.
        topic: TopicId,
        /// The partition.
        partition: PartitionIndex,
    },
    /// The broker is not registered.
    #[error("record for broker {0}, which is not registered")]
    UnknownBroker(NodeId),
    /// The broker is registered with another epoch.
    #[error("record for epoch {got} of broker {broker}, which has {has}")]
    OtherBrokerEpoch {
        /// The broker.
        broker: NodeId,
        /// The epoch that it has.
        has: i64,
        /// The epoch of the record.
        got: i64,
    },
    /// Two topics would have the same name.
    #[error("record for a second topic named {0}")]
    TopicExists(String),
    /// A kind of resource that has no configuration here.
    #[error("config record for an unknown type of resource {0}")]
    UnknownResourceType(i8),
    /// A record type that this version cannot act on.
    #[error("record of type {0}, which has no place in the image")]
    UnknownRecord(u32),
    /// A transaction begins inside another one, or one ends that never began.
    #[error("transaction records out of order")]
    Transaction,
}

impl Image {
    /// The offset after the last record that counts here.
    pub fn end(&self) -> Offset {
        self.end
    }

    /// Whether records are held back because their transaction has not ended. They are no part of a snapshot, so none is
    /// made meanwhile.
    pub fn is_in_transaction(&self) -> bool {
        self.transaction.is_some()
    }

    /// The image after `records`, the last of which stands right before `end`, and what they changed.
    ///
    /// # Errors
    /// [`ApplyError`] if a record does not fit; nobody can go on from there.
    pub fn apply(&self, records: &[MetadataRecord], end: Offset) -> Result<(Self, Delta), ApplyError> {
        assert!(end >= self.end, "an image only goes forward");
        let (mut image, mut delta) = (self.clone(), Delta::default());
        for record in records {
            image.replay_or_hold(record, &mut delta)?;
        }
        image.end = end;
        Ok((image, delta))
    }

    fn replay_or_hold(&mut self, record: &MetadataRecord, delta: &mut Delta) -> Result<(), ApplyError> {
        match (record, &mut self.transaction) {
            (MetadataRecord::BeginTransaction(_), held @ None) => *held = Some(Arc::default()),
            (MetadataRecord::EndTransaction(_), Some(_)) => return self.end_transaction(delta),
            (MetadataRecord::AbortTransaction(_), held @ Some(_)) => *held = None,
            (
                MetadataRecord::BeginTransaction(_)
                | MetadataRecord::EndTransaction(_)
                | MetadataRecord::AbortTransaction(_),
                _,
            ) => return Err(ApplyError::Transaction),
            (record, Some(held)) => Arc::make_mut(held).push(record.clone()),
            (record, None) => return self.replay(record, delta),
        }
        Ok(())
    }

    fn end_transaction(&mut self, delta: &mut Delta) -> Result<(), ApplyError> {
        let held = self.transaction.take().unwrap_or_default();
        held.iter().try_for_each(|record| self.replay(record, delta))
    }

    fn replay(&mut self, record: &MetadataRecord, delta: &mut Delta) -> Result<(), ApplyError> {
        use MetadataRecord as R;
        match record {
            R::Topic(record) => self.topics.create(record, delta)?,
            R::Partition(record) => self.topics.create_partition(record, delta)?,
            R::PartitionChange(record) => self.topics.change_partition(record, delta)?,
            R::ClearElr(record) => self.topics.clear_elr(record, delta)?,
            R::RemoveTopic(record) => {
                let topic = self.topics.remove(record, delta)?;
                self.configs.remove_topic(&topic.name, delta);
            }
            R::RegisterBroker(record) => self.brokers.register(record, delta),
            R::UnregisterBroker(record) => self.brokers.unregister(record, delta)?,
            R::BrokerRegistrationChange(record) => self.brokers.change(record, delta)?,
            R::FenceBroker(record) => self.brokers.set_fenced(record.id, record.epoch, true, delta)?,
            R::UnfenceBroker(record) => self.brokers.set_fenced(record.id, record.epoch, false, delta)?,
            R::RegisterController(record) => self.brokers.register_controller(record, delta),
            R::UnregisterController(record) => self.brokers.unregister_controller(record, delta),
            R::Config(record) => self.configs.set(record, delta)?,
            R::FeatureLevel(record) => self.features.set(record, delta),
            R::ProducerIds(record) => self.producer_ids.set(record, delta),
            R::NoOp(_) => {}
            other => self.security.replay(other, delta)?,
        }
        Ok(())
    }

    /// Records that make this image out of an empty one, in the order of a Kafka snapshot.
    pub fn to_records(&self) -> Vec<MetadataRecord> {
        let mut records = Vec::new();
        self.features.write(&mut records);
        self.brokers.write(&mut records);
        self.topics.write(&mut records);
        self.configs.write(&mut records);
        self.producer_ids.write(&mut records);
        self.security.write(&mut records);
        records
    }

    /// The image that a snapshot holds which ends before `end`.
    ///
    /// # Errors
    /// [`ApplyError`] if its records do not fit together.
    pub fn from_snapshot(records: &[MetadataRecord], end: Offset) -> Result<Self, ApplyError> {
        Ok(Self::default().apply(records, end)?.0)
    }
}

#[cfg(test)]
mod tests {
    use model::{LeaderEpoch, PartitionEpoch, TopicIdPartition, TopicName, Uuid};
    use protocol::records::metadata as record;

    use super::*;
    use crate::{ConfigResource, ELR_VERSION, METADATA_VERSION};

    fn topic(name: &str, id: u8) -> Vec<MetadataRecord> {
        let topic_id = Uuid([id; 16]);
        vec![
            record::TopicRecord { name: name.into(), topic_id }.into(),
            record::PartitionRecord {
                partition_id: 0,
                topic_id,
                replicas: vec![1, 2],
                isr: vec![1, 2],
                leader: 1,
                leader_epoch: 0,
                partition_epoch: 0,
                ..Default::default()
            }
            .into(),
        ]
    }

    fn config(topic: &str, name: &str, value: Option<&str>) -> MetadataRecord {
        record::ConfigRecord {
            resource_type: 2,
            resource_name: topic.into(),
            name: name.into(),
            value: value.map(Into::into),
        }
        .into()
    }

    fn change(id: u8) -> record::PartitionChangeRecord {
        record::PartitionChangeRecord { partition_id: 0, topic_id: Uuid([id; 16]), ..Default::default() }
    }

    fn remove(id: u8) -> MetadataRecord {
        record::RemoveTopicRecord { topic_id: Uuid([id; 16]) }.into()
    }

    fn image_of(records: &[MetadataRecord]) -> Image {
        Image::default().apply(records, Offset(10)).expect("records that fit").0
    }

    #[test]
    fn a_topic_is_found_by_name_and_by_id() {
        let image = image_of(&topic("t", 7));
        let found = image.topics.by_name("t").expect("the topic");
        assert_eq!(found.id, Uuid([7; 16]));
        assert_eq!(image.topics.by_id(found.id), Some(found));
        assert_eq!(found.partitions[&0].directories, [crate::Partition::MIGRATING; 2]);
        assert_eq!(image.end(), Offset(10));
    }

    #[test]
    fn a_new_leader_has_a_new_epoch_and_a_smaller_isr_has_not() {
        let image = image_of(&topic("t", 7));
        let shrink = record::PartitionChangeRecord { isr: Some(vec![1]), ..change(7) };
        let elect = record::PartitionChangeRecord { leader: 2, ..change(7) };
        let of = TopicIdPartition { topic_id: Uuid([7; 16]), partition: 0 };

        let (image, delta) = image.apply(&[shrink.into()], Offset(11)).expect("fits");
        let partition = image.topics.partition(of).expect("the partition");
        assert_eq!((partition.leader_epoch, partition.partition_epoch), (LeaderEpoch(0), PartitionEpoch(1)));
        assert_eq!(delta.partitions_changed.iter().collect::<Vec<_>>(), [&of]);

        let (image, _) = image.apply(&[elect.into()], Offset(12)).expect("fits");
        let partition = image.topics.partition(of).expect("the partition");
        assert_eq!((partition.leader, partition.leader_epoch), (NodeId(2), LeaderEpoch(1)));
        assert_eq!(partition.isr, [NodeId(1)]);
    }

    #[test]
    fn a_topic_that_came_and_went_in_one_batch_leaves_no_trace() {
        let mut records = topic("t", 7);
        records.push(remove(7));
        let (image, delta) = Image::default().apply(&records, Offset(3)).expect("fits");
        assert!(image.topics.is_empty());
        assert!(delta.is_empty());
    }

    #[test]
    fn merged_deltas_are_the_delta_of_all_their_records() {
        let steps = [
            [topic("old", 1), topic("changed", 2)].concat(),
            [
                topic("gone", 3),
                topic("new", 4),
                vec![change(2).into(), config("new", "retention.ms", Some("5"))],
            ]
            .concat(),
            vec![remove(1), remove(3)],
        ];
        let base = image_of(&steps[0]);
        let (middle, first) = base.apply(&steps[1], Offset(20)).expect("fits");
        let (_, second) = middle.apply(&steps[2], Offset(30)).expect("fits");
        let (_, whole) = base.apply(&steps[1..].concat(), Offset(30)).expect("fits");
        assert_eq!(first.merged(second), whole);
    }

    #[test]
    fn a_deleted_topic_takes_its_configs_along() {
        let mut records = topic("t", 7);
        records.push(config("t", "retention.ms", Some("5")));
        let image = image_of(&records);
        let (after, delta) = image.apply(&[remove(7)], Offset(11)).expect("fits");
        assert!(after.configs.of(&ConfigResource::topic("t")).is_empty());
        assert_eq!(delta.topics_deleted[0].name, TopicName::from("t"));
        assert!(delta.configs_changed.contains(&ConfigResource::topic("t")));
        assert!(image.topics.by_name("t").is_some(), "the old image is as it was");
    }

    #[test]
    fn a_transaction_counts_at_its_end_or_not_at_all() {
        let begin = || record::BeginTransactionRecord { name: None }.into();
        let mut records = vec![begin()];
        records.extend(topic("t", 7));
        let open = image_of(&records);
        assert!(open.topics.is_empty());

        let end = record::EndTransactionRecord {}.into();
        let (ended, delta) = open.apply(&[end], Offset(11)).expect("fits");
        assert_eq!(ended.topics.len(), 1);
        assert_eq!(delta.topics_created.len(), 1);

        let abort = record::AbortTransactionRecord { reason: None }.into();
        let (aborted, _) = open.apply(&[abort], Offset(11)).expect("fits");
        assert!(aborted.topics.is_empty());
        assert_eq!(open.apply(&[begin()], Offset(11)), Err(ApplyError::Transaction));
    }

    #[test]
    fn a_snapshot_makes_the_same_image_again() {
        let level = |name: &str, feature_level| -> MetadataRecord {
            record::FeatureLevelRecord { name: name.into(), feature_level }.into()
        };
        let mut records = vec![level(ELR_VERSION, 1), level(METADATA_VERSION, 30)];
        records.extend(topic("b", 7));
        records.extend(topic("a", 8));
        records.push(record::PartitionChangeRecord { leader: 2, ..change(7) }.into());
        records.push(config("a", "retention.ms", Some("5")));
        records.push(config("a", "segment.ms", Some("6")));
        records.push(config("a", "segment.ms", None));
        records.push(
            record::RegisterBrokerRecord { broker_id: 1, broker_epoch: 4, ..Default::default() }.into(),
        );
        records.push(record::UnfenceBrokerRecord { id: 1, epoch: 4 }.into());
        records
            .push(record::ProducerIdsRecord { broker_id: 1, broker_epoch: 4, next_producer_id: 1000 }.into());
        records.push(
            record::ClientQuotaRecord { key: "producer_byte_rate".into(), value: 5.0, ..Default::default() }
                .into(),
        );
        let image = image_of(&records);
        let snapshot = image.to_records();
        assert_eq!(snapshot[0], level(METADATA_VERSION, 30), "the metadata version comes first");
        assert_eq!(Image::from_snapshot(&snapshot, Offset(10)), Ok(image));
    }

    #[test]
    fn a_record_that_does_not_fit_is_an_error_and_not_a_panic() {
        let image = image_of(&topic("t", 7));
        let apply = |record: MetadataRecord| image.apply(&[record], Offset(11)).map(|_| ());
        assert_eq!(apply(change(9).into()), Err(ApplyError::UnknownTopic(Uuid([9; 16]))));
        assert_eq!(apply(topic("t", 9)[0].clone()), Err(ApplyError::TopicExists("t".into())));
        assert_eq!(
            apply(record::UnfenceBrokerRecord { id: 1, epoch: 4 }.into()),
            Err(ApplyError::UnknownBroker(NodeId(1)))
        );
    }

    /// Kafka 4.4 was formatted, made two topics, changed partitions and values, deleted a topic, was given a quota and a
    /// credential, and stopped.
    const KAFKA_LOG: &[u8] = include_bytes!("testdata/kafka_4.4_metadata.log");

    fn image_of_log(log: &[u8]) -> Image {
        let mut image = Image::default();
        for batch in protocol::batch::batches(log) {
            let batch = batch.expect("a whole batch");
            let records = batch.records(1 << 20).expect("records");
            let decode = |record: protocol::batch::Record<'_>| {
                MetadataRecord::decode(record.value.expect("a value")).expect("a metadata record")
            };
            let is_control = batch.header.attributes.is_control();
            let records =
                records.iter().filter(|_| !is_control).map(|record| decode(record.expect("a record")));
            let records: Vec<MetadataRecord> = records.collect();
            image = image.apply(&records, batch.header.next_offset()).expect("records that fit").0;
        }
        image
    }

    #[test]
    fn the_image_of_a_log_that_kafka_wrote_is_kafkas() {
        let image = image_of_log(KAFKA_LOG);
        assert_eq!(image.end(), Offset(51));
        assert_eq!(image.features.level(METADATA_VERSION), 33);
        assert!(image.topics.by_name("gone").is_none());
        let kept = image.topics.by_name("kept").expect("the topic");
        assert_eq!(kept.partitions.len(), 3);
        let partition = &kept.partitions[&2];
        assert_eq!(
            (partition.leader, &partition.isr[..], &partition.elr[..]),
            (NodeId::NONE, &[][..], &[NodeId(1)][..])
        );
        assert_eq!(partition.leader_epoch, LeaderEpoch(1));
        let configs = image.configs.of(&ConfigResource::topic("kept"));
        assert_eq!(
            configs.iter().collect::<Vec<_>>(),
            [(&"cleanup.policy".to_owned(), &"delete,compact".to_owned())]
        );
        let broker = image.brokers.get(NodeId(1)).expect("the broker");
        assert!(broker.fenced && broker.in_controlled_shutdown);
        assert_eq!(Image::from_snapshot(&image.to_records(), image.end()), Ok(image));
    }
}
