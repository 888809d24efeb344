//! What a log knows of its idempotent producers: the last five batches of each.
//!
//! Invariants
//! * The state is a function of the log: the same batches applied in the same order give the same state. It changes only
//!   after the write succeeded.
//! * A batch follows its producer's last one without a gap, or is one of the last five again, or is refused. Only what
//!   a leader appends for a client is checked; what a follower copies is not.
//! * `open` has the start of each open transaction, so that a reader need not look at all producers.
//!
//! Kafka: `ProducerStateManager`, `ProducerAppendInfo`, `ProducerStateEntry`; KIP-98, KIP-360.

use std::collections::{BTreeMap, BTreeSet};

use model::{Offset, ProducerEpoch, ProducerId, Sequence, Timestamp};
use protocol::batch::{Batch, BatchHeader};

use crate::AppendError;

/// Batches of a producer that are told from new ones: as many as it may have in flight.
const WINDOW: usize = 5;

/// A batch in a producer's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerWindowBatch {
    /// The last record's sequence.
    pub last_sequence: Sequence,
    /// The last record's offset.
    pub last_offset: Offset,
    /// How many records there are, less one.
    pub offset_delta: i32,
    /// The batch's latest timestamp.
    pub timestamp: Timestamp,
}

impl ProducerWindowBatch {
    fn of(header: &BatchHeader) -> Self {
        Self {
            last_sequence: header.last_sequence(),
            last_offset: header.last_offset(),
            offset_delta: header.last_offset_delta,
            timestamp: header.max_timestamp,
        }
    }

    /// The first record's offset.
    pub fn first_offset(&self) -> Offset {
        self.last_offset.plus(-i64::from(self.offset_delta))
    }
}

/// What is known of one producer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerState {
    /// Who it is.
    pub producer_id: ProducerId,
    /// Its newest epoch.
    pub epoch: ProducerEpoch,
    /// The epoch of the coordinator that wrote its last marker; -1 is none.
    pub coordinator_epoch: i32,
    /// When it last wrote, by the records' time.
    pub last_timestamp: Timestamp,
    /// Where its open transaction begins.
    pub transaction_start: Option<Offset>,
    window: Window,
}

/// The last batches, oldest first, without an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Window([Option<ProducerWindowBatch>; WINDOW]);

impl Window {
    fn push(&mut self, batch: ProducerWindowBatch) {
        self.0.rotate_left(1);
        if let Some(last) = self.0.last_mut() {
            *last = Some(batch);
        }
    }

    fn last(&self) -> Option<&ProducerWindowBatch> {
        self.0.last().and_then(Option::as_ref)
    }

    fn iter(&self) -> impl Iterator<Item = &ProducerWindowBatch> {
        self.0.iter().flatten()
    }
}

impl ProducerState {
    /// As a snapshot has it: with its last batch, or none.
    pub(crate) fn restored(
        producer_id: ProducerId,
        epoch: ProducerEpoch,
        coordinator_epoch: i32,
        last_timestamp: Timestamp,
        transaction_start: Option<Offset>,
        last: Option<ProducerWindowBatch>,
    ) -> Self {
        let mut window = Window::default();
        if let Some(last) = last {
            window.push(last);
        }
        Self { producer_id, epoch, coordinator_epoch, last_timestamp, transaction_start, window }
    }

    fn new(header: &BatchHeader) -> Self {
        Self::restored(header.producer_id, header.producer_epoch, -1, header.max_timestamp, None, None)
    }

    /// Its last batch in this epoch.
    pub(crate) fn last_batch(&self) -> Option<ProducerWindowBatch> {
        self.window.last().copied()
    }

    /// The last sequence; -1 where nothing was written in this epoch.
    pub fn last_sequence(&self) -> Sequence {
        self.window.last().map_or(Sequence::NONE, |batch| batch.last_sequence)
    }

    fn duplicate(&self, header: &BatchHeader) -> Option<ProducerWindowBatch> {
        let same = |batch: &&ProducerWindowBatch| {
            batch.last_sequence == header.last_sequence() && batch.offset_delta == header.last_offset_delta
        };
        if self.epoch == header.producer_epoch { self.window.iter().find(same).copied() } else { None }
    }

    fn is_next(&self, header: &BatchHeader) -> bool {
        if self.epoch != header.producer_epoch {
            return header.base_sequence == Sequence(0);
        }
        let last = self.last_sequence();
        header.base_sequence == if last == Sequence::NONE { Sequence(0) } else { last.plus(1) }
    }

    fn begin_epoch(&mut self, epoch: ProducerEpoch) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.window = Window::default();
        }
    }

    fn apply_data(&mut self, header: &BatchHeader) {
        self.begin_epoch(header.producer_epoch);
        self.window.push(ProducerWindowBatch::of(header));
        self.last_timestamp = header.max_timestamp;
        if header.is_transactional() {
            self.transaction_start.get_or_insert(header.base_offset);
        }
    }

    fn apply_marker(&mut self, batch: &Batch<'_>) {
        self.begin_epoch(batch.header.producer_epoch);
        self.transaction_start = None;
        self.last_timestamp = batch.header.max_timestamp;
        if let Some(epoch) = coordinator_epoch(batch) {
            self.coordinator_epoch = epoch;
        }
    }
}

