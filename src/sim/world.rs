//! A world of nodes, and what can happen to them.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use env::Env;

use crate::clock::SimClock;
use crate::exec::{Device, SimExec};
use crate::executor::{Executor, Kind, NodeKey, lock};
use crate::net::{LinkSpeed, Network, Power, SimNet};
use crate::rng::SimRng;
use crate::{History, SimDisk};

/// All that there is. One seed, one history.
///
/// ```
/// let world = sim::World::new(7);
/// let node = world.node("node-1");
/// let env = node.boot();
/// let waited = world.run(async {
///     let before = env.clock.now();
///     env.clock.sleep(std::time::Duration::from_secs(3600)).await;
///     env.clock.now().since(before)
/// });
/// assert_eq!(waited.as_secs(), 3600);
/// ```
pub struct World {
    executor: Arc<Executor>,
    network: Arc<Network>,
    nodes: Mutex<NodeKey>,
}

/// A machine of the world: it stays when the node that runs on it dies.
pub struct Node {
    name: String,
    key: NodeKey,
    executor: Arc<Executor>,
    network: Arc<Network>,
    clock: SimClock,
    device: Arc<Mutex<Device>>,
    disk: Mutex<SimDisk>,
    /// Grows when a node starts and when it ends.
    lives: Arc<Mutex<u64>>,
    is_up: Mutex<bool>,
}

impl World {
    /// An empty world.
    pub fn new(seed: u64) -> Self {
        let executor = Executor::new(seed);
        let network = Network::new(&executor);
        Self { executor, network, nodes: Mutex::new(0) }
    }

    /// A machine, switched off, with an empty disk. Others reach it by its name.
    pub fn node(&self, name: &str) -> Node {
        let mut nodes = lock(&self.nodes);
        *nodes += 1;
        let key = *nodes;
        self.network.add_host(key, name);
        let seed = self.executor.rng().u64(..);
        let latency = Duration::from_micros(200)..Duration::from_millis(2);
        Node {
            name: name.to_owned(),
            key,
            executor: Arc::clone(&self.executor),
            network: Arc::clone(&self.network),
            clock: SimClock::new(&self.executor, key),
            device: Arc::new(Mutex::new(Device { latency, is_hung: false })),
            disk: Mutex::new(SimDisk::with_history(seed, self.executor.history.clone())),
            lives: Arc::default(),
            is_up: Mutex::new(false),
        }
    }

    /// Runs all nodes until `scenario` has ended, on this thread. Panics where that can never be.
    pub fn run<T>(&self, scenario: impl Future<Output = T>) -> T {
        self.executor.run(scenario)
    }

    /// What happened so far.
    pub fn history(&self) -> History {
        self.executor.history.clone()
    }

    /// Virtual time since the world began.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.executor.now())
    }

    /// A number below `bound`, for what the scenario chooses.
    pub fn below(&self, bound: u64) -> u64 {
        self.executor.rng().u64(..bound)
    }

    /// Holds back what goes from one node to the other, not what comes back.
    pub fn cut(&self, from: &Node, to: &Node) {
        self.note("cut", from.key, to.key);
        self.network.set_cut(from.key, to.key, true);
    }

    /// Ends that.
    pub fn mend(&self, from: &Node, to: &Node) {
        self.note("mend", from.key, to.key);
        self.network.set_cut(from.key, to.key, false);
    }

    /// Ends all cuts.
    pub fn mend_all(&self) {
        self.note("mend all", 0, 0);
        self.network.mend_all();
    }

    /// Breaks all connections between the two.
    pub fn reset(&self, a: &Node, b: &Node) {
        self.note("reset", a.key, b.key);
        self.network.reset(a.key, b.key);
        self.network.reset(b.key, a.key);
    }

    /// How frames go from one node to the other from now on.
    pub fn set_speed(&self, from: &Node, to: &Node, speed: LinkSpeed) {
        self.network.set_speed(from.key, to.key, speed);
    }

    fn note(&self, what: &str, a: NodeKey, b: NodeKey) {
        self.executor.history.add(what, &[u64::from(a), u64::from(b)], &[]);
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.executor.end();
    }
}

