//! The rooms of the house, bottom first: the table of src/README.md as data.
//!
//! One row a room: what it may use, and how much of the world it may touch. The order is the layering; it is the order
//! of `members` in the root Cargo.toml too.

/// How much of the world a room may touch on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing, and no async: time and events are arguments.
    Pure,
    /// The world only as traits: no runtime, no files, no clock.
    Traits,
    /// Files through `Disk`, and no async.
    Sync,
    /// Async code over `Env`.
    Async,
    /// Whatever it needs: it is the real world, the simulated one, or not part of the broker.
    World,
}

/// A room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// The rooms it may use.
    pub(crate) uses: &'static [&'static str],
}

const fn room(name: &'static str, kind: Kind, uses: &'static [&'static str]) -> Room {
    Room { name, kind, uses }
}

/// Every room, bottom first.
pub(crate) const ROOMS: &[Room] = &[
    room("model", Kind::Pure, &[]),
    room("protocol", Kind::Pure, &["model"]),
    room("env", Kind::Traits, &["model"]),
    room("sim", Kind::World, &["model", "env"]),
    room("telemetry", Kind::Pure, &[]),
    room("storage", Kind::Sync, &["model", "protocol", "env"]),
    room("quorum", Kind::Pure, &["model", "protocol"]),
    room("replica", Kind::Pure, &["model", "protocol"]),
    room("metadata", Kind::Pure, &["model", "protocol"]),
    room("controller", Kind::Pure, &["model", "protocol", "metadata"]),
    room("coordinator", Kind::Pure, &["model", "protocol"]),
    room("host", Kind::World, &["model", "env"]),
    room("transport", Kind::World, &["model", "protocol", "env", "telemetry"]),
    room(
        "replication",
        Kind::Async,
        &["model", "protocol", "env", "storage", "replica", "metadata", "transport"],
    ),
    room("shards", Kind::Async, &["model", "protocol", "env", "metadata", "coordinator", "replication"]),
    room(
        "cluster",
        Kind::Async,
        &[
            "model",
            "protocol",
            "env",
            "storage",
            "quorum",
            "metadata",
            "controller",
            "transport",
            "replication",
            "shards",
        ],
    ),
    room(
        "api",
        Kind::Async,
        &[
            "model",
            "protocol",
            "env",
            "metadata",
            "controller",
            "coordinator",
            "replication",
            "shards",
            "cluster",
        ],
    ),
    room("server", Kind::Async, &["model", "env", "telemetry", "transport", "api"]),
    room("generator", Kind::World, &[]),
    room(
        "testing",
        Kind::World,
        &[
            "model",
            "protocol",
            "env",
            "sim",
            "storage",
            "quorum",
            "replica",
            "replication",
            "metadata",
            "controller",
            "host",
        ],
    ),
    room("tidy", Kind::World, &[]),
];

/// What the tests of any room above them may use besides: the world, simulated or real.
pub(crate) const FOR_TESTS: &[&str] = &["sim", "host"];

pub(crate) fn room_named(name: &str) -> Option<&'static Room> {
    ROOMS.iter().find(|room| room.name == name)
}

/// Whether `below` stands before `above` in the table.
pub(crate) fn is_below(below: &str, above: &str) -> bool {
    let names = || ROOMS.iter().map(|room| room.name);
    names().take_while(|name| *name != above).any(|name| name == below)
}
