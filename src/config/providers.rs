//! Values that stand elsewhere, so that a file can be shown to anybody: variables, properties files, folders of secrets.
//!
//! ```text
//! config.providers=env,file,dir
//! config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider
//! node.id=${env:ORDINAL}      broker.rack=${file:/etc/machine.properties:rack}      log.dirs=${dir:/secrets:dirs}
//! ```
//! What a provider does not have stays as it is written, and is then refused or not as any other value.
//!
//! Kafka: `AbstractConfig.resolveConfigVariables`, `ConfigTransformer`; KIP-297, 421, 632, 887.

use std::collections::BTreeMap;
use std::path::Path;

use super::layer::Layer;
use super::{ConfigError, properties};

const PROVIDERS: &str = "config.providers";
const PACKAGE: &str = "org.apache.kafka.common.config.provider.";

/// Where a provider looks.
#[derive(Clone, Copy)]
enum Provider {
    Environment,
    PropertiesFile,
    Folder,
}

/// The providers that the layers name, by name.
struct Providers<'a> {
    by_name: BTreeMap<String, Provider>,
    environment: &'a [(String, String)],
}

/// Puts in all layers the values in place of what stands for them, and takes out the keys that name providers.
///
/// # Errors
/// A provider that is not known, or cannot read what it is asked for.
pub(super) fn resolve(layers: &mut [Layer], environment: &[(String, String)]) -> Result<(), ConfigError> {
    let providers = Providers { by_name: named(layers)?, environment };
    for layer in layers {
        layer.remove(|key| key.starts_with(PROVIDERS));
        layer.change(|value| providers.resolve(value))?;
    }
    Ok(())
}

fn named(layers: &[Layer]) -> Result<BTreeMap<String, Provider>, ConfigError> {
    let set = |key: &str| layers.iter().rev().find_map(|layer| layer.get(key)).map(str::trim);
    let names = set(PROVIDERS).unwrap_or_default().split(',').map(str::trim).filter(|name| !name.is_empty());
    names
        .map(|name| {
            let class = set(&format!("{PROVIDERS}.{name}.class")).unwrap_or_default();
            Ok((name.to_owned(), provider(name, class)?))
        })
        .collect()
}

fn provider(name: &str, class: &str) -> Result<Provider, ConfigError> {
    match class.strip_prefix(PACKAGE) {
        Some("EnvVarConfigProvider") => Ok(Provider::Environment),
        Some("FileConfigProvider") => Ok(Provider::PropertiesFile),
        Some("DirectoryConfigProvider") => Ok(Provider::Folder),
        None if class.is_empty() => Err(ConfigError::NoProviderClass { name: name.to_owned() }),
        _ => Err(ConfigError::UnknownProvider { name: name.to_owned(), class: class.to_owned() }),
    }
}

impl Providers<'_> {
    fn resolve(&self, value: &str) -> Result<String, ConfigError> {
        let mut resolved = String::new();
        let mut rest = value;
        while let Some((before, variable, after)) = next_variable(rest) {
            resolved.push_str(before);
            match self.find(variable)? {
                Some(found) => resolved.push_str(&found),
                None => resolved.push_str(&rest[before.len()..rest.len() - after.len()]),
            }
            rest = after;
        }
        Ok(resolved + rest)
    }

    /// `NAME:KEY` or `NAME:PATH:KEY`.
    fn find(&self, variable: &str) -> Result<Option<String>, ConfigError> {
        let Some((name, rest)) = variable.split_once(':') else { return Ok(None) };
        let (path, key) = rest.split_once(':').unwrap_or(("", rest));
        match self.by_name.get(name) {
            None => Ok(None),
            Some(Provider::Environment) => {
                Ok(self.environment.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone()))
            }
            Some(Provider::PropertiesFile) => Ok(properties::parse(&read(Path::new(path))?).remove(key)),
            Some(Provider::Folder) => {
                let file = Path::new(path).join(key);
                Ok(Some(String::from_utf8_lossy(&read(&file)?).into_owned()))
            }
        }
    }
}

/// What comes before the first `${…}`, what stands in it, and what comes after it.
fn next_variable(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once("${")?;
    let (variable, after) = rest.split_once('}')?;
    Some((before, variable, after))
}

fn read(path: &Path) -> Result<Vec<u8>, ConfigError> {
    std::fs::read(path).map_err(|error| ConfigError::Unreadable { path: path.to_owned(), error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::layer::Strictness;

    fn resolved(pairs: &[(&str, &str)], environment: &[(&str, &str)]) -> Result<Layer, ConfigError> {
        let owned = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
        };
        let mut layers = [Layer::new("file".to_owned(), Strictness::Strict, owned(pairs))];
        resolve(&mut layers, &owned(environment))?;
        let [layer] = layers;
        Ok(layer)
    }

    fn value(class: &str, value: &str) -> Option<String> {
        let class = format!("{PACKAGE}{class}");
        let pairs = [("config.providers", "p"), ("config.providers.p.class", &class), ("a", value)];
        let layer = resolved(&pairs, &[("NAME", "seven"), ("EMPTY", "")]).expect("resolved");
        assert_eq!(layer.get("config.providers"), None);
        layer.get("a").map(str::to_owned)
    }

    #[test]
    fn variables_of_the_environment_stand_in_a_value() {
        let of = |text| value("EnvVarConfigProvider", text).expect("a value");
        assert_eq!(of("x-${p:NAME}-${p:EMPTY}-${p:NAME}"), "x-seven--seven");
        assert_eq!(
            of("${p:NOSUCH} ${other:NAME} ${NAME} ${p:NAME"),
            "${p:NOSUCH} ${other:NAME} ${NAME} ${p:NAME"
        );
    }

    #[test]
    fn files_and_folders_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("rack"), "r1").expect("written");
        std::fs::write(folder.path().join("all.properties"), "rack=r2\n").expect("written");
        let path = folder.path().display();
        assert_eq!(value("DirectoryConfigProvider", &format!("${{p:{path}:rack}}")).as_deref(), Some("r1"));
        let in_file = |key| value("FileConfigProvider", &format!("${{p:{path}/all.properties:{key}}}"));
        assert_eq!(in_file("rack").as_deref(), Some("r2"));
        assert!(in_file("nosuch").expect("a value").starts_with("${p:"));
    }

    #[test]
    fn a_provider_that_is_not_known_or_cannot_read_is_refused() {
        let why = |class: &str, value| {
            let pairs = [("config.providers", "p"), ("config.providers.p.class", class), ("a", value)];
            resolved(&pairs, &[]).expect_err("refused").to_string()
        };
        assert!(why("com.example.Vault", "1").contains("com.example.Vault"));
        let class = format!("{PACKAGE}FileConfigProvider");
        assert!(why(&class, "${p:/nosuch/file:key}").contains("/nosuch/file"));
    }
}
