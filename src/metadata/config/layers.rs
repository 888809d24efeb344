//! What counts of all that was set: a topic's own value, what was changed at run time, what the files say, the default.

use std::collections::BTreeMap;

use super::key::millis_in;
use super::{ConfigKey, ConfigType, ConfigValue, broker_key, topic_key};

/// Values that were set, by key, as the text that was given.
pub type Overrides = BTreeMap<String, String>;

pub(super) static NONE: Overrides = BTreeMap::new();

/// All places a value may come from, the stronger one first.
#[derive(Clone, Copy, Debug)]
pub struct Layers<'a> {
    /// Of the topic, where it is about a topic.
    pub topic: &'a Overrides,
    /// Of this broker, set at run time.
    pub broker: &'a Overrides,
    /// Of all brokers, set at run time.
    pub cluster: &'a Overrides,
    /// Of the files, the environment and the command line at start.
    pub fixed: &'a Overrides,
}

impl<'a> Layers<'a> {
    /// Only what was set at start.
    pub fn fixed(fixed: &'a Overrides) -> Self {
        Self { topic: &NONE, broker: &NONE, cluster: &NONE, fixed }
    }

    /// The value of a broker key that counts; `None` where none is set and the key has no default.
    pub fn broker_value(&self, key: &ConfigKey) -> Option<ConfigValue> {
        let set = [self.broker, self.cluster, self.fixed];
        let mut values = set.into_iter().filter_map(|values| key.parse(values.get(key.name)?).ok());
        values.next().or_else(|| key.default_value())
    }

    /// The value of a topic key that counts: the topic's, else that of the broker keys which stand in for it.
    pub fn topic_value(&self, key: &ConfigKey) -> Option<ConfigValue> {
        let own = self.topic.get(key.name).and_then(|text| key.parse(text).ok());
        own.or_else(|| self.topic_default(key))
    }

    fn topic_default(&self, key: &ConfigKey) -> Option<ConfigValue> {
        let mut stand_ins = key.broker_keys.iter().filter_map(|name| broker_key(name));
        let value = stand_ins.find_map(|name| self.in_unit_of(key, name));
        value.or_else(|| key.default_value())
    }

    /// The value of `broker_key` as one of `key`: hours and minutes become milliseconds, any negative time is -1.
    fn in_unit_of(&self, key: &ConfigKey, broker_key: &ConfigKey) -> Option<ConfigValue> {
        let value = self.broker_value(broker_key)?;
        match (key.kind, value.integer()) {
            (ConfigType::Long, Some(n)) if millis_in(broker_key.name) > 1 => {
                Some(ConfigValue::Long(if n < 0 { -1 } else { n.saturating_mul(millis_in(broker_key.name)) }))
            }
            (ConfigType::Long, Some(n)) => Some(ConfigValue::Long(n)),
            _ => Some(value),
        }
    }
}

/// Typed values by name. The names are literals of the code: one that is not in the table, or is asked for as a type
/// that it has not, is a fault of the caller and panics.
impl Layers<'_> {
    fn value(&self, name: &str) -> Option<ConfigValue> {
        let key = broker_key(name).expect("a key of the table");
        self.broker_value(key)
    }

    /// A BOOLEAN of the broker.
    pub fn boolean(&self, name: &str) -> bool {
        match self.value(name) {
            Some(ConfigValue::Boolean(value)) => value,
            other => panic!("{name} is {other:?}, not a boolean"),
        }
    }

    /// An INT, SHORT or LONG of the broker that has a default.
    pub fn integer(&self, name: &str) -> i64 {
        self.value(name).and_then(|value| value.integer()).expect("a number with a default")
    }

    /// A STRING or CLASS of the broker.
    pub fn text(&self, name: &str) -> Option<String> {
        match self.value(name) {
            Some(ConfigValue::String(text)) => Some(text),
            None => None,
            other => panic!("{name} is {other:?}, not a text"),
        }
    }

    /// A LIST of the broker; empty where it is not set.
    pub fn list(&self, name: &str) -> Vec<String> {
        match self.value(name) {
            Some(ConfigValue::List(items)) => items,
            None => Vec::new(),
            other => panic!("{name} is {other:?}, not a list"),
        }
    }

    pub(super) fn topic_key_value(&self, name: &str) -> ConfigValue {
        let key = topic_key(name).expect("a key of the table");
        self.topic_value(key).expect("every topic key has a default")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overrides(pairs: &[(&str, &str)]) -> Overrides {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn milliseconds_go_before_minutes_before_hours() {
        let retention = |pairs: &[(&str, &str)]| {
            Layers::fixed(&overrides(pairs)).topic_key_value("retention.ms").integer().expect("a number")
        };
        assert_eq!(retention(&[]), 168 * 3_600_000);
        assert_eq!(retention(&[("log.retention.hours", "1")]), 3_600_000);
        assert_eq!(retention(&[("log.retention.hours", "-1")]), -1);
        assert_eq!(retention(&[("log.retention.hours", "1"), ("log.retention.minutes", "2")]), 120_000);
        assert_eq!(retention(&[("log.retention.minutes", "2"), ("log.retention.ms", "3")]), 3);
    }

    #[test]
    fn the_topics_own_value_goes_before_the_brokers_before_the_clusters_before_the_files() {
        let (topic, broker) =
            (overrides(&[("segment.bytes", "4000000")]), overrides(&[("log.segment.bytes", "3000000")]));
        let (cluster, fixed) =
            (overrides(&[("log.segment.bytes", "2000000")]), overrides(&[("log.segment.bytes", "1500000")]));
        let mut layers = Layers { topic: &topic, broker: &broker, cluster: &cluster, fixed: &fixed };
        let segment_bytes = |layers: &Layers<'_>| layers.topic_key_value("segment.bytes").integer();
        assert_eq!(segment_bytes(&layers), Some(4_000_000));
        layers.topic = &NONE;
        assert_eq!(segment_bytes(&layers), Some(3_000_000));
        layers.broker = &NONE;
        assert_eq!(segment_bytes(&layers), Some(2_000_000));
        layers.cluster = &NONE;
        assert_eq!(segment_bytes(&layers), Some(1_500_000));
        layers.fixed = &NONE;
        assert_eq!(segment_bytes(&layers), Some(1_073_741_824));
    }

    #[test]
    fn a_value_that_cannot_be_parsed_is_passed_over() {
        let topic = overrides(&[("segment.bytes", "many")]);
        let layers = Layers { topic: &topic, ..Layers::fixed(&NONE) };
        assert_eq!(layers.topic_key_value("segment.bytes").integer(), Some(1_073_741_824));
    }
}
