//! A history out of a seed: clients, faults and changes at random; then all is healed, and the partition must come to
//! rest, whole.

use std::collections::BTreeMap;
use std::time::Duration;

use fastrand::Rng;
use model::{Instant, NodeId};
use replica::LogView;

use super::Mutant;
use super::network::{CONTROLLER, Network};
use super::world::World;

/// What a history came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    pub events: u64,
    pub commits: u64,
    pub acknowledged: u64,
    pub faults: BTreeMap<&'static str, u64>,
    pub hash: u64,
}

/// How long a healed partition may take to be whole, and then must stay as it is.
const REST: Duration = Duration::from_mins(1);
const STABLE: Duration = Duration::from_secs(5);

/// Runs a seed for at least `events` events.
///
/// # Panics
/// Where something does not hold.
pub fn run(seed: u64, events: u64, mutant: Option<Mutant>) -> Summary {
    let mut rng = Rng::with_seed(seed ^ 0x7265_706c_6963_6173);
    let nodes = rng.usize(3..=5);
    let mut world = World::new(seed, nodes, rng.usize(1..=3), mutant);
    world.network = Network::random(&mut rng);
    world.controller.min_isr = rng.usize(1..=3);
    world.controller.unclean = rng.u8(0..4) == 0;
    let mut nemesis = Nemesis::new(rng, world.now);
    while world.events < events {
        world.step();
        nemesis.act(&mut world);
    }
    heal(&mut world);
    come_to_rest(&mut world);
    Summary {
        events: world.events,
        commits: world.oracle.commits,
        acknowledged: world.oracle.acknowledged,
        hash: world.hash(),
        faults: world.faults,
    }
}

struct Nemesis {
    rng: Rng,
    append_at: Instant,
    append_every_micros: u64,
    harm_at: Instant,
    harm_every_micros: u64,
}

impl Nemesis {
    fn new(mut rng: Rng, now: Instant) -> Self {
        let append_every_micros = rng.u64(2_000..40_000);
        let harm_every_micros = rng.u64(30_000..1_000_000);
        Self { rng, append_at: now, append_every_micros, harm_at: now, harm_every_micros }
    }

    fn after(&mut self, now: Instant, micros: u64) -> Instant {
        now.plus(Duration::from_micros(self.rng.u64(0..2 * micros)))
    }

    fn act(&mut self, world: &mut World) {
        if world.now >= self.append_at {
            self.append_at = self.after(world.now, self.append_every_micros);
            let at = self.rng.usize(0..world.nodes.len());
            world.append(at, self.rng.bool());
        }
        if world.now >= self.harm_at {
            self.harm_at = self.after(world.now, self.harm_every_micros);
            let fault = self.harm(world);
            *world.faults.entry(fault).or_default() += 1;
        }
    }

