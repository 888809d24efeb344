//! Values as text and as what the text means, with Kafka's rules and words for both ways.

use std::fmt;

/// What the values of a key are. The numbers are those of DescribeConfigs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i8)]
#[expect(missing_docs, reason = "the names are Kafka's")]
pub enum ConfigType {
    Boolean = 1,
    String = 2,
    Int = 3,
    Short = 4,
    Long = 5,
    Double = 6,
    List = 7,
    Class = 8,
    Password = 9,
}

/// A parsed value. Its text is Kafka's canonical one, as DescribeConfigs shows it.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names are Kafka's")]
pub enum ConfigValue {
    Boolean(bool),
    Int(i32),
    Short(i16),
    Long(i64),
    Double(f64),
    /// Also of the types CLASS and PASSWORD.
    String(String),
    List(Vec<String>),
}

/// Why a value, or a set of values, is refused; the texts are Kafka's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// No topic key has this name.
    #[error("Unknown topic config name: {0}")]
    UnknownTopicKey(String),
    /// The value is of the wrong type or out of bounds.
    #[error("Invalid value {value} for configuration {name}: {reason}")]
    Invalid {
        /// The key.
        name: String,
        /// The value, as it was given or as it was understood.
        value: String,
        /// What a value must be.
        reason: String,
    },
    /// The list needs an element.
    #[error("Configuration '{name}' must not be empty. Valid values include: {allowed}")]
    ListEmpty {
        /// The key.
        name: String,
        /// What may be in it.
        allowed: String,
    },
    /// An element of the list is empty.
    #[error("Configuration '{name}' values must not be empty.")]
    ElementEmpty {
        /// The key.
        name: String,
    },
    /// An entry is not a voter.
    #[error(
        "Invalid configuration value for {name}. Each entry should be in the form `{{id}}@{{host}}:{{port}}`."
    )]
    NotVoters {
        /// The key.
        name: String,
    },
    /// An entry is not an address.
    #[error(
        "Failed to parse host name from {entry} for the configuration {name}. \
         Each entry should be in the form \"{{host}}:{{port}}\""
    )]
    NotAddress {
        /// The key.
        name: String,
        /// The entry.
        entry: String,
    },
    /// The two bounds of compaction cross.
    #[error("conflict topic config setting min.compaction.lag.ms ({min}) > max.compaction.lag.ms ({max})")]
    CompactionLags {
        /// min.compaction.lag.ms.
        min: i64,
        /// max.compaction.lag.ms.
        max: i64,
    },
    /// Remote storage is asked for, and there is none.
    #[error(
        "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."
    )]
    NoRemoteStorage,
    /// A key of brokers that only a restart changes.
    #[error("Cannot update these configs dynamically: [{names}]")]
    ReadOnly {
        /// The keys, separated by commas.
        names: String,
    },
    /// A key that only one broker may have, asked for all of them.
    #[error("Cannot update these configs at default cluster level, broker id must be specified: [{names}]")]
    PerBroker {
        /// The keys, separated by commas.
        names: String,
    },
    /// write.caching would be switched off again.
    #[error(
        "write.caching cannot go from true to false: records that were acknowledged meanwhile may not be on disk. \
         Create a new topic and copy the records."
    )]
    WriteCachingOff,
}

impl ConfigValue {
    /// Reads `text` as a value of this type, by Kafka's rules: blanks around it do not count, numbers are decimal,
    /// booleans are true or false in any case, lists are separated by commas.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`] with the name and the value in it.
    pub fn parse(name: &str, text: &str, kind: ConfigType) -> Result<Self, ConfigError> {
        let trimmed = trim(text);
        let parsed = match kind {
            ConfigType::Boolean => boolean(trimmed).map(Self::Boolean),
            ConfigType::Int => trimmed.parse().ok().map(Self::Int),
            ConfigType::Short => trimmed.parse().ok().map(Self::Short),
            ConfigType::Long => trimmed.parse().ok().map(Self::Long),
            ConfigType::Double => double(trimmed).map(Self::Double),
            ConfigType::List => Some(Self::List(list(trimmed))),
            ConfigType::String | ConfigType::Class | ConfigType::Password => {
                Some(Self::String(trimmed.into()))
            }
        };
        parsed.ok_or_else(|| ConfigError::Invalid {
            name: name.into(),
            value: text.into(),
            reason: kind.refusal().into(),
        })
    }

