//! Runs simulations: `cargo run -p testing -- node --seeds 500`, or `--seed S` for the one that failed.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::{Args, Parser};
use testing::{Fault, Outcome, simulate};

/// Simulations of whole nodes.
#[derive(Debug, Parser)]
enum CommandLine {
    /// One broker under kills, power losses and disk faults
    Node(Told),
}

#[derive(Debug, Args)]
struct Told {
    /// How many seeds
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Faults in each
    #[arg(long, default_value_t = 12)]
    faults: u64,
}

/// The sum of many seeds.
#[derive(Debug, Default)]
struct Sum {
    failed: u64,
    events: u64,
    acknowledged: usize,
    virtual_seconds: u64,
    faults: BTreeMap<Fault, u64>,
}

fn main() -> ExitCode {
    let CommandLine::Node(told) = CommandLine::parse();
    let mut sum = Sum::default();
    #[expect(clippy::disallowed_methods, reason = "how fast the simulator is, not what happens in it")]
    let start = std::time::Instant::now();
    for seed in told.seed..told.seed + told.seeds {
        sum.add(seed, &simulate(seed, told.faults));
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{} seeds, {} failed; {} events, {} acknowledged records, {} virtual seconds in {seconds:.0} s",
        told.seeds, sum.failed, sum.events, sum.acknowledged, sum.virtual_seconds
    );
    println!("faults: {:?}", sum.faults);
    println!(
        "{:.1} seeds a second, {:.0} events a second",
        told.seeds as f64 / seconds,
        sum.events as f64 / seconds
    );
    if sum.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Sum {
    fn add(&mut self, seed: u64, outcome: &Outcome) {
        let Outcome { violations, hash, events, acknowledged, faults, elapsed } = outcome;
        let verdict = if violations.is_empty() { "ok" } else { "FAIL" };
        println!("{verdict} SEED={seed} EVENTS={events} acknowledged={acknowledged} hash={hash:016x}");
        violations.iter().take(10).for_each(|violation| println!("    {violation}"));
        self.failed += u64::from(!violations.is_empty());
        self.events += events;
        self.acknowledged += acknowledged;
        self.virtual_seconds += elapsed.as_secs();
        for (at, fault) in faults {
            *self.faults.entry(*fault).or_default() += 1;
            if !violations.is_empty() {
                println!("    {:>9.3} s {fault:?}", at.as_secs_f64());
            }
        }
    }
}
