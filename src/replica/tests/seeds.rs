//! Random histories. More of them: `cargo run --release -p replica --example seeds -- --seeds 1000`.

mod simulation;

use simulation::{outcome, random};

/// So many that a run takes seconds.
const SEEDS: u64 = 24;
const EVENTS: u64 = 10_000;

#[test]
fn random_histories_keep_every_rule() {
    for seed in 0..SEEDS {
        if let Err(violation) = outcome(|| random::run(seed, EVENTS, None)) {
            panic!("seed {seed}: {violation}");
        }
    }
}

#[test]
fn one_seed_is_one_history() {
    for seed in [3, 1_000] {
        assert_eq!(random::run(seed, EVENTS, None), random::run(seed, EVENTS, None), "seed {seed}");
    }
}
