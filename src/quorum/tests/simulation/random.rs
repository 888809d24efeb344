//! A history out of a seed: clients, faults, snapshots and changes of the voters at random, then all is
//! healed, and the quorum must come to rest and commit.

use std::time::Duration;

use model::{Instant, Offset};
use quorum::{Mutant, ReplicaKey, RoleName};

use super::chance::Chance;
use super::network::Network;
use super::world::{Counts, World};

/// What a history came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    pub events: u64,
    pub commits: u64,
    pub counts: Counts,
    pub hash: u64,
}

/// How long a healed quorum may take to elect, to commit, and then must stay as it is.
const REST: Duration = Duration::from_secs(20);
const STABLE: Duration = Duration::from_secs(5);

/// Runs a seed for at least `events` events.
///
/// # Panics
/// Where something does not hold.
pub fn run(seed: u64, events: u64, mutant: Option<Mutant>) -> Summary {
    let mut chance = Chance::new(seed);
    let voters = [1, 3, 3, 3, 5][chance.below(5) as usize];
    let observers = chance.below(3) as usize;
    let mut world = World::new(seed, voters, observers, mutant);
    world.network = Network::random(&mut chance);
    let mut nemesis = Nemesis::new(chance, world.now);
    while world.events < events {
        world.step();
        nemesis.act(&mut world);
    }
    heal(&mut world);
    come_to_rest(&mut world);
    Summary {
        events: world.events,
        commits: world.oracle.commits(),
        counts: world.counts,
        hash: world.hash(),
    }
}

struct Nemesis {
    chance: Chance,
    append_at: Instant,
    append_every_micros: u64,
    harm_at: Instant,
    harm_every_micros: u64,
}

impl Nemesis {
    fn new(mut chance: Chance, now: Instant) -> Self {
        let append_every_micros = chance.between(2_000, 40_000);
        let harm_every_micros = chance.between(50_000, 1_500_000);
        Self { chance, append_at: now, append_every_micros, harm_at: now, harm_every_micros }
    }

    fn after(&mut self, now: Instant, micros: u64) -> Instant {
        now.plus(Duration::from_micros(self.chance.below(2 * micros)))
    }

    fn act(&mut self, world: &mut World) {
        if world.now >= self.append_at {
            self.append_at = self.after(world.now, self.append_every_micros);
            let leaders = world.active_leaders();
            if let Some(leader) = self.chance.pick(&leaders) {
                world.append(leader, self.chance.between(1, 6) as u32);
            }
        }
        if world.now >= self.harm_at {
            self.harm_at = self.after(world.now, self.harm_every_micros);
            self.harm(world);
        }
    }

    fn harm(&mut self, world: &mut World) {
        let at = self.chance.below(world.nodes.len() as u64) as usize;
        match self.chance.below(100) {
            0..16 if world.is_up(at) => world.crash(at),
            0..16 => world.start(at),
            16..24 => start_all(world),
            24..38 => self.cut(world, at),
            38..50 => world.network.heal_one(&mut self.chance),
            50..58 => go_on(world),
            58..61 => self.power_cut(world),
            61..70 => self.change_flushes(world, at),
            70..80 => world.snapshot(at),
            80..86 => world.clean(at),
            86..88 => self.resign(world),
            88..91 => world.nodes[at].paused = true,
            91..97 => self.change_voters(world),
            _ => replace_disk(world, at),
        }
    }

    fn cut(&mut self, world: &mut World, at: usize) {
        let how = self.chance.below(4);
        for other in 0..world.nodes.len() {
            let hit = how == 3 || self.chance.per_mille(400);
            if hit && how != 1 {
                world.network.cut(at, other);
            }
            if hit && how != 2 {
                world.network.cut(other, at);
            }
        }
    }

    // The whole cluster loses power; some of it comes back at once.
    fn power_cut(&mut self, world: &mut World) {
        for at in 0..world.nodes.len() {
            if world.is_up(at) {
                world.crash(at);
            }
        }
        for at in 0..world.nodes.len() {
            if self.chance.per_mille(700) {
                world.start(at);
            }
        }
    }

    fn change_flushes(&mut self, world: &mut World, at: usize) {
        let most = [1_000, 5_000, 50_000, 1_000_000][self.chance.below(4) as usize];
        world.nodes[at].flush_micros = (100, most);
    }

