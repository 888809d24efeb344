//! What an image is made of reaches its build: `.dockerignore` keeps out all that it does not name.

use crate::{Repository, Violation};

/// What Dockerfiles copy out of the project and `.dockerignore` does not let in.
pub(crate) fn image_context(repository: &Repository) -> Vec<Violation> {
    let let_in = repository.files().find(|file| file.path == ".dockerignore").map_or("", |file| &file.text);
    let is_let_in = |source: &str| let_in.lines().any(|line| line.strip_prefix('!') == Some(source));
    let mut violations = Vec::new();
    for file in repository.files().filter(|file| file.name().ends_with("Dockerfile")) {
        for source in file.text.lines().flat_map(copied).filter(|source| !is_let_in(source)) {
            let cause = format!("{source} is copied and kept out by .dockerignore");
            violations.push(Violation {
                place: file.path.clone(),
                cause,
                remedy: "let it in with a line !PATH",
            });
        }
    }
    violations
}

/// The sources of a COPY out of the project.
fn copied(line: &str) -> Vec<&str> {
    let Some(words) = line.strip_prefix("COPY ").filter(|words| !words.starts_with("--from")) else {
        return Vec::new();
    };
    let mut sources: Vec<&str> = words.split_whitespace().collect();
    sources.pop();
    sources
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::assert_kept;

    #[test]
    fn the_house_keeps_it() {
        assert_kept(&image_context(&Repository::here()));
    }

    #[test]
    fn a_copied_file_that_is_kept_out_is_found() {
        let dockerfile = "COPY src a ./\nCOPY --from=build b /b\n";
        let files = [("docker/Dockerfile", dockerfile), (".dockerignore", "*\n!src\n")];
        assert_eq!(image_context(&Repository::of(&files)).len(), 1);
    }
}
