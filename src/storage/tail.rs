//! The batches that were just appended, in memory, for consumers that live at the end of the log.
//!
//! Each log keeps its own; one budget bounds them all, and what is oldest of all logs leaves first. What a log holds is
//! always the newest part of what it appended, without a gap, unless something too large for the budget came between.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Bytes, BytesMut};
use model::Offset;
use protocol::batch::batches;

/// What keeping a piece costs beside its bytes.
const SLOT_BYTES: usize = 128;
/// A piece that is larger than this part of the budget is not kept.
const SHARE_MAX: usize = 4;
/// A piece from this size on is given out without being copied together with its neighbours.
const WHOLE_BYTES: usize = 32 << 10;

/// The bytes that all tails of a process may hold together. Cheap to clone.
#[derive(Clone)]
pub struct TailBudget(Arc<Mutex<Held>>);

struct Held {
    bytes: usize,
    bytes_max: usize,
    oldest_first: VecDeque<Arc<Slot>>,
}

/// One append's bytes, until the budget takes them back.
struct Slot(Mutex<Option<Bytes>>);

impl Slot {
    fn get(&self) -> Option<Bytes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn take(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(0, |bytes| bytes.len())
    }
}

impl TailBudget {
    /// A budget of so many bytes; 0 keeps nothing.
    pub fn new(bytes_max: usize) -> Self {
        Self(Arc::new(Mutex::new(Held { bytes: 0, bytes_max, oldest_first: VecDeque::new() })))
    }

    /// Bytes that are held now, with what holding them costs.
    pub fn bytes(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }

    fn keep(&self, bytes: Bytes) -> Option<Arc<Slot>> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes.len() > held.bytes_max / SHARE_MAX {
            return None;
        }
        held.bytes += bytes.len() + SLOT_BYTES;
        let slot = Arc::new(Slot(Mutex::new(Some(bytes))));
        held.oldest_first.push_back(slot.clone());
        while held.bytes > held.bytes_max {
            let Some(oldest) = held.oldest_first.pop_front() else { break };
            held.bytes -= oldest.take() + SLOT_BYTES;
        }
        Some(slot)
    }

    // The slot itself stays in line until it is the oldest.
    fn give_back(&self, slot: &Slot) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.bytes -= slot.take();
    }
}

/// One log's part.
pub(crate) struct Tail {
    budget: TailBudget,
    pieces: VecDeque<Piece>,
}

struct Piece {
    start: Offset,
    end: Offset,
    slot: Arc<Slot>,
}

impl Tail {
    pub(crate) fn new(budget: TailBudget) -> Self {
        Self { budget, pieces: VecDeque::new() }
    }

    /// Keeps the batches that were appended at `[start, end)`.
    pub(crate) fn push(&mut self, start: Offset, end: Offset, bytes: Bytes) {
        while self.pieces.front().is_some_and(|piece| piece.slot.get().is_none()) {
            self.pieces.pop_front();
        }
        if let Some(slot) = self.budget.keep(bytes) {
            self.pieces.push_back(Piece { start, end, slot });
        }
    }

    /// Whole batches from the one that holds `from`, up to the offset `end` and `bytes_max` bytes, but at least one where
    /// that is asked for. None where `from` is not held; empty where not even one batch fits.
    pub(crate) fn read(
        &self,
        from: Offset,
        end: Offset,
        bytes_max: usize,
        at_least_one: bool,
    ) -> Option<Bytes> {
        let first = self.pieces.partition_point(|piece| piece.end <= from);
        let piece = self.pieces.get(first).filter(|piece| piece.start <= from)?;
        let bytes = cut(&piece.slot.get()?, from, end, bytes_max, at_least_one);
        if bytes.is_empty() || bytes.len() >= WHOLE_BYTES.min(bytes_max) {
            return Some(bytes);
        }
        Some(self.gather(first, bytes, end, bytes_max))
    }

    /// Adds what follows, as long as it is held and fits.
    fn gather(&self, first: usize, bytes: Bytes, end: Offset, bytes_max: usize) -> Bytes {
        let mut next = self.pieces.get(first).map_or(end, |piece| piece.end);
        let mut all: Option<BytesMut> = None;
        for piece in self.pieces.range(first + 1..) {
            let length = all.as_ref().map_or(bytes.len(), BytesMut::len);
            if piece.start != next || next >= end || length >= bytes_max {
                break;
            }
            let Some(more) = piece.slot.get().map(|b| cut(&b, next, end, bytes_max - length, false)) else {
                break;
            };
            if more.is_empty() {
                break;
            }
            all.get_or_insert_with(|| BytesMut::from(&*bytes)).extend_from_slice(&more);
            next = piece.end;
        }
        all.map_or(bytes, BytesMut::freeze)
    }

