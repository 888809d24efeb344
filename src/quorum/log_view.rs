//! What the core knows of the log: where it starts and ends, how far it is flushed, and where each epoch
//! starts.
//!
//! The driver holds the bytes. It does what the core's actions say in their order, and aborts where it
//! cannot, so the view is never ahead of a log that lives.
//!
//! Invariants: start <= flushed end <= end; epochs and their starts grow. The first entry is the epoch of the
//! record just before the start (the snapshot's), or 0 for a log that starts at 0.
//!
//! Kafka: `RaftLog`, `LeaderEpochFileCache`.

use model::{LeaderEpoch, Offset};

/// No log gets as far as this; an offset from a peer that does is refused.
pub(crate) const OFFSET_MAX: Offset = Offset(i64::MAX / 2);

/// An epoch and where its records end, exclusive; or, of a log, where its last record has which epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EpochEnd {
    /// The epoch.
    pub epoch: LeaderEpoch,
    /// The end, exclusive.
    pub end: Offset,
}

/// An epoch and its first offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EpochStart {
    /// The epoch.
    pub epoch: LeaderEpoch,
    /// The offset of its first record.
    pub start: Offset,
}

/// The shape of a log, without its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LogView {
    end: Offset,
    flushed: Offset,
    truncations: u64,
    epochs: Vec<EpochStart>,
}

/// What a leader finds about a Fetch's offset and last epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    /// The reader's log is a prefix of this one.
    Valid,
    /// It is not; up to here it may be.
    Diverging(EpochEnd),
    /// It needs a snapshot: the records are gone.
    BeforeStart,
}

impl Default for LogView {
    fn default() -> Self {
        Self::starting_at(Offset(0), LeaderEpoch(0))
    }
}

impl LogView {
    /// A log without records that goes on after a snapshot: its end offset, exclusive, and its epoch.
    pub fn starting_at(start: Offset, epoch: LeaderEpoch) -> Self {
        let epochs = vec![EpochStart { epoch, start }];
        Self { end: start, flushed: start, truncations: 0, epochs }
    }

    /// A log as it was found and *flushed* at start: its own epochs in order, and its end, exclusive. `start`
    /// and `epoch` are those of the snapshot that it goes on from, or 0.
    ///
    /// # Panics
    /// Where epochs or offsets do not grow: the driver checks the file first.
    pub fn found(start: Offset, epoch: LeaderEpoch, epochs: &[EpochStart], end: Offset) -> Self {
        let mut log = Self::starting_at(start, epoch);
        for (i, entry) in epochs.iter().enumerate() {
            let next = epochs.get(i + 1).map_or(end, |next| next.start);
            assert!(
                entry.start == log.end,
                "epoch {} starts at {}, not {}",
                entry.epoch,
                entry.start,
                log.end
            );
            log.append(entry.epoch, next);
        }
        assert!(log.end == end, "a log of epochs {epochs:?} ends at {end}");
        log.flushed = end;
        log
    }

    /// The first offset that the log still has, or would have.
    pub fn start(&self) -> Offset {
        self.epochs[0].start
    }

    /// The offset after the last record.
    pub fn end(&self) -> Offset {
        self.end
    }

    /// Up to where, exclusive, the log would survive a power cut.
    pub fn flushed(&self) -> Offset {
        self.flushed
    }

    /// How often the log was cut; a flush counts only if this did not change while it ran.
    pub fn truncations(&self) -> u64 {
        self.truncations
    }

    /// The epoch of the last record, also where that is in the snapshot already.
    pub fn last_epoch(&self) -> LeaderEpoch {
        self.epochs[self.epochs.len() - 1].epoch
    }

    /// The epoch of the record before `offset`.
    pub fn epoch_before(&self, offset: Offset) -> LeaderEpoch {
        let after = self.epochs.partition_point(|entry| entry.start < offset);
        self.epochs[after.saturating_sub(1)].epoch
    }

    /// What of the log survives a power cut: what a vote is asked and given with.
    pub(crate) fn flushed_end(&self) -> EpochEnd {
        EpochEnd { epoch: self.epoch_before(self.flushed), end: self.flushed }
    }

    /// The largest epoch not above `epoch`, and where it ends.
    pub fn end_for(&self, epoch: LeaderEpoch) -> EpochEnd {
        let after = self.epochs.partition_point(|entry| entry.epoch <= epoch);
        if after == 0 {
            return EpochEnd { epoch: self.epochs[0].epoch, end: self.start() };
        }
        let end = self.epochs.get(after).map_or(self.end, |next| next.start);
        EpochEnd { epoch: self.epochs[after - 1].epoch, end }
    }

    pub(crate) fn position(&self, offset: Offset, last_epoch: LeaderEpoch) -> Position {
        let base = self.epochs[0];
        if base.start == Offset(0) && offset == Offset(0) {
            return Position::Valid;
        }
        if offset < base.start
            || last_epoch < base.epoch
            || (offset == base.start && last_epoch != base.epoch)
        {
            return Position::BeforeStart;
        }
        let found = self.end_for(last_epoch);
        if found.epoch == last_epoch && found.end >= offset {
            Position::Valid
        } else {
            Position::Diverging(found)
        }
    }

    /// Where a follower cuts its log, given up to where it may agree with the leader's.
    pub(crate) fn truncation_for(&self, diverging: EpochEnd) -> Offset {
        let own = self.end_for(diverging.epoch);
        if own.epoch == diverging.epoch { own.end.min(diverging.end) } else { own.end }
    }

