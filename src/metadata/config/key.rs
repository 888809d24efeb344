//! One configuration key.

use super::{BROKER_KEYS, ConfigError, ConfigType, ConfigValue, TOPIC_KEYS, Validator};

/// A row of the registry.
#[derive(Debug)]
pub struct ConfigKey {
    /// Kafka's name of it.
    pub name: &'static str,
    /// What its values are.
    pub kind: ConfigType,
    /// The value that counts where none is set; `None` is no value at all (Kafka's null).
    pub default: Option<&'static str>,
    /// What else a value must hold.
    pub validator: Validator,
    /// Who may change it while the node runs. Topic keys are always dynamic, each for its own topic.
    pub update: UpdateMode,
    /// The broker keys whose values a topic without its own gets, the first one first. Empty for broker keys.
    pub broker_keys: &'static [&'static str],
    /// Whether Ottla acts on it. The others are known, described and kept, for what is to come.
    pub used: bool,
    /// What it does, in one sentence.
    pub doc: &'static str,
}

/// How a broker's key may be changed without a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateMode {
    /// Not at all.
    ReadOnly,
    /// For one broker.
    PerBroker,
    /// For one broker, or for all that have no value of their own.
    ClusterWide,
}

impl ConfigKey {
    /// Reads `text` as a value of this key.
    ///
    /// # Errors
    /// Kafka's own words for a value of the wrong type or out of bounds.
    pub fn parse(&self, text: &str) -> Result<ConfigValue, ConfigError> {
        let value = ConfigValue::parse(self.name, text, self.kind)?;
        self.validator.check(self.name, value)
    }

    /// The default, parsed.
    pub fn default_value(&self) -> Option<ConfigValue> {
        // A test parses every default of the tables.
        self.default.and_then(|text| self.parse(text).ok())
    }

    /// Whether values are secrets, which no answer and no log may show.
    pub(crate) fn is_sensitive(&self) -> bool {
        self.kind == ConfigType::Password
    }
}

/// The topic key of this name.
pub fn topic_key(name: &str) -> Option<&'static ConfigKey> {
    TOPIC_KEYS.iter().find(|key| key.name == name)
}

/// The broker key of this name.
pub fn broker_key(name: &str) -> Option<&'static ConfigKey> {
    BROKER_KEYS.iter().find(|key| key.name == name)
}

const CASCADES: &[&[&str]] = &[
    &["log.retention.ms", "log.retention.minutes", "log.retention.hours"],
    &["log.roll.ms", "log.roll.hours"],
    &["log.roll.jitter.ms", "log.roll.jitter.hours"],
];
const FLUSH_CASCADE: &[&str] = &["log.flush.interval.ms", "log.flush.scheduler.interval.ms"];

/// The broker keys that say the same as `name`, in the order in which they count (Kafka: `brokerConfigSynonyms`).
pub(crate) fn broker_synonyms(name: &'static str) -> Vec<&'static str> {
    if name == FLUSH_CASCADE[0] {
        return FLUSH_CASCADE.to_vec();
    }
    CASCADES.iter().find(|names| names.contains(&name)).map_or_else(|| vec![name], |names| names.to_vec())
}

/// What a value of `name` is multiplied with to be milliseconds: these units are in the names.
pub(super) fn millis_in(name: &str) -> i64 {
    match name.rsplit_once('.') {
        Some(("log.retention" | "log.roll" | "log.roll.jitter", "hours")) => 3_600_000,
        Some(("log.retention", "minutes")) => 60_000,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_a_value_of_its_key() {
        for key in TOPIC_KEYS.iter().chain(BROKER_KEYS) {
            if let Some(text) = key.default {
                let parsed = key.parse(text);
                assert_eq!(parsed.map(|value| value.to_string()).as_deref(), Ok(text), "{}", key.name);
            }
        }
    }

    #[test]
    fn names_are_there_once_and_synonyms_exist() {
        for keys in [TOPIC_KEYS, BROKER_KEYS] {
            for (i, key) in keys.iter().enumerate() {
                assert!(keys[..i].iter().all(|other| other.name != key.name), "{} twice", key.name);
            }
        }
        for key in TOPIC_KEYS {
            for name in key.broker_keys {
                assert!(broker_key(name).is_some(), "{name}");
            }
        }
    }
}
