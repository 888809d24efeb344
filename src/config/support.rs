//! README's table of supported APIs, made of the one table of APIs; a test keeps it so.

use std::fmt::Write;

use api::{Row, Side, TABLE};

/// The table, in Markdown.
pub fn support() -> String {
    let mut text = "| key | API | versions | listeners |\n|---:|---|---|---|\n".to_owned();
    for row in TABLE {
        let _ = writeln!(text, "| {} | {} | {} | {} |", row.key, row.name, versions(row), listeners(row));
    }
    text
}

fn versions(row: &Row) -> String {
    if row.min == row.max { row.min.to_string() } else { format!("{}-{}", row.min, row.max) }
}

fn listeners(row: &Row) -> &'static str {
    match (row.is_served_on(Side::Broker), row.is_served_on(Side::Controller)) {
        (true, true) => "broker, controller",
        (false, true) => "controller",
        _ => "broker",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readme_has_the_table_of_apis() {
        let readme = include_str!("../../README.md");
        assert!(
            readme.contains(&support()),
            "put the output of `cargo run -- reference apis` into README.md"
        );
    }
}