/// What a marker's value says behind its version; none where the batch holds no marker.
fn coordinator_epoch(batch: &Batch<'_>) -> Option<i32> {
    let records = batch.records(batch.bytes.len()).ok()?;
    let record = records.iter().next()?.ok()?;
    Some(i32::from_be_bytes(*record.value?.get(2..)?.first_chunk()?))
}

/// The producers of one log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Producers {
    states: BTreeMap<ProducerId, ProducerState>,
    /// Where their open transactions begin.
    open: BTreeSet<Offset>,
}

impl Producers {
    /// Checks a client's batch that would begin at `offset`. Gives back the original where it is a duplicate.
    ///
    /// # Errors
    /// The producer was fenced, or the batch is not its next one. A producer that is not known may begin anywhere.
    pub(crate) fn check(
        &self,
        header: &BatchHeader,
        offset: Offset,
    ) -> Result<Option<ProducerWindowBatch>, AppendError> {
        let Some(state) = self.states.get(&header.producer_id) else { return Ok(None) };
        if let Some(original) = state.duplicate(header) {
            return Ok(Some(original));
        }
        self.check_epoch(header)?;
        if state.is_next(header) {
            return Ok(None);
        }
        Err(AppendError::OutOfOrderSequence {
            producer_id: header.producer_id,
            sequence: header.base_sequence,
            last: state.last_sequence(),
            offset,
        })
    }

    /// Checks the epoch alone.
    ///
    /// # Errors
    /// The producer was fenced.
    pub(crate) fn check_epoch(&self, header: &BatchHeader) -> Result<(), AppendError> {
        let current = self.states.get(&header.producer_id).map_or(ProducerEpoch::NONE, |state| state.epoch);
        if header.producer_epoch >= current {
            return Ok(());
        }
        let (producer_id, epoch) = (header.producer_id, header.producer_epoch);
        Err(AppendError::InvalidProducerEpoch { producer_id, epoch, current })
    }

    /// Takes note of a batch that is in the log, with the offsets that it has there.
    pub(crate) fn apply(&mut self, batch: &Batch<'_>) {
        if !batch.header.has_producer() {
            return;
        }
        if batch.header.is_control() {
            self.change(&batch.header, |state| state.apply_marker(batch));
        } else {
            self.change(&batch.header, |state| state.apply_data(&batch.header));
        }
    }

    /// As [`Self::apply`], of a batch that is no marker.
    pub(crate) fn apply_data(&mut self, header: &BatchHeader) {
        if header.has_producer() {
            self.change(header, |state| state.apply_data(header));
        }
    }

    fn change(&mut self, header: &BatchHeader, change: impl FnOnce(&mut ProducerState)) {
        let state = self.states.entry(header.producer_id).or_insert_with(|| ProducerState::new(header));
        let before = state.transaction_start;
        change(state);
        let after = state.transaction_start;
        self.reopen(before, after);
    }

    fn reopen(&mut self, before: Option<Offset>, after: Option<Offset>) {
        if before != after {
            before.map(|start| self.open.remove(&start));
            self.open.extend(after);
        }
    }

    /// Takes over what a snapshot says of one producer.
    pub(crate) fn restore(&mut self, state: ProducerState) {
        let after = state.transaction_start;
        let before = self.states.insert(state.producer_id, state).and_then(|state| state.transaction_start);
        self.reopen(before, after);
    }

