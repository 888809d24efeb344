//! The two sparse indexes of a segment, in memory; on disk they are Kafka's files.
//!
//! ```text
//! .index       relative offset u32 | position u32      the batch with that last offset begins there
//! .timeindex   timestamp i64 | relative offset u32     up to and with that offset no timestamp is later
//! ```
//!
//! Invariants: both columns of the offset index grow strictly; timestamps of the time index grow strictly, its offsets
//! do not shrink.
//!
//! Kafka: `OffsetIndex`, `TimeIndex`, `AbstractIndex`. Kafka maps them; a search in a `Vec` costs 70 ns and no page fault.

use model::{Offset, Timestamp};

pub(crate) const OFFSET_ENTRY_BYTES: usize = 8;
pub(crate) const TIME_ENTRY_BYTES: usize = 12;

/// From offsets to positions in the segment's log file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OffsetIndex {
    entries: Vec<(u32, u32)>,
}

impl OffsetIndex {
    /// Adds an entry behind the last one; what does not grow is left out.
    pub(crate) fn push(&mut self, relative_offset: u32, position: u32) {
        if self.entries.last().is_none_or(|last| last.0 < relative_offset && last.1 < position) {
            self.entries.push((relative_offset, position));
        }
    }

    /// Where to begin to look for an offset: the last entry that is not beyond it, or the start.
    pub(crate) fn position(&self, relative_offset: u32) -> u32 {
        let after = self.entries.partition_point(|entry| entry.0 <= relative_offset);
        after.checked_sub(1).and_then(|i| self.entries.get(i)).map_or(0, |entry| entry.1)
    }

    /// The last position of an entry up to `position`, or the start.
    pub(crate) fn position_before(&self, position: u64) -> u32 {
        let after = self.entries.partition_point(|entry| u64::from(entry.1) <= position);
        after.checked_sub(1).and_then(|i| self.entries.get(i)).map_or(0, |entry| entry.1)
    }

    pub(crate) fn last(&self) -> Option<(u32, u32)> {
        self.entries.last().copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Forgets the entries from `relative_offset` on.
    pub(crate) fn truncate(&mut self, relative_offset: u32) {
        self.entries.truncate(self.entries.partition_point(|entry| entry.0 < relative_offset));
    }

    /// The bytes of the entries from the `from`th on.
    pub(crate) fn encode(&self, from: usize) -> Vec<u8> {
        let entries = self.entries.get(from..).unwrap_or_default();
        let mut bytes = Vec::with_capacity(entries.len() * OFFSET_ENTRY_BYTES);
        for (offset, position) in entries {
            bytes.extend_from_slice(&offset.to_be_bytes());
            bytes.extend_from_slice(&position.to_be_bytes());
        }
        bytes
    }

    /// Reads a file of a log of `log_bytes`; zeros at the end are what Kafka allocated ahead. None where it cannot be true.
    pub(crate) fn parse(bytes: &[u8], log_bytes: u64) -> Option<Self> {
        let mut index = Self::default();
        for entry in used_entries(bytes)? {
            let entry: [u8; OFFSET_ENTRY_BYTES] = *entry;
            let (offset, position) = (u32_at_start(&entry)?, u32_at_end(&entry)?);
            let before = index.len();
            index.push(offset, position);
            if index.len() == before || u64::from(position) >= log_bytes || i32::try_from(offset).is_err() {
                return None;
            }
        }
        Some(index)
    }
}

/// From timestamps to offsets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimeIndex {
    entries: Vec<(i64, u32)>,
}

impl TimeIndex {
    /// Adds an entry behind the last one, where it is later.
    pub(crate) fn push(&mut self, timestamp: Timestamp, relative_offset: u32) {
        let later = |last: &(i64, u32)| last.0 < timestamp.0 && last.1 <= relative_offset;
        if timestamp.0 >= 0 && self.entries.last().is_none_or(later) {
            self.entries.push((timestamp.0, relative_offset));
        }
    }

    /// The offset from which to look for a record of `timestamp` or later: no earlier offset has one.
    pub(crate) fn offset(&self, timestamp: Timestamp) -> u32 {
        let after = self.entries.partition_point(|entry| entry.0 < timestamp.0);
        after.checked_sub(1).and_then(|i| self.entries.get(i)).map_or(0, |entry| entry.1)
    }

