//! A crate has one version in the whole house, and it stands in the root Cargo.toml.

use toml::Value;

use crate::manifest::{BUILD, DEV, Manifest, NORMAL};
use crate::{Repository, Violation};

/// What every package takes from the workspace.
const PACKAGE: &[&str] = &["version", "edition", "license", "rust-version"];
const REMEDY: &str = "write it in the root Cargo.toml and say `workspace = true` here";
/// Where cargo takes crates from, as Cargo.lock says it.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Dependencies and package keys of all manifests, and the sources in Cargo.lock.
pub(crate) fn versions(repository: &Repository) -> Vec<Violation> {
    let mut violations: Vec<_> = repository.manifests().flat_map(|manifest| of_manifest(&manifest)).collect();
    violations.extend(other_sources(repository));
    violations
}

fn of_manifest(manifest: &Manifest<'_>) -> Vec<Violation> {
    let dependencies = [NORMAL, DEV, BUILD].into_iter().flat_map(|list| manifest.dependencies(list));
    let keys = PACKAGE.iter().filter_map(|key| Some((*key, manifest.package(key)?)));
    dependencies
        .chain(keys)
        .filter(|(_, value)| !is_of_workspace(value))
        .map(|(name, _)| manifest.file.violation(1, format!("`{name}` is not the workspace's"), REMEDY))
        .collect()
}

fn is_of_workspace(value: &Value) -> bool {
    value.get("workspace").and_then(Value::as_bool) == Some(true)
}

fn other_sources(repository: &Repository) -> Vec<Violation> {
    let locks = repository.files().filter(|file| file.name() == "Cargo.lock");
    let sources = locks.flat_map(|lock| lock.lines().map(move |(line, text)| (lock, line, text)));
    sources
        .filter_map(|(lock, line, text)| {
            Some((lock, line, text.strip_prefix("source = ")?.trim_matches('"')))
        })
        .filter(|(_, _, source)| *source != REGISTRY)
        .map(|(lock, line, source)| {
            lock.violation(line, format!("a crate comes from {source}"), "use a release of crates.io")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::assert_kept;

    #[test]
    fn the_house_keeps_it() {
        assert_kept(&versions(&Repository::here()));
    }

    #[test]
    fn a_version_a_path_and_a_version_of_its_own_are_found() {
        let manifest = "[package]\nname = \"a\"\nversion = \"1.0.0\"\nedition.workspace = true\n\
                        [dependencies]\nbytes = \"1\"\nmodel = { path = \"../model\" }\n\
                        tokio = { workspace = true, features = [\"sync\"] }\n";
        assert_eq!(versions(&Repository::of(&[("src/a/Cargo.toml", manifest)])).len(), 3);
    }

    #[test]
    fn a_crate_from_elsewhere_is_found() {
        let lock = format!("source = \"{REGISTRY}\"\nsource = \"git+https://example.org/a\"\n");
        assert_eq!(versions(&Repository::of(&[("Cargo.lock", &lock)])).len(), 1);
    }
}
