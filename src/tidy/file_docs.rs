//! A file says first what it is.

use crate::{Repository, Violation};

/// Every Rust file begins with `//!`.
pub(crate) fn file_docs(repository: &Repository) -> Vec<Violation> {
    let silent = repository.rust().filter(|file| !file.text.starts_with("//! "));
    silent
        .map(|file| file.violation(1, "the file does not say what it is", "begin it with a line of `//!`"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::assert_kept;

    #[test]
    fn the_house_keeps_it() {
        assert_kept(&file_docs(&Repository::here()));
    }

    #[test]
    fn a_silent_file_is_found() {
        assert_eq!(file_docs(&Repository::of(&[("src/model/a.rs", "use std::fmt;\n")])).len(), 1);
    }
}
