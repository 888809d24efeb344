//! What a value must hold beside its type.

use super::ConfigError;
use super::ConfigValue;

/// A condition on the values of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validator {
    /// None.
    Any,
    /// A number not below this.
    AtLeast(i64),
    /// A number from the first to the second, both included.
    Between(i64, i64),
    /// -1, or a level of gzip.
    GzipLevel,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// One of these texts, in any case.
    OneOfAnyCase(&'static [&'static str]),
    /// A list of these, each once; it may be empty.
    ListOf(&'static [&'static str]),
    /// A list of these, each once, not empty.
    SomeOf(&'static [&'static str]),
    /// A list in which nothing is twice.
    Distinct,
    /// A list in which nothing is twice, not empty.
    NotEmpty,
    /// `*`, or a list of partition:broker pairs.
    ThrottledReplicas,
    /// A list of `id@host:port`.
    Voters,
    /// A list of `host:port`.
    Addresses,
}

impl Validator {
    /// Gives back the value if it holds; lists of distinct elements lose their repetitions.
    pub(super) fn check(self, name: &str, value: ConfigValue) -> Result<ConfigValue, ConfigError> {
        match (self, value) {
            (Self::AtLeast(min), value) => bounds(name, value, min, i64::MAX),
            (Self::Between(min, max), value) => bounds(name, value, min, max),
            (Self::GzipLevel, value) => gzip_level(name, value),
            (Self::OneOf(texts), ConfigValue::String(text)) => {
                one_of(name, &text, texts)?;
                Ok(ConfigValue::String(text))
            }
            (Self::OneOfAnyCase(texts), ConfigValue::String(text)) => one_of_any_case(name, text, texts),
            (Self::ListOf(texts), ConfigValue::List(items)) => list(name, items, texts, true),
            (Self::SomeOf(texts), ConfigValue::List(items)) => list(name, items, texts, false),
            (Self::Distinct, ConfigValue::List(items)) => list(name, items, &[], true),
            (Self::NotEmpty, ConfigValue::List(items)) => list(name, items, &[], false),
            (Self::ThrottledReplicas, ConfigValue::List(items)) => throttled_replicas(name, items),
            (Self::Voters, ConfigValue::List(items)) => voters(name, items),
            (Self::Addresses, ConfigValue::List(items)) => addresses(name, items),
            (_, value) => Ok(value),
        }
    }
}

fn refusal(name: &str, value: &str, reason: impl Into<String>) -> ConfigError {
    ConfigError::Invalid { name: name.into(), value: value.into(), reason: reason.into() }
}

fn bounds(name: &str, value: ConfigValue, min: i64, max: i64) -> Result<ConfigValue, ConfigError> {
    match value.number() {
        Some(n) if n < min as f64 => {
            Err(refusal(name, &value.to_string(), format!("Value must be at least {min}")))
        }
        Some(n) if n > max as f64 => {
            Err(refusal(name, &value.to_string(), format!("Value must be no more than {max}")))
        }
        _ => Ok(value),
    }
}

fn gzip_level(name: &str, value: ConfigValue) -> Result<ConfigValue, ConfigError> {
    match value.integer() {
        Some(-1 | 1..=9) => Ok(value),
        _ => Err(refusal(name, &value.to_string(), "Value must be between 1 and 9 or equal to -1")),
    }
}

fn one_of(name: &str, text: &str, texts: &[&str]) -> Result<(), ConfigError> {
    if texts.contains(&text) {
        return Ok(());
    }
    Err(refusal(name, text, format!("String must be one of: {}", texts.join(", "))))
}

fn one_of_any_case(name: &str, text: String, texts: &[&str]) -> Result<ConfigValue, ConfigError> {
    if texts.iter().any(|allowed| allowed.eq_ignore_ascii_case(&text)) {
        return Ok(ConfigValue::String(text));
    }
    Err(refusal(name, &text, format!("String must be one of (case insensitive): {}", texts.join(", "))))
}

fn list(
    name: &str,
    items: Vec<String>,
    texts: &[&str],
    may_be_empty: bool,
) -> Result<ConfigValue, ConfigError> {
    let mut distinct: Vec<String> = Vec::with_capacity(items.len());
    for item in items {
        if !distinct.contains(&item) {
            distinct.push(item);
        }
    }
    if distinct.is_empty() && !may_be_empty {
        let allowed =
            if texts.is_empty() { "any non-empty value".into() } else { format!("[{}]", texts.join(", ")) };
        return Err(ConfigError::ListEmpty { name: name.into(), allowed });
    }
    for item in &distinct {
        if item.is_empty() {
            return Err(ConfigError::ElementEmpty { name: name.into() });
        }
        if !texts.is_empty() {
            one_of(name, item, texts)?;
        }
    }
    Ok(ConfigValue::List(distinct))
}

fn throttled_replicas(name: &str, items: Vec<String>) -> Result<ConfigValue, ConfigError> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_pair = |item: &String| item.split_once(':').is_some_and(|(p, b)| digits(p) && digits(b));
    // A comma at the very end is overlooked, as Kafka does.
    let (last, rest) = items.split_last().map_or((None, &[][..]), |(last, rest)| (Some(last), rest));
    let all_pairs = rest.iter().all(is_pair)
        && last.is_none_or(|item| is_pair(item) || (item.is_empty() && !rest.is_empty()));
    if all_pairs || items == ["*"] {
        return Ok(ConfigValue::List(items));
    }
    let reason = format!(
        "{name} must be the literal '*' or a list of replicas in the following format: \
         [partitionId]:[brokerId],[partitionId]:[brokerId],..."
    );
    Err(refusal(name, &format!("[{}]", items.join(", ")), reason))
}

fn voters(name: &str, items: Vec<String>) -> Result<ConfigValue, ConfigError> {
    let is_voter = |item: &String| {
        item.split_once('@').is_some_and(|(id, address)| id.parse::<u32>().is_ok() && is_address(address))
    };
    if items.iter().all(is_voter) {
        return Ok(ConfigValue::List(items));
    }
    Err(ConfigError::NotVoters { name: name.into() })
}

fn addresses(name: &str, items: Vec<String>) -> Result<ConfigValue, ConfigError> {
    match items.iter().find(|item| !is_address(item)) {
        Some(entry) => Err(ConfigError::NotAddress { name: name.into(), entry: entry.clone() }),
        None => Ok(ConfigValue::List(items)),
    }
}

fn is_address(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}
