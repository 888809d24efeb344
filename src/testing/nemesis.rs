//! What happens to the broker: one fault after the other, each ended before the next.

use std::ops::Range;
use std::time::Duration;

use env::{Clock, Disk};
use sim::{Kind, Node, World};

use crate::broker::{Broker, FOLDER};

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The process is killed.
    Kill,
    /// The machine loses power.
    PowerLoss,
    /// The process is told to stop, and started again.
    CleanRestart,
    /// Writes fail.
    WriteError,
    /// Flushes fail, and what they should have written is lost.
    SyncError,
    /// Reads fail.
    ReadError,
    /// The disk is full for a while, perhaps over a restart.
    FullDisk,
    /// Flushes take long.
    SlowDisk,
    /// Flushes do not end for a while.
    HungDisk,
    /// All connections are reset.
    Reset,
    /// The process stands still for a while.
    Pause,
}

const FAULTS: [Fault; 11] = [
    Fault::Kill,
    Fault::PowerLoss,
    Fault::CleanRestart,
    Fault::WriteError,
    Fault::SyncError,
    Fault::ReadError,
    Fault::FullDisk,
    Fault::SlowDisk,
    Fault::HungDisk,
    Fault::Reset,
    Fault::Pause,
];

const USUAL_LATENCY: Range<Duration> = Duration::from_micros(200)..Duration::from_millis(2);
/// How long the process may take to start where nothing fails.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Does it.
pub(crate) struct Nemesis<'a> {
    pub(crate) world: &'a World,
    pub(crate) broker: Broker,
    pub(crate) clients: &'a Node,
    pub(crate) clock: &'a dyn Clock,
    /// What struck when, in virtual time.
    pub(crate) faults: Vec<(Duration, Fault)>,
    /// What went wrong with the process itself.
    pub(crate) violations: Vec<String>,
}

impl Nemesis<'_> {
    /// So many faults; in the end the broker is up and nothing fails.
    pub(crate) async fn run(&mut self, count: u64) {
        for _ in 0..count {
            self.sleep_ms(50..2000).await;
            let fault = FAULTS[self.world.below(FAULTS.len() as u64) as usize];
            self.faults.push((self.world.elapsed(), fault));
            self.strike(fault).await;
            self.revive().await;
        }
    }

    async fn strike(&mut self, fault: Fault) {
        match fault {
            Fault::Kill => self.broker.kill(),
            Fault::PowerLoss => self.broker.power_loss(),
            Fault::CleanRestart => self.stop().await,
            Fault::WriteError => self.fail(Kind::Write).await,
            Fault::SyncError => self.fail(Kind::Sync).await,
            Fault::ReadError => self.fail(Kind::Read).await,
            Fault::FullDisk => self.fill().await,
            Fault::SlowDisk => {
                let slow = Duration::from_millis(20)..Duration::from_millis(400);
                self.broker.machine.set_disk_latency(slow);
                self.sleep_ms(500..5000).await;
                self.broker.machine.set_disk_latency(USUAL_LATENCY);
            }
            Fault::HungDisk => self.hang().await,
            Fault::Reset => self.world.reset(&self.broker.machine, self.clients),
            Fault::Pause => {
                self.broker.machine.pause();
                self.sleep_ms(100..15_000).await;
                self.broker.machine.resume();
            }
        }
    }

    /// Some operations fail; then the process is ended one way or another, for a folder that failed stays offline.
    async fn fail(&mut self, kind: Kind) {
        let (after, times) = (self.world.below(30), 1 + self.world.below(3));
        self.broker.machine.disk().fail(kind, FOLDER, after, times);
        self.sleep_ms(100..3000).await;
        let heals_first = self.world.below(2) == 0;
        if heals_first {
            self.broker.machine.disk().heal();
        }
        self.end_somehow();
        self.broker.start();
        self.sleep_ms(10..1000).await;
        self.broker.machine.disk().heal();
        self.end_somehow();
        // What a failed flush left in memory alone is seen as lost only when the power goes in a later life.
        if kind == Kind::Sync {
            self.broker.start();
            self.sleep_ms(10..2000).await;
            self.end_somehow();
        }
    }

    async fn fill(&mut self) {
        let left = self.world.below(400_000);
        self.set_free(Some(left));
        self.sleep_ms(1000..6000).await;
        if self.world.below(2) == 0 {
            self.end_somehow();
            self.broker.start();
            self.sleep_ms(1000..3000).await;
        }
        self.set_free(None);
    }

    /// Leaves so many bytes of the disk, or all that there ever was.
    fn set_free(&self, left: Option<u64>) {
        let disk = self.broker.machine.disk();
        disk.set_capacity(u64::MAX - 1);
        let free = disk.free_bytes(FOLDER.as_ref()).unwrap_or(u64::MAX - 1);
        disk.set_capacity(left.map_or(u64::MAX, |left| u64::MAX - 1 - free + left));
    }

    async fn hang(&mut self) {
        self.broker.machine.set_disk_hung(true);
        self.sleep_ms(100..15_000).await;
        if self.world.below(3) == 0 {
            self.end_somehow();
        }
        self.broker.machine.set_disk_hung(false);
    }

    fn end_somehow(&mut self) {
        if self.world.below(2) == 0 { self.broker.kill() } else { self.broker.power_loss() }
    }

    async fn stop(&mut self) {
        if let Err(why) = self.broker.stop(self.clock).await {
            self.violations.push(format!("a clean stop: {why}"));
        }
    }

    /// Starts the process if there is none, and again if it has ended for lack of what it has now.
    async fn revive(&mut self) {
        if self.broker.is_up() && self.broker.ended().is_some() {
            self.broker.kill();
        }
        if !self.broker.is_up() {
            self.sleep_ms(0..1000).await;
            self.broker.start();
        }
    }

    /// Waits, and says so if the process ends though nothing fails.
    pub(crate) async fn watch(&mut self, wait: Duration) {
        let end = self.clock.now().plus(wait);
        while self.clock.now() < end {
            if let Some(why) = self.broker.ended() {
                self.violations.push(format!("the process ended though nothing fails: {why:?}"));
                return;
            }
            self.clock.sleep(LOOK_AGAIN).await;
        }
    }

    async fn sleep_ms(&self, range: Range<u64>) {
        let wait = range.start + self.world.below(range.end - range.start);
        self.clock.sleep(Duration::from_millis(wait)).await;
    }
}
