//! A history out of a seed: clients and faults at random, then all is healed, and the cluster must become whole.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use fastrand::Rng;
use model::Instant;
use replica::LogView;

use super::cluster::{Cluster, TURN};
use super::{quorum_world, replica_world};

/// What a history came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Events of all simulators.
    pub events: u64,
    /// Batches that became committed, of records and of metadata.
    pub commits: u64,
    /// Batches that a client was told of.
    pub acknowledged: u64,
    /// How often the quorum elected a leader.
    pub elections: u64,
    /// What struck how often.
    pub faults: BTreeMap<&'static str, u64>,
    /// The hash of all events.
    pub hash: u64,
}

impl Summary {
    /// One more seed.
    pub fn add(&mut self, other: Self) {
        self.events += other.events;
        self.commits += other.commits;
        self.acknowledged += other.acknowledged;
        self.elections += other.elections;
        self.hash = self.hash.rotate_left(1) ^ other.hash;
        for (fault, times) in other.faults {
            *self.faults.entry(fault).or_default() += times;
        }
    }
}

/// How long a healed cluster may take to become whole.
const REST: Duration = Duration::from_mins(1);

/// Runs a seed for so many virtual seconds under faults.
///
/// # Errors
/// What does not hold.
pub fn simulate_cluster(seed: u64, seconds: u64) -> Result<Summary, String> {
    catch_unwind(AssertUnwindSafe(|| run(seed, seconds))).map_err(|panic| match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => {
            panic.downcast::<&str>().map_or_else(|_| "a panic".to_owned(), |text| (*text).to_owned())
        }
    })
}

fn run(seed: u64, seconds: u64) -> Summary {
    let mut rng = Rng::with_seed(seed ^ 0x636c_7573_7465_7273);
    let nodes = rng.usize(3..=5);
    let mut cluster = Cluster::new(seed, nodes, 3);
    begin(&mut cluster);
    trouble(&mut cluster, &mut rng);
    let end = cluster.now.plus(Duration::from_secs(seconds));
    let mut nemesis = Nemesis::new(rng, cluster.now);
    while cluster.now < end {
        cluster.turn();
        nemesis.act(&mut cluster);
    }
    heal(&mut cluster);
    come_to_rest(&mut cluster);
    summary(&cluster, nemesis.faults)
}

fn run_until(cluster: &mut Cluster, most: Duration, holds: impl Fn(&Cluster) -> bool) -> bool {
    let end = cluster.now.plus(most);
    while !holds(cluster) {
        if cluster.now > end {
            return false;
        }
        cluster.turn();
    }
    true
}

// A quorum, brokers, and the topic.
fn begin(cluster: &mut Cluster) {
    for _ in 0..10_000 {
        cluster.turn();
        cluster.create_topic();
        if cluster.has_topic() {
            return;
        }
    }
    panic!("the topic was not created: {}", cluster.describe());
}

fn trouble(cluster: &mut Cluster, rng: &mut Rng) {
    cluster.delay_micros = (rng.u64(100..1_000), rng.u64(1_000..30_000));
    cluster.lost_per_mille = rng.u32(0..60);
    let network = &mut cluster.quorum.network;
    (network.lost_per_mille, network.doubled_per_mille) = (rng.u64(0..60), rng.u64(0..60));
    (network.delay_micros, network.slow_per_mille) = (cluster.delay_micros, rng.u64(0..30));
    for world in &mut cluster.partitions {
        world.network = replica_world::network::Network::random(rng);
    }
}

struct Nemesis {
    rng: Rng,
    append_at: Instant,
    append_every_micros: u64,
    harm_at: Instant,
    harm_every_micros: u64,
    faults: BTreeMap<&'static str, u64>,
}

impl Nemesis {
    fn new(mut rng: Rng, now: Instant) -> Self {
        let append_every_micros = rng.u64(2_000..40_000);
        let harm_every_micros = rng.u64(50_000..1_500_000);
        let faults = BTreeMap::new();
        Self { rng, append_at: now, append_every_micros, harm_at: now, harm_every_micros, faults }
    }

    fn after(&mut self, now: Instant, micros: u64) -> Instant {
        now.plus(Duration::from_micros(self.rng.u64(0..2 * micros)))
    }

    fn act(&mut self, cluster: &mut Cluster) {
        if cluster.now >= self.append_at {
            self.append_at = self.after(cluster.now, self.append_every_micros);
            let (at, acks_all) = (self.rng.usize(0..cluster.nodes()), self.rng.bool());
            let partition = self.rng.usize(0..cluster.partitions.len());
            cluster.partitions[partition].append(at, acks_all);
        }
        if cluster.now >= self.harm_at {
            self.harm_at = self.after(cluster.now, self.harm_every_micros);
            if let Some(fault) = self.harm(cluster) {
                *self.faults.entry(fault).or_default() += 1;
            }
        }
    }

