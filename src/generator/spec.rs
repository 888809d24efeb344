//! Kafka's message specifications as they stand in the JSON files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;

/// Fields of Ottla's own, which Kafka's nodes skip: tagged, with numbers far above Kafka's. What they hold is said in
/// `cluster::wire`.
const OWN_FIELDS: &[(&str, &str)] = &[(
    "BrokerHeartbeatRequest",
    r#"{ "name": "LostReplicas", "type": "bytes", "versions": "0+", "nullableVersions": "0+", "default": "null",
         "taggedVersions": "0+", "tag": 20343 }"#,
)];

/// All specifications by name.
pub struct Specs(BTreeMap<String, Message>);

/// A message.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Message {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) api_key: Option<i16>,
    #[serde(default)]
    pub(crate) listeners: Vec<String>,
    pub(crate) valid_versions: Versions,
    #[serde(default = "Versions::none")]
    pub(crate) flexible_versions: Versions,
    #[serde(default)]
    pub(crate) latest_version_unstable: bool,
    #[serde(default)]
    pub(crate) fields: Vec<Field>,
    #[serde(default)]
    pub(crate) common_structs: Vec<Common>,
}

/// A structure that several fields share.
#[derive(Deserialize)]
pub(crate) struct Common {
    pub(crate) name: String,
    pub(crate) fields: Vec<Field>,
}

/// A field.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Field {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    versions: Option<Versions>,
    tagged_versions: Option<Versions>,
    #[serde(default = "Versions::none")]
    pub(crate) nullable_versions: Versions,
    pub(crate) tag: Option<u32>,
    #[serde(default)]
    pub(crate) ignorable: bool,
    pub(crate) entity_type: Option<String>,
    #[serde(default, deserialize_with = "present")]
    default: Option<Value>,
    #[serde(default)]
    pub(crate) fields: Vec<Field>,
}

/// A range of versions, `3-5`, `3+`, `3` or `none`.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Versions {
    pub(crate) min: i16,
    pub(crate) max: i16,
}

/// A default that the specification names.
pub(crate) enum Default {
    Null,
    Text(String),
}

/// Tells `"default": null` from no default at all.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Versions {
    fn none() -> Self {
        Self { min: 0, max: -1 }
    }

    pub(crate) fn is_none(self) -> bool {
        self.max < self.min
    }
}

impl TryFrom<String> for Versions {
    type Error = anyhow::Error;

    fn try_from(text: String) -> Result<Self> {
        if text == "none" {
            return Ok(Self::none());
        }
        let (min, max) = match text.split_once('-') {
            Some((min, max)) => (min, max.parse()?),
            None => match text.strip_suffix('+') {
                Some(min) => (min, i16::MAX),
                None => (text.as_str(), text.parse()?),
            },
        };
        Ok(Self { min: min.parse()?, max })
    }
}

impl Field {
    /// The versions that have the field; of a tagged field they may stand in `taggedVersions` alone.
    pub(crate) fn versions(&self) -> Result<Versions> {
        self.versions.or(self.tagged_versions).with_context(|| format!("{} has no versions", self.name))
    }

    /// The default that the specification names, if any.
    pub(crate) fn default(&self) -> Option<Default> {
        match self.default.as_ref()? {
            Value::Null => Some(Default::Null),
            Value::String(text) if text == "null" => Some(Default::Null),
            Value::String(text) => Some(Default::Text(text.clone())),
            other => Some(Default::Text(other.to_string())),
        }
    }

    /// Checks what the tables take for granted: a field is tagged in all its versions or in none.
    fn check(&self) -> Result<()> {
        let versions = self.versions()?;
        ensure!(self.tagged_versions.is_none_or(|tagged| tagged == versions), "{}: half tagged", self.name);
        ensure!(self.tagged_versions.is_some() == self.tag.is_some(), "{}: half a tag", self.name);
        self.fields.iter().try_for_each(Self::check)
    }
}

impl Message {
    fn add_own_fields(&mut self) -> Result<()> {
        for (_, field) in OWN_FIELDS.iter().filter(|(message, _)| *message == self.name) {
            self.fields.push(serde_json::from_str(field)?);
        }
        Ok(())
    }

    /// The fields as the wire has them: the plain ones, then the tagged ones by their number.
    pub(crate) fn in_order(fields: &[Field]) -> Vec<&Field> {
        let mut ordered: Vec<&Field> = fields.iter().collect();
        ordered.sort_by_key(|field| field.tag.map_or(-1, i64::from));
        ordered
    }

    /// The fields of the structure that `field` holds, alone or in an array.
    pub(crate) fn fields_of<'a>(&'a self, field: &'a Field, name: &str) -> Result<&'a [Field]> {
        if !field.fields.is_empty() {
            return Ok(&field.fields);
        }
        match self.common_structs.iter().find(|common| common.name == name) {
            Some(common) => Ok(&common.fields),
            None => bail!("{}: there is no structure {name}", self.name),
        }
    }
}

impl Specs {
    /// Reads every specification below `folder`.
    pub fn read(folder: &Path) -> Result<Self> {
        let mut specs = BTreeMap::new();
        read_folder(folder, &mut specs)?;
        ensure!(!specs.is_empty(), "there is no specification in {}", folder.display());
        Ok(Self(specs))
    }

    pub(crate) fn get(&self, name: &str) -> Result<&Message> {
        self.0.get(name).with_context(|| format!("there is no specification of {name}"))
    }

    /// All of one type that have a version, by their key.
    pub(crate) fn of_type(&self, kind: &str) -> Vec<&Message> {
        let alive = |message: &&Message| message.kind == kind && !message.valid_versions.is_none();
        let mut found: Vec<&Message> = self.0.values().filter(alive).collect();
        found.sort_by_key(|message| message.api_key);
        found
    }
}

fn read_folder(folder: &Path, specs: &mut BTreeMap<String, Message>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read_folder(&path, specs)?;
        } else if path.extension().is_some_and(|extension| extension == "json") {
            let mut message =
                parse(&fs::read_to_string(&path)?).with_context(|| path.display().to_string())?;
            message.add_own_fields()?;
            message.fields.iter().try_for_each(Field::check).with_context(|| path.display().to_string())?;
            specs.insert(message.name.clone(), message);
        }
    }
    Ok(())
}

/// The files have comments, each on a line of its own.
fn parse(text: &str) -> Result<Message> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    Ok(serde_json::from_str(&lines.collect::<Vec<_>>().join("\n"))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(text: &str) -> (i16, i16) {
        let versions = Versions::try_from(text.to_owned()).unwrap_or_else(|e| panic!("{text}: {e}"));
        (versions.min, versions.max)
    }

    #[test]
    fn versions_are_a_range_open_or_closed() {
        assert_eq!(versions("3-5"), (3, 5));
        assert_eq!(versions("3+"), (3, i16::MAX));
        assert_eq!(versions("3"), (3, 3));
        assert!(Versions::try_from("none".to_owned()).is_ok_and(Versions::is_none));
    }

    #[test]
    fn comments_are_skipped_and_a_null_default_is_told_from_none() {
        let message = parse(
            "// licence\n{ \"type\": \"data\", \"name\": \"X\", \"validVersions\": \"0\", \"fields\": [\n  // why\n\
             { \"name\": \"A\", \"type\": \"string\", \"versions\": \"0+\", \"default\": null },\n\
             { \"name\": \"B\", \"type\": \"string\", \"versions\": \"0+\" } ] }",
        )
        .unwrap_or_else(|e| panic!("{e}"));
        assert!(matches!(message.fields[0].default(), Some(Default::Null)));
        assert!(message.fields[1].default().is_none());
    }
}
