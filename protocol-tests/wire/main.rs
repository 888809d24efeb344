//! Raw frames against real brokers.
//!
//! `wire compare KAFKA OTTLA [FILTER]` asks both brokers the same, every API at every version, rightly and wrongly, and
//! says each case as `ok NAME` or `FAIL NAME why`. `wire hostile OTTLA PID` throws bytes at one broker that no client
//! sends, and looks whether it lives on within bounded memory. Both are run by `protocol-tests/run wire`.
#![expect(clippy::disallowed_methods, reason = "real brokers live on the real clock")]

mod compare;
mod corpus;
mod explained;
mod hostile;
mod peer;
mod request;
mod run;
mod scripts;
mod spoil;
mod value;

use std::error::Error;
use std::process::ExitCode;

use peer::Peer;
use run::Run;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let failures = match words.as_slice() {
        ["compare", kafka, ottla] => compare(kafka, ottla, ""),
        ["compare", kafka, ottla, filter] => compare(kafka, ottla, filter),
        ["hostile", ottla, pid] => hostile(ottla, pid),
        _ => Err("wire compare KAFKA OTTLA [FILTER] | wire hostile OTTLA PID".into()),
    };
    match failures {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            println!("FAIL wire {error}");
            ExitCode::FAILURE
        }
    }
}

fn compare(kafka: &str, ottla: &str, filter: &str) -> Result<u32, Box<dyn Error>> {
    let peers = [Peer::new("kafka", kafka.parse()?), Peer::new("ottla", ottla.parse()?)];
    let mut run = Run::new(peers, filter.into());
    run.prepare()?;
    for good in corpus::corpus() {
        run.good(&good)?;
    }
    scripts::play(&mut run)?;
    Ok(run.failures)
}

fn hostile(ottla: &str, pid: &str) -> Result<u32, Box<dyn Error>> {
    Ok(hostile::run(ottla.parse()?, pid.parse()?))
}
