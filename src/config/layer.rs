//! The values of one source, as a provider for figment.

use std::collections::BTreeMap;

use figment::value::{Dict, Map, Value};
use figment::{Metadata, Profile, Provider};
use metadata::config::{BrokerConfig, BrokerConfigError};

use super::ConfigError;
use super::environment::Variable;
use super::remark::Remarks;

/// Keys, which may have dots, with their values; and where they come from.
#[derive(Debug)]
pub(super) struct Layer {
    origin: String,
    strictness: Strictness,
    values: BTreeMap<String, String>,
}

/// What becomes of a key that nobody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strictness {
    /// It is refused.
    Strict,
    /// It is remarked, since it may be meant for Kafka.
    Lenient,
}

impl Layer {
    pub(super) fn new(
        origin: String,
        strictness: Strictness,
        values: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        let values = values.into_iter().map(|(key, value)| (todays_name(key), value)).collect();
        Self { origin, strictness, values }
    }

    pub(super) fn of_ottla(key: &str, value: String) -> Self {
        Self::new("Ottla's default".to_owned(), Strictness::Strict, [(key.to_owned(), value)])
    }

    pub(super) fn of_variable(variable: Variable) -> Self {
        let origin = format!("environment variable {}", variable.name);
        Self::new(origin, Strictness::Lenient, [(variable.key, variable.value)])
    }

    pub(super) fn of_command_line(pairs: &[String]) -> Result<Self, ConfigError> {
        let pair = |text: &String| {
            let (key, value) = text.split_once('=').ok_or_else(|| ConfigError::NotAPair(text.clone()))?;
            Ok((key.trim().to_owned(), value.to_owned()))
        };
        let values: Vec<_> = pairs.iter().map(pair).collect::<Result<_, ConfigError>>()?;
        Ok(Self::new("command line".to_owned(), Strictness::Strict, values))
    }

    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str)
    }

    pub(super) fn remove(&mut self, which: impl Fn(&str) -> bool) {
        self.values.retain(|key, _| !which(key));
    }

    /// Changes all values, or says why one cannot be.
    pub(super) fn change<E>(&mut self, change: impl Fn(&str) -> Result<String, E>) -> Result<(), E> {
        self.values.values_mut().try_for_each(|value| {
            *value = change(value)?;
            Ok(())
        })
    }

    /// Refuses what is wrong in it, and remarks what is unknown.
    pub(super) fn check(&self, remarks: &mut Remarks) -> Result<(), ConfigError> {
        for (key, value) in &self.values {
            match BrokerConfig::default().set(key, value) {
                Err(BrokerConfigError::Unknown { name, near }) if self.strictness == Strictness::Lenient => {
                    remarks.unknown(name, near);
                }
                Err(error) => return Err(self.refusal(key, value, error)),
                Ok(_) => {}
            }
        }
        Ok(())
    }

    fn refusal(&self, key: &str, value: &str, error: BrokerConfigError) -> ConfigError {
        let origin = self.origin.clone();
        match error {
            _ if key == "listeners" && value.trim().is_empty() => ConfigError::NoListeners { origin },
            BrokerConfigError::Invalid(_) if value.contains("${") => {
                ConfigError::Unresolved { origin, error }
            }
            error => ConfigError::Key { origin, error },
        }
    }
}

/// One key with two names must be one key before layers are merged.
fn todays_name(key: String) -> String {
    if key == "broker.id" { "node.id".to_owned() } else { key }
}

/// A value as the registry reads it: lists with commas.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(_, text) => text.clone(),
        Value::Char(_, c) => c.to_string(),
        Value::Bool(_, truth) => truth.to_string(),
        Value::Num(_, number) => number
            .to_i128()
            .map(|n| n.to_string())
            .or_else(|| number.to_f64().map(|n| n.to_string()))
            .unwrap_or_default(),
        Value::Array(_, values) => values.iter().map(text).collect::<Vec<_>>().join(","),
        Value::Dict(..) | Value::Empty(..) => String::new(),
    }
}

impl Provider for Layer {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.origin.clone())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        let dict = self.values.iter().map(|(key, value)| (key.clone(), Value::from(value.clone()))).collect();
        Ok(Map::from([(Profile::Default, dict)]))
    }
}