    /// The value as a number, where it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Int(n) => Some(f64::from(*n)),
            Self::Short(n) => Some(f64::from(*n)),
            Self::Long(n) => Some(*n as f64),
            Self::Double(n) => Some(*n),
            Self::Boolean(_) | Self::String(_) | Self::List(_) => None,
        }
    }

    /// The value as a whole number, where it is one.
    pub fn integer(&self) -> Option<i64> {
        match self {
            Self::Int(n) => Some(i64::from(*n)),
            Self::Short(n) => Some(i64::from(*n)),
            Self::Long(n) => Some(*n),
            Self::Boolean(_) | Self::Double(_) | Self::String(_) | Self::List(_) => None,
        }
    }
}

impl ConfigType {
    /// The number in DescribeConfigs.
    pub fn code(self) -> i8 {
        self as i8
    }

    fn refusal(self) -> &'static str {
        match self {
            Self::Boolean => "Expected value to be either true or false",
            Self::Int => "Not a number of type INT",
            Self::Short => "Not a number of type SHORT",
            Self::Long => "Not a number of type LONG",
            Self::Double => "Not a number of type DOUBLE",
            // Any text is one of these.
            Self::String | Self::List | Self::Class | Self::Password => "",
        }
    }
}

impl fmt::Display for ConfigValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(value) => value.fmt(f),
            Self::Int(n) => n.fmt(f),
            Self::Short(n) => n.fmt(f),
            Self::Long(n) => n.fmt(f),
            Self::Double(n) => f.write_str(&double_text(*n)),
            Self::String(text) => f.write_str(text),
            Self::List(items) => f.write_str(&items.join(",")),
        }
    }
}

/// Java's `String.trim`: all control characters count as blanks.
fn trim(text: &str) -> &str {
    text.trim_matches(|c| c <= ' ')
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        _ if text.eq_ignore_ascii_case("true") => Some(true),
        _ if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

fn list(text: &str) -> Vec<String> {
    if text.is_empty() {
        return Vec::new();
    }
    text.split(',').map(|item| item.trim().to_owned()).collect()
}

/// Java's `Double.parseDouble`, without its hexadecimal form.
fn double(text: &str) -> Option<f64> {
    let digits = text.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(text);
    match text {
        "NaN" | "+NaN" | "-NaN" => Some(f64::NAN),
        "Infinity" | "+Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ if digits.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b)) => digits.parse().ok(),
        _ => None,
    }
}

/// Java's `Double.toString`: `0.5`, `1.0`, and `1.0E7` from there on.
fn double_text(n: f64) -> String {
    if n.is_nan() {
        "NaN".into()
    } else if n.is_infinite() {
        if n > 0.0 { "Infinity".into() } else { "-Infinity".into() }
    } else if n == 0.0 || (1e-3..1e7).contains(&n.abs()) {
        format!("{n:?}")
    } else {
        let text = format!("{n:E}");
        match text.split_once('E') {
            Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0E{exponent}"),
            _ => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str, kind: ConfigType) -> String {
        ConfigValue::parse("key", text, kind)
            .map_or_else(|error| error.to_string(), |value| value.to_string())
    }

    #[test]
    fn doubles_are_written_as_java_writes_them() {
        for (from, to) in [
            ("0.5d", "0.5"),
            ("1", "1.0"),
            ("-0", "-0.0"),
            ("1e3", "1000.0"),
            ("1e7", "1.0E7"),
            ("1.7976931348623157E308", "1.7976931348623157E308"),
            ("0.0001", "1.0E-4"),
            ("NaN", "NaN"),
            ("inf", "Invalid value inf for configuration key: Not a number of type DOUBLE"),
        ] {
            assert_eq!(text(from, ConfigType::Double), to);
        }
    }

    #[test]
    fn blanks_around_do_not_count_but_show_in_a_refusal() {
        assert_eq!(text(" 5 ", ConfigType::Int), "5");
        assert_eq!(text(" TRUE", ConfigType::Boolean), "true");
        assert_eq!(text("a , b", ConfigType::List), "a,b");
        assert_eq!(
            text(" x", ConfigType::Int),
            "Invalid value  x for configuration key: Not a number of type INT"
        );
    }
}
