//! Brokers that register, and the leaderships that go and come with them.
//!
//! A broker registers with each start of its process. Its new epoch is the offset of that record; it begins fenced, and
//! whatever its previous run led has no leader from then on. Once it has read the metadata log up to its registration it
//! is unfenced, and leads again what nobody else leads. So each start gives a new leader epoch to what it leads, and
//! nothing that the old run wrote can be taken for the new one's.
//!
//! After a start that followed no clean stop, a replica keeps its place as eligible if its topic is durable, for then it
//! has on disk all that was ever committed; with write.caching, or in another log folder than before, it loses it.
//!
//! Kafka: `ClusterControlManager`, `ReplicationControlManager.handleBrokerRegistered`; KIP-631, KIP-966.

use std::collections::BTreeSet;

use metadata::config::{ConfigValue, topic_key};
use metadata::{Broker, Endpoint, FeatureRange, Partition, Topic};
use model::{BrokerEpoch, DirectoryId, NodeId, Offset, TopicIdPartition, Uuid};
use protocol::records::metadata::{BrokerRegistrationChangeRecord, MetadataRecord};

use crate::change::{self, Rules};
use crate::{BrokerError, Controller, Decision};

/// A broker that wants to register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Its `node.id`.
    pub id: NodeId,
    /// The run of its process, made anew at each start.
    pub incarnation: Uuid,
    /// Where clients and brokers reach it.
    pub endpoints: Vec<Endpoint>,
    /// The levels of features that it can work with.
    pub features: Vec<FeatureRange>,
    /// Its rack, where it has one.
    pub rack: Option<String>,
    /// Its log folders that work.
    pub directories: Vec<DirectoryId>,
    /// The epoch that its last run wrote down when it stopped cleanly.
    pub previous_epoch: Option<BrokerEpoch>,
}

impl Controller {
    /// Decides on the registration of a broker, where the first record of the decision is going to stand at `log_end`.
    /// The reply is its epoch.
    pub fn register_broker(
        &self,
        registration: &Registration,
        log_end: Offset,
    ) -> Decision<Result<BrokerEpoch, BrokerError>> {
        if let Err(error) =
            self.check_directories(registration).and_then(|()| self.check_features(registration))
        {
            return Decision::nothing(Err(error));
        }
        let known = self.image.brokers.get(registration.id);
        // The same run asks again, perhaps because it missed the answer.
        let same_run = known.filter(|known| known.incarnation == registration.incarnation);
        let mut records = match (known, same_run) {
            (Some(known), None) => self.stopped(known, registration),
            _ => Vec::new(),
        };
        let epoch = same_run.map_or(BrokerEpoch(log_end.0 + records.len() as i64), |known| known.epoch);
        let fenced = same_run.is_none_or(|known| known.fenced);
        records.push(broker(registration, epoch, fenced).to_record().into());
        Decision { records, reply: Ok(epoch) }
    }

    /// Decides to unfence a broker, and gives it the leaderships that nobody has.
    pub fn unfence_broker(&self, id: NodeId, epoch: BrokerEpoch) -> Decision<Result<(), BrokerError>> {
        if let Err(error) = self.check_epoch(id, epoch) {
            return Decision::nothing(Err(error));
        }
        if self.image.brokers.get(id).is_some_and(|broker| !broker.fenced) {
            return Decision::nothing(Ok(()));
        }
        let unfence = BrokerRegistrationChangeRecord {
            broker_id: id.0,
            broker_epoch: epoch.0,
            fenced: -1,
            ..Default::default()
        };
        let mut records = vec![unfence.into()];
        let is_active = |node| node == id || self.is_active(node);
        records.extend(self.changes(&is_active, |_, partition, rules| {
            let leaderless = partition.leader == NodeId::NONE && partition.has_replica(id);
            leaderless.then(|| change::with_leader(partition, rules))
        }));
        Decision { records, reply: Ok(()) }
    }

    /// What the partitions of a broker become when another run of it begins.
    fn stopped(&self, known: &Broker, registration: &Registration) -> Vec<MetadataRecord> {
        let clean = registration.previous_epoch == Some(known.epoch);
        let id = known.id;
        let is_active = |node| node != id && self.is_active(node);
        self.changes(&is_active, |topic, partition, rules| {
            if !partition.has_replica(id) {
                return None;
            }
            let lost = !has_folder(partition, registration) || (!clean && self.is_write_caching(topic));
            Some(change::without(partition, id, lost, rules))
        })
    }

