//! A broker on a simulated machine.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use env::Clock;
use ottla::assemble;
use ottla::config::{Config, Sources};
use sim::{Node, World};
use tokio_util::sync::CancellationToken;

/// Where clients find it.
pub(crate) const ADDRESS: &str = "broker:9092";
/// Where its log folder lies.
pub(crate) const FOLDER: &str = "/data";

/// Of reads that must not wait, so many in a hundred find that the cache does not have what they want.
const COLD_PERCENT: u8 = 10;

/// Small segments and frequent upkeep, so that a short life sees all of it.
const SETTINGS: &[&str] = &[
    "listeners=PLAINTEXT://broker:9092",
    "log.dirs=/data",
    "log.segment.bytes=1048576",
    "log.retention.check.interval.ms=2000",
    "replica.high.watermark.checkpoint.interval.ms=1000",
    "offsets.topic.num.partitions=2",
];

/// A clean stop that takes longer has hung.
const STOP_WAIT: Duration = Duration::from_mins(1);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// The machine, and the process on it while there is one.
pub(crate) struct Broker {
    pub(crate) machine: Node,
    process: Option<Process>,
}

struct Process {
    stop: CancellationToken,
    /// What the process ended with; `None` while it runs.
    ended: Arc<Mutex<Option<Result<(), String>>>>,
}

impl Broker {
    /// A machine that is off.
    pub(crate) fn new(world: &World) -> Self {
        let machine = world.node("broker");
        machine.disk().set_cold_percent(COLD_PERCENT);
        Self { machine, process: None }
    }

    /// Starts the process, and does not wait until it serves.
    pub(crate) fn start(&mut self) {
        self.start_with(&[]);
    }

    /// As `start`, with settings that go before the usual ones.
    fn start_with(&mut self, settings: &[&str]) {
        let (env, stop, ended) = (self.machine.boot(), CancellationToken::new(), Arc::default());
        let set = SETTINGS.iter().chain(settings).map(|&pair| pair.to_owned()).collect();
        let told = Sources { set, ..Sources::default() };
        let config = Config::load(&told).expect("the settings are valid");
        let process = Process { stop: stop.clone(), ended: Arc::clone(&ended) };
        self.machine.run(async move {
            let result = assemble::run_in(env, config, stop).await.map_err(|error| error.to_string());
            *ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        });
        self.process = Some(process);
    }

    /// Whether there is a process, or what is left of one that ended by itself.
    pub(crate) fn is_up(&self) -> bool {
        self.process.is_some()
    }

    /// Whether the process has ended by itself, and with what.
    pub(crate) fn ended(&self) -> Option<Result<(), String>> {
        let process = self.process.as_ref()?;
        process.ended.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// kill -9.
    pub(crate) fn kill(&mut self) {
        self.process = None;
        self.machine.kill();
    }

    /// The power fails.
    pub(crate) fn power_loss(&mut self) {
        self.process = None;
        self.machine.power_loss();
    }

    /// SIGTERM, and what the process ended with.
    ///
    /// # Errors
    /// It hangs, or says so itself.
    pub(crate) async fn stop(&mut self, clock: &dyn Clock) -> Result<(), String> {
        let Some(process) = &self.process else { return Ok(()) };
        process.stop.cancel();
        let end = clock.now().plus(STOP_WAIT);
        while self.ended().is_none() && clock.now() < end {
            clock.sleep(LOOK_AGAIN).await;
        }
        let ended = self.ended().unwrap_or_else(|| Err(format!("no clean stop within {STOP_WAIT:?}")));
        self.kill();
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a node with two log folders ended with after ten seconds, if one of them cannot be opened.
    fn ended_without(folder: &str) -> Option<Result<(), String>> {
        let world = World::new(1);
        let mut broker = Broker::new(&world);
        let clock = world.node("clock").boot().clock;
        broker.machine.disk().fail(sim::Kind::Name, folder, 0, u64::MAX);
        world.run(async {
            broker.start_with(&["log.dirs=/data,/other"]);
            clock.sleep(Duration::from_secs(10)).await;
            broker.ended()
        })
    }

    #[test]
    fn a_node_starts_without_a_log_folder_that_cannot_be_opened_unless_it_has_the_metadata() {
        assert_eq!(ended_without("/other"), None);
        assert!(ended_without("/data").is_some_and(|ended| ended.is_err()));
    }
}
