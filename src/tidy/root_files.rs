//! The root is the front door: only what a newcomer looks for, or a tool insists on.

use std::collections::BTreeSet;

use crate::{Repository, Violation};

const ALLOWED: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    "README.md",
    "CHANGELOG.md",
    "LICENSE",
    "config.toml",
    "compose.yaml",
    "docker",
    "protocol-tests",
    "src",
    "rustfmt.toml",
    "clippy.toml",
];

/// Names at the root; those that begin with a dot belong to tools and are allowed.
pub(crate) fn root_files(repository: &Repository) -> Vec<Violation> {
    let names: BTreeSet<&str> = repository.files().filter_map(|file| file.path.split('/').next()).collect();
    let others = names.into_iter().filter(|name| !name.starts_with('.') && !ALLOWED.contains(name));
    let remedy =
        "put it into src, protocol-tests or docker, or say in src/tidy/root_files.rs why it stands here";
    others
        .map(|name| Violation { place: name.into(), cause: "it does not belong to the root".into(), remedy })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::assert_kept;

    #[test]
    fn the_house_keeps_it() {
        assert_kept(&root_files(&Repository::here()));
    }

    #[test]
    fn a_stray_file_and_a_stray_folder_are_found_once_each() {
        let files =
            [("notes.md", ""), ("scripts/a", ""), ("scripts/b", ""), ("src/main.rs", ""), (".ci/run", "")];
        assert_eq!(root_files(&Repository::of(&files)).len(), 2);
    }
}
