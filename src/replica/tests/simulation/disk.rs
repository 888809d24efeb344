//! A replica's log on a disk: what was written, and what of it a power cut leaves.
//!
//! Durable is what a finished flush covered, epoch entries with it; truncations wait for the disk. Of the rest a power
//! cut leaves any prefix.

use fastrand::Rng;
use model::{LeaderEpoch, Offset};
use replica::{BatchRange, EpochEnd, LogView};

/// A record batch. What stands in it is unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Batch {
    pub base: Offset,
    pub end: Offset,
    pub epoch: LeaderEpoch,
    pub value: u64,
}

impl Batch {
    pub fn range(&self) -> BatchRange {
        BatchRange { base: self.base, end: self.end, epoch: self.epoch }
    }
}

/// The files of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Files {
    /// The first offset that may be read.
    log_start: Offset,
    /// Where a log without batches ends.
    base: Offset,
    batches: Vec<Batch>,
    epochs: Vec<(LeaderEpoch, Offset)>,
}

impl Files {
    fn end(&self) -> Offset {
        self.batches.last().map_or(self.base, |batch| batch.end)
    }

    fn advance_start(&mut self, to: Offset) {
        if to <= self.log_start {
            return;
        }
        self.log_start = to;
        self.base = self.end();
        let floor = self.epochs.partition_point(|entry| entry.1 <= to);
        self.epochs.drain(..floor.saturating_sub(1));
        if let Some(first) = self.epochs.first_mut() {
            first.1 = first.1.max(to);
        }
        self.batches.retain(|batch| batch.end > to);
    }

    fn assign(&mut self, epoch: LeaderEpoch, start: Offset) {
        if self.epochs.last().is_none_or(|last| last.0 < epoch) {
            self.epochs.retain(|entry| entry.1 < start);
            self.epochs.push((epoch, start));
        }
    }
}

/// A flush that runs.
#[derive(Clone, Debug)]
struct Flush {
    files: Files,
    truncations: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Disk {
    files: Files,
    durable: Files,
    flushed: Offset,
    truncations: u64,
    flushing: Option<Flush>,
    /// Asked for while a flush runs.
    flush_next: bool,
    /// `write.caching`: what is written counts.
    pub caches: bool,
    /// A known fault: a flush that began before a truncation counts.
    pub counts_across_truncations: bool,
    /// A known fault: epoch entries are not flushed.
    pub forgets_epochs: bool,
    /// The checkpoint of the high watermark.
    pub checkpoint: Offset,
}

impl LogView for Disk {
    fn log_start(&self) -> Offset {
        self.files.log_start
    }

    fn log_end(&self) -> Offset {
        self.files.end()
    }

    fn counted_end(&self) -> Offset {
        if self.caches { self.files.end() } else { self.flushed }
    }

    fn latest_epoch(&self) -> Option<LeaderEpoch> {
        self.files.epochs.last().map(|entry| entry.0)
    }

    fn epoch_end(&self, epoch: LeaderEpoch) -> Option<EpochEnd> {
        if self.latest_epoch()? == epoch {
            return Some(EpochEnd { epoch, end: self.log_end() });
        }
        let after = self.files.epochs.partition_point(|entry| entry.0 <= epoch);
        let end = self.files.epochs.get(after)?.1;
        let floor = after.checked_sub(1).map(|floor| self.files.epochs[floor].0);
        Some(EpochEnd { epoch: floor.unwrap_or(epoch), end })
    }
}

impl Disk {
    pub fn begin_epoch(&mut self, epoch: LeaderEpoch, start: Offset) {
        assert_eq!(start, self.log_end(), "an epoch begins at the log's end");
        self.files.assign(epoch, start);
    }

    pub fn append(&mut self, batch: Batch) {
        assert!(batch.base >= self.log_end(), "{batch:?} is not behind {}", self.log_end());
        self.files.assign(batch.epoch, batch.base);
        self.files.batches.push(batch);
    }

