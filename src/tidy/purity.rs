//! Rooms that decide touch nothing: no clock, no file, no thread, no chance, no async.

use crate::house::{Kind, room_named};
use crate::manifest::NORMAL;
use crate::repository::has_word;
use crate::{Repository, SourceFile, Violation};

/// Ways to the world, in code.
const WORLD: &[&str] = &[
    "std::fs",
    "std::thread",
    "std::process",
    "std::env",
    "std::time::Instant",
    "SystemTime",
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "tokio",
    "tokio_util",
    "fastrand",
    "getrandom",
    "rustix",
];
/// Async code.
const ASYNC: &[&str] = &["async", "await"];
/// Crates that are a way to the world.
const WORLD_CRATES: &[&str] =
    &["tokio", "tokio-util", "fastrand", "getrandom", "rustix", "socket2", "tempfile"];

const REMEDY: &str = "take time, events and chance as arguments and give back actions, or move it to a room above that carries";

/// Code and normal dependencies of the rooms that src/tidy/house.rs calls pure, traits or sync.
pub(crate) fn purity(repository: &Repository) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in repository.rust().filter(|file| !file.is_tests()) {
        let words = forbidden(file);
        for (line, code) in file.code() {
            if let Some(word) = words.iter().flat_map(|words| *words).find(|word| has_word(code, word)) {
                violations.push(file.violation(line, format!("a pure room names `{word}`"), REMEDY));
            }
        }
    }
    for manifest in repository.manifests().filter(|manifest| !forbidden(manifest.file).is_empty()) {
        for (name, _) in manifest.dependencies(NORMAL) {
            if WORLD_CRATES.contains(&name) {
                violations.push(manifest.file.violation(
                    1,
                    format!("a pure room depends on `{name}`"),
                    REMEDY,
                ));
            }
        }
    }
    violations
}

fn forbidden(file: &SourceFile) -> &'static [&'static [&'static str]] {
    match file.room().and_then(room_named).map(|room| room.kind) {
        Some(Kind::Pure | Kind::Sync) => &[WORLD, ASYNC],
        Some(Kind::Traits) => &[WORLD],
        Some(Kind::Async | Kind::World) | None => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::assert_kept;

    #[test]
    fn the_house_keeps_it() {
        assert_kept(&purity(&Repository::here()));
    }

    #[test]
    fn a_clock_a_task_and_a_file_are_found_in_a_pure_room() {
        for code in
            ["let now = SystemTime::now();", "async fn run() {}", "use std::fs;", "use tokio::sync::mpsc;"]
        {
            assert_eq!(purity(&Repository::of(&[("src/quorum/role.rs", code)])).len(), 1, "{code}");
            assert_kept(&purity(&Repository::of(&[("src/host/disk.rs", code)])));
        }
    }

    #[test]
    fn a_runtime_is_found_in_a_pure_rooms_manifest() {
        let manifest =
            "[dependencies]\ntokio.workspace = true\n[dev-dependencies]\nfastrand.workspace = true\n";
        assert_eq!(purity(&Repository::of(&[("src/quorum/Cargo.toml", manifest)])).len(), 1);
        assert_kept(&purity(&Repository::of(&[("src/server/Cargo.toml", manifest)])));
    }

    #[test]
    fn comments_and_tests_may_name_the_world() {
        let code = "// as std::fs would\n#[cfg(test)]\nmod tests {\nuse std::fs;\n}\n";
        assert_kept(&purity(&Repository::of(&[
            ("src/quorum/role.rs", code),
            ("src/quorum/tests/a.rs", "async"),
        ])));
    }
}
