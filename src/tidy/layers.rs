//! Rooms use only rooms below them, and only those of their row.

use crate::house::{FOR_TESTS, ROOMS, Room, is_below, room_named};
use crate::manifest::{BUILD, DEV, Manifest, NORMAL};
use crate::{Repository, Violation};

const ORDER: &str = "list the rooms as src/tidy/house.rs does, bottom room first";
const ROW: &str = "turn the call round (events up, calls down), or give the room a new row in src/README.md and src/tidy/house.rs";
const NOBODYS: &str = "move what is shared to `sim`, or the test to the room `testing`";

/// The manifests against the table of rooms: the members and their order, and each normal, dev and build edge.
pub(crate) fn layers(repository: &Repository) -> Vec<Violation> {
    let mut violations = table_order();
    for manifest in repository.manifests() {
        if manifest.is_root() {
            violations.extend(member_order(&manifest));
        } else if let Some(room) = manifest.file.room().and_then(room_named) {
            violations.extend(edges(&manifest, room));
        }
    }
    violations
}

// The table itself: a room stands behind all that it uses.
fn table_order() -> Vec<Violation> {
    let mut violations = Vec::new();
    for room in ROOMS {
        for used in room.uses {
            if !is_below(used, room.name) {
                let cause = format!("`{}` uses `{used}`, which is not below it", room.name);
                violations.push(Violation { place: "src/tidy/house.rs".into(), cause, remedy: ROW });
            }
        }
    }
    violations
}

fn member_order(root: &Manifest<'_>) -> Vec<Violation> {
    let rooms: Vec<String> = ROOMS.iter().map(|room| format!("src/{}", room.name)).collect();
    let mut violations = Vec::new();
    for list in ["members", "default-members"] {
        let listed = root.workspace_list(list);
        let listed: Vec<&str> = listed.into_iter().filter(|member| member.starts_with("src/")).collect();
        if listed != rooms {
            let cause = format!("{list} is {listed:?}, but the rooms are {rooms:?}");
            violations.push(root.file.violation(1, cause, ORDER));
        }
    }
    violations
}

fn edges(manifest: &Manifest<'_>, room: &Room) -> Vec<Violation> {
    let mut violations = Vec::new();
    for list in [NORMAL, DEV, BUILD] {
        for (used, _) in manifest.dependencies(list) {
            // A room's tests may switch on a feature of the room itself.
            let is_for_tests = list == DEV
                && (used == room.name || (FOR_TESTS.contains(&used) && is_below(used, room.name)));
            let is_allowed = room.uses.contains(&used) || is_for_tests;
            if room_named(used).is_none() || is_allowed {
                continue;
            }
            let cause = format!("`{}` must not use `{used}` ({list})", room.name);
            violations.push(manifest.file.violation(1, cause, if used == "testing" { NOBODYS } else { ROW }));
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::assert_kept;

    #[test]
    fn the_house_keeps_it() {
        assert_kept(&layers(&Repository::here()));
    }

    #[test]
    fn an_edge_upward_is_found_in_every_list() {
        for list in [NORMAL, DEV, BUILD] {
            let manifest = format!("[{list}]\nstorage.workspace = true\nbytes.workspace = true\n");
            let found = layers(&Repository::of(&[("src/model/Cargo.toml", &manifest)]));
            assert_eq!(found.len(), 1);
            assert!(found[0].cause.contains("`model` must not use `storage`"), "{}", found[0]);
        }
    }

    #[test]
    fn tests_may_use_the_simulated_world_but_never_the_room_of_whole_clusters() {
        let manifest = "[dev-dependencies]\nsim.workspace = true\ntesting.workspace = true\n";
        let found = layers(&Repository::of(&[("src/storage/Cargo.toml", manifest)]));
        assert_eq!(found.len(), 1);
        assert!(found[0].cause.contains("testing"), "{}", found[0]);
        let below_sim = "[dev-dependencies]\nsim.workspace = true\n";
        assert_eq!(layers(&Repository::of(&[("src/protocol/Cargo.toml", below_sim)])).len(), 1);
    }

    #[test]
    fn members_in_another_order_are_found() {
        let manifest = "[workspace]\nmembers = [\".\", \"src/protocol\", \"src/model\"]\n";
        let found = layers(&Repository::of(&[("Cargo.toml", manifest)]));
        assert_eq!(found.len(), 2);
    }
}