    pub(crate) fn append(&mut self, epoch: LeaderEpoch, end: Offset) {
        assert!(end > self.end, "an append from {} to {end}", self.end);
        assert!(epoch >= self.last_epoch(), "epoch {epoch} after {}", self.last_epoch());
        if epoch > self.last_epoch() {
            self.epochs.push(EpochStart { epoch, start: self.end });
        }
        self.end = end;
    }

    pub(crate) fn truncate(&mut self, to: Offset) {
        assert!(to >= self.start() && to <= self.end, "{to} is not in {}..{}", self.start(), self.end);
        self.truncations += 1;
        self.end = to;
        self.flushed = self.flushed.min(to);
        let kept = self.epochs.partition_point(|entry| entry.start < to).max(1);
        self.epochs.truncate(kept);
    }

    /// Everything is replaced by a snapshot, which is on disk.
    pub(crate) fn restart_at(&mut self, start: Offset, epoch: LeaderEpoch) {
        *self = Self { truncations: self.truncations + 1, ..Self::starting_at(start, epoch) };
    }

    pub(crate) fn advance_start(&mut self, to: Offset) {
        assert!(
            to >= self.start() && to <= self.flushed,
            "{to} is not in {}..{}",
            self.start(),
            self.flushed
        );
        let epoch = self.epoch_before(to);
        self.epochs.retain(|entry| entry.start >= to && entry.epoch > epoch);
        self.epochs.insert(0, EpochStart { epoch, start: to });
    }

    pub(crate) fn advance_flushed(&mut self, end: Offset) {
        self.flushed = self.flushed.max(end.min(self.end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(epochs: &[(i32, i64)], end: i64) -> LogView {
        let starts: Vec<_> =
            epochs.iter().map(|(e, s)| EpochStart { epoch: LeaderEpoch(*e), start: Offset(*s) }).collect();
        LogView::found(starts[0].start, LeaderEpoch(0), &starts, Offset(end))
    }

    fn end_of(epoch: i32, end: i64) -> EpochEnd {
        EpochEnd { epoch: LeaderEpoch(epoch), end: Offset(end) }
    }

    #[test]
    fn an_epoch_ends_where_the_next_starts() {
        let log = log(&[(1, 0), (4, 10), (5, 20)], 30);
        assert_eq!(log.end_for(LeaderEpoch(1)), end_of(1, 10));
        assert_eq!(log.end_for(LeaderEpoch(3)), end_of(1, 10));
        assert_eq!(log.end_for(LeaderEpoch(4)), end_of(4, 20));
        assert_eq!(log.end_for(LeaderEpoch(9)), end_of(5, 30));
    }

    #[test]
    fn a_reader_with_another_history_diverges() {
        let log = log(&[(1, 0), (4, 10)], 30);
        assert_eq!(log.position(Offset(0), LeaderEpoch(0)), Position::Valid);
        assert_eq!(log.position(Offset(10), LeaderEpoch(1)), Position::Valid);
        assert_eq!(log.position(Offset(30), LeaderEpoch(4)), Position::Valid);
        assert_eq!(log.position(Offset(12), LeaderEpoch(1)), Position::Diverging(end_of(1, 10)));
        assert_eq!(log.position(Offset(12), LeaderEpoch(3)), Position::Diverging(end_of(1, 10)));
        assert_eq!(log.position(Offset(31), LeaderEpoch(4)), Position::Diverging(end_of(4, 30)));
    }

    #[test]
    fn a_reader_before_the_start_needs_the_snapshot() {
        let mut log = log(&[(1, 0), (4, 10)], 30);
        log.advance_start(Offset(20));
        assert_eq!(log.start(), Offset(20));
        assert_eq!(log.position(Offset(0), LeaderEpoch(0)), Position::BeforeStart);
        assert_eq!(log.position(Offset(19), LeaderEpoch(4)), Position::BeforeStart);
        assert_eq!(log.position(Offset(20), LeaderEpoch(1)), Position::BeforeStart);
        assert_eq!(log.position(Offset(20), LeaderEpoch(4)), Position::Valid);
        assert_eq!(log.position(Offset(25), LeaderEpoch(3)), Position::BeforeStart);
    }

    #[test]
    fn the_start_may_move_to_the_border_of_an_epoch() {
        let mut log = log(&[(1, 0), (4, 10)], 30);
        log.advance_start(Offset(10));
        assert_eq!(log.epoch_before(Offset(10)), LeaderEpoch(1));
        assert_eq!(log.epoch_before(Offset(11)), LeaderEpoch(4));
        assert_eq!(log.end_for(LeaderEpoch(4)), end_of(4, 30));
    }

    #[test]
    fn a_truncation_forgets_epochs_and_flushes() {
        let mut log = log(&[(1, 0), (4, 10), (5, 20)], 30);
        log.truncate(Offset(10));
        assert_eq!((log.end(), log.flushed(), log.truncations()), (Offset(10), Offset(10), 1));
        assert_eq!(log.last_epoch(), LeaderEpoch(1));
        log.append(LeaderEpoch(7), Offset(12));
        assert_eq!(log.flushed_end(), end_of(1, 10));
        assert_eq!(log.end_for(LeaderEpoch(5)), end_of(1, 10));
    }

    #[test]
    fn a_follower_cuts_to_the_last_epoch_that_both_may_have() {
        let log = log(&[(1, 0), (3, 10)], 30);
        assert_eq!(log.truncation_for(end_of(3, 15)), Offset(15));
        assert_eq!(log.truncation_for(end_of(3, 99)), Offset(30));
        assert_eq!(log.truncation_for(end_of(2, 12)), Offset(10));
    }
}