    /// Forgets what lies at `end` or behind it.
    pub(crate) fn truncate(&mut self, end: Offset) {
        while self.pieces.back().is_some_and(|piece| piece.end > end) {
            if let Some(piece) = self.pieces.pop_back() {
                self.budget.give_back(&piece.slot);
            }
        }
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        for piece in &self.pieces {
            self.budget.give_back(&piece.slot);
        }
    }
}

/// The batches of one piece from the one that holds `from`, before `end` and within `bytes_max`.
fn cut(piece: &Bytes, from: Offset, end: Offset, bytes_max: usize, at_least_one: bool) -> Bytes {
    let (mut start, mut length) = (0, 0);
    for batch in batches(piece).map_while(Result::ok) {
        let size = batch.bytes.len();
        if batch.header.last_offset() < from {
            start += size;
            continue;
        }
        let oversized = length + size > bytes_max && !(at_least_one && length == 0);
        if batch.header.last_offset() >= end || oversized {
            break;
        }
        length += size;
    }
    piece.slice(start..start + length)
}

#[cfg(test)]
mod tests {
    use protocol::batch::BatchBuilder;

    use super::*;

    fn batch(offset: i64, value: usize) -> Bytes {
        let mut builder = BatchBuilder::new().base_offset(Offset(offset));
        builder.append(None, Some(&vec![7; value]), &[]);
        builder.append(None, Some(b"second"), &[]);
        builder.build()
    }

    fn filled(budget: &TailBudget, count: i64) -> Tail {
        let mut tail = Tail::new(budget.clone());
        for n in 0..count {
            tail.push(Offset(n * 2), Offset(n * 2 + 2), batch(n * 2, 100));
        }
        tail
    }

    #[test]
    fn small_pieces_are_read_together_from_the_batch_that_holds_the_offset() {
        let tail = filled(&TailBudget::new(1 << 20), 5);
        let size = batch(0, 100).len();
        let read = tail.read(Offset(3), Offset(10), 1 << 20, true).unwrap();
        assert_eq!(read.len(), 4 * size);
        let offsets: Vec<i64> = batches(&read).map(|b| b.unwrap().header.base_offset.0).collect();
        assert_eq!(offsets, [2, 4, 6, 8]);
        assert_eq!(tail.read(Offset(3), Offset(6), 1 << 20, true).unwrap().len(), 2 * size);
        assert_eq!(tail.read(Offset(3), Offset(10), 2 * size + 5, true).unwrap().len(), 2 * size);
        assert_eq!(tail.read(Offset(3), Offset(10), 5, true).unwrap().len(), size);
        assert_eq!(tail.read(Offset(3), Offset(10), 5, false).unwrap().len(), 0);
        assert!(tail.read(Offset(10), Offset(11), 5, false).is_none());
    }

    #[test]
    fn the_oldest_of_all_logs_leaves_first() {
        let size = batch(0, 100).len();
        let budget = TailBudget::new(5 * (size + SLOT_BYTES));
        let first = filled(&budget, 3);
        let second = filled(&budget, 4);
        assert!(first.read(Offset(2), Offset(6), 1 << 20, true).is_none());
        assert_eq!(first.read(Offset(4), Offset(6), 1 << 20, true).unwrap().len(), size);
        assert_eq!(second.read(Offset(0), Offset(8), 1 << 20, true).unwrap().len(), 4 * size);
        assert_eq!(budget.bytes(), 5 * (size + SLOT_BYTES));
        drop(second);
        assert_eq!(budget.bytes(), size + 5 * SLOT_BYTES);
    }

    #[test]
    fn what_is_too_large_for_the_budget_leaves_a_gap_that_is_not_read_over() {
        let budget = TailBudget::new(4000);
        let mut tail = filled(&budget, 1);
        tail.push(Offset(2), Offset(4), batch(2, 2000));
        tail.push(Offset(4), Offset(6), batch(4, 100));
        assert_eq!(tail.read(Offset(0), Offset(6), 1 << 20, true).unwrap(), batch(0, 100));
        assert!(tail.read(Offset(2), Offset(6), 1 << 20, true).is_none());
        assert_eq!(tail.read(Offset(4), Offset(6), 1 << 20, true).unwrap(), batch(4, 100));
    }

    #[test]
    fn truncation_forgets_and_gives_back() {
        let budget = TailBudget::new(1 << 20);
        let mut tail = filled(&budget, 5);
        tail.truncate(Offset(5));
        assert!(tail.read(Offset(4), Offset(10), 1 << 20, true).is_none());
        assert_eq!(budget.bytes(), 2 * batch(0, 100).len() + 5 * SLOT_BYTES);
    }
}
