//! Brokers and controllers that are registered.
//!
//! Kafka: `ClusterImage`, `BrokerRegistration`; KIP-631 (registration, fencing), KIP-858 (log folders), KIP-919.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{BrokerEpoch, DirectoryId, NodeId, Uuid};
use protocol::records::metadata::register_broker_record::{BrokerEndpoint, BrokerFeature};
use protocol::records::metadata::{
    BrokerRegistrationChangeRecord, MetadataRecord, RegisterBrokerRecord, RegisterControllerRecord,
    UnregisterBrokerRecord, UnregisterControllerRecord,
};

use crate::{ApplyError, Delta, Partition};

/// All brokers and controllers. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Brokers {
    brokers: Arc<BTreeMap<NodeId, Arc<Broker>>>,
    controllers: Arc<BTreeMap<NodeId, RegisterControllerRecord>>,
}

/// A broker as it registered itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broker {
    /// Its `node.id`.
    pub id: NodeId,
    /// The offset of its registration.
    pub epoch: BrokerEpoch,
    /// The run of the process that registered.
    pub incarnation: Uuid,
    /// Where it can be reached, by listener.
    pub endpoints: Vec<Endpoint>,
    /// The levels of features that it can work with.
    pub features: Vec<FeatureRange>,
    /// Its rack, where it has one.
    pub rack: Option<String>,
    /// Whether it is kept away from clients and leadership.
    pub fenced: bool,
    /// Whether it is about to stop.
    pub in_controlled_shutdown: bool,
    /// Its log folders that work.
    pub directories: Vec<DirectoryId>,
    /// Its log folders that get no new partitions, where it said so.
    pub cordoned_directories: Option<Vec<DirectoryId>>,
}

/// An address that clients or brokers are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The listener's name.
    pub listener: String,
    /// The host to connect to.
    pub host: String,
    /// The port to connect to.
    pub port: u16,
    /// What is spoken there.
    pub protocol: SecurityProtocol,
}

/// How a listener is secured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i16)]
#[expect(missing_docs, reason = "the names are Kafka's")]
pub enum SecurityProtocol {
    Plaintext = 0,
    Ssl = 1,
    SaslPlaintext = 2,
    SaslSsl = 3,
}

/// The levels of a feature that a node can work with, both inclusive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeatureRange {
    /// The feature.
    pub name: String,
    /// The lowest level.
    pub min: i16,
    /// The highest level.
    pub max: i16,
}

impl SecurityProtocol {
    /// Kafka's name of it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plaintext => "PLAINTEXT",
            Self::Ssl => "SSL",
            Self::SaslPlaintext => "SASL_PLAINTEXT",
            Self::SaslSsl => "SASL_SSL",
        }
    }

    /// The one of this number.
    pub fn of_code(code: i16) -> Option<Self> {
        [Self::Plaintext, Self::Ssl, Self::SaslPlaintext, Self::SaslSsl]
            .into_iter()
            .find(|protocol| *protocol as i16 == code)
    }
}

impl Broker {
    /// The address for clients of `listener`.
    pub fn endpoint(&self, listener: &str) -> Option<&Endpoint> {
        self.endpoints.iter().find(|endpoint| endpoint.listener == listener)
    }

    /// Whether it may lead, and count as in sync.
    pub fn is_active(&self) -> bool {
        !self.fenced && !self.in_controlled_shutdown
    }

    /// Whether a replica in this folder can work. A folder that was not chosen yet can; where nothing is known of the
    /// broker's folders, every one can.
    pub fn has_directory(&self, directory: DirectoryId) -> bool {
        let is_open = [Partition::UNASSIGNED, Partition::MIGRATING].contains(&directory);
        is_open || self.directories.is_empty() || self.directories.contains(&directory)
    }

    fn from_record(record: &RegisterBrokerRecord) -> Self {
        Self {
            id: NodeId(record.broker_id),
            epoch: BrokerEpoch(record.broker_epoch),
            incarnation: record.incarnation_id,
            endpoints: record.end_points.iter().map(Endpoint::from_record).collect(),
            features: record.features.iter().map(FeatureRange::from_record).collect(),
            rack: record.rack.clone(),
            fenced: record.fenced,
            in_controlled_shutdown: record.in_controlled_shutdown,
            directories: record.log_dirs.clone(),
            cordoned_directories: record.cordoned_log_dirs.clone(),
        }
    }

    /// The record that registers a broker in this state.
    pub fn to_record(&self) -> RegisterBrokerRecord {
        RegisterBrokerRecord {
            broker_id: self.id.0,
            is_migrating_zk_broker: false,
            incarnation_id: self.incarnation,
            broker_epoch: self.epoch.0,
            end_points: self.endpoints.iter().map(Endpoint::to_record).collect(),
            features: self.features.iter().map(FeatureRange::to_record).collect(),
            rack: self.rack.clone(),
            fenced: self.fenced,
            in_controlled_shutdown: self.in_controlled_shutdown,
            log_dirs: self.directories.clone(),
            cordoned_log_dirs: self.cordoned_directories.clone(),
        }
    }