    /// Whole batches go, and on the disk, too; where that reaches the log start, everything.
    pub fn truncate(&mut self, to: Offset) {
        self.files.epochs.retain(|entry| entry.1 < to);
        self.checkpoint = self.checkpoint.min(to);
        if to >= self.log_end() {
            return;
        }
        let end = self.at(to).map_or(to, |batch| batch.base);
        if end <= self.log_start() {
            return self.restart_at(to.min(self.log_start()));
        }
        self.truncations += 1;
        for files in [&mut self.files, &mut self.durable] {
            files.batches.retain(|batch| batch.end <= end);
            files.epochs.retain(|entry| entry.1 < to);
        }
        self.flushed = self.flushed.min(end);
    }

    /// Waits for the disk.
    pub fn restart_at(&mut self, start: Offset) {
        self.truncations += 1;
        self.checkpoint = self.checkpoint.min(start);
        self.files = Files { log_start: start, base: start, batches: Vec::new(), epochs: Vec::new() };
        self.durable = self.files.clone();
        self.flushed = start;
    }

    pub fn advance_log_start(&mut self, to: Offset) {
        assert!(to <= self.log_end(), "{to} is past the log end {}", self.log_end());
        for files in [&mut self.files, &mut self.durable] {
            files.advance_start(to.min(files.end()));
        }
    }

    /// Whether a flush begins; one that runs is followed by another.
    pub fn begin_flush(&mut self) -> bool {
        self.flush_next = self.flushing.is_some();
        if !self.flush_next {
            self.flushing = Some(Flush { files: self.files.clone(), truncations: self.truncations });
        }
        !self.flush_next
    }

    /// The flush that ran is done; whether another is wanted.
    pub fn end_flush(&mut self) -> bool {
        let Some(flush) = self.flushing.take() else { return false };
        let epochs = std::mem::take(&mut self.durable.epochs);
        let end = flush.files.end();
        if flush.truncations == self.truncations {
            self.durable = flush.files;
        } else if !self.counts_across_truncations {
            self.durable.epochs = epochs;
            return std::mem::take(&mut self.flush_next);
        }
        if self.forgets_epochs {
            self.durable.epochs = epochs;
        }
        self.flushed = self.flushed.max(end.min(self.log_end()));
        std::mem::take(&mut self.flush_next)
    }

    pub fn is_flushing(&self) -> bool {
        self.flushing.is_some()
    }

    /// As a process that ends in order does.
    pub fn flush_all(&mut self) {
        self.durable = self.files.clone();
        self.flushed = self.log_end();
    }

    /// The process is gone; the machine goes on.
    pub fn kill(&mut self) {
        self.flushing = None;
        self.flush_next = false;
    }

    /// The machine is gone, too.
    pub fn lose_power(&mut self, rng: &mut Rng) {
        self.kill();
        let mut left = self.durable.clone();
        let unflushed: Vec<_> = self.read(left.end(), usize::MAX);
        let kept = rng.usize(..=unflushed.len());
        left.batches.extend(&unflushed[..kept]);
        if !self.forgets_epochs {
            for batch in left.batches.clone() {
                left.assign(batch.epoch, batch.base);
            }
        }
        self.flushed = self.durable.end();
        self.files = left;
    }

    /// Empty, as a new one.
    pub fn replace(&mut self) {
        let (caches, counts, forgets) = (self.caches, self.counts_across_truncations, self.forgets_epochs);
        *self = Self {
            caches,
            counts_across_truncations: counts,
            forgets_epochs: forgets,
            truncations: self.truncations + 1,
            ..Self::default()
        };
    }

    pub fn batches(&self) -> &[Batch] {
        &self.files.batches
    }

    /// Batches from the one that holds `from` on, at most so many.
    pub fn read(&self, from: Offset, most: usize) -> Vec<Batch> {
        let first = self.files.batches.partition_point(|batch| batch.end <= from);
        self.files.batches[first..].iter().take(most).copied().collect()
    }

    /// The batch that holds this offset.
    pub fn at(&self, offset: Offset) -> Option<&Batch> {
        let at = self.files.batches.partition_point(|batch| batch.end <= offset);
        self.files.batches.get(at).filter(|batch| batch.base <= offset)
    }

    /// Whether a power cut would leave this batch.
    pub fn keeps(&self, batch: &Batch) -> bool {
        let at = self.durable.batches.partition_point(|kept| kept.end < batch.end);
        self.durable.log_start >= batch.end || self.durable.batches.get(at) == Some(batch)
    }
}
