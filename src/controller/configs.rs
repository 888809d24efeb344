//! Changing values of topics and brokers at run time.
//!
//! Kafka: `ConfigurationControlManager`, `ConfigAdminManager`, `ControllerConfigurationValidator`; KIP-226, KIP-339.

use std::collections::BTreeSet;

use metadata::config::{
    ConfigError, ConfigKey, ConfigType, ConfigValue, Layers, Overrides, broker_key, topic_key,
    validate_broker, validate_topic,
};
use metadata::{ConfigResource, ResourceType};
use model::NodeId;
use protocol::records::metadata::{ClearElrRecord, ConfigRecord, MetadataRecord};

use crate::mutant::Mutant;
use crate::topics::duplicates;
use crate::{AlterConfigError, Controller, Decision, TopicError, validate_topic_name};

const VALUE_BYTES_MAX: usize = 32_767;
pub(crate) const MIN_INSYNC_REPLICAS: &str = "min.insync.replicas";

/// A resource whose values shall change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterResource {
    /// The number of its kind on the wire.
    pub kind: i8,
    /// Its name.
    pub name: String,
    /// What shall change.
    pub changes: Vec<AlterConfig>,
    /// Whether keys that are not named lose their values (the older AlterConfigs).
    pub replace: bool,
}

/// A key whose value shall change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterConfig {
    /// The key.
    pub name: String,
    /// What shall be done.
    pub op: AlterOp,
    /// With what.
    pub value: Option<String>,
}

/// What shall be done with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlterOp {
    /// It becomes this one.
    Set,
    /// It is not set any more.
    Delete,
    /// These elements are added to the list.
    Append,
    /// These elements are taken from the list.
    Subtract,
    /// A number that nobody knows.
    Unknown(i8),
}

/// What came of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlteredResource {
    /// The number of its kind on the wire.
    pub kind: i8,
    /// Its name.
    pub name: String,
    /// Why nothing changed.
    pub result: Result<(), AlterConfigError>,
}

impl AlterOp {
    /// The operation of this number on the wire.
    pub fn from_code(code: i8) -> Self {
        match code {
            0 => Self::Set,
            1 => Self::Delete,
            2 => Self::Append,
            3 => Self::Subtract,
            code => Self::Unknown(code),
        }
    }
}

impl Controller {
    /// Decides on changes of values, all or none of a resource, in the order of the request. `receiver` is the broker
    /// that the request came to; none where it came to a controller.
    pub fn alter_configs(
        &self,
        resources: &[AlterResource],
        receiver: Option<NodeId>,
        validate_only: bool,
    ) -> Decision<Vec<AlteredResource>> {
        let mut records = Vec::new();
        let mut alter = |(resource, checked): (&AlterResource, Result<ResourceType, AlterConfigError>)| {
            let result = checked.and_then(|kind| self.alter(resource, kind)).map(|new| records.extend(new));
            AlteredResource { kind: resource.kind, name: resource.name.clone(), result }
        };
        let checked = check_alterations(resources, receiver);
        let reply = resources.iter().zip(checked).map(&mut alter).collect();
        if validate_only {
            records.clear();
        }
        if records.iter().any(allows_unclean_election) {
            records.extend(self.with(&records).unclean_elections());
        }
        Decision { records, reply }
    }

    fn alter(
        &self,
        resource: &AlterResource,
        kind: ResourceType,
    ) -> Result<Vec<MetadataRecord>, AlterConfigError> {
        let target = ConfigResource { kind, name: resource.name.clone() };
        let before = self.image.configs.of(&target);
        let after = self.after(resource, kind, before)?;
        match kind {
            ResourceType::Topic => self.check_topic(&resource.name, &after)?,
            _ => self.check_broker(resource, before, &after)?,
        }
        Ok(self.config_records(&target, resource, before, &after))
    }

    fn after(
        &self,
        resource: &AlterResource,
        kind: ResourceType,
        before: &Overrides,
    ) -> Result<Overrides, AlterConfigError> {
        let mut after = if resource.replace { Overrides::new() } else { before.clone() };
        for change in &resource.changes {
            match self.new_value(change, kind, after.get(&change.name))? {
                Some(value) if value.len() > VALUE_BYTES_MAX => return Err(AlterConfigError::TooLong),
                Some(value) => after.insert(change.name.clone(), value),
                None => after.remove(&change.name),
            };
        }
        Ok(after)
    }