    fn harm(&mut self, cluster: &mut Cluster) -> Option<&'static str> {
        let at = self.rng.usize(0..cluster.nodes());
        match self.rng.u32(0..100) {
            0..16 if cluster.is_up(at) => return Some(self.kill(cluster, at)),
            0..16 => cluster.start(at),
            16..28 => {
                start_all(cluster);
                return Some("start of all");
            }
            28..31 => return Some(self.cut_power(cluster)),
            31..47 => return Some(self.cut(cluster, at)),
            47..63 => {
                cluster.heal();
                cluster.resume();
                return Some("heal");
            }
            63..67 => {
                cluster.pause(at);
                return Some("pause");
            }
            67..77 => return Some(self.slow_down(cluster, at)),
            77..81 => {
                let ahead = Duration::from_millis(self.rng.u64(100..5_000));
                cluster.partitions.iter_mut().for_each(|world| world.nodes[at].ahead += ahead);
                return Some("clock jump");
            }
            81..87 => {
                cluster.elect_preferred();
                return Some("preferred election");
            }
            87..93 => {
                cluster.set_min_isr(self.rng.usize(1..=3));
                return Some("min ISR");
            }
            _ => {
                cluster.quorum.resign(cluster.controller()?);
                return Some("controller resigns");
            }
        }
        Some("start")
    }

    fn kill(&mut self, cluster: &mut Cluster, at: usize) -> &'static str {
        let power = self.rng.bool();
        cluster.kill(at, power);
        if power { "power loss" } else { "kill" }
    }

    fn cut_power(&mut self, cluster: &mut Cluster) -> &'static str {
        for at in (0..cluster.nodes()).filter(|at| cluster.is_up(*at)).collect::<Vec<_>>() {
            cluster.kill(at, true);
        }
        for at in 0..cluster.nodes() {
            if self.rng.u8(0..10) < 7 {
                cluster.start(at);
            }
        }
        "power loss of all"
    }

    fn cut(&mut self, cluster: &mut Cluster, at: usize) -> &'static str {
        let how = self.rng.u8(0..4);
        for other in (0..cluster.nodes()).filter(|other| *other != at) {
            let is_hit = how == 3 || self.rng.u8(0..10) < 4;
            if is_hit && how != 1 {
                cluster.cut(at, other);
            }
            if is_hit && how != 2 {
                cluster.cut(other, at);
            }
        }
        "cut"
    }

    fn slow_down(&mut self, cluster: &mut Cluster, at: usize) -> &'static str {
        let most = [1_000, 5_000, 50_000, 1_000_000][self.rng.usize(0..4)];
        cluster.quorum.nodes[at].flush_micros = (100, most);
        cluster.partitions.iter_mut().for_each(|world| world.nodes[at].flush_micros = (100, most));
        "slow disk"
    }
}

fn start_all(cluster: &mut Cluster) {
    for at in 0..cluster.nodes() {
        if !cluster.is_up(at) {
            cluster.start(at);
        }
    }
}

// Ends all faults.
fn heal(cluster: &mut Cluster) {
    cluster.heal();
    cluster.resume();
    cluster.lost_per_mille = 0;
    cluster.delay_micros = (500, 2_000);
    cluster.quorum.network = quorum_world::network::Network::calm();
    for at in 0..cluster.nodes() {
        cluster.quorum.nodes[at].flush_micros = (200, 2_000);
    }
    for world in &mut cluster.partitions {
        world.network = replica_world::network::Network::calm();
        world.nodes.iter_mut().for_each(|node| node.flush_micros = (200, 2_000));
    }
    start_all(cluster);
}

fn is_whole(cluster: &Cluster) -> bool {
    let is_whole = |world: &replica_world::world::World| {
        let replicas = world.controller.replicas.len();
        world.is_quiet() && world.leader().is_some_and(|leader| world.knows_isr(leader, replicas))
    };
    cluster.controller().is_some() && cluster.partitions.iter().all(is_whole)
}

// A healed cluster has a controller, and all replicas of all partitions in sync with all records; it commits what it is
// given, and all replicas are the same.
fn come_to_rest(cluster: &mut Cluster) {
    assert!(run_until(cluster, REST, is_whole), "not whole after all is healed: {}", cluster.describe());
    for world in &mut cluster.partitions {
        let leader = world.leader().expect("it is whole");
        assert!(world.append(leader, true), "a leader takes nothing");
    }
    cluster.turn();
    assert!(run_until(cluster, REST, is_whole), "not committed everywhere: {}", cluster.describe());
    cluster.partitions.iter().for_each(compare);
}

fn compare(world: &replica_world::world::World) {
    let leader = &world.nodes[world.leader().expect("it is whole")].disk;
    for id in &world.controller.replicas {
        let other = &world.nodes[world.index(*id)].disk;
        let from = leader.log_start().max(other.log_start());
        assert_eq!(leader.read(from, usize::MAX), other.read(from, usize::MAX), "replicas differ");
    }
    world.oracle.all_acknowledged(leader);
}

fn summary(cluster: &Cluster, faults: BTreeMap<&'static str, u64>) -> Summary {
    let mut hash = DefaultHasher::new();
    cluster.quorum.hash().hash(&mut hash);
    cluster.partitions.iter().for_each(|world| world.hash().hash(&mut hash));
    let sum = |of: fn(&replica_world::world::World) -> u64| cluster.partitions.iter().map(of).sum::<u64>();
    let turns = cluster.now.0 / TURN.as_nanos() as u64;
    Summary {
        events: turns + cluster.quorum.events + sum(|world| world.events),
        commits: cluster.quorum.oracle.commits() + sum(|world| world.oracle.commits),
        acknowledged: sum(|world| world.oracle.acknowledged),
        elections: cluster.quorum.counts.elections,
        faults,
        hash: hash.finish(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_keeps_every_rule_under_faults() {
        for seed in 0..4 {
            if let Err(violation) = simulate_cluster(seed, 10) {
                panic!("seed {seed}: {violation}");
            }
        }
    }

    #[test]
    fn one_seed_is_one_history() {
        assert_eq!(simulate_cluster(7, 5), simulate_cluster(7, 5));
    }
}
