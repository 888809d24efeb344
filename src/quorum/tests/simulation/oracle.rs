//! What must hold, checked after every event. A violation panics.
//!
//! One leader an epoch; epochs and high watermarks grow; one vote an epoch, also across restarts; what is
//! committed once is the same for everybody, and on the disks of a majority; every elected leader holds all
//! that was committed in the epochs before its own. (Its votes may reach it when a later epoch has begun.)

use std::collections::BTreeMap;
use std::rc::Rc;

use model::{LeaderEpoch, Offset};
use quorum::{ReplicaKey, VoterSet};

use super::disk::{Disk, Entry};

#[derive(Default)]
pub struct Oracle {
    /// Rules whose breach does no harm by itself are not looked at, so that a scenario shows the harm.
    pub harm_only: bool,
    committed: Vec<Rc<Entry>>,
    /// The epoch of the leader that committed each.
    committed_in: Vec<LeaderEpoch>,
    /// A hash of all committed batches up to each.
    states: Vec<u64>,
    leaders: BTreeMap<LeaderEpoch, ReplicaKey>,
    votes: BTreeMap<(LeaderEpoch, ReplicaKey), ReplicaKey>,
}

impl Oracle {
    pub fn committed_end(&self) -> Offset {
        self.committed.last().map_or(Offset(0), |entry| entry.end)
    }

    pub fn commits(&self) -> u64 {
        self.committed.len() as u64
    }

    /// The hash of everything committed before `end`.
    pub fn state_before(&self, end: Offset) -> u64 {
        let at = self.committed.partition_point(|entry| entry.end < end);
        if end == Offset(0) { 0 } else { self.states[at] }
    }

    pub fn last_committed(&self) -> Option<&Entry> {
        self.committed.last().map(Rc::as_ref)
    }

    pub fn voted(&mut self, epoch: LeaderEpoch, voter: ReplicaKey, candidate: ReplicaKey) {
        let first = *self.votes.entry((epoch, voter)).or_insert(candidate);
        assert_eq!(first, candidate, "{voter:?} voted twice in epoch {epoch}");
    }

    pub fn elected(&mut self, epoch: LeaderEpoch, leader: ReplicaKey, disk: &Disk, voters: &VoterSet) {
        let voted = |key: &ReplicaKey| self.votes.get(&(epoch, *key)) == Some(&leader);
        let votes = voters.iter().filter(|voter| voted(&voter.key)).count();
        assert!(
            votes >= voters.majority(),
            "{leader:?} leads epoch {epoch} with {votes} votes of {}",
            voters.len()
        );
        let first = *self.leaders.entry(epoch).or_insert(leader);
        assert_eq!(first, leader, "two leaders in epoch {epoch}");
        let before = self.committed_in.partition_point(|committed_in| *committed_in < epoch);
        if let Some(last) = self.committed[..before].last() {
            assert!(
                disk.start() >= last.end || disk.before(last.end) == Some(last),
                "{leader:?} leads epoch {epoch} without the committed {last:?}"
            );
        }
    }

    /// A node's high watermark moved over these entries.
    pub fn exposed<'a>(
        &mut self,
        entries: &[Rc<Entry>],
        leads: Option<LeaderEpoch>,
        disks: impl Fn() -> Vec<(ReplicaKey, &'a Disk)>,
        voters: &VoterSet,
    ) {
        for entry in entries {
            if entry.base < self.committed_end() {
                let at = self.committed.partition_point(|known| known.base < entry.base);
                assert_eq!(self.committed[at], *entry, "two truths are committed");
                continue;
            }
            let epoch = leads.unwrap_or_else(|| {
                panic!("a follower's high watermark is ahead of every leader's: {entry:?}")
            });
            assert_eq!(entry.base, self.committed_end(), "a commit leaves a hole");
            let disks = disks();
            // A voter whose disk was lost since had it, as far as anybody can tell.
            let held = |key: &ReplicaKey| disks.iter().all(|(at, disk)| at != key || disk.keeps(entry));
            let holders = voters.iter().filter(|voter| held(&voter.key)).count();
            assert!(
                holders >= voters.majority(),
                "{entry:?} is committed and on {holders} disks of {}",
                voters.len()
            );
            self.states.push(fold(self.states.last().copied().unwrap_or(0), entry));
            self.committed.push(Rc::clone(entry));
            self.committed_in.push(epoch);
        }
    }
}

fn fold(state: u64, entry: &Entry) -> u64 {
    let mixed = state ^ entry.value.rotate_left(17) ^ (entry.epoch.0 as u64) << 40 ^ entry.base.0 as u64;
    mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}
