//! Brokers that register.
//!
//! A broker registers with each start of its process. Its new epoch is the offset of that record, which is why the
//! record comes last; it begins fenced, and whatever its previous run led has no leader from then on. So each start
//! gives a new leader epoch to what it leads, and nothing that the old run wrote can be taken for the new one's.
//!
//! After a clean stop, which the epoch of the last run proves, its replicas stay eligible where they were in sync. After
//! any other they do not, in Kafka; here they do where the topic is durable and the broker says that it is
//! ([`Registration::durable`]): such a replica has on disk all that was ever committed, unless its disk failed it. Two
//! things tell: its folder's id, which a new folder does not have, and what recovery found, which the broker reports
//! before it is unfenced ([`Heartbeat::lost`](crate::Heartbeat)). A replica whose folder is away does not lead, and may
//! again when the folder is back; if the broker begins it anew in another one, it is no candidate of any kind any more
//! ([`directories`](crate::directories)).
//!
//! One process has an id at a time. A second one is refused while the session of the first lasts, unless that one is
//! stopping. A controller that has just begun has not heard of anybody; there, the one who holds a log folder of the
//! first has also its lock, so that the first is gone.
//!
//! Kafka: `ClusterControlManager.registerBroker`, `ReplicationControlManager.handleBrokerShutdown`; KIP-631, KIP-858,
//! KIP-966, KAFKA-16952 (the same run keeps its epoch), KAFKA-18106, KAFKA-19047.

use std::collections::BTreeSet;

use metadata::config::ConfigValue;
use metadata::{Broker, Endpoint, FeatureRange, Partition, Topic};
use model::{BrokerEpoch, ClusterId, DirectoryId, Instant, NodeId, Offset, Uuid};
use protocol::records::metadata::MetadataRecord;

use crate::mutant::Mutant;
use crate::partition_changes::{Moves, Wanted, without};
use crate::{BrokerError, ConnectionId, Controller, Decision};

/// A broker that wants to register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The cluster that it takes itself for a part of.
    pub cluster_id: ClusterId,
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
    /// Whether it flushes before it acknowledges, and reports what it lost all the same. Kafka's brokers do not say so.
    pub durable: bool,
    /// Where the registration came in.
    pub connection: ConnectionId,
}

