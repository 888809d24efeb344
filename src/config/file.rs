//! Reads a configuration file as a layer.

use std::path::Path;

use figment::Provider;
use figment::providers::{Format, Toml};
use figment::value::{Dict, Value};

use super::layer::{Layer, Strictness, text};
use super::{ConfigError, properties};

/// Java properties where the name ends in `.properties`, else TOML.
pub(super) fn read(path: &Path) -> Result<Layer, ConfigError> {
    let unreadable = |error| ConfigError::Unreadable { path: path.to_owned(), error };
    let bytes = std::fs::read(path).map_err(unreadable)?;
    let name = path.display().to_string();
    if is_properties(path) {
        return Ok(Layer::new(name, Strictness::Lenient, properties::parse(&bytes)));
    }
    let not_toml = |error| ConfigError::NotToml { path: path.to_owned(), error: Box::new(error) };
    let source = String::from_utf8_lossy(&bytes);
    let data = Toml::string(&source).data().map_err(not_toml)?;
    let values = data.into_values().flat_map(|dict| flat("", dict));
    Ok(Layer::new(name, Strictness::Strict, values))
}

/// Whether a file is one of Java's.
pub(super) fn is_properties(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "properties")
}

/// Tables become the dots of a key: some of Kafka's keys begin like others, and could not be tables of TOML.
fn flat(prefix: &str, dict: Dict) -> Vec<(String, String)> {
    let entries = dict.into_iter().flat_map(|(name, value)| match value {
        Value::Dict(_, inner) => flat(&format!("{prefix}{name}."), inner),
        other => vec![(format!("{prefix}{name}"), text(&other))],
    });
    entries.collect()
}