    fn changed_by(&self, record: &BrokerRegistrationChangeRecord) -> Self {
        let mut broker = self.clone();
        broker.fenced = match record.fenced {
            1 => true,
            -1 => false,
            _ => broker.fenced,
        };
        broker.in_controlled_shutdown |= record.in_controlled_shutdown == 1;
        if !record.log_dirs.is_empty() {
            broker.directories.clone_from(&record.log_dirs);
        }
        if record.cordoned_log_dirs.is_some() {
            broker.cordoned_directories.clone_from(&record.cordoned_log_dirs);
        }
        broker
    }
}

impl Endpoint {
    fn from_record(record: &BrokerEndpoint) -> Self {
        Self {
            listener: record.name.clone(),
            host: record.host.clone(),
            port: record.port,
            protocol: SecurityProtocol::of_code(record.security_protocol)
                .unwrap_or(SecurityProtocol::Plaintext),
        }
    }

    fn to_record(&self) -> BrokerEndpoint {
        BrokerEndpoint {
            name: self.listener.clone(),
            host: self.host.clone(),
            port: self.port,
            security_protocol: self.protocol as i16,
        }
    }
}

impl FeatureRange {
    fn from_record(record: &BrokerFeature) -> Self {
        Self {
            name: record.name.clone(),
            min: record.min_supported_version,
            max: record.max_supported_version,
        }
    }

    fn to_record(&self) -> BrokerFeature {
        BrokerFeature {
            name: self.name.clone(),
            min_supported_version: self.min,
            max_supported_version: self.max,
        }
    }
}

impl Brokers {
    /// The broker of this id, fenced or not.
    pub fn get(&self, id: NodeId) -> Option<&Arc<Broker>> {
        self.brokers.get(&id)
    }

    /// All brokers in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Broker>> {
        self.brokers.values()
    }

    /// The brokers that clients are told of, in the order of their ids.
    pub fn unfenced(&self) -> impl Iterator<Item = &Arc<Broker>> {
        self.iter().filter(|broker| !broker.fenced)
    }

    /// All controllers in the order of their ids, as they registered.
    pub fn controllers(&self) -> impl Iterator<Item = &RegisterControllerRecord> {
        self.controllers.values()
    }

    fn broker_mut(&mut self, id: i32, epoch: i64) -> Result<&mut Arc<Broker>, ApplyError> {
        let id = NodeId(id);
        let broker = Arc::make_mut(&mut self.brokers).get_mut(&id).ok_or(ApplyError::UnknownBroker(id))?;
        if broker.epoch.0 != epoch {
            return Err(ApplyError::OtherBrokerEpoch { broker: id, has: broker.epoch.0, got: epoch });
        }
        Ok(broker)
    }

    pub(crate) fn register(&mut self, record: &RegisterBrokerRecord, delta: &mut Delta) {
        let broker = Broker::from_record(record);
        delta.brokers_changed.insert(broker.id);
        Arc::make_mut(&mut self.brokers).insert(broker.id, Arc::new(broker));
    }

    pub(crate) fn unregister(
        &mut self,
        record: &UnregisterBrokerRecord,
        delta: &mut Delta,
    ) -> Result<(), ApplyError> {
        self.broker_mut(record.broker_id, record.broker_epoch)?;
        Arc::make_mut(&mut self.brokers).remove(&NodeId(record.broker_id));
        delta.brokers_changed.insert(NodeId(record.broker_id));
        Ok(())
    }

    pub(crate) fn change(
        &mut self,
        record: &BrokerRegistrationChangeRecord,
        delta: &mut Delta,
    ) -> Result<(), ApplyError> {
        let broker = self.broker_mut(record.broker_id, record.broker_epoch)?;
        *broker = Arc::new(broker.changed_by(record));
        delta.brokers_changed.insert(NodeId(record.broker_id));
        Ok(())
    }

    pub(crate) fn set_fenced(
        &mut self,
        id: i32,
        epoch: i64,
        fenced: bool,
        delta: &mut Delta,
    ) -> Result<(), ApplyError> {
        Arc::make_mut(self.broker_mut(id, epoch)?).fenced = fenced;
        delta.brokers_changed.insert(NodeId(id));
        Ok(())
    }

    pub(crate) fn register_controller(&mut self, record: &RegisterControllerRecord, delta: &mut Delta) {
        let id = NodeId(record.controller_id);
        Arc::make_mut(&mut self.controllers).insert(id, record.clone());
        delta.controllers_changed.insert(id);
    }

    pub(crate) fn unregister_controller(&mut self, record: &UnregisterControllerRecord, delta: &mut Delta) {
        let id = NodeId(record.controller_id);
        Arc::make_mut(&mut self.controllers).remove(&id);
        delta.controllers_changed.insert(id);
    }

    pub(crate) fn write(&self, records: &mut Vec<MetadataRecord>) {
        records
            .extend(self.brokers.values().map(|broker| MetadataRecord::RegisterBroker(broker.to_record())));
        records.extend(self.controllers.values().cloned().map(MetadataRecord::RegisterController));
    }
}