    fn resign(&mut self, world: &mut World) {
        if let Some(leader) = self.chance.pick(&world.active_leaders()) {
            world.resign(leader);
        }
    }

    fn change_voters(&mut self, world: &mut World) {
        let Some(leader) = self.chance.pick(&world.active_leaders()) else { return };
        let keys: Vec<_> = world.quorum(leader).voters().current().iter().map(|voter| voter.key).collect();
        // While a voter's disk is lost, taking another away could leave too few for ever.
        if let Some(lost) = keys.iter().find(|key| world.nodes.iter().all(|node| node.key != **key)) {
            return world.remove_voter(leader, *lost);
        }
        let at = self.chance.below(world.nodes.len() as u64) as usize;
        let key = world.nodes[at].key;
        if !keys.contains(&key) {
            world.add_voter(leader, at);
        } else if keys.len() > 1 {
            world.remove_voter(leader, key);
        }
    }
}

fn go_on(world: &mut World) {
    world.network.heal();
    world.resume();
}

fn start_all(world: &mut World) {
    for at in 0..world.nodes.len() {
        if !world.is_up(at) {
            world.start(at);
        }
    }
}

// A disk is lost for good only while all the others of a settled set of voters have theirs.
fn replace_disk(world: &mut World, at: usize) {
    let Some(leader) = world.active_leaders().first().copied() else { return };
    let quorum = world.quorum(leader);
    let (voters, settled) = (quorum.voters().current(), quorum.voters().current_offset());
    let is_settled = settled.is_none_or(|offset| offset < quorum.high_watermark());
    let is_latest = world.oracle.committed_end() == quorum.high_watermark();
    let intact = |key: &ReplicaKey| world.nodes.iter().any(|node| node.key == *key);
    let all_intact = voters.iter().all(|voter| intact(&voter.key));
    let spares = voters.len() >= 3 || !voters.contains(&world.nodes[at].key);
    if is_settled && is_latest && all_intact && spares {
        world.replace_disk(at);
    }
}

/// Ends all faults.
pub fn heal(world: &mut World) {
    world.network = Network::calm();
    world.resume();
    for at in 0..world.nodes.len() {
        world.nodes[at].flush_micros = (200, 2_000);
        world.release_flushes(at);
    }
    start_all(world);
}

/// A healed quorum elects a leader, commits what it is given, on every node, and then leaves all as it is.
///
/// # Panics
/// Where it does not.
pub fn come_to_rest(world: &mut World) {
    // A leader that is on its way out may still take a record and lose it: the second one may not.
    assert!(commits_one(world) || commits_one(world), "not committed everywhere: {}", world.describe());
    let leader = settled_leader(world).expect("it has just committed");
    let epoch = world.quorum(leader).epoch();
    world.run_for(STABLE);
    for node in &world.nodes {
        let quorum = &node.process.as_ref().expect("all run").quorum;
        assert_eq!(quorum.epoch(), epoch, "a healed quorum changes its leader: {}", world.describe());
    }
}

fn commits_one(world: &mut World) -> bool {
    let leads = |world: &World| settled_leader(world).is_some();
    assert!(world.run_until(REST, leads), "no leader after all is healed: {}", world.describe());
    let leader = settled_leader(world).expect("it was there");
    assert!(world.append(leader, 1), "the leader takes nothing");
    let end = world.quorum(leader).log().end();
    world.run_until(REST, |world| world.nodes.iter().all(|node| knows(node, end)))
}

fn knows(node: &super::node::Node, end: Offset) -> bool {
    node.process.as_ref().is_some_and(|process| process.high_watermark >= end)
}

// The active leader of the latest epoch, which everybody follows.
fn settled_leader(world: &World) -> Option<usize> {
    let epoch = (0..world.nodes.len()).map(|at| world.quorum(at).epoch()).max()?;
    let leader = world.active_leaders().into_iter().find(|at| world.quorum(*at).epoch() == epoch)?;
    let follows = |at: usize| {
        at == leader || (world.role(at) == Some(RoleName::Follower) && world.quorum(at).epoch() == epoch)
    };
    (0..world.nodes.len()).all(follows).then_some(leader)
}
