//! `ottla serve`: runs a node until it is told to stop.
//!
//! The first SIGTERM or SIGINT asks for a clean stop, which takes seconds and ends with exit code 0. A second one ends
//! the process at once, as if it had been killed: what was acknowledged is on disk.

use std::process::ExitCode;

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::announce;
use crate::assemble::{self, StartError};
use crate::config::Config;
use crate::log_folders;
use crate::memory::Memory;

/// Runs the node of this configuration.
pub fn serve(mut config: Config) -> ExitCode {
    config.memory = Memory::of_this_process();
    config.logging.start();
    announce::starting(&config);
    announce::check_reach(&config);
    let (runtime, signals) = match runtime_and_signals() {
        Ok(both) => both,
        Err(error) => {
            error!("{error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(until_stopped(config, signals)) {
        Ok(()) => {
            info!("stopped");
            ExitCode::SUCCESS
        }
        Err(error) => {
            error!("{}", log_folders::explained(&error));
            ExitCode::FAILURE
        }
    }
}

fn runtime_and_signals() -> std::io::Result<(Runtime, Signals)> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let entered = runtime.enter();
    let signals = Signals::listen()?;
    drop(entered);
    Ok((runtime, signals))
}

async fn until_stopped(config: Config, mut signals: Signals) -> Result<(), StartError> {
    let stop = CancellationToken::new();
    let mut node = std::pin::pin!(assemble::run(config, stop.clone()));
    tokio::select! {
        biased;
        ended = &mut node => return ended,
        name = signals.next() => info!(signal = name, "stopping"),
    }
    stop.cancel();
    tokio::select! {
        biased;
        ended = &mut node => ended,
        name = signals.next() => at_once(name),
    }
}

fn at_once(name: &'static str) -> ! {
    warn!(signal = name, "asked to stop again: ending at once");
    std::process::exit(1)
}

/// The signals that ask a process to end.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