    /// Completes windows of which a snapshot has only the last batch, from the batches before it, in order.
    pub(crate) fn complete_windows<'a>(&mut self, before: impl Iterator<Item = &'a BatchHeader>) {
        let mut windows: BTreeMap<ProducerId, Window> = BTreeMap::new();
        for header in before.filter(|header| header.has_producer() && !header.is_control()) {
            if self.states.get(&header.producer_id).is_some_and(|state| state.epoch == header.producer_epoch)
            {
                windows.entry(header.producer_id).or_default().push(ProducerWindowBatch::of(header));
            }
        }
        for (producer_id, window) in windows {
            let state =
                self.states.get_mut(&producer_id).filter(|state| state.window.last() == window.last());
            if let Some(state) = state {
                state.window = window;
            }
        }
    }

    /// When a producer last wrote, by the records' time.
    pub(crate) fn last_timestamp(&self) -> Option<Timestamp> {
        self.states.values().map(|state| state.last_timestamp).max()
    }

    /// Forgets who has not written for `expiration_ms`; never one with an open transaction.
    pub(crate) fn expire(&mut self, now: Timestamp, expiration_ms: i64) {
        self.states.retain(|_, state| {
            let idle_ms = now.0.saturating_sub(state.last_timestamp.0);
            state.transaction_start.is_some() || idle_ms < expiration_ms
        });
    }

    /// Where the oldest open transaction begins.
    pub(crate) fn first_open_transaction(&self) -> Option<Offset> {
        self.open.first().copied()
    }

    /// All of them, by producer id.
    pub(crate) fn sorted(&self) -> Vec<&ProducerState> {
        self.states.values().collect()
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use protocol::batch::BatchBuilder;

    use super::*;

    fn batch(epoch: i16, sequence: i32, offset: i64, count: usize) -> bytes::Bytes {
        let producer = (ProducerId(7), ProducerEpoch(epoch), Sequence(sequence));
        let mut builder = BatchBuilder::new()
            .base_offset(Offset(offset))
            .timestamp(Timestamp(1000 + offset))
            .producer(producer.0, producer.1, producer.2);
        for _ in 0..count {
            builder.append(None, Some(b"v"), &[]);
        }
        builder.build()
    }

    fn header(epoch: i16, sequence: i32, count: usize) -> BatchHeader {
        BatchHeader::parse(&batch(epoch, sequence, 0, count)).unwrap()
    }

    fn after(batches: &[bytes::Bytes]) -> Producers {
        let mut producers = Producers::default();
        for bytes in batches {
            producers.apply(&Batch::parse(bytes).unwrap());
        }
        producers
    }

    #[test]
    fn a_batch_follows_without_a_gap() {
        let producers = after(&[batch(0, 0, 0, 3)]);
        assert!(producers.check(&header(0, 3, 2), Offset(3)).unwrap().is_none());
        for sequence in [1, 2, 4, 100] {
            let refused = producers.check(&header(0, sequence, 2), Offset(3));
            assert!(matches!(refused, Err(AppendError::OutOfOrderSequence { .. })), "{sequence}");
        }
    }

    #[test]
    fn each_of_the_last_five_batches_is_known_again() {
        let producers = after(&(0..7).map(|n| batch(0, n * 2, 10 + i64::from(n) * 2, 2)).collect::<Vec<_>>());
        for n in 2..7 {
            let original = producers.check(&header(0, n * 2, 2), Offset(24)).unwrap().unwrap();
            assert_eq!(original.first_offset(), Offset(10 + i64::from(n) * 2));
            assert_eq!(original.timestamp, Timestamp(1010 + i64::from(n) * 2));
        }
        let too_old = producers.check(&header(0, 2, 2), Offset(24));
        assert!(matches!(too_old, Err(AppendError::OutOfOrderSequence { .. })));
        let not_the_same_range = producers.check(&header(0, 12, 1), Offset(24));
        assert!(matches!(not_the_same_range, Err(AppendError::OutOfOrderSequence { .. })));
    }

    #[test]
    fn sequences_wrap_to_zero() {
        let producers = after(&[batch(0, i32::MAX - 1, 0, 2)]);
        assert!(producers.check(&header(0, 0, 1), Offset(2)).unwrap().is_none());
        let across = after(&[batch(0, i32::MAX, 0, 3)]);
        assert!(across.check(&header(0, 2, 1), Offset(3)).unwrap().is_none());
        assert!(across.check(&header(0, i32::MAX, 3), Offset(3)).unwrap().is_some());
    }

    #[test]
    fn a_new_epoch_begins_at_zero_and_fences_the_old_one() {
        let producers = after(&[batch(3, 0, 0, 3)]);
        assert!(producers.check(&header(4, 0, 1), Offset(3)).unwrap().is_none());
        assert!(producers.check(&header(4, 3, 1), Offset(3)).is_err());
        let fenced = producers.check(&header(2, 3, 1), Offset(3));
        assert!(matches!(fenced, Err(AppendError::InvalidProducerEpoch { current: ProducerEpoch(3), .. })));
    }

    #[test]
    fn an_unknown_producer_may_begin_anywhere() {
        assert!(Producers::default().check(&header(0, 42, 1), Offset(0)).unwrap().is_none());
    }

    #[test]
    fn the_first_open_transaction_is_told_until_its_marker() {
        let open = |producer_id, start| {
            let start = Some(Offset(start));
            let epoch = ProducerEpoch(0);
            ProducerState::restored(ProducerId(producer_id), epoch, -1, Timestamp(0), start, None)
        };
        let mut producers = Producers::default();
        producers.restore(open(7, 5));
        producers.restore(open(8, 3));
        assert_eq!(producers.first_open_transaction(), Some(Offset(3)));
        producers.restore(open(8, 9));
        assert_eq!(producers.first_open_transaction(), Some(Offset(5)));
        let marker = BatchBuilder::new().control().transactional();
        let mut marker = marker.producer(ProducerId(7), ProducerEpoch(0), Sequence::NONE);
        marker.append(Some(b"key"), Some(b"value"), &[]);
        producers.apply(&Batch::parse(&marker.build()).unwrap());
        assert_eq!(producers.first_open_transaction(), Some(Offset(9)));
    }

    #[test]
    fn idle_producers_are_forgotten_unless_a_transaction_is_open() {
        let mut producers = after(&[batch(0, 0, 0, 1)]);
        producers.expire(Timestamp(1999), 1000);
        assert_eq!(producers.sorted().len(), 1);
        producers.expire(Timestamp(2000), 1000);
        assert_eq!(producers.sorted().len(), 0);
    }
}
