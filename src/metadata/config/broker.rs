//! What a broker was started with.

use super::{BROKER_KEYS, ConfigError, Layers, Overrides, broker_key, is_other_key, suggest};

/// The values that files, environment and command line gave, checked. Nothing is in it that was not set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BrokerConfig {
    values: Overrides,
}

/// What came of a key that was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// Ottla acts on it.
    Used,
    /// Ottla knows and keeps it, and does nothing with it yet.
    Later,
    /// Kafka has it and Ottla does not need it; it is not kept.
    NotNeeded,
}

/// Why a key cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BrokerConfigError {
    /// Nobody has such a key.
    #[error("Unknown configuration key {name}{}", near.map_or_else(String::new, |near| format!(", did you mean {near}?")))]
    Unknown {
        /// The name.
        name: String,
        /// The key that was probably meant.
        near: Option<&'static str>,
    },
    /// The value is not one of this key.
    #[error(transparent)]
    Invalid(#[from] ConfigError),
}

/// Two names of one thing.
const ALIASES: [[&str; 2]; 2] = [["node.id", "broker.id"], ["broker.id", "node.id"]];

/// Keys of Kafka's authorizer, which are none of a broker's (Kafka: `StandardAuthorizer`).
const AUTHORIZER_KEYS: [&str; 2] = ["allow.everyone.if.no.acl.found", "super.users"];

/// Names that Kafka had before there were listeners, with what they became.
const BEFORE_LISTENERS: [(&str, &str); 4] = [
    ("advertised.host.name", "advertised.listeners"),
    ("advertised.port", "advertised.listeners"),
    ("host.name", "listeners"),
    ("port", "listeners"),
];

impl BrokerConfig {
    /// Sets a key, instead of what it was set to before.
    ///
    /// # Errors
    /// An unknown name, with the one that was probably meant, or a value that the key does not take.
    pub fn set(&mut self, name: &str, value: &str) -> Result<Accepted, BrokerConfigError> {
        let Some(key) = broker_key(name) else {
            return match name {
                _ if AUTHORIZER_KEYS.contains(&name) => Ok(Accepted::Later),
                _ if is_other_key(name) => Ok(Accepted::NotNeeded),
                _ => Err(unknown(name)),
            };
        };
        key.parse(value)?;
        self.values.insert(name.to_owned(), value.to_owned());
        if let Some([_, alias]) = ALIASES.iter().find(|[alias, _]| *alias == name) {
            self.values.insert((*alias).to_owned(), value.to_owned());
        }
        Ok(if key.used { Accepted::Used } else { Accepted::Later })
    }

    /// What was set.
    pub fn values(&self) -> &Overrides {
        &self.values
    }

    /// The values that count, by type.
    pub fn layers(&self) -> Layers<'_> {
        Layers::fixed(&self.values)
    }
}

fn unknown(name: &str) -> BrokerConfigError {
    let older = BEFORE_LISTENERS.iter().find(|(older, _)| *older == name).map(|(_, key)| *key);
    let near = older.or_else(|| suggest(name, BROKER_KEYS.iter().map(|key| key.name)));
    BrokerConfigError::Unknown { name: name.to_owned(), near }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_typed_and_defaults_fill_in() {
        let mut config = BrokerConfig::default();
        assert_eq!(config.set("num.partitions", "3"), Ok(Accepted::Used));
        assert_eq!(config.set("ssl.keystore.location", "/k"), Ok(Accepted::NotNeeded));
        assert_eq!(config.layers().integer("num.partitions"), 3);
        assert_eq!(config.layers().list("listeners"), ["PLAINTEXT://:9092"]);
        assert_eq!(config.layers().text("broker.rack"), None);
        assert!(config.layers().boolean("auto.create.topics.enable"));
    }

    #[test]
    fn broker_id_and_node_id_are_one_whether_set_or_not() {
        let mut config = BrokerConfig::default();
        assert_eq!(config.layers().integer("broker.id"), config.layers().integer("node.id"));
        config.set("broker.id", "7").expect("a number");
        assert_eq!(config.layers().integer("node.id"), 7);
    }

    #[test]
    fn a_wrong_name_comes_back_with_the_right_one() {
        let error = BrokerConfig::default().set("num.partitons", "3").expect_err("unknown");
        assert_eq!(
            error.to_string(),
            "Unknown configuration key num.partitons, did you mean num.partitions?"
        );
    }

    #[test]
    fn names_from_before_there_were_listeners_come_back_with_todays() {
        let error = BrokerConfig::default().set("port", "9092").expect_err("unknown");
        assert_eq!(error.to_string(), "Unknown configuration key port, did you mean listeners?");
    }

    #[test]
    fn a_wrong_value_comes_back_in_kafkas_words() {
        let error = BrokerConfig::default().set("num.partitions", "0").expect_err("too small");
        assert_eq!(
            error.to_string(),
            "Invalid value 0 for configuration num.partitions: Value must be at least 1"
        );
    }
}
