//! The structs of requests and responses stop at the edge: machines speak `model` types and their own commands.

use crate::repository::has_word;
use crate::{Repository, SourceFile, Violation};

/// The rooms at the edge; the generator writes code that names the crate.
const EDGE: &[&str] = &["protocol", "api", "cluster", "testing", "generator", "tidy"];
const REMEDY: &str = "lift it to a type of `model` or a command of the room in `api`";

/// The crate's name in code outside of the edge.
pub(crate) fn wire_types(repository: &Repository) -> Vec<Violation> {
    let inside = repository.rust().filter(|file| !is_edge(file));
    let lines = inside.flat_map(|file| file.code().map(move |(line, code)| (file, line, code)));
    lines
        .filter(|(_, _, code)| has_word(code, "kafka_protocol"))
        .map(|(file, line, _)| file.violation(line, "`kafka_protocol` is named behind the edge", REMEDY))
        .collect()
}

fn is_edge(file: &SourceFile) -> bool {
    file.room().is_some_and(|room| EDGE.contains(&room)) || file.path.starts_with("protocol-tests/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::assert_kept;

    #[test]
    fn the_house_keeps_it() {
        assert_kept(&wire_types(&Repository::here()));
    }

    #[test]
    fn a_machine_that_names_the_crate_is_found() {
        let code = "use kafka_protocol::messages::FetchRequest;\n";
        assert_eq!(wire_types(&Repository::of(&[("src/coordinator/a.rs", code)])).len(), 1);
        assert_kept(&wire_types(&Repository::of(&[
            ("src/api/fetch.rs", code),
            ("protocol-tests/main.rs", code),
        ])));
    }
}