    pub(crate) fn last(&self) -> Option<(Timestamp, u32)> {
        self.entries.last().map(|entry| (Timestamp(entry.0), entry.1))
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Forgets the entries from `relative_offset` on.
    pub(crate) fn truncate(&mut self, relative_offset: u32) {
        self.entries.truncate(self.entries.partition_point(|entry| entry.1 < relative_offset));
    }

    /// The bytes of the entries from the `from`th on.
    pub(crate) fn encode(&self, from: usize) -> Vec<u8> {
        let entries = self.entries.get(from..).unwrap_or_default();
        let mut bytes = Vec::with_capacity(entries.len() * TIME_ENTRY_BYTES);
        for (timestamp, offset) in entries {
            bytes.extend_from_slice(&timestamp.to_be_bytes());
            bytes.extend_from_slice(&offset.to_be_bytes());
        }
        bytes
    }

    /// Reads a file; zeros at the end are what Kafka allocated ahead. None where it cannot be true.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut index = Self::default();
        for entry in used_entries(bytes)? {
            let entry: [u8; TIME_ENTRY_BYTES] = *entry;
            let timestamp = i64::from_be_bytes(*entry.first_chunk()?);
            let offset = u32_at_end(&entry)?;
            let before = index.len();
            index.push(Timestamp(timestamp), offset);
            if index.len() == before || i32::try_from(offset).is_err() {
                return None;
            }
        }
        Some(index)
    }
}

fn u32_at_start(entry: &[u8]) -> Option<u32> {
    entry.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

fn u32_at_end(entry: &[u8]) -> Option<u32> {
    entry.last_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

/// Entries of `N` bytes without the zeros at the end; none where the bytes are not whole entries.
fn used_entries<const N: usize>(bytes: &[u8]) -> Option<&[[u8; N]]> {
    let (entries, rest) = bytes.as_chunks::<N>();
    let used =
        entries.iter().rposition(|entry| entry.iter().any(|byte| *byte != 0)).map_or(0, |last| last + 1);
    if rest.is_empty() { entries.get(..used) } else { None }
}

/// `offset` counted from the segment's base; none where it does not fit an entry.
pub(crate) fn relative(base_offset: Offset, offset: Offset) -> Option<u32> {
    u32::try_from(offset.0.checked_sub(base_offset.0)?)
        .ok()
        .filter(|relative| i32::try_from(*relative).is_ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_lookup_gives_the_last_entry_not_beyond() {
        let mut index = OffsetIndex::default();
        for (offset, position) in [(9, 4200), (19, 8400), (19, 9000), (29, 12_600)] {
            index.push(offset, position);
        }
        assert_eq!(index.len(), 3, "what does not grow is left out");
        let positions: Vec<u32> = [0, 8, 9, 18, 19, 29, 500].map(|offset| index.position(offset)).into();
        assert_eq!(positions, [0, 0, 4200, 4200, 8400, 12_600, 12_600]);
        index.truncate(19);
        assert_eq!(index.last(), Some((9, 4200)));
    }

    #[test]
    fn a_time_lookup_never_goes_beyond_the_first_record_of_that_time() {
        let mut index = TimeIndex::default();
        for (timestamp, offset) in [(-1, 0), (100, 5), (100, 6), (90, 7), (200, 9)] {
            index.push(Timestamp(timestamp), offset);
        }
        let offsets: Vec<u32> = [50, 100, 101, 200, 201].map(|time| index.offset(Timestamp(time))).into();
        assert_eq!(offsets, [0, 0, 5, 5, 9]);
        index.truncate(9);
        assert_eq!(index.last(), Some((Timestamp(100), 5)));
    }

    #[test]
    fn zeros_at_the_end_are_allocated_ahead_but_not_in_the_middle() {
        let mut index = OffsetIndex::default();
        index.push(7, 100);
        let mut bytes = index.encode(0);
        bytes.resize(10 * OFFSET_ENTRY_BYTES, 0);
        assert_eq!(OffsetIndex::parse(&bytes, 101), Some(index));
        bytes[79] = 1;
        assert_eq!(OffsetIndex::parse(&bytes, 101), None);
        assert_eq!(OffsetIndex::parse(&bytes[..7], 101), None, "not whole entries");
    }

    proptest! {
        #[test]
        fn files_go_both_ways(entries in proptest::collection::vec((1u32..1000, 1u32..5000, 1i64..50), 0..200)) {
            let (mut offsets, mut times) = (OffsetIndex::default(), TimeIndex::default());
            let (mut offset, mut position, mut time) = (0, 0, 0);
            for (a, b, c) in entries {
                (offset, position, time) = (offset + a, position + b, time + c);
                offsets.push(offset, position);
                times.push(Timestamp(time), offset);
            }
            prop_assert_eq!(OffsetIndex::parse(&offsets.encode(0), 1 << 32), Some(offsets));
            prop_assert_eq!(TimeIndex::parse(&times.encode(0)), Some(times));
        }

        #[test]
        fn whatever_bytes_come_an_index_only_grows(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Some(index) = OffsetIndex::parse(&bytes, u64::from(u32::MAX)) {
                prop_assert!(index.entries.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
            }
            let _ = TimeIndex::parse(&bytes);
        }
    }
}
