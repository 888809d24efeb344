//! What must hold, checked after every event. A violation panics.
//!
//! It alone knows the true high watermark: the highest that any leader ever reached, and what lies below it. After an
//! unclean election nobody knows: then only replicas that are the same, and that come to rest, are asked for.

use std::collections::BTreeMap;

use model::{LeaderEpoch, NodeId, Offset};
use replica::LogView;

use super::disk::{Batch, Disk};

pub struct Oracle {
    /// No leader was elected uncleanly.
    pub knows_all: bool,
    /// What is committed, in order.
    committed: Vec<Batch>,
    /// What each epoch wrote where.
    written: BTreeMap<(LeaderEpoch, Offset), u64>,
    /// Which life of which node led an epoch.
    leaders: BTreeMap<LeaderEpoch, (NodeId, u64)>,
    /// Acknowledged batches, which must never be lost.
    acks: BTreeMap<Offset, u64>,
    pub commits: u64,
    pub acknowledged: u64,
}

impl Default for Oracle {
    fn default() -> Self {
        Self {
            knows_all: true,
            committed: Vec::new(),
            written: BTreeMap::new(),
            leaders: BTreeMap::new(),
            acks: BTreeMap::new(),
            commits: 0,
            acknowledged: 0,
        }
    }
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
        assert!(first == batch.value, "epoch {} gave offset {} twice", batch.epoch, batch.base);
    }

    /// A node leads this epoch; it may learn so only after the controller has put another in its place.
    pub fn leads(&mut self, epoch: LeaderEpoch, leader: (NodeId, u64), disk: &Disk, is_latest: bool) {
        let first = *self.leaders.entry(epoch).or_insert(leader);
        assert!(first == leader, "epoch {epoch} is led by {first:?} and {leader:?}");
        let lacks = self.latest().find(|batch| !holds(disk, batch));
        assert!(
            !is_latest || lacks.is_none(),
            "{leader:?} leads epoch {epoch} without the committed {lacks:?}"
        );
    }

    /// What of the latest committed records a power cut would leave out on this disk.
    pub fn at_risk(&self, disk: &Disk) -> Option<Batch> {
        self.latest().find(|batch| !disk.keeps(batch)).copied()
    }

    // Logs are prefixes of each other up to where they part: the last ones tell.
    fn latest(&self) -> impl Iterator<Item = &Batch> {
        self.committed.iter().rev().take(4).filter(|_| self.knows_all)
    }

    /// A node's high watermark moves from `from` to `to`.
    pub fn exposed(&mut self, disk: &Disk, from: Offset, to: Offset, leads: bool) {
        assert!(to <= disk.log_end(), "a high watermark of {to} past the log end {}", disk.log_end());
        let from = from.max(disk.log_start());
        for batch in disk.read(from, usize::MAX).iter().take_while(|batch| batch.end <= to) {
            if self.knows_all {
                self.expose(*batch, leads);
            } else {
                self.commits += 1;
            }
        }
    }

    fn expose(&mut self, batch: Batch, leads: bool) {
        if let Some(known) = self.committed_at(batch.base) {
            assert_eq!(*known, batch, "two truths are committed");
            return;
        }
        assert!(leads, "a follower's high watermark is ahead of every leader's: {batch:?}");
        assert_eq!(batch.base, self.committed_end(), "a commit leaves a hole");
        self.committed.push(batch);
        self.commits += 1;
    }

    /// A client was told that its batch is committed.
    pub fn acknowledged(&mut self, base: Offset, value: u64) {
        self.acknowledged += 1;
        if self.knows_all {
            let known = self.committed_at(base).map(|batch| batch.value);
            assert_eq!(known, Some(value), "an acknowledged batch is not committed");
            self.acks.insert(base, value);
        }
    }

    /// All that was acknowledged is in this log, where it is not deleted.
    pub fn all_acknowledged(&self, disk: &Disk) {
        for (base, value) in self.acks.iter().filter(|_| self.knows_all) {
            let is_there =
                *base < disk.log_start() || disk.at(*base).is_some_and(|batch| batch.value == *value);
            assert!(is_there, "the acknowledged batch at {base} is lost");
        }
    }
}

fn holds(disk: &Disk, batch: &Batch) -> bool {
    disk.log_start() >= batch.end || disk.at(batch.base) == Some(batch)
}
