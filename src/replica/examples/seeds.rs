//! Runs random histories of a partition: `cargo run --release -p replica --example seeds -- --seeds 1000`.
//!
//! `--seeds N` how many (1000), `--seed S` the first (0), `--events E` of each at least (40000), `--mutant M`
//! with a known fault. Ends with 1 where a history broke a rule.

#[path = "../tests/simulation/mod.rs"]
mod simulation;

use std::collections::BTreeMap;
use std::process::ExitCode;

use replica::Mutant;
use simulation::{outcome, random};

fn main() -> ExitCode {
    let (seeds, first, events) = (option("--seeds", 1000), option("--seed", 0), option("--events", 40_000));
    let mutant = text_option("--mutant").map(|name| {
        let found = Mutant::ALL.iter().find(|mutant| format!("{mutant:?}") == name);
        *found.unwrap_or_else(|| panic!("--mutant {name}: one of {:?}", Mutant::ALL))
    });
    #[expect(clippy::disallowed_methods, reason = "the rate is of the real machine")]
    let began = std::time::Instant::now();
    let (mut all_events, mut commits, mut hash, mut bad) = (0, 0, 0u64, 0);
    let mut faults: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in first..first + seeds {
        match outcome(|| random::run(seed, events, mutant)) {
            Ok(summary) => {
                all_events += summary.events;
                commits += summary.commits;
                summary
                    .faults
                    .into_iter()
                    .for_each(|(fault, times)| *faults.entry(fault).or_default() += times);
                hash = hash.rotate_left(1) ^ summary.hash;
            }
            Err(violation) => {
                bad += 1;
                println!("seed {seed}: {violation}");
            }
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    let rate = all_events as f64 / seconds;
    println!(
        "{seeds} seeds from {first}, {bad} bad; {all_events} events in {seconds:.1} s, {rate:.0} events/s; hash {hash:016x}"
    );
    println!("{commits} batches committed; {faults:?}");
    if bad == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn text_option(name: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != name).nth(1)
}

fn option(name: &str, default: u64) -> u64 {
    let text = text_option(name);
    text.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} {text}: not a number")))
}
