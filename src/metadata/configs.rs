//! Values that were set at run time, by resource.
//!
//! Kafka: `ConfigurationsImage`, `ConfigResource`.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{NodeId, TopicName};
use protocol::records::metadata::{ConfigRecord, MetadataRecord};

use crate::config::{Layers, Overrides};
use crate::{ApplyError, Delta};

/// All values that were set. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Configs {
    by_resource: Arc<BTreeMap<ConfigResource, Arc<Overrides>>>,
}

/// What has configuration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConfigResource {
    /// What it is.
    pub kind: ResourceType,
    /// Its name: a topic's, a broker's number, a group's; of brokers, the empty name is all of them.
    pub name: String,
}

/// A kind of resource. The numbers are those of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i8)]
#[expect(missing_docs, reason = "the names are Kafka's")]
pub enum ResourceType {
    Topic = 2,
    Broker = 4,
    BrokerLogger = 8,
    ClientMetrics = 16,
    Group = 32,
}

static NOTHING_SET: Overrides = BTreeMap::new();

impl ResourceType {
    /// The number on the wire.
    pub fn code(self) -> i8 {
        self as i8
    }

    /// The kind of this number.
    pub fn from_code(code: i8) -> Option<Self> {
        let all = [Self::Topic, Self::Broker, Self::BrokerLogger, Self::ClientMetrics, Self::Group];
        all.into_iter().find(|kind| kind.code() == code)
    }
}

impl ConfigResource {
    /// A topic.
    pub fn topic(name: &str) -> Self {
        Self { kind: ResourceType::Topic, name: name.to_owned() }
    }

    /// One broker.
    pub fn broker(id: NodeId) -> Self {
        Self { kind: ResourceType::Broker, name: id.to_string() }
    }

    /// All brokers that have no value of their own.
    pub fn all_brokers() -> Self {
        Self { kind: ResourceType::Broker, name: String::new() }
    }
}

impl Configs {
    /// What was set for this resource.
    pub fn of(&self, resource: &ConfigResource) -> &Overrides {
        self.by_resource.get(resource).map_or(&NOTHING_SET, AsRef::as_ref)
    }

    /// All resources for which something was set.
    pub fn resources(&self) -> impl Iterator<Item = &ConfigResource> {
        self.by_resource.keys()
    }

    /// What counts on `broker`, which was started with `fixed`.
    pub fn broker_layers<'a>(&'a self, broker: NodeId, fixed: &'a Overrides) -> Layers<'a> {
        let (broker, cluster) = (ConfigResource::broker(broker), ConfigResource::all_brokers());
        Layers { topic: &NOTHING_SET, broker: self.of(&broker), cluster: self.of(&cluster), fixed }
    }

    /// What counts for `topic` on `broker`, which was started with `fixed`.
    pub fn topic_layers<'a>(&'a self, topic: &TopicName, broker: NodeId, fixed: &'a Overrides) -> Layers<'a> {
        let topic = self.of(&ConfigResource::topic(topic.as_str()));
        Layers { topic, ..self.broker_layers(broker, fixed) }
    }

    pub(crate) fn set(&mut self, record: &ConfigRecord, delta: &mut Delta) -> Result<(), ApplyError> {
        let kind = ResourceType::from_code(record.resource_type)
            .ok_or(ApplyError::UnknownResourceType(record.resource_type))?;
        let resource = ConfigResource { kind, name: record.resource_name.clone() };
        let values = Arc::make_mut(Arc::make_mut(&mut self.by_resource).entry(resource.clone()).or_default());
        match &record.value {
            Some(value) => values.insert(record.name.clone(), value.clone()),
            None => values.remove(&record.name),
        };
        if values.is_empty() {
            Arc::make_mut(&mut self.by_resource).remove(&resource);
        }
        delta.configs_changed.insert(resource);
        Ok(())
    }

    pub(crate) fn remove_topic(&mut self, name: &TopicName, delta: &mut Delta) {
        let resource = ConfigResource::topic(name.as_str());
        if self.by_resource.contains_key(&resource) {
            Arc::make_mut(&mut self.by_resource).remove(&resource);
            delta.configs_changed.insert(resource);
        }
    }

    pub(crate) fn write(&self, records: &mut Vec<MetadataRecord>) {
        for (resource, values) in &*self.by_resource {
            records.extend(values.iter().map(|(name, value)| {
                MetadataRecord::Config(ConfigRecord {
                    resource_type: resource.kind.code(),
                    resource_name: resource.name.clone(),
                    name: name.clone(),
                    value: Some(value.clone()),
                })
            }));
        }
    }
}
