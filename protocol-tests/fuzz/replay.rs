//! The fuzzers' corpus under plain `cargo test`: every file as it is, then mutants of them for a budget of time.
//!
//! A room's test takes this file in by `#[path]` and names its targets. The mutants of a run follow from a seed, so that
//! a longer run sees what a shorter one saw, and more.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::mutate::mutate;

const BUDGET: Duration = Duration::from_millis(500);

/// Gives `target` the files of `corpus/NAME`, and mutants of them.
pub(crate) fn replay(name: &str, target: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../protocol-tests/fuzz/corpus").join(name);
    let mut paths: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a corpus that can be listed").path())
        .collect();
    paths.sort();
    let inputs: Vec<Vec<u8>> =
        paths.iter().map(|path| fs::read(path).expect("an input that can be read")).collect();
    for input in &inputs {
        run(input, &target);
    }
    let end = now() + BUDGET;
    for seed in 0.. {
        let mut random = Rng::with_seed(seed);
        let mut input = random.choice(&inputs).expect("a corpus that is not empty").clone();
        mutate(&mut input, &mut random);
        run(&input, &target);
        if now() >= end {
            break;
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the budget is of the machine's own time")]
fn now() -> Instant {
    Instant::now()
}

fn run(input: &[u8], target: impl Fn(&[u8])) {
    let told = Told(input);
    target(told.0);
}

/// Prints the input if its target panics.
struct Told<'a>(&'a [u8]);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the input: {:02x?}", self.0);
        }
    }
}
