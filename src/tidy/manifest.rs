//! A Cargo.toml, as far as the rules look at it.

use toml::{Table, Value};

use crate::SourceFile;

/// Which list of dependencies.
pub(crate) const NORMAL: &str = "dependencies";
pub(crate) const DEV: &str = "dev-dependencies";
pub(crate) const BUILD: &str = "build-dependencies";

/// A parsed Cargo.toml.
pub(crate) struct Manifest<'a> {
    pub(crate) file: &'a SourceFile,
    table: Table,
}

impl<'a> Manifest<'a> {
    pub(crate) fn of(file: &'a SourceFile) -> Self {
        let table = file.text.parse().expect("cargo read this Cargo.toml before");
        Self { file, table }
    }

    pub(crate) fn is_root(&self) -> bool {
        self.file.path == "Cargo.toml"
    }

    /// Names and values of one list of dependencies, those of single targets too.
    pub(crate) fn dependencies(&self, list: &str) -> Vec<(&str, &Value)> {
        let targets = self.table.get("target").and_then(Value::as_table);
        let of_targets = targets.into_iter().flat_map(Table::values).filter_map(Value::as_table);
        std::iter::once(&self.table)
            .chain(of_targets)
            .filter_map(|table| table.get(list)?.as_table())
            .flat_map(|list| list.iter().map(|(name, value)| (name.as_str(), value)))
            .collect()
    }

    /// The texts of an array in `[workspace]`.
    pub(crate) fn workspace_list(&self, key: &str) -> Vec<&str> {
        let list = self.table.get("workspace").and_then(|workspace| workspace.get(key)?.as_array());
        list.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// A value of `[package]`.
    pub(crate) fn package(&self, key: &str) -> Option<&Value> {
        self.table.get("package")?.get(key)
    }

    /// Whether the workspace's lints hold here.
    pub(crate) fn has_lints_of_workspace(&self) -> bool {
        self.table.get("lints").and_then(|lints| lints.get("workspace")?.as_bool()) == Some(true)
    }
}
