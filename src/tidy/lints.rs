//! Every package obeys the house's lints: cargo applies them only where the package asks for it.

use crate::{Repository, Violation};

/// `[lints] workspace = true` in every manifest of a package.
pub(crate) fn lints(repository: &Repository) -> Vec<Violation> {
    let remedy = "add `[lints]` with `workspace = true`";
    let free = repository.manifests().filter(|manifest| !manifest.has_lints_of_workspace());
    free.map(|manifest| manifest.file.violation(1, "the package has no lints", remedy)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::assert_kept;

    #[test]
    fn the_house_keeps_it() {
        assert_kept(&lints(&Repository::here()));
    }

    #[test]
    fn a_package_without_lints_is_found() {
        assert_eq!(lints(&Repository::of(&[("src/a/Cargo.toml", "[package]\nname = \"a\"\n")])).len(), 1);
    }
}
