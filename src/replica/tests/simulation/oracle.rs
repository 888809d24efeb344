//! What must hold, checked after every event. A violation panics.
//!
//! It alone knows the true high watermark: the highest that any leader ever reached, and what lies below it.

use std::collections::BTreeMap;

use model::{LeaderEpoch, NodeId, Offset};
use replica::LogView;

use super::disk::{Batch, Disk};

#[derive(Default)]
pub struct Oracle {
    /// Rules whose breach does no harm by itself are not looked at, so that a scenario shows the harm.
    pub harm_only: bool,
    /// What is committed, in order.
    committed: Vec<Batch>,
    /// What each epoch wrote where.
    written: BTreeMap<(LeaderEpoch, Offset), u64>,
    /// Which life of which node led an epoch.
    leaders: BTreeMap<LeaderEpoch, (NodeId, u64)>,
    pub commits: u64,
    pub acknowledged: u64,
    /// Values of acknowledged batches, which must never be lost.
    acks: BTreeMap<Offset, (LeaderEpoch, u64)>,
    /// The last epoch that was begun by an unclean election.
    floor: LeaderEpoch,
}

impl Oracle {
    pub fn committed_end(&self) -> Offset {
        self.committed.last().map_or(Offset(0), |batch| batch.end)
    }

    fn committed_at(&self, offset: Offset) -> Option<&Batch> {
        let at = self.committed.partition_point(|batch| batch.end <= offset);
        self.committed.get(at).filter(|batch| batch.base <= offset)
    }

    /// A leader wrote this: one epoch gives an offset once.
    pub fn wrote(&mut self, batch: &Batch) {
        let first = *self.written.entry((batch.epoch, batch.base)).or_insert(batch.value);
        assert!(
            self.harm_only || first == batch.value,
            "epoch {} gave offset {} twice",
            batch.epoch,
            batch.base
        );
    }

    /// A node leads this epoch; it may learn so only after the controller has put another in its place.
    pub fn leads(&mut self, epoch: LeaderEpoch, leader: (NodeId, u64), disk: &Disk, is_latest: bool) {
        let first = *self.leaders.entry(epoch).or_insert(leader);
        assert!(self.harm_only || first == leader, "epoch {epoch} is led by {first:?} and {leader:?}");
        if is_latest && epoch >= self.floor {
            let lacks = self.missing(disk);
            assert!(lacks.is_none(), "{leader:?} leads epoch {epoch} without the committed {lacks:?}");
        }
    }

    /// A leader is elected uncleanly. Nothing is promised of what was written before, and leaders before it count no
    /// more.
    pub fn elected_uncleanly(&mut self, epoch: LeaderEpoch) {
        self.floor = epoch;
        let floor = self.floor;
        self.acks.retain(|_, ack| ack.0 >= floor);
    }

    /// What of the latest committed records this disk lacks.
    pub fn missing(&self, disk: &Disk) -> Option<Batch> {
        self.latest().find(|batch| !holds(disk, batch)).copied()
    }

    /// What of them a power cut would take from it.
    pub fn at_risk(&self, disk: &Disk) -> Option<Batch> {
        self.latest().find(|batch| !disk.keeps(batch)).copied()
    }

    // Logs are prefixes of each other up to where they part: the last ones tell.
    fn latest(&self) -> impl Iterator<Item = &Batch> {
        self.committed.iter().rev().take(4).filter(|batch| batch.epoch >= self.floor)
    }

    /// A node's high watermark moved from `from` to `to`, in this leader epoch.
    pub fn exposed(&mut self, disk: &Disk, from: Offset, to: Offset, epoch: LeaderEpoch, leads: bool) {
        assert!(to <= disk.log_end(), "a high watermark of {to} past the log end {}", disk.log_end());
        if epoch < self.floor {
            return;
        }
        for batch in disk.read(from, usize::MAX).iter().take_while(|batch| batch.end <= to) {
            self.expose(*batch, leads);
        }
    }

    fn expose(&mut self, batch: Batch, leads: bool) {
        match self.committed_at(batch.base) {
            Some(known) if *known == batch => {}
            known => {
                // What an unclean election lost makes room for what comes in its place.
                let was_lost =
                    known.is_none_or(|known| known.epoch < self.floor) && self.floor > LeaderEpoch(0);
                let is_next = batch.base == self.committed_end();
                assert!(known.is_none() || was_lost, "two truths are committed: {known:?} and {batch:?}");
                assert!(
                    leads || was_lost,
                    "a follower's high watermark is ahead of every leader's: {batch:?}"
                );
                assert!(is_next || was_lost, "a hole from {} to {batch:?}", self.committed_end());
                self.committed.retain(|known| known.end <= batch.base);
                self.committed.push(batch);
                self.commits += 1;
            }
        }
    }

    /// A client was told that its batch is committed.
    pub fn acknowledged(&mut self, epoch: LeaderEpoch, base: Offset, value: u64) {
        if epoch < self.floor {
            return;
        }
        let known = self.committed_at(base).map(|batch| batch.value);
        assert_eq!(known, Some(value), "an acknowledged batch is not committed");
        self.acks.insert(base, (epoch, value));
        self.acknowledged += 1;
    }

    /// All that was acknowledged is in this log, where it is not deleted.
    pub fn all_acknowledged(&self, disk: &Disk) {
        for (base, (_, value)) in &self.acks {
            let is_there =
                *base < disk.log_start() || disk.at(*base).is_some_and(|batch| batch.value == *value);
            assert!(is_there, "the acknowledged batch at {base} is lost");
        }
    }
}

fn holds(disk: &Disk, batch: &Batch) -> bool {
    disk.log_start() >= batch.end || disk.at(batch.base) == Some(batch)
}