    fn harm(&mut self, world: &mut World) -> &'static str {
        let at = self.rng.usize(0..world.nodes.len());
        let is_up = world.is_up(at) && !world.nodes[at].paused;
        match self.rng.u32(0..100) {
            0..8 if is_up => {
                world.kill(at);
                "kill"
            }
            8..16 if is_up => {
                world.lose_power(at);
                "power loss"
            }
            0..16 if !world.is_up(at) => {
                world.start(at);
                "start"
            }
            16..28 => {
                start_all(world);
                "start of all"
            }
            28..31 => self.power_cut(world),
            31..36 if is_up => {
                world.stop(at);
                "controlled shutdown"
            }
            36..50 => self.cut(world, at),
            50..62 => {
                world.network.heal();
                world.resume();
                "heal"
            }
            62..65 => {
                world.nodes[at].paused = true;
                "pause"
            }
            65..72 => self.change_flushes(world, at),
            72..77 => self.change_lag(world, at),
            77..80 => {
                world.nodes[at].ahead += Duration::from_millis(self.rng.u64(100..5_000));
                "clock jump"
            }
            80..86 => {
                world.control(super::controller::Controller::move_leader);
                "leader moved"
            }
            86..90 => {
                let min_isr = self.rng.usize(1..=3);
                world.control(|controller| controller.set_min_isr(min_isr));
                "min ISR"
            }
            90..94 => self.reassign(world),
            94..97 => self.delete_records(world),
            _ => replace_disk(world, at),
        }
    }

    fn power_cut(&mut self, world: &mut World) -> &'static str {
        for at in 0..world.nodes.len() {
            if world.is_up(at) {
                world.lose_power(at);
            }
        }
        for at in 0..world.nodes.len() {
            if self.rng.u8(0..10) < 7 {
                world.start(at);
            }
        }
        "power loss of all"
    }

    fn cut(&mut self, world: &mut World, at: usize) -> &'static str {
        let how = self.rng.u8(0..4);
        for other in (0..world.nodes.len()).chain([CONTROLLER]) {
            let is_hit = how == 3 || self.rng.u8(0..10) < 4;
            if is_hit && how != 1 {
                world.network.cut(at, other);
            }
            if is_hit && how != 2 {
                world.network.cut(other, at);
            }
        }
        "cut"
    }

    fn change_flushes(&mut self, world: &mut World, at: usize) -> &'static str {
        let most = [1_000, 5_000, 50_000, 1_000_000][self.rng.usize(0..4)];
        world.nodes[at].flush_micros = (100, most);
        "slow disk"
    }

    fn change_lag(&mut self, world: &mut World, at: usize) -> &'static str {
        world.nodes[at].metadata_lag = [0, 10_000, 300_000, 3_000_000][self.rng.usize(0..4)];
        "late metadata"
    }

    fn reassign(&mut self, world: &mut World) -> &'static str {
        let mut ids: Vec<NodeId> = world.nodes.iter().map(|node| node.id).collect();
        self.rng.shuffle(&mut ids);
        ids.truncate(self.rng.usize(1..=3));
        world.control(|controller| controller.reassign(ids));
        "reassignment"
    }

    // As DeleteRecords and retention do: below the high watermark.
    fn delete_records(&mut self, world: &mut World) -> &'static str {
        if let Some(at) = world.leader().filter(|at| world.leads(*at)) {
            let (start, end) = (world.nodes[at].disk.log_start(), world.watermark(at));
            if start < end {
                world.delete_records(at, model::Offset(self.rng.i64(start.0..=end.0)));
            }
        }
        "records deleted"
    }
}

// A disk is lost for good only while somebody else surely has all, and the controller hears of it before that one may
// die: min ISR 1 promises no more.
fn replace_disk(world: &mut World, at: usize) -> &'static str {
    let id = world.nodes[at].id;
    let has_other = world.controller.isr.iter().any(|member| *member != id);
    if !has_other || world.network.is_cut(at, CONTROLLER) || world.nodes[at].paused {
        return "nothing";
    }
    world.replace_disk(at);
    world.start(at);
    world.keep_registered(at);
    world.publish();
    "disk replaced"
}

fn start_all(world: &mut World) {
    for at in 0..world.nodes.len() {
        if !world.is_up(at) {
            world.start(at);
        }
    }
}

/// Ends all faults.
pub fn heal(world: &mut World) {
    world.network = Network::calm();
    world.resume();
    for at in 0..world.nodes.len() {
        world.nodes[at].flush_micros = (200, 2_000);
        world.nodes[at].metadata_lag = 0;
        world.release_flushes(at);
    }
    start_all(world);
}

/// A healed partition has a leader, all replicas in sync with all records, ends its reassignment, commits what it is
/// given, and then stays as it is.
///
/// # Panics
/// Where it does not.
pub fn come_to_rest(world: &mut World) {
    let is_whole =
        |world: &World| world.is_quiet() && world.controller.replicas.len() == world.controller.target.len();
    let is_at_rest = world.run_until(REST, is_whole);
    assert!(is_at_rest, "not whole after all is healed: {}", world.describe());
    let min_isr = world.controller.replicas.len();
    world.control(|controller| controller.set_min_isr(min_isr));
    let leader = world.leader().expect("it is whole");
    assert!(world.append(leader, false), "the leader takes nothing: {}", world.describe());
    assert!(world.run_until(REST, is_whole), "not committed everywhere: {}", world.describe());
    let epoch = world.epoch();
    world.run_for(STABLE);
    assert!(world.epoch() == epoch && world.is_quiet(), "it does not rest: {}", world.describe());
    compare(world, leader);
}

// Byte for byte the same, and all that was acknowledged is there.
fn compare(world: &World, leader: usize) {
    let disk = &world.nodes[leader].disk;
    for id in &world.controller.replicas {
        let other = &world.nodes[world.index(*id)].disk;
        let from = disk.log_start().max(other.log_start());
        assert_eq!(disk.read(from, usize::MAX), other.read(from, usize::MAX), "replicas differ");
    }
    world.oracle.all_acknowledged(disk);
}
