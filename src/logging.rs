//! Log lines: for people on a terminal, or JSON for machines; and which of them are shown.
//!
//! The rooms are crates of their own, so that tracing knows them as `storage` or `api`, and not as parts of `ottla`.
//! Users need not know that: in a filter, `ottla=debug` means every room, and `ottla::storage=trace` the one.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt;

/// The crates that are Ottla: the workspace's members, as a test makes sure.
const ROOMS: &[&str] = &[
    "ottla",
    "model",
    "protocol",
    "env",
    "sim",
    "telemetry",
    "storage",
    "quorum",
    "replica",
    "metadata",
    "controller",
    "coordinator",
    "host",
    "transport",
    "replication",
    "shards",
    "cluster",
    "api",
    "server",
    "generator",
    "testing",
    "tidy",
];

const DEFAULT_FILTER: &str = "warn,ottla=info";

/// How to log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Logging {
    /// A filter in the form of `RUST_LOG`; by default what people want to see.
    pub(crate) filter: Option<String>,
    /// What a line looks like.
    pub(crate) format: Format,
}

/// What a line looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Time, level, room, message, fields; in colour on a terminal.
    Text,
    /// One JSON object.
    Json,
}

impl Logging {
    /// Logs to standard output from here on.
    pub(crate) fn start(&self) {
        let filter = EnvFilter::new(with_rooms(self.filter.as_deref().unwrap_or(DEFAULT_FILTER)));
        let lines = tracing_subscriber::fmt().with_env_filter(filter);
        match self.format {
            Format::Text => lines.with_ansi(std::io::stdout().is_terminal()).finish().init(),
            Format::Json => lines.json().flatten_event(true).finish().init(),
        }
    }
}

/// The filter with every directive for `ottla` made one for each room.
fn with_rooms(filter: &str) -> String {
    filter.split(',').map(str::trim).map(directive_with_rooms).collect::<Vec<_>>().join(",")
}

fn directive_with_rooms(directive: &str) -> String {
    match directive.strip_prefix("ottla") {
        Some(rest) if rest.is_empty() || rest.starts_with(['=', '[']) => {
            ROOMS.iter().map(|room| format!("{room}{rest}")).collect::<Vec<_>>().join(",")
        }
        Some(rest) => rest.strip_prefix("::").unwrap_or(directive).to_owned(),
        None => directive.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ottla_in_a_filter_means_every_room() {
        let filter = with_rooms("warn,ottla=debug");
        assert!(filter.starts_with("warn,ottla=debug,model=debug,"), "{filter}");
        assert!(filter.contains(",storage=debug,"), "{filter}");
    }

    #[test]
    fn a_path_in_ottla_means_that_room() {
        assert_eq!(with_rooms("ottla::storage::log=trace, api=debug"), "storage::log=trace,api=debug");
        assert_eq!(with_rooms("ottlander=trace"), "ottlander=trace");
    }

    #[test]
    fn the_rooms_are_the_members_of_the_workspace() {
        let manifest: toml::Table = include_str!("../Cargo.toml").parse().expect("TOML");
        let members = manifest["workspace"]["members"].as_array().expect("a list");
        let rooms: Vec<&str> = members
            .iter()
            .map(|member| member.as_str().expect("a path"))
            .map(|path| path.strip_prefix("src/").unwrap_or("ottla"))
            .collect();
        assert_eq!(rooms, ROOMS);
    }
}
