//! Runs simulations: `cargo run -p testing -- node --seeds 500`, or `--seed S` for the one that failed; `cluster` runs the
//! pure machines of whole clusters.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::{Args, Parser};
use testing::{Fault, Outcome, Summary, simulate, simulate_cluster};

/// Simulations of whole nodes.
#[derive(Debug, Parser)]
enum CommandLine {
    /// One broker under kills, power losses and disk faults
    Node(Told),
    /// The machines of a cluster: quorum, controller and replicas, under faults of nodes and network
    Cluster(ToldCluster),
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

#[derive(Debug, Args)]
struct ToldCluster {
    /// How many seeds
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Virtual seconds under faults in each
    #[arg(long, default_value_t = 20)]
    seconds: u64,
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
    match CommandLine::parse() {
        CommandLine::Node(told) => node(&told),
        CommandLine::Cluster(told) => cluster(&told),
    }
}

fn node(told: &Told) -> ExitCode {
    let mut sum = Sum::default();
    let seconds = seconds_of(|| {
        for seed in told.seed..told.seed + told.seeds {
            sum.add(seed, &simulate(seed, told.faults));
        }
    });
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
    code(sum.failed)
}

fn cluster(told: &ToldCluster) -> ExitCode {
    let (mut failed, mut sum) = (0, Summary::default());
    let seconds = seconds_of(|| {
        for seed in told.seed..told.seed + told.seeds {
            match simulate_cluster(seed, told.seconds) {
                Ok(summary) => {
                    println!("ok SEED={seed} EVENTS={} hash={:016x}", summary.events, summary.hash);
                    sum.add(summary);
                }
                Err(violation) => {
                    failed += 1;
                    println!("FAIL SEED={seed} SECONDS={} {violation}", told.seconds);
                }
            }
        }
    });
    println!(
        "{} seeds from {}, {failed} failed; {} events in {seconds:.0} s, {:.0} events a second; hash {:016x}",
        told.seeds,
        told.seed,
        sum.events,
        sum.events as f64 / seconds,
        sum.hash
    );
    println!(
        "{} batches committed, {} acknowledged, {} elections of the quorum",
        sum.commits, sum.acknowledged, sum.elections
    );
    println!("faults: {:?}", sum.faults);
    code(failed)
}

fn code(failed: u64) -> ExitCode {
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn seconds_of(run: impl FnOnce()) -> f64 {
    #[expect(clippy::disallowed_methods, reason = "how fast the simulator is, not what happens in it")]
    let start = std::time::Instant::now();
    run();
    start.elapsed().as_secs_f64()
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
