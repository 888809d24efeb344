//! What DescribeConfigs tells of a key: the value, where it comes from, and what else was set.

use super::{
    BROKER_KEYS, ConfigKey, ConfigType, Layers, Overrides, TOPIC_KEYS, UpdateMode, broker_key,
    broker_synonyms,
};

/// Where a value comes from. The numbers are those of DescribeConfigs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i8)]
pub enum ConfigSource {
    /// The topic has it.
    Topic = 1,
    /// Set for this broker at run time.
    DynamicBroker = 2,
    /// Set for all brokers at run time.
    DynamicDefaultBroker = 3,
    /// Set at start.
    StaticBroker = 4,
    /// Nobody set it.
    Default = 5,
}

/// One place where a value was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synonym {
    /// The key under which it was set there.
    pub name: &'static str,
    /// The value as it was given; `None` where it may not be shown.
    pub value: Option<String>,
    /// The place.
    pub source: ConfigSource,
}

/// A key with all that there is to say of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// The key.
    pub name: &'static str,
    /// The value that counts; `None` where there is none or it may not be shown.
    pub value: Option<String>,
    /// Where that value comes from.
    pub source: ConfigSource,
    /// Whether only a restart changes it.
    pub read_only: bool,
    /// Whether it may not be shown.
    pub sensitive: bool,
    /// All places where it was set, the one that counts first.
    pub synonyms: Vec<Synonym>,
    /// What its values are.
    pub kind: ConfigType,
    /// What it does.
    pub doc: &'static str,
}

impl ConfigSource {
    /// The number in DescribeConfigs.
    pub fn code(self) -> i8 {
        self as i8
    }
}

impl Layers<'_> {
    /// All topic keys that are `wanted`, for the topic of these layers.
    pub fn describe_topic(&self, wanted: impl Fn(&str) -> bool) -> Vec<Described> {
        TOPIC_KEYS.iter().filter(|key| wanted(key.name)).map(|key| self.topic_key(key)).collect()
    }

    /// All broker keys that are `wanted`, for the broker of these layers.
    pub fn describe_broker(&self, wanted: impl Fn(&str) -> bool) -> Vec<Described> {
        BROKER_KEYS.iter().filter(|key| wanted(key.name)).map(|key| self.broker_key(key)).collect()
    }

    /// The broker keys that were set for all brokers at run time and are `wanted`.
    pub fn describe_cluster(&self, wanted: impl Fn(&str) -> bool) -> Vec<Described> {
        let set = BROKER_KEYS.iter().filter(|key| self.cluster.contains_key(key.name) && wanted(key.name));
        set.map(|key| self.cluster_key(key)).collect()
    }

    fn topic_key(&self, key: &'static ConfigKey) -> Described {
        let mut synonyms = key.broker_keys.first().map_or_else(Vec::new, |name| self.broker_synonyms(name));
        let value = self.topic_value(key).map(|value| value.to_string());
        if self.topic.contains_key(key.name) {
            synonyms.insert(0, Synonym { name: key.name, value: value.clone(), source: ConfigSource::Topic });
        }
        described(key, value, synonyms, false)
    }

    fn broker_key(&self, key: &'static ConfigKey) -> Described {
        let value = self.broker_value(key).map(|value| value.to_string());
        described(key, value, self.broker_synonyms(key.name), key.update == UpdateMode::ReadOnly)
    }

    fn cluster_key(&self, key: &'static ConfigKey) -> Described {
        let mut synonyms = self.broker_synonyms(key.name);
        synonyms.retain(|synonym| synonym.source == ConfigSource::DynamicDefaultBroker);
        let value = self.cluster.get(key.name).and_then(|text| key.parse(text).ok());
        let read_only = key.update == UpdateMode::ReadOnly;
        described(key, value.map(|value| value.to_string()), synonyms, read_only)
    }

    /// Where `name`, or a key that says the same, was set. Kafka leaves out what would come before `name` itself.
    fn broker_synonyms(&self, name: &'static str) -> Vec<Synonym> {
        let names = broker_synonyms(name);
        let set = |values: &Overrides, source| -> Vec<Synonym> {
            let of = |name: &&'static str| {
                let value = values.get(*name).cloned()?;
                Some(Synonym { name, value: Some(value).filter(|_| !is_sensitive(name)), source })
            };
            names.iter().filter_map(of).collect()
        };
        let defaults = names.iter().filter_map(|name| {
            let value = broker_key(name)?.default?.to_owned();
            Some(Synonym { name, value: Some(value), source: ConfigSource::Default })
        });
        let mut synonyms = set(self.broker, ConfigSource::DynamicBroker);
        synonyms.extend(set(self.cluster, ConfigSource::DynamicDefaultBroker));
        synonyms.extend(set(self.fixed, ConfigSource::StaticBroker));
        synonyms.extend(defaults);
        synonyms.into_iter().skip_while(|synonym| synonym.name != name).collect()
    }
}

fn is_sensitive(name: &str) -> bool {
    broker_key(name).is_none_or(ConfigKey::is_sensitive)
}

fn described(
    key: &'static ConfigKey,
    value: Option<String>,
    synonyms: Vec<Synonym>,
    read_only: bool,
) -> Described {
    Described {
        name: key.name,
        value: value.filter(|_| !key.is_sensitive()),
        source: synonyms.first().map_or(ConfigSource::Default, |synonym| synonym.source),
        read_only,
        sensitive: key.is_sensitive(),
        synonyms,
        kind: key.kind,
        doc: key.doc,
    }
}