    fn changes(
        &self,
        is_active: &dyn Fn(NodeId) -> bool,
        after: impl Fn(&Topic, &Partition, &Rules<'_>) -> Option<Partition>,
    ) -> Vec<MetadataRecord> {
        let mut records = Vec::new();
        for topic in self.image.topics.iter() {
            let rules = self.rules(topic, is_active);
            for (index, partition) in &topic.partitions {
                let of = TopicIdPartition { topic_id: topic.id, partition: *index };
                let after = after(topic, partition, &rules);
                records.extend(after.and_then(|after| change::record(of, partition, &after)).map(Into::into));
            }
        }
        records
    }

    fn rules<'a>(&self, topic: &Topic, is_active: &'a dyn Fn(NodeId) -> bool) -> Rules<'a> {
        let isr_min = self.topic_value(topic, "min.insync.replicas").integer().unwrap_or(1);
        let unclean = self.topic_value(topic, "unclean.leader.election.enable") == ConfigValue::Boolean(true);
        Rules { is_active, elr: self.elr_is_on(), isr_min: isr_min as usize, unclean }
    }

    fn is_write_caching(&self, topic: &Topic) -> bool {
        self.topic_value(topic, "write.caching") == ConfigValue::Boolean(true)
    }

    fn topic_value(&self, topic: &Topic, key: &str) -> ConfigValue {
        let layers = self.image.configs.topic_layers(&topic.name, self.node, self.config.values());
        let key = topic_key(key).expect("a key of the table");
        layers.topic_value(key).expect("every topic key has a default")
    }

    pub(crate) fn check_epoch(&self, id: NodeId, epoch: BrokerEpoch) -> Result<(), BrokerError> {
        let broker = self.image.brokers.get(id).ok_or(BrokerError::NotRegistered(id))?;
        if broker.epoch == epoch {
            return Ok(());
        }
        Err(BrokerError::StaleEpoch { expected: broker.epoch, got: epoch })
    }

    fn check_directories(&self, registration: &Registration) -> Result<(), BrokerError> {
        let directories = &registration.directories;
        if directories.is_empty() {
            return Err(BrokerError::NoDirectories);
        }
        if directories.iter().collect::<BTreeSet<_>>().len() < directories.len() {
            return Err(BrokerError::DuplicateDirectory);
        }
        for other in self.image.brokers.iter().filter(|broker| broker.id != registration.id) {
            if let Some(directory) =
                other.directories.iter().find(|directory| directories.contains(directory))
            {
                return Err(BrokerError::ForeignDirectory { broker: other.id, directory: *directory });
            }
        }
        Ok(())
    }

    fn check_features(&self, registration: &Registration) -> Result<(), BrokerError> {
        for (feature, level) in self.image.features.iter() {
            let range = registration.features.iter().find(|range| range.name == feature);
            let (min, max) = range.map_or((0, 0), |range| (range.min, range.max));
            if !(min..=max).contains(&level) {
                return Err(BrokerError::UnsupportedFeature { feature: feature.to_owned(), level, min, max });
            }
        }
        Ok(())
    }
}

fn broker(registration: &Registration, epoch: BrokerEpoch, fenced: bool) -> Broker {
    Broker {
        id: registration.id,
        epoch,
        incarnation: registration.incarnation,
        endpoints: registration.endpoints.clone(),
        features: registration.features.clone(),
        rack: registration.rack.clone(),
        fenced,
        in_controlled_shutdown: false,
        directories: registration.directories.clone(),
        cordoned_directories: None,
    }
}

