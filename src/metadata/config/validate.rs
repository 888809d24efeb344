//! Whether a whole set of values may stand for a topic or a broker.

use super::{ConfigError, Overrides, UpdateMode, broker_key, topic_key};

/// Whether a topic may have these values.
///
/// # Errors
/// The first fault, in Kafka's words: unknown names before bad values before values that do not go together.
pub fn validate_topic(overrides: &Overrides) -> Result<(), ConfigError> {
    if let Some(name) = overrides.keys().find(|name| topic_key(name).is_none()) {
        return Err(ConfigError::UnknownTopicKey(name.clone()));
    }
    for (name, text) in overrides {
        if let Some(key) = topic_key(name) {
            key.parse(text)?;
        }
    }
    compaction_lags(overrides)?;
    remote_storage(overrides)
}

fn compaction_lags(overrides: &Overrides) -> Result<(), ConfigError> {
    let lag = |name: &str| {
        let key = topic_key(name)?;
        let value = overrides.get(name).and_then(|text| key.parse(text).ok()).or_else(|| key.default_value());
        value.and_then(|value| value.integer())
    };
    match (lag("min.compaction.lag.ms"), lag("max.compaction.lag.ms")) {
        (Some(min), Some(max)) if min > max => Err(ConfigError::CompactionLags { min, max }),
        _ => Ok(()),
    }
}

fn remote_storage(overrides: &Overrides) -> Result<(), ConfigError> {
    match overrides.get("remote.storage.enable") {
        Some(text) if text.trim().eq_ignore_ascii_case("true") => Err(ConfigError::NoRemoteStorage),
        _ => Ok(()),
    }
}

/// Whether these values may be given to one broker, or to all (`of_one_broker` is false), while they run.
///
/// # Errors
/// The first fault: keys that only a restart changes, keys that only one broker may have, bad values.
pub fn validate_broker(overrides: &Overrides, of_one_broker: bool) -> Result<(), ConfigError> {
    let names = |mode: UpdateMode| -> Vec<&str> {
        let has_mode = |name: &&String| broker_key(name).is_some_and(|key| key.update == mode);
        overrides.keys().filter(has_mode).map(String::as_str).collect()
    };
    let read_only = names(UpdateMode::ReadOnly);
    if !read_only.is_empty() {
        return Err(ConfigError::ReadOnly { names: read_only.join(", ") });
    }
    let per_broker = names(UpdateMode::PerBroker);
    if !of_one_broker && !per_broker.is_empty() {
        return Err(ConfigError::PerBroker { names: per_broker.join(", ") });
    }
    for (name, text) in overrides {
        if let Some(key) = broker_key(name) {
            key.parse(text)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// key, value, OK or ERR, Kafka 4.4's canonical value or its message.
    const KAFKA: &str = include_str!("testdata/kafka_topic_values.tsv");

    fn overrides(pairs: &[(&str, &str)]) -> Overrides {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn refusal(pairs: &[(&str, &str)]) -> String {
        validate_topic(&overrides(pairs)).map_or_else(|error| error.to_string(), |()| "accepted".into())
    }

    #[test]
    fn values_are_read_and_refused_as_kafka_does() {
        for line in KAFKA.lines() {
            let [name, value, outcome, text] = line.split('\t').collect::<Vec<_>>()[..] else {
                panic!("four columns: {line}")
            };
            let parsed = topic_key(name).expect("a key").parse(value);
            assert_eq!(parsed.is_ok(), outcome == "OK", "{line}");
            let answer = parsed.map_or_else(|error| error.to_string(), |value| value.to_string());
            assert_eq!(answer, text, "{line}");
        }
    }

    #[test]
    fn an_unknown_topic_key_is_refused_before_a_bad_value() {
        assert_eq!(refusal(&[("nosuch", "1"), ("segment.bytes", "x")]), "Unknown topic config name: nosuch");
    }

    #[test]
    fn the_compaction_lags_may_not_cross() {
        let crossed = [("min.compaction.lag.ms", "10"), ("max.compaction.lag.ms", "5")];
        assert_eq!(
            refusal(&crossed),
            "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)"
        );
    }

    #[test]
    fn keys_of_one_broker_and_keys_of_a_restart_are_refused_for_all_brokers() {
        let all = |pairs: &[(&str, &str)]| validate_broker(&overrides(pairs), false);
        assert_eq!(all(&[("log.retention.ms", "5")]), Ok(()));
        assert!(matches!(all(&[("log.dirs", "/d")]), Err(ConfigError::ReadOnly { .. })));
        assert!(matches!(all(&[("listeners", "PLAINTEXT://:1")]), Err(ConfigError::PerBroker { .. })));
    }
}
