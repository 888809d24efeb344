//! Replays the fuzzers' corpus of this room, and mutants of it.

#[path = "../../../../protocol-tests/fuzz/mutate.rs"]
mod mutate;
#[path = "../../../../protocol-tests/fuzz/replay.rs"]
mod replay;
mod targets;

#[test]
fn log_folder() {
    replay::replay("log_folder", targets::log_folder);
}