/// Whether the broker still has the folder that its replica was in, as far as that is known.
fn has_folder(partition: &Partition, registration: &Registration) -> bool {
    let place = partition.replicas.iter().position(|node| *node == registration.id);
    match place.and_then(|place| partition.directories.get(place)) {
        Some(folder) if *folder != Partition::UNASSIGNED && *folder != Partition::MIGRATING => {
            registration.directories.contains(folder)
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use metadata::Image;
    use metadata::config::BrokerConfig;
    use model::LeaderEpoch;

    use super::*;
    use crate::testing::{commit, counter, folder};
    use crate::{CreateTopics, NewTopic, SUPPORTED_FEATURES};

    fn registration(incarnation: u8, previous_epoch: Option<BrokerEpoch>) -> Registration {
        let range = |feature: &crate::SupportedFeature| FeatureRange {
            name: feature.name.into(),
            min: feature.min,
            max: feature.max,
        };
        Registration {
            id: NodeId(1),
            incarnation: Uuid([incarnation; 16]),
            endpoints: Vec::new(),
            features: SUPPORTED_FEATURES.iter().map(range).collect(),
            rack: None,
            directories: vec![folder(1)],
            previous_epoch,
        }
    }

    fn start(controller: &mut Controller, registration: &Registration) -> BrokerEpoch {
        let decision = controller.register_broker(registration, controller.image().end());
        let epoch = commit(controller, decision).expect("registered");
        let decision = controller.unfence_broker(NodeId(1), epoch);
        commit(controller, decision).expect("unfenced");
        epoch
    }

    /// A node that has one topic, with these values.
    fn node_with_topic(configs: &[(&str, &str)]) -> (Controller, BrokerEpoch) {
        let mut controller = Controller::new(Image::default(), NodeId(1), BrokerConfig::default());
        let decision = controller.bootstrap();
        commit(&mut controller, decision);
        let epoch = start(&mut controller, &registration(1, None));
        let topic = NewTopic {
            name: "t".into(),
            partitions: 1,
            replication_factor: 1,
            configs: configs.iter().map(|(name, value)| ((*name).into(), Some((*value).into()))).collect(),
            ..NewTopic::default()
        };
        let command = CreateTopics { topics: vec![topic], validate_only: false };
        let decision = controller.create_topics(&command, &mut counter());
        commit(&mut controller, decision);
        (controller, epoch)
    }

    fn only_partition(controller: &Controller) -> Partition {
        controller.image().topics.by_name("t").expect("the topic").partitions[&0].clone()
    }

    #[test]
    fn the_epoch_of_a_broker_is_the_offset_of_its_registration() {
        let (controller, epoch) = node_with_topic(&[]);
        assert_eq!(controller.image().brokers.get(NodeId(1)).map(|broker| broker.epoch), Some(epoch));
        let decision = controller.register_broker(&registration(2, Some(epoch)), Offset(500));
        let place =
            decision.records.iter().position(|record| matches!(record, MetadataRecord::RegisterBroker(_)));
        assert_eq!(place, Some(decision.records.len() - 1), "the registration comes last");
        assert_eq!(decision.reply, Ok(BrokerEpoch(500 + decision.records.len() as i64 - 1)));
    }

    #[test]
    fn each_start_gives_a_new_leader_epoch() {
        let (mut controller, epoch) = node_with_topic(&[]);
        assert_eq!(only_partition(&controller).leader_epoch, LeaderEpoch(0));
        start(&mut controller, &registration(2, Some(epoch)));
        let partition = only_partition(&controller);
        assert_eq!((partition.leader, partition.isr), (NodeId(1), vec![NodeId(1)]));
        assert!(partition.leader_epoch > LeaderEpoch(0));
    }

    #[test]
    fn after_an_unclean_stop_a_durable_replica_stays_eligible_and_a_caching_one_does_not() {
        for (configs, eligible) in [(vec![], true), (vec![("write.caching", "true")], false)] {
            let (mut controller, _) = node_with_topic(&configs);
            let decision = controller.register_broker(&registration(2, None), controller.image().end());
            let epoch = commit(&mut controller, decision).expect("registered");
            let fenced = only_partition(&controller);
            assert_eq!((fenced.leader, fenced.elr.contains(&NodeId(1))), (NodeId::NONE, eligible));
            let decision = controller.unfence_broker(NodeId(1), epoch);
            commit(&mut controller, decision).expect("unfenced");
            assert_eq!(only_partition(&controller).leader, NodeId(1));
        }
    }

    #[test]
    fn a_replica_whose_folder_is_gone_is_not_eligible() {
        let (mut controller, epoch) = node_with_topic(&[]);
        let other_disk = Registration { directories: vec![folder(7)], ..registration(2, Some(epoch)) };
        let decision = controller.register_broker(&other_disk, controller.image().end());
        commit(&mut controller, decision).expect("registered");
        assert!(only_partition(&controller).elr.is_empty());
    }

    #[test]
    fn the_same_run_keeps_its_epoch_and_stays_unfenced() {
        let (mut controller, epoch) = node_with_topic(&[]);
        let decision = controller.register_broker(&registration(1, None), controller.image().end());
        assert_eq!(commit(&mut controller, decision), Ok(epoch));
        assert!(controller.image().brokers.get(NodeId(1)).is_some_and(|broker| !broker.fenced));
        assert_eq!(only_partition(&controller).leader_epoch, LeaderEpoch(0));
    }

    #[test]
    fn a_broker_that_is_too_old_for_a_feature_is_refused() {
        let (controller, _) = node_with_topic(&[]);
        let mut old = registration(2, None);
        old.features.retain(|range| range.name != "group.version");
        let error = controller.register_broker(&old, Offset(900)).reply.expect_err("refused");
        assert_eq!(
            error.to_string(),
            "Unable to register because the broker does not support finalized version 1 of group.version. \
             The broker wants a version between 0 and 0, inclusive."
        );
    }
}