impl Controller {
    /// Decides on the registration of a broker, where the first record of the decision is going to stand at `log_end`.
    /// The reply is its epoch.
    pub fn register_broker(
        &mut self,
        registration: &Registration,
        log_end: Offset,
        now: Instant,
    ) -> Decision<Result<BrokerEpoch, BrokerError>> {
        if let Err(error) = self.check_registration(registration, now) {
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
        records.push(broker(registration, epoch, same_run.map(AsRef::as_ref)).to_record().into());
        self.sessions.hear(registration.id, epoch, registration.connection, now);
        Decision { records, reply: Ok(epoch) }
    }

    fn check_registration(&self, registration: &Registration, now: Instant) -> Result<(), BrokerError> {
        if registration.cluster_id != self.config.cluster_id {
            return Err(BrokerError::OtherCluster {
                expected: self.config.cluster_id.clone(),
                got: registration.cluster_id.clone(),
            });
        }
        self.check_duplicate(registration, now)?;
        self.check_directories(registration)?;
        self.check_features(registration)
    }

    fn check_duplicate(&self, registration: &Registration, now: Instant) -> Result<(), BrokerError> {
        let Some(known) = self.image.brokers.get(registration.id) else { return Ok(()) };
        let Some(session) = self.sessions.live(known.id, known.epoch, now) else { return Ok(()) };
        let has_its_lock = known.directories.iter().any(|held| registration.directories.contains(held));
        let is_gone = known.in_controlled_shutdown || (!session.was_heard() && has_its_lock);
        let may_register = known.incarnation == registration.incarnation || is_gone;
        if may_register || self.mutation.is(Mutant::DuplicateTaken) {
            return Ok(());
        }
        Err(BrokerError::Duplicate)
    }

    /// What the partitions of a broker become when another run of it begins.
    fn stopped(&self, known: &Broker, registration: &Registration) -> Vec<MetadataRecord> {
        let clean = registration.previous_epoch == Some(known.epoch);
        let gone = [known.id];
        self.changes(Moves { gone: &gone, back: None }, |topic, _, partition| {
            if !partition.has_replica(known.id) {
                return None;
            }
            let mut wanted = Wanted::from(without(partition, &gone));
            let folder = folder(partition, known, registration);
            let is_durable = registration.durable && !self.is_write_caching(topic);
            let may_have_gone = folder == Folder::MayBeGone && !self.mutation.is(Mutant::EmptyDiskCounted);
            if may_have_gone || !(clean || is_durable && folder == Folder::There) {
                wanted.lost.push(known.id);
            }
            if may_have_gone {
                forget_last_leader(&mut wanted.partition, known.id);
            }
            Some(wanted)
        })
    }

    fn is_write_caching(&self, topic: &Topic) -> bool {
        self.topic_value(topic, "write.caching") == ConfigValue::Boolean(true)
    }

    pub(crate) fn check_epoch(&self, id: NodeId, epoch: BrokerEpoch) -> Result<(), BrokerError> {
        let broker = self.image.brokers.get(id).ok_or(BrokerError::NoRegistration(id))?;
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
        if directories.iter().any(|directory| Partition::is_reserved(*directory)) {
            return Err(BrokerError::ReservedDirectory);
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

/// The broker as it is registered; `same_run` is how this run of it registered before.
fn broker(registration: &Registration, epoch: BrokerEpoch, same_run: Option<&Broker>) -> Broker {
    Broker {
        id: registration.id,
        epoch,
        incarnation: registration.incarnation,
        endpoints: registration.endpoints.clone(),
        features: registration.features.clone(),
        rack: registration.rack.clone(),
        fenced: same_run.is_none_or(|known| known.fenced),
        in_controlled_shutdown: same_run.is_some_and(|known| known.in_controlled_shutdown),
        directories: registration.directories.clone(),
        cordoned_directories: same_run.and_then(|known| known.cordoned_directories.clone()),
    }
}

/// What became of the folder of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Folder {
    There,
    Away,
    /// It is not known which it was, and one of the broker's is away.
    MayBeGone,
}

fn folder(partition: &Partition, known: &Broker, registration: &Registration) -> Folder {
    let has = |directory: &DirectoryId| registration.directories.contains(directory);
    match partition.directory(known.id) {
        Partition::UNASSIGNED | Partition::MIGRATING if known.directories.iter().all(has) => Folder::There,
        Partition::UNASSIGNED | Partition::MIGRATING => Folder::MayBeGone,
        directory if has(&directory) => Folder::There,
        _ => Folder::Away,
    }
}

/// A replica that is empty is not the last known leader: whoever else has a copy has more.
pub(crate) fn forget_last_leader(partition: &mut Partition, node: NodeId) {
    if partition.replicas.len() > 1 {
        partition.last_known_elr.retain(|last| *last != node);
    }
}

#[cfg(test)]
mod tests {
    use metadata::Image;
    use model::{LeaderEpoch, TopicIdPartition};

    use super::*;
    use crate::testing::{NOW, commit, controller_at, counter, folder, heartbeat};
    use crate::{CreateTopics, Heartbeat, NewTopic, SUPPORTED_FEATURES};

    fn registration(incarnation: u8, previous_epoch: Option<BrokerEpoch>) -> Registration {
        let range = |feature: &crate::SupportedFeature| FeatureRange {
            name: feature.name.into(),
            min: feature.min,
            max: feature.max,
        };
        Registration {
            cluster_id: ClusterId::from("c"),
            id: NodeId(1),
            incarnation: Uuid([incarnation; 16]),
            endpoints: Vec::new(),
            features: SUPPORTED_FEATURES.iter().map(range).collect(),
            rack: None,
            directories: vec![folder(1)],
            previous_epoch,
            durable: true,
            connection: ConnectionId(u64::from(incarnation)),
        }
    }

    fn register(
        controller: &mut Controller,
        registration: &Registration,
    ) -> Result<BrokerEpoch, BrokerError> {
        let log_end = controller.image().end();
        let decision = controller.register_broker(registration, log_end, NOW);
        commit(controller, decision)
    }

    fn unfence(controller: &mut Controller, lost: Vec<TopicIdPartition>) {
        let heartbeat = Heartbeat { lost, ..heartbeat(controller, 1) };
        let decision = controller.heartbeat(&heartbeat, NOW);
        assert!(!commit(controller, decision).expect("its epoch").is_fenced);
    }

    fn start(controller: &mut Controller, registration: &Registration) -> BrokerEpoch {
        let epoch = register(controller, registration).expect("registered");
        unfence(controller, Vec::new());
        epoch
    }

    /// The last run was killed, and its connection closed.
    fn kill(controller: &mut Controller, epoch: BrokerEpoch) {
        controller.sessions.forget(&[NodeId(1)]);
        assert!(controller.sessions.of(NodeId(1), epoch).is_none());
    }

    /// A node that has one topic, with these values.
    fn node_with_topic(configs: &[(&str, &str)]) -> (Controller, BrokerEpoch) {
        let mut controller = controller_at(Image::default());
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
        let (mut controller, epoch) = (controller, epoch);
        kill(&mut controller, epoch);
        let decision = controller.register_broker(&registration(2, Some(epoch)), Offset(500), NOW);
        let place =
            decision.records.iter().position(|record| matches!(record, MetadataRecord::RegisterBroker(_)));
        assert_eq!(place, Some(decision.records.len() - 1), "the registration comes last");
        assert_eq!(decision.reply, Ok(BrokerEpoch(500 + decision.records.len() as i64 - 1)));
    }

    #[test]
    fn each_start_gives_a_new_leader_epoch() {
        let (mut controller, epoch) = node_with_topic(&[]);
        assert_eq!(only_partition(&controller).leader_epoch, LeaderEpoch(0));
        kill(&mut controller, epoch);
        start(&mut controller, &registration(2, Some(epoch)));
        let partition = only_partition(&controller);
        assert_eq!((partition.leader, partition.isr), (NodeId(1), vec![NodeId(1)]));
        assert!(partition.leader_epoch > LeaderEpoch(0));
    }

    #[test]
    fn after_an_unclean_stop_a_durable_replica_stays_eligible_and_a_caching_one_does_not() {
        for (configs, eligible) in [(vec![], true), (vec![("write.caching", "true")], false)] {
            let (mut controller, epoch) = node_with_topic(&configs);
            kill(&mut controller, epoch);
            register(&mut controller, &registration(2, None)).expect("registered");
            let fenced = only_partition(&controller);
            assert_eq!((fenced.leader, fenced.elr.contains(&NodeId(1))), (NodeId::NONE, eligible));
            unfence(&mut controller, Vec::new());
            assert_eq!(only_partition(&controller).leader, NodeId(1));
        }
    }

    #[test]
    fn a_replica_whose_folder_is_away_leads_when_it_is_back() {
        let (mut controller, epoch) = node_with_topic(&[]);
        let other_disk = Registration { directories: vec![folder(7)], ..registration(2, None) };
        kill(&mut controller, epoch);
        let epoch = start(&mut controller, &other_disk);
        let away = only_partition(&controller);
        assert!(away.elr.is_empty(), "the stop was not clean");
        assert_eq!(away.leader, NodeId::NONE);
        kill(&mut controller, epoch);
        start(&mut controller, &registration(3, None));
        assert_eq!(only_partition(&controller).leader, NodeId(1));
    }

    #[test]
    fn the_same_run_keeps_its_epoch_and_stays_unfenced() {
        let (mut controller, epoch) = node_with_topic(&[]);
        assert_eq!(register(&mut controller, &registration(1, None)), Ok(epoch));
        assert!(controller.image().brokers.get(NodeId(1)).is_some_and(|broker| !broker.fenced));
        assert_eq!(only_partition(&controller).leader_epoch, LeaderEpoch(0));
    }

    #[test]
    fn a_broker_that_is_too_old_for_a_feature_is_refused() {
        let (mut controller, epoch) = node_with_topic(&[]);
        kill(&mut controller, epoch);
        let mut old = registration(2, None);
        old.features.retain(|range| range.name != "group.version");
        let error = register(&mut controller, &old).expect_err("refused");
        assert_eq!(
            error.to_string(),
            "Unable to register because the broker does not support finalized version 1 of group.version. \
             The broker wants a version between 0 and 0, inclusive."
        );
    }
}
