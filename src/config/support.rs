//! README's table of supported APIs, made of the one table of APIs; a test keeps it so.

use std::fmt::Write;

use api::{Row, TABLE};

/// The table, in Markdown.
pub fn support() -> String {
    let mut text = "| key | API | versions |\n|---:|---|---|\n".to_owned();
    for row in TABLE {
        let _ = writeln!(text, "| {} | {} | {} |", row.key, row.name, versions(row));
    }
    text
}

fn versions(row: &Row) -> String {
    if row.min == row.max { row.min.to_string() } else { format!("{}-{}", row.min, row.max) }
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
