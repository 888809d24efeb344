//! The map says what the rules know: the table of rooms in src/README.md is that of src/tidy/house.rs.

use crate::house::{Kind, ROOMS, Room};
use crate::{Repository, SourceFile, Violation};

const MAP: &str = "src/README.md";
const REMEDY: &str = "write the same in src/README.md and src/tidy/house.rs";

/// Every row of the table, in its order.
pub(crate) fn map(repository: &Repository) -> Vec<Violation> {
    repository.files().filter(|file| file.path == MAP).flat_map(|file| rows_of(file, ROOMS)).collect()
}

fn rows_of(file: &SourceFile, rooms: &[Room]) -> Vec<Violation> {
    let rows: Vec<_> = file.lines().filter_map(|(line, text)| Some((line, Row::read(text)?))).collect();
    let mut violations = Vec::new();
    for at in 0..rooms.len().max(rows.len()) {
        let (room, row) = (rooms.get(at), rows.get(at));
        if !matches!((room, row), (Some(room), Some((_, row))) if row.is_of(room)) {
            let cause = format!("the row {row:?} is not that of {room:?}");
            violations.push(file.violation(row.map_or(1, |(line, _)| *line), cause, REMEDY));
        }
    }
    violations
}

#[derive(Debug)]
struct Row<'a> {
    name: &'a str,
    touches: &'a str,
    uses: &'a str,
}

impl<'a> Row<'a> {
    /// Of a line like ``| L2 | `storage` | what it is | sync, files by `env` | model env, and more in words |``.
    fn read(line: &'a str) -> Option<Self> {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let ["", _, name, _, touches, uses, ""] = cells[..] else { return None };
        let name = name.strip_prefix('`')?.strip_suffix('`')?;
        Some(Self { name, touches: before_comma(touches), uses: before_comma(uses) })
    }

    fn is_of(&self, room: &Room) -> bool {
        let touches = match room.kind {
            Kind::Pure => self.touches == "pure",
            Kind::Traits => self.touches == "traits",
            Kind::Sync => self.touches == "sync",
            Kind::Async => self.touches == "async",
            Kind::World => matches!(self.touches, "tokio" | ""),
        };
        touches && self.name == room.name && self.uses == room.uses.join(" ")
    }
}

fn before_comma(cell: &str) -> &str {
    cell.split(',').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::assert_kept;

    #[test]
    fn the_house_keeps_it() {
        let repository = Repository::here();
        assert!(repository.files().any(|file| file.path == MAP));
        assert_kept(&map(&repository));
    }

    #[test]
    fn a_row_that_says_something_else_and_one_too_few_are_found() {
        let rooms = [
            Room { name: "model", kind: Kind::Pure, uses: &[] },
            Room { name: "storage", kind: Kind::Sync, uses: &["model", "env"] },
        ];
        let violations = |rows: &str| {
            let repository = Repository::of(&[(MAP, rows)]);
            repository.files().map(|file| rows_of(file, &rooms).len()).sum::<usize>()
        };
        let model =
            "| | room | what | touches | uses |\n|---|---|---|---|---|\n| L0 | `model` | names | pure | |\n";
        assert_eq!(violations(&format!("{model}| L2 | `storage` | logs | sync, files | model env |\n")), 0);
        assert_eq!(violations(&format!("{model}| L2 | `storage` | logs | pure | model env |\n")), 1);
        assert_eq!(violations(&format!("{model}| L2 | `storage` | logs | sync | model |\n")), 1);
        assert_eq!(violations(model), 1);
    }
}