    fn new_value(
        &self,
        change: &AlterConfig,
        kind: ResourceType,
        current: Option<&String>,
    ) -> Result<Option<String>, AlterConfigError> {
        let given = change.value.clone().unwrap_or_default();
        match change.op {
            AlterOp::Set => Ok(Some(given)),
            AlterOp::Delete => Ok(None),
            AlterOp::Append => {
                let mut items = self.items("APPEND", change, kind, current)?;
                for item in given.split(',').map(str::to_owned) {
                    if !items.contains(&item) {
                        items.push(item);
                    }
                }
                Ok(Some(items.join(",")))
            }
            AlterOp::Subtract => {
                let mut items = self.items("SUBTRACT", change, kind, current)?;
                items.retain(|item| !given.split(',').any(|gone| gone == item));
                Ok(Some(items.join(",")))
            }
            AlterOp::Unknown(code) => Err(AlterConfigError::UnknownOperation(code)),
        }
    }

    /// The elements of a list as it is, or as the node that decides was started with.
    fn items(
        &self,
        op: &'static str,
        change: &AlterConfig,
        kind: ResourceType,
        current: Option<&String>,
    ) -> Result<Vec<String>, AlterConfigError> {
        let key = key(kind, &change.name).filter(|key| key.kind == ConfigType::List);
        let key = key.ok_or(AlterConfigError::NotList { op, key: change.name.clone() })?;
        let started_with = || {
            let layers = self.config.broker.layers();
            if kind == ResourceType::Topic { layers.topic_value(key) } else { layers.broker_value(key) }
        };
        let text =
            current.cloned().or_else(|| started_with().map(|value| value.to_string())).unwrap_or_default();
        Ok(text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect())
    }

    fn check_topic(&self, name: &str, after: &Overrides) -> Result<(), AlterConfigError> {
        if let Err(TopicError::InvalidName(reason)) = validate_topic_name(name) {
            return Err(AlterConfigError::InvalidTopicName(reason));
        }
        validate_topic(after).map_err(AlterConfigError::Topic)?;
        if self.image.topics.by_name(name).is_none() {
            return Err(AlterConfigError::UnknownTopic(name.to_owned()));
        }
        if self.is_cached(self.image.configs.of(&ConfigResource::topic(name))) && !self.is_cached(after) {
            return Err(AlterConfigError::Topic(ConfigError::WriteCachingOff));
        }
        Ok(())
    }

    fn is_cached(&self, topic: &Overrides) -> bool {
        let layers = self.image.configs.broker_layers(self.config.node, self.config.broker.values());
        let key = topic_key("write.caching").expect("a key of the table");
        Layers { topic, ..layers }.topic_value(key) == Some(ConfigValue::Boolean(true))
    }

    fn check_broker(
        &self,
        resource: &AlterResource,
        before: &Overrides,
        after: &Overrides,
    ) -> Result<(), AlterConfigError> {
        let of_one = !resource.name.is_empty();
        validate_broker(after, of_one).map_err(AlterConfigError::Broker)?;
        let changes = before.get(MIN_INSYNC_REPLICAS) != after.get(MIN_INSYNC_REPLICAS);
        if !self.elr_is_on() || !changes {
            return Ok(());
        }
        match (of_one, after.contains_key(MIN_INSYNC_REPLICAS)) {
            (true, _) => Err(AlterConfigError::BrokerMinInsyncReplicas),
            (false, false) => Err(AlterConfigError::ClusterMinInsyncReplicas),
            (false, true) => Ok(()),
        }
    }

