//! Replays the fuzzers' corpus of this room, and mutants of it.

#[path = "../../../../protocol-tests/fuzz/mutate.rs"]
mod mutate;
#[path = "../../../../protocol-tests/fuzz/replay.rs"]
mod replay;
mod targets;

macro_rules! replays {
    ($($target:ident)*) => {$(
        #[test]
        fn $target() {
            replay::replay(stringify!($target), targets::$target);
        }
    )*};
}

replays!(request response metadata_record offsets_record control_record quorum_state batches);
