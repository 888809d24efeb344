//! A room's face is what others use: a public name that nobody outside the room names is not part of it.
//!
//! A plain search for words: a name that another room uses for something else counts as used. So what this finds is
//! dead, but not all that is dead is found. A type counts as used where a public item of its own room needs it.

use std::collections::BTreeSet;

use crate::{Repository, SourceFile, Violation};

/// Rooms that are built ahead of their users; a room leaves this list when they are there. Followers and several voters
/// will use the rest of `storage`, `quorum`, `replica`, `controller` and `transport`; tests of rooms to come the rest of
/// `sim`.
const AHEAD: &[&str] = &["sim", "storage", "quorum", "replica", "controller", "transport"];

/// What stands before the name of a public item.
const FUNCTIONS: &[&str] = &["fn", "const", "static"];
const TYPES: &[&str] = &["struct", "enum", "trait", "type", "union"];

const REMEDY: &str = "make it pub(crate) or delete it";

/// Public items of the rooms, but what the generator wrote and what the tests hold.
pub(crate) fn dead_names(repository: &Repository) -> Vec<Violation> {
    let files = words_of_files(repository);
    let rooms: BTreeSet<&str> = repository.rust().filter_map(SourceFile::room).collect();
    rooms.into_iter().filter(|room| !AHEAD.contains(room)).flat_map(|room| dead_in(&files, room)).collect()
}

/// Every file with its words, taken apart once for all rooms.
type Files<'a> = Vec<(&'a SourceFile, BTreeSet<&'a str>)>;

fn words_of_files(repository: &Repository) -> Files<'_> {
    repository.rust().map(|file| (file, words_of(&file.text).collect())).collect()
}

fn dead_in(files: &Files<'_>, room: &str) -> Vec<Violation> {
    // A program beside a room's library is a user of it like any other.
    let is_outside = |file: &SourceFile| file.room() != Some(room) || file.name() == "main.rs";
    let names = |name: &str| files.iter().any(|(file, words)| is_outside(file) && words.contains(name));
    let face = || files.iter().map(|(file, _)| *file).filter(|f| f.room() == Some(room) && !f.is_tests());
    let inside: BTreeSet<&str> = face().flat_map(words_of_public_items).collect();
    let mut violations = Vec::new();
    for file in face().filter(|file| !file.is_generated()) {
        for (line, item) in file.code().filter_map(|(line, code)| Some((line, public_item(code)?))) {
            let is_used = names(item.name) || (item.is_type && inside.contains(item.name));
            if !is_used {
                let cause = format!("nobody outside `{room}` names `{}`", item.name);
                violations.push(file.violation(line, cause, REMEDY));
            }
        }
    }
    violations
}

#[derive(Clone, Copy)]
struct Item<'a> {
    name: &'a str,
    is_type: bool,
}

/// The item in `pub fn name`, `pub const NAME`, `pub async fn name`; none in `pub(crate)`, `pub use` and fields.
fn public_item(code: &str) -> Option<Item<'_>> {
    let mut words = code.trim_start().strip_prefix("pub ")?.split_whitespace();
    let keyword = words.find(|word| !matches!(*word, "async" | "unsafe"))?;
    let mut name = words.next()?;
    if name == "fn" {
        name = words.next()?;
    }
    let is_type = TYPES.contains(&keyword);
    let name = words_of(name).next()?;
    (is_type || FUNCTIONS.contains(&keyword)).then_some(Item { name, is_type })
}

/// All words of public signatures, fields, variants and traits, but the names of the types where they are declared.
fn words_of_public_items(file: &SourceFile) -> Vec<&str> {
    let mut words = Vec::new();
    // The line that ends the item that is being read.
    let mut end: Option<String> = None;
    for (_, code) in file.code() {
        let declared = public_item(code);
        if end.is_none() && !code.trim_start().starts_with("pub ") && !code.trim_start().starts_with("type ")
        {
            continue;
        }
        let own_name = declared.filter(|item| item.is_type).map_or("", |item| item.name);
        words.extend(words_of(code).filter(|word| *word != own_name));
        end = item_end(code, declared, end);
    }
    words
}

// An enum or trait ends with its brace; anything else with the line that opens a body or closes a statement.
fn item_end(code: &str, declared: Option<Item<'_>>, end: Option<String>) -> Option<String> {
    let is_block = ["pub enum ", "pub trait "].iter().any(|start| code.trim_start().starts_with(start));
    match end {
        Some(end) if !end.is_empty() => (code != end).then_some(end),
        _ if declared.is_some() && is_block && code.ends_with('{') => {
            let indent = code.len() - code.trim_start().len();
            Some(format!("{}}}", " ".repeat(indent)))
        }
        _ if code.ends_with(['{', ';', '}']) => None,
        // A field ends with a comma, but so does an argument of a signature that goes on.
        None if declared.is_none() => None,
        _ => Some(String::new()),
    }
}

fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::assert_kept;

    #[test]
    fn the_house_keeps_it() {
        assert_kept(&dead_names(&Repository::here()));
    }

    fn dead(face: &str) -> Vec<String> {
        let files = [
            ("src/quorum/a.rs", face),
            ("src/quorum/tests/b.rs", "use quorum::{dead, Dead};\n"),
            ("src/quorum/main.rs", "use quorum::used;\n"),
        ];
        let repository = Repository::of(&files);
        let found = dead_in(&words_of_files(&repository), "quorum");
        found.iter().filter_map(|violation| Some(violation.cause.split('`').nth(3)?.to_owned())).collect()
    }

    #[test]
    fn a_public_name_that_only_its_own_room_uses_is_found() {
        let face = "pub fn used() {}\npub const fn dead() {}\npub struct Dead;\npub(crate) fn inner() {}\npub use a::B;\n";
        assert_eq!(dead(face), ["dead", "Dead"]);
    }

    #[test]
    fn a_type_that_a_public_item_needs_is_used() {
        let needs = [
            "pub fn used(\n    a: Dead,\n) {\n",
            "pub enum used {\n    A(Dead),\n}\n",
            "pub trait used {\n    fn a() -> Dead;\n}\n",
            "    pub used: Dead,\n",
            "    type Item = Dead;\n",
        ];
        for need in needs {
            assert_eq!(dead(&format!("pub struct Dead;\n{need}")), [""; 0], "{need}");
        }
        assert_eq!(dead("pub struct Dead;\npub fn used() {\n    Dead;\n}\n"), ["Dead"]);
    }
}