    fn config_records(
        &self,
        target: &ConfigResource,
        resource: &AlterResource,
        before: &Overrides,
        after: &Overrides,
    ) -> Vec<MetadataRecord> {
        let named: BTreeSet<&String> = resource.changes.iter().map(|change| &change.name).collect();
        let gone = before.keys().filter(|name| !after.contains_key(*name) && !named.contains(name));
        // A broker reads its files anew even when the text of a value is the same (KAFKA-14136).
        let always = target.kind == ResourceType::Broker;
        let changed = |name: &&String| always || before.get(*name) != after.get(*name);
        let names: Vec<&String> = named.iter().copied().filter(changed).chain(gone).collect();
        let mut records: Vec<MetadataRecord> = names.iter().map(|name| record(target, name, after)).collect();
        let is_other_min = before.get(MIN_INSYNC_REPLICAS) != after.get(MIN_INSYNC_REPLICAS)
            && !self.mutation.is(Mutant::ElrKeptAfterMinIsrChange);
        if self.elr_is_on() && is_other_min {
            // Who was eligible was so by the old value. The empty name is all topics.
            let topic_name = if always { String::new() } else { target.name.clone() };
            records.push(ClearElrRecord { topic_name }.into());
        }
        records
    }
}

fn key(kind: ResourceType, name: &str) -> Option<&'static ConfigKey> {
    if kind == ResourceType::Topic { topic_key(name) } else { broker_key(name) }
}

/// What can be said of each of the changes without the metadata: its kind, or why it is refused. `receiver` is the broker
/// that asks to know; a controller takes changes of every broker.
pub fn check_alterations(
    resources: &[AlterResource],
    receiver: Option<NodeId>,
) -> Vec<Result<ResourceType, AlterConfigError>> {
    let twice = duplicates(resources.iter().map(|resource| (resource.kind, resource.name.as_str())));
    let check = |resource: &AlterResource| {
        if twice.contains(&(resource.kind, resource.name.as_str())) {
            return Err(AlterConfigError::DuplicateResource);
        }
        let kind = ResourceType::from_code(resource.kind)
            .ok_or(AlterConfigError::UnknownResourceType(resource.kind))?;
        check_changes(&resource.changes)?;
        check_resource(kind, resource, receiver).map(|()| kind)
    };
    resources.iter().map(check).collect()
}

fn check_changes(changes: &[AlterConfig]) -> Result<(), AlterConfigError> {
    if !duplicates(changes.iter().map(|change| &change.name)).is_empty() {
        return Err(AlterConfigError::DuplicateKeys);
    }
    let nulls = changes.iter().filter(|change| change.value.is_none() && change.op != AlterOp::Delete);
    let nulls: Vec<&str> = nulls.map(|change| change.name.as_str()).collect();
    if !nulls.is_empty() {
        return Err(AlterConfigError::NullValue(nulls.join(",")));
    }
    Ok(())
}

/// Whether there is anything to change at this resource, seen from the node that got the request.
fn check_resource(
    kind: ResourceType,
    resource: &AlterResource,
    receiver: Option<NodeId>,
) -> Result<(), AlterConfigError> {
    let first = || resource.changes.first().map_or_else(String::new, |change| change.name.clone());
    match kind {
        ResourceType::Topic if resource.name.is_empty() => Err(AlterConfigError::DefaultTopic),
        ResourceType::Broker if !resource.name.is_empty() => check_broker_name(&resource.name, receiver),
        ResourceType::Topic | ResourceType::Broker => Ok(()),
        ResourceType::BrokerLogger => Err(AlterConfigError::UnknownLogger(first())),
        ResourceType::Group => Err(AlterConfigError::UnknownGroupKey(first())),
        ResourceType::ClientMetrics => Err(AlterConfigError::NoClientMetrics),
    }
}

fn check_broker_name(name: &str, receiver: Option<NodeId>) -> Result<(), AlterConfigError> {
    match (name.parse::<i32>(), receiver) {
        (Ok(id), Some(expected)) if NodeId(id) != expected => {
            Err(AlterConfigError::OtherBroker { expected, received: name.to_owned() })
        }
        (Ok(_), _) => Ok(()),
        (Err(_), _) => Err(AlterConfigError::BrokerNotNumber(name.to_owned())),
    }
}

/// Who waits for a leader need not wait for the next look at them.
fn allows_unclean_election(record: &MetadataRecord) -> bool {
    matches!(record, MetadataRecord::Config(config) if config.name == "unclean.leader.election.enable")
}

fn record(target: &ConfigResource, name: &str, after: &Overrides) -> MetadataRecord {
    ConfigRecord {
        resource_type: target.kind.code(),
        resource_name: target.name.clone(),
        name: name.to_owned(),
        value: after.get(name).cloned(),
    }
    .into()
}