impl Node {
    /// Its name, which is also its host name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Switches the machine on: the world as the node that now starts sees it.
    pub fn boot(&self) -> Env {
        let mut is_up = lock(&self.is_up);
        assert!(!*is_up, "{} is up", self.name);
        *is_up = true;
        let life = self.next_life("boot");
        self.clock.restart();
        self.network.start(self.key, life);
        let exec = SimExec {
            executor: Arc::clone(&self.executor),
            node: self.key,
            life,
            lives: Arc::clone(&self.lives),
            device: Arc::clone(&self.device),
        };
        Env {
            clock: Arc::new(self.clock.clone()),
            exec: Arc::new(exec),
            net: Arc::new(SimNet { network: Arc::clone(&self.network), node: self.key, life }),
            disk: Arc::new(self.disk().clone()),
            rng: Arc::new(SimRng::new(self.executor.rng().u64(..))),
        }
    }

    /// Runs the process of the node that was booted: it dies with it, and does not wait for itself in `Exec::close`.
    pub fn run(&self, process: impl Future<Output = ()> + Send + 'static) {
        self.executor.spawn(self.key, Kind::Process, Box::pin(process));
    }

    /// Ends the process: what it wrote is kept, its connections are closed or reset.
    pub fn kill(&self) {
        self.stop(Power::Killed, SimDisk::kill);
    }

    /// Switches the machine off: what was not synced is lost in part, its peers hear nothing.
    pub fn power_loss(&self) {
        self.stop(Power::Off, SimDisk::power_loss);
    }

    /// Puts an empty disk in. The machine is off.
    pub fn replace_disk(&self) {
        assert!(!*lock(&self.is_up), "{} is up", self.name);
        let mut disk = self.disk();
        *disk = disk.replace();
    }

    /// Stops the node as SIGSTOP does: time goes on, frames come in, nothing runs.
    pub fn pause(&self) {
        self.executor.history.add("pause", &[u64::from(self.key)], &[]);
        self.executor.set_paused(self.key, true);
    }

    /// Lets it run again.
    pub fn resume(&self) {
        self.executor.history.add("resume", &[u64::from(self.key)], &[]);
        self.executor.set_paused(self.key, false);
    }

    /// The disk as it is now: for faults, and to look at it.
    pub fn disk(&self) -> MutexGuard<'_, SimDisk> {
        lock(&self.disk)
    }

    /// How long the device takes for a flush or a read that has to wait.
    pub fn set_disk_latency(&self, latency: Range<Duration>) {
        lock(&self.device).latency = latency;
    }

    /// While it hangs, flushes and reads that have to wait do not end.
    pub fn set_disk_hung(&self, is_hung: bool) {
        lock(&self.device).is_hung = is_hung;
    }

    /// The node's clocks go on by so many seconds in a million of the world's: 1,001,000 is 0.1 % fast.
    pub fn set_clock_rate(&self, seconds_per_million: u64) {
        self.clock.set_rate(seconds_per_million);
    }

    /// Sets the wall clock forward, or back.
    pub fn jump_wall_clock(&self, by_ms: i64) {
        self.clock.jump_wall(by_ms);
    }

    fn stop(&self, power: Power, dying: impl Fn(&SimDisk) -> SimDisk) {
        let mut is_up = lock(&self.is_up);
        assert!(*is_up, "{} is not up", self.name);
        *is_up = false;
        self.next_life("stop");
        self.network.stop(self.key, power);
        let dead = {
            let mut disk = self.disk();
            *disk = dying(&disk);
            disk.clone()
        };
        let before = dead.late_writes();
        self.executor.set_paused(self.key, false);
        self.executor.drop_tasks(self.key, |_| true);
        assert_eq!(dead.late_writes(), before, "a destructor of {} wrote", self.name);
    }

    fn next_life(&self, what: &str) -> u64 {
        let mut lives = lock(&self.lives);
        *lives += 1;
        self.executor.history.add(what, &[u64::from(self.key), *lives], &[]);
        *lives
    }
}
