//! Which leader epoch wrote which offsets: the truth that followers truncate by.
//!
//! Invariants: epochs and start offsets both grow strictly from entry to entry.
//!
//! Kafka: `LeaderEpochFileCache`, `EpochEntry`; KIP-101, KIP-279, KIP-320.

use model::{LeaderEpoch, Offset};

use crate::checkpoint;

pub(crate) const FILE: &str = "leader-epoch-checkpoint";

/// The epochs of one log, each with the offset of its first record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeaderEpochs {
    entries: Vec<(LeaderEpoch, Offset)>,
}

impl LeaderEpochs {
    /// Says that `epoch` begins at `start`, and drops what contradicts it. Gives back whether anything changed.
    pub(crate) fn assign(&mut self, epoch: LeaderEpoch, start: Offset) -> bool {
        if epoch < LeaderEpoch(0)
            || self.entries.last().is_some_and(|last| last.0 == epoch && last.1 <= start)
        {
            return false;
        }
        self.entries.retain(|entry| entry.0 < epoch && entry.1 < start);
        self.entries.push((epoch, start));
        true
    }

    /// The newest epoch.
    pub(crate) fn all(&self) -> Vec<(LeaderEpoch, Offset)> {
        self.entries.clone()
    }

    pub(crate) fn latest(&self) -> Option<LeaderEpoch> {
        self.entries.last().map(|entry| entry.0)
    }

    /// Where the newest epoch begins.
    pub(crate) fn latest_start(&self) -> Option<Offset> {
        self.entries.last().map(|entry| entry.1)
    }

    /// The epoch that wrote `offset`.
    pub(crate) fn at(&self, offset: Offset) -> Option<LeaderEpoch> {
        let after = self.entries.partition_point(|entry| entry.1 <= offset);
        self.entries.get(after.checked_sub(1)?).map(|entry| entry.0)
    }

    /// The largest epoch up to `epoch` and the offset, exclusive, where it ends; none where `epoch` is newer than all.
    /// An epoch older than all ends where the first begins.
    pub(crate) fn end_of(&self, epoch: LeaderEpoch, log_end: Offset) -> Option<(LeaderEpoch, Offset)> {
        if self.latest()? == epoch {
            return Some((epoch, log_end));
        }
        let after = self.entries.partition_point(|entry| entry.0 <= epoch);
        let end = self.entries.get(after)?.1;
        let floor = after.checked_sub(1).and_then(|floor| self.entries.get(floor));
        Some((floor.map_or(epoch, |entry| entry.0), end))
    }

    /// Forgets the epochs that begin at `end` or later. Gives back whether anything changed.
    pub(crate) fn truncate_end(&mut self, end: Offset) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| entry.1 < end);
        self.entries.len() != before
    }

    /// Forgets what lies below `start`: the epoch that wrote `start` now begins there.
    pub(crate) fn truncate_start(&mut self, start: Offset) -> bool {
        let after = self.entries.partition_point(|entry| entry.1 <= start);
        let Some(floor) = after.checked_sub(1) else { return false };
        let changed = self.entries.get(floor).is_some_and(|entry| floor > 0 || entry.1 < start);
        self.entries.drain(..floor);
        if let Some(first) = self.entries.first_mut() {
            first.1 = start;
        }
        changed
    }

    /// The file's text.
    pub(crate) fn encode(&self) -> String {
        checkpoint::encode(self.entries.iter().map(|(epoch, start)| format!("{epoch} {start}")))
    }

    /// Reads the file.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let entries = checkpoint::parse(bytes, epoch_line)?;
        let grows = |pair: &[(LeaderEpoch, Offset)]| match pair {
            [a, b] => a.0 < b.0 && a.1 < b.1,
            _ => true,
        };
        if entries.windows(2).all(grows) { Ok(Self { entries }) } else { Err("does not grow".to_owned()) }
    }
}

fn epoch_line(line: &str) -> Option<(LeaderEpoch, Offset)> {
    let (epoch, start) = line.split_once(' ')?;
    let (epoch, start): (i32, i64) = (epoch.parse().ok()?, start.parse().ok()?);
    (epoch >= 0 && start >= 0).then_some((LeaderEpoch(epoch), Offset(start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epochs(entries: &[(i32, i64)]) -> LeaderEpochs {
        LeaderEpochs { entries: entries.iter().map(|(e, o)| (LeaderEpoch(*e), Offset(*o))).collect() }
    }

    fn end_of(epochs: &LeaderEpochs, epoch: i32) -> Option<(i32, i64)> {
        epochs.end_of(LeaderEpoch(epoch), Offset(100)).map(|(epoch, end)| (epoch.0, end.0))
    }

    #[test]
    fn an_epoch_ends_where_the_next_begins() {
        let epochs = epochs(&[(2, 10), (4, 20), (7, 50)]);
        assert_eq!(end_of(&epochs, 7), Some((7, 100)));
        assert_eq!(end_of(&epochs, 4), Some((4, 50)));
        assert_eq!(end_of(&epochs, 3), Some((2, 20)), "the largest epoch below one that is not there");
        assert_eq!(end_of(&epochs, 1), Some((1, 10)), "older than all: where the first begins");
        assert_eq!(end_of(&epochs, 8), None, "newer than all");
        assert_eq!(end_of(&LeaderEpochs::default(), 0), None);
    }

    #[test]
    fn assigning_drops_what_contradicts_it() {
        let mut e = epochs(&[(2, 10), (4, 20), (7, 50)]);
        assert!(!e.assign(LeaderEpoch(7), Offset(60)), "the same epoch goes on");
        assert!(e.assign(LeaderEpoch(8), Offset(20)));
        assert_eq!(e, epochs(&[(2, 10), (8, 20)]));
        assert!(e.assign(LeaderEpoch(5), Offset(90)));
        assert_eq!(e, epochs(&[(2, 10), (5, 90)]));
        assert!(!e.assign(LeaderEpoch::NONE, Offset(95)));
    }

    #[test]
    fn truncation_cuts_both_ends() {
        let mut e = epochs(&[(2, 10), (4, 20), (7, 50)]);
        assert!(e.truncate_end(Offset(50)));
        assert!(!e.truncate_end(Offset(21)));
        assert!(e.truncate_start(Offset(15)));
        assert_eq!(e, epochs(&[(2, 15), (4, 20)]));
        assert!(e.truncate_start(Offset(30)));
        assert_eq!(e, epochs(&[(4, 30)]));
        assert!(!e.truncate_start(Offset(30)));
        assert_eq!((e.at(Offset(29)), e.at(Offset(30))), (None, Some(LeaderEpoch(4))));
    }

    #[test]
    fn the_file_goes_both_ways_and_refuses_what_cannot_be() {
        let e = epochs(&[(0, 0), (3, 17)]);
        assert_eq!(e.encode(), "0\n2\n0 0\n3 17\n");
        assert_eq!(LeaderEpochs::parse(e.encode().as_bytes()), Ok(e));
        for text in ["", "0\n", "0\n1\n", "0\n2\n3 1\n1 5\n", "0\n1\n-1 5\n", "0\n1\n0 -1\n", "0\n1\n0 1 2\n"]
        {
            assert!(LeaderEpochs::parse(text.as_bytes()).is_err(), "{text:?}");
        }
    }
}