#[cfg(test)]
mod tests {
    use model::ErrorCode;

    use super::*;
    use crate::testing::{commit, controller, counter};
    use crate::{CreateTopics, NewTopic};

    const TOPIC: i8 = 2;
    const BROKER: i8 = 4;

    fn with_topic() -> Controller {
        let mut controller = controller(&[1], &[]);
        let topic =
            NewTopic { name: "t".into(), partitions: 1, replication_factor: 1, ..NewTopic::default() };
        let command = CreateTopics { topics: vec![topic], validate_only: false };
        let decision = controller.create_topics(&command, &mut counter());
        commit(&mut controller, decision);
        controller
    }

    fn resource(kind: i8, name: &str, changes: &[(&str, AlterOp, Option<&str>)]) -> AlterResource {
        let change = |(name, op, value): &(&str, AlterOp, Option<&str>)| AlterConfig {
            name: (*name).into(),
            op: *op,
            value: value.map(Into::into),
        };
        AlterResource {
            kind,
            name: name.into(),
            changes: changes.iter().map(change).collect(),
            replace: false,
        }
    }

    fn alter(controller: &mut Controller, resource: AlterResource) -> Result<(), AlterConfigError> {
        let decision = controller.alter_configs(&[resource], Some(NodeId(1)), false);
        commit(controller, decision).remove(0).result
    }

    fn refusal(kind: i8, name: &str, changes: &[(&str, AlterOp, Option<&str>)]) -> (ErrorCode, String) {
        let error = alter(&mut with_topic(), resource(kind, name, changes)).expect_err("refused");
        ((&error).into(), error.to_string())
    }

    fn value(controller: &Controller, key: &str) -> Option<String> {
        controller.image().configs.of(&ConfigResource::topic("t")).get(key).cloned()
    }

    #[test]
    fn values_are_set_and_deleted() {
        let mut controller = with_topic();
        let set = resource(TOPIC, "t", &[("retention.ms", AlterOp::Set, Some("5"))]);
        assert_eq!(alter(&mut controller, set), Ok(()));
        assert_eq!(value(&controller, "retention.ms").as_deref(), Some("5"));
        let delete = resource(TOPIC, "t", &[("retention.ms", AlterOp::Delete, None)]);
        assert_eq!(alter(&mut controller, delete), Ok(()));
        assert_eq!(value(&controller, "retention.ms"), None);
    }

    #[test]
    fn elements_are_added_to_the_default_and_taken_away() {
        let mut controller = with_topic();
        for (op, given, becomes) in [
            (AlterOp::Append, "compact", "delete,compact"),
            (AlterOp::Append, "compact", "delete,compact"),
            (AlterOp::Subtract, "delete", "compact"),
            (AlterOp::Subtract, "compact", ""),
        ] {
            assert_eq!(
                alter(&mut controller, resource(TOPIC, "t", &[("cleanup.policy", op, Some(given))])),
                Ok(())
            );
            assert_eq!(value(&controller, "cleanup.policy").as_deref(), Some(becomes));
        }
    }

    #[test]
    fn replacing_takes_away_what_is_not_named() {
        let mut controller = with_topic();
        let both = [("retention.ms", AlterOp::Set, Some("5")), ("segment.ms", AlterOp::Set, Some("7"))];
        assert_eq!(alter(&mut controller, resource(TOPIC, "t", &both)), Ok(()));
        let replace = AlterResource {
            replace: true,
            ..resource(TOPIC, "t", &[("retention.ms", AlterOp::Set, Some("6"))])
        };
        assert_eq!(alter(&mut controller, replace), Ok(()));
        assert_eq!(value(&controller, "retention.ms").as_deref(), Some("6"));
        assert_eq!(value(&controller, "segment.ms"), None);
    }

    #[test]
    fn validate_only_records_nothing_and_one_bad_value_keeps_all_of_a_resource() {
        let controller = with_topic();
        let good = resource(TOPIC, "t", &[("retention.ms", AlterOp::Set, Some("5"))]);
        assert!(controller.alter_configs(&[good], Some(NodeId(1)), true).records.is_empty());
        let mixed = resource(
            TOPIC,
            "t",
            &[("retention.ms", AlterOp::Set, Some("5")), ("segment.ms", AlterOp::Set, Some("x"))],
        );
        assert!(controller.alter_configs(&[mixed], Some(NodeId(1)), false).records.is_empty());
    }

