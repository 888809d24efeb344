//! A node's disk: what was written, and what of it a power cut leaves.
//!
//! `quorum-state`, snapshots and the empty log after a snapshot are durable when the action is done, as the
//! driver makes them. Log bytes are durable when a flush that began after they were written is done; of the
//! rest a power cut leaves any prefix, or what a cut-off tail had been.

use std::collections::BTreeMap;
use std::rc::Rc;

use model::{LeaderEpoch, Offset};
use quorum::{Batch, Boot, EpochStart, HardState, LogView, SnapshotId, VoterHistory, VoterSet};

use super::chance::Chance;

/// A record batch on disk.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    pub base: Offset,
    pub end: Offset,
    pub epoch: LeaderEpoch,
    /// What stands in it; unique.
    pub value: u64,
    pub voters: Vec<(Offset, VoterSet)>,
}

impl Entry {
    pub fn batch(&self) -> Batch {
        Batch { base_offset: self.base, end: self.end, epoch: self.epoch, voters: self.voters.clone() }
    }
}

/// A snapshot file. Two nodes' files of one id differ in `size`.
#[derive(Debug, PartialEq, Eq)]
pub struct SnapshotFile {
    pub id: SnapshotId,
    pub size: u64,
    pub voters: VoterSet,
    /// A hash of all committed batches before its end.
    pub state: u64,
}

/// A flush that runs.
#[derive(Clone, Copy, Debug)]
pub struct Flush {
    pub end: Offset,
    pub truncations: u64,
    /// Up to where the log still is what it was when the flush began.
    unchanged: Offset,
}

#[derive(Default)]
pub struct Disk {
    pub hard: HardState,
    bootstrap: VoterSet,
    base: Option<SnapshotId>,
    log: Vec<Rc<Entry>>,
    durable: Vec<Rc<Entry>>,
    /// How many entries `log` and `durable` have in common.
    same: usize,
    pub snapshots: BTreeMap<SnapshotId, Rc<SnapshotFile>>,
    pub flushing: Option<Flush>,
    /// Asked for while a flush runs.
    pub flush_next: Option<(Offset, u64)>,
}

impl Disk {
    pub fn new(bootstrap: VoterSet) -> Self {
        Self { bootstrap, ..Self::default() }
    }

    pub fn start(&self) -> Offset {
        self.base.map_or(Offset(0), |base| base.end)
    }

    pub fn end(&self) -> Offset {
        self.log.last().map_or(self.start(), |entry| entry.end)
    }

    /// Up to where a power cut would leave what the log has now.
    pub fn flushed_end(&self) -> Offset {
        self.log[..self.same].last().map_or(self.start(), |entry| entry.end)
    }

    pub fn entries(&self) -> &[Rc<Entry>] {
        &self.log
    }

    /// The entries from the one that starts at `from` on.
    pub fn from(&self, from: Offset) -> &[Rc<Entry>] {
        let at = self.log.partition_point(|entry| entry.base < from);
        &self.log[at..]
    }

    /// The entry that holds the record before `end`, where the log has it.
    pub fn before(&self, end: Offset) -> Option<&Rc<Entry>> {
        find_before(&self.log, end)
    }

    /// Whether a power cut would leave `entry`, or a snapshot that covers it.
    pub fn keeps(&self, entry: &Entry) -> bool {
        self.start() >= entry.end
            || find_before(&self.durable, entry.end).is_some_and(|kept| **kept == *entry)
    }

    pub fn append(&mut self, entry: Rc<Entry>) {
        assert_eq!(entry.base, self.end(), "an append leaves a hole");
        self.log.push(entry);
    }

    pub fn truncate(&mut self, to: Offset) {
        let kept = self.log.partition_point(|entry| entry.end <= to);
        self.log.truncate(kept);
        assert_eq!(self.end(), to, "a cut inside a batch");
        self.same = self.same.min(kept);
        if let Some(flush) = &mut self.flushing {
            flush.unchanged = flush.unchanged.min(to);
        }
    }

    /// Deletes below `offset`, which a snapshot covers.
    pub fn delete_before(&mut self, offset: Offset) {
        let id = *self.snapshots.keys().find(|id| id.end == offset).expect("a snapshot ends there");
        let gone = self.log.partition_point(|entry| entry.end <= offset);
        assert!(gone <= self.same, "only what is flushed is deleted");
        self.log.drain(..gone);
        self.durable.drain(..gone);
        self.same -= gone;
        self.base = Some(id);
    }

    pub fn install(&mut self, file: Rc<SnapshotFile>) {
        self.base = Some(file.id);
        self.snapshots.insert(file.id, file);
        self.log.clear();
        self.durable.clear();
        self.same = 0;
        if let Some(flush) = &mut self.flushing {
            flush.unchanged = Offset(0);
        }
    }

    pub fn begin_flush(&mut self, end: Offset, truncations: u64) {
        assert!(self.flushing.is_none(), "one flush at a time");
        self.flushing = Some(Flush { end, truncations, unchanged: end });
    }

    pub fn end_flush(&mut self) -> Option<Flush> {
        let flush = self.flushing.take()?;
        let flushed = self.log.partition_point(|entry| entry.end <= flush.unchanged);
        self.durable.truncate(self.same);
        if flushed > self.same {
            self.durable.extend_from_slice(&self.log[self.same..flushed]);
            self.same = flushed;
        }
        Some(flush)
    }

    pub fn lose_power(&mut self, chance: &mut Chance) {
        let mut kept = std::mem::take(&mut self.durable);
        if chance.per_mille(500) {
            let more = chance.below((self.log.len() - self.same) as u64 + 1) as usize;
            if more > 0 {
                kept.truncate(self.same);
                kept.extend_from_slice(&self.log[self.same..self.same + more]);
            }
        }
        self.keep_only(kept);
    }

    /// A power cut that leaves exactly what was flushed.
    pub fn lose_all_unflushed(&mut self) {
        let kept = std::mem::take(&mut self.durable);
        self.keep_only(kept);
    }

    fn keep_only(&mut self, kept: Vec<Rc<Entry>>) {
        self.log.clone_from(&kept);
        self.durable = kept;
        self.same = self.log.len();
        self.flushing = None;
        self.flush_next = None;
    }

    /// What a starting node finds, flushed.
    pub fn boot(&self) -> Boot {
        let base = self.base.unwrap_or(SnapshotId { end: Offset(0), epoch: LeaderEpoch(0) });
        let mut epochs: Vec<EpochStart> = Vec::new();
        let mut voters = match self.base.and_then(|id| self.snapshots.get(&id)) {
            Some(file) => VoterHistory::of_snapshot(file.voters.clone()),
            None => VoterHistory::bootstrap(self.bootstrap.clone()),
        };
        for entry in &self.log {
            if epochs.last().is_none_or(|last| last.epoch < entry.epoch) {
                epochs.push(EpochStart { epoch: entry.epoch, start: entry.base });
            }
            for (offset, set) in &entry.voters {
                voters.append(*offset, set.clone());
            }
        }
        let log = LogView::found(base.end, base.epoch, &epochs, self.end());
        let snapshots = self.snapshots.values().map(|file| (file.id, file.size)).collect();
        Boot { hard: self.hard, log, voters, snapshots }
    }
}

fn find_before(log: &[Rc<Entry>], end: Offset) -> Option<&Rc<Entry>> {
    let after = log.partition_point(|entry| entry.base < end);
    log[..after].last().filter(|entry| entry.end >= end)
}
