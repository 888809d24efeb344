//! Words that say that something is not finished, or that it works on one machine only.

use crate::{Repository, SourceFile, Violation};

/// A word, where it is looked for, and what to do instead.
struct Word {
    text: &'static str,
    is_where: fn(&SourceFile) -> bool,
    remedy: &'static str,
}

const fn word(text: &'static str, is_where: fn(&SourceFile) -> bool, remedy: &'static str) -> Word {
    Word { text, is_where, remedy }
}

const FINISH: &str = "finish it, or leave it out and say so in the issue";
const WAIT: &str = "wait for the event itself, on virtual time";
const RUN: &str = "repair the test or delete it";
const PLACE: &str = "make the path relative, or an argument";
const REGISTRY: &str = "leave the choice of a registry to the machine's own settings";

const WORDS: &[Word] = &[
    word("TODO", is_ours, FINISH),
    word("FIXME", is_ours, FINISH),
    word("XXX", is_rust, FINISH),
    word("todo!", is_rust, FINISH),
    word("unimplemented!", is_rust, FINISH),
    word("#[ignore", is_rust, RUN),
    word("thread::sleep", is_unit_test, WAIT),
    word("/root/", is_ours, PLACE),
    word("/work/", is_ours, PLACE),
    word("--index-url", is_ours, REGISTRY),
    word("--registry", is_ours, REGISTRY),
    word("[source.", is_ours, REGISTRY),
    word("[registries", is_ours, REGISTRY),
];

/// All text files, line by line, but this rule's own.
pub(crate) fn words(repository: &Repository) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in repository.files().filter(|file| file.path != "src/tidy/words.rs") {
        for (line, text) in file.lines() {
            for word in WORDS.iter().filter(|word| text.contains(word.text) && (word.is_where)(file)) {
                violations.push(file.violation(line, format!("`{}` stands here", word.text), word.remedy));
            }
        }
    }
    violations
}

fn is_ours(file: &SourceFile) -> bool {
    !file.is_generated() && !matches!(file.name(), "Cargo.lock" | "package-lock.json")
}

fn is_rust(file: &SourceFile) -> bool {
    file.has_extension("rs")
}

// Whoever tests real processes may have to wait for the real clock.
fn is_unit_test(file: &SourceFile) -> bool {
    is_rust(file) && file.path.starts_with("src/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::assert_kept;

    #[test]
    fn the_house_keeps_it() {
        assert_kept(&words(&Repository::here()));
    }

    #[test]
    fn each_word_is_found_in_a_file_of_a_room() {
        for word in WORDS {
            let found = words(&Repository::of(&[("src/model/a.rs", word.text)]));
            assert!(found.iter().any(|violation| violation.cause.contains(word.text)), "{}", word.text);
        }
    }

    #[test]
    fn texts_that_are_not_rust_may_quote_rust() {
        assert_kept(&words(&Repository::of(&[("README.md", "nothing is #[ignore]d\n")])));
    }
}