    #[test]
    fn topics_are_refused_in_kafkas_words() {
        let set = |key, value| [(key, AlterOp::Set, Some(value))];
        assert_eq!(
            refusal(TOPIC, "t", &set("retention.ms", "x")),
            (
                ErrorCode::InvalidConfig,
                "Invalid value x for configuration retention.ms: Not a number of type LONG".into()
            )
        );
        assert_eq!(
            refusal(TOPIC, "nosuch", &set("retention.ms", "5")),
            (ErrorCode::UnknownTopicOrPartition, "The topic 'nosuch' does not exist.".into())
        );
        assert_eq!(
            refusal(TOPIC, "", &set("retention.ms", "5")).1,
            "Default topic resources are not allowed."
        );
        assert_eq!(refusal(TOPIC, "a b", &set("retention.ms", "5")).0, ErrorCode::InvalidTopicException);
        assert_eq!(
            refusal(TOPIC, "t", &[("retention.ms", AlterOp::Append, Some("5"))]),
            (
                ErrorCode::InvalidConfig,
                "Can't APPEND to key retention.ms because its type is not LIST.".into()
            )
        );
        assert_eq!(
            refusal(TOPIC, "t", &[("retention.ms", AlterOp::Set, None)]),
            (ErrorCode::InvalidRequest, "Null value not supported for : retention.ms".into())
        );
        let twice = [("retention.ms", AlterOp::Set, Some("5")), ("retention.ms", AlterOp::Set, Some("6"))];
        assert_eq!(refusal(TOPIC, "t", &twice).1, "Error due to duplicate config keys");
        assert_eq!(refusal(3, "t", &[]), (ErrorCode::InvalidRequest, "Unknown resource type 3".into()));
    }

    #[test]
    fn brokers_are_refused_in_kafkas_words() {
        let set = |key, value| [(key, AlterOp::Set, Some(value))];
        assert_eq!(
            refusal(BROKER, "1", &set("num.partitions", "2")),
            (ErrorCode::InvalidRequest, "Cannot update these configs dynamically: [num.partitions]".into())
        );
        assert_eq!(
            refusal(BROKER, "", &set("listeners", "PLAINTEXT://:1")).1,
            "Cannot update these configs at default cluster level, broker id must be specified: [listeners]"
        );
        assert_eq!(
            refusal(BROKER, "7", &set("log.cleaner.threads", "2")).1,
            "Unexpected broker id, expected 1, but received 7"
        );
        assert_eq!(
            refusal(BROKER, "x", &set("log.cleaner.threads", "2")).1,
            "Node id must be an integer, but it is: x"
        );
        assert_eq!(
            refusal(BROKER, "1", &set("min.insync.replicas", "2")),
            (
                ErrorCode::InvalidConfig,
                "Broker-level min.insync.replicas cannot be altered while ELR is enabled.".into()
            )
        );
    }

    #[test]
    fn write_caching_goes_on_and_not_off_again() {
        let mut controller = with_topic();
        let change = |op, value| resource(TOPIC, "t", &[("write.caching", op, value)]);
        assert_eq!(alter(&mut controller, change(AlterOp::Set, Some("true"))), Ok(()));
        let off = alter(&mut controller, change(AlterOp::Set, Some("false")));
        assert_eq!(off, Err(AlterConfigError::Topic(ConfigError::WriteCachingOff)));
        assert!(alter(&mut controller, change(AlterOp::Delete, None)).is_err());
    }

    #[test]
    fn a_resource_that_is_there_twice_is_refused_both_times() {
        let controller = with_topic();
        let set = || resource(TOPIC, "t", &[("retention.ms", AlterOp::Set, Some("5"))]);
        let decision = controller.alter_configs(&[set(), set()], Some(NodeId(1)), false);
        assert!(decision.records.is_empty());
        assert_eq!(decision.reply.len(), 2);
        assert!(decision.reply.iter().all(|altered| altered.result.is_err()));
    }
}
