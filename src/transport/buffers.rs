//! Receive and send buffers: aligned, used again, and no more than so many at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Buf, Bytes, BytesMut};
use model::Limits;

/// The kernel copies several times slower to an address that lies a few bytes past the source's place in its page.
const ALIGNMENT: usize = 4096;
/// What a buffer's allocation holds: its bytes, and room to move them to a page's start.
const ALLOCATED: usize = Limits::RECEIVE_BUFFER_BYTES + ALIGNMENT;
/// What is lent when all large ones are lent.
const SMALL: usize = 16 << 10;

/// Lends out buffers of `Limits::RECEIVE_BUFFER_BYTES`, at most `at_once`; beyond that, small ones.
pub(crate) struct Buffers {
    free: Mutex<Vec<BytesMut>>,
    lent: AtomicUsize,
    at_once: usize,
}

/// A lent buffer, empty at first. What is split off it keeps its memory; when nothing does, it is used again.
pub(crate) struct Lent {
    pub(crate) bytes: BytesMut,
    place: Option<Arc<Place>>,
}

/// One of the large buffers, in use as long as the buffer or a frame in it is.
struct Place(Arc<Buffers>);

/// Bytes of a frame, and what is given back when they are gone: a place among the buffers, or a share of the budget.
pub(crate) struct Holding<T> {
    pub(crate) bytes: Bytes,
    pub(crate) _held: T,
}

impl Buffers {
    pub(crate) fn new(at_once: usize) -> Arc<Self> {
        Arc::new(Self { free: Mutex::new(Vec::new()), lent: AtomicUsize::new(0), at_once })
    }

    pub(crate) fn lend(self: &Arc<Self>) -> Lent {
        if self.lent.fetch_add(1, Ordering::Relaxed) >= self.at_once {
            self.lent.fetch_sub(1, Ordering::Relaxed);
            return Lent { bytes: aligned(BytesMut::with_capacity(SMALL + ALIGNMENT)), place: None };
        }
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let bytes = aligned(free.unwrap_or_else(|| BytesMut::with_capacity(ALLOCATED)));
        Lent { bytes, place: Some(Arc::new(Place(Arc::clone(self)))) }
    }
}

impl Lent {
    /// Splits the first `size` bytes off, as a frame that may be kept.
    pub(crate) fn split_frame(&mut self, size: usize) -> Bytes {
        let bytes = self.bytes.split_to(size).freeze();
        match &self.place {
            Some(place) => Bytes::from_owner(Holding { bytes, _held: Arc::clone(place) }),
            None => bytes,
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(place) = &self.place else { return };
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        if bytes.try_reclaim(ALLOCATED) {
            place.0.free.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.lent.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<T> AsRef<[u8]> for Holding<T> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The empty buffer moved on to where a page starts.
fn aligned(mut bytes: BytesMut) -> BytesMut {
    let padding = bytes.as_ptr().align_offset(ALIGNMENT);
    bytes.resize(padding, 0);
    bytes.advance(padding);
    bytes
}

/// A buffer of its own, of at least `capacity`, that starts with `bytes`.
pub(crate) fn own(bytes: &[u8], capacity: usize) -> BytesMut {
    let mut own = aligned(BytesMut::with_capacity(capacity + ALIGNMENT));
    own.extend_from_slice(bytes);
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(lent: &Lent) -> usize {
        lent.bytes.as_ptr() as usize
    }

    #[test]
    fn a_buffer_starts_at_a_page_and_is_used_again() {
        let buffers = Buffers::new(2);
        let mut first = buffers.lend();
        assert_eq!(address(&first) % ALIGNMENT, 0);
        assert!(first.bytes.capacity() >= Limits::RECEIVE_BUFFER_BYTES);
        let place = address(&first);
        first.bytes.extend_from_slice(&[1; 5000]);
        drop(first.bytes.split_to(300).freeze());
        drop(first);
        let again = buffers.lend();
        assert_eq!((address(&again), again.bytes.len()), (place, 0));
        assert!(again.bytes.capacity() >= Limits::RECEIVE_BUFFER_BYTES);
    }

    #[test]
    fn a_buffer_whose_slice_is_kept_is_not_used_again() {
        let buffers = Buffers::new(2);
        let mut first = buffers.lend();
        first.bytes.extend_from_slice(b"kept");
        let kept = first.split_frame(4);
        drop(first);
        let mut second = buffers.lend();
        second.bytes.extend_from_slice(b"other");
        assert_eq!(kept, &b"kept"[..]);
    }

    #[test]
    fn a_buffer_whose_frame_is_kept_counts_as_lent() {
        let buffers = Buffers::new(1);
        let is_large = || buffers.lend().bytes.capacity() >= Limits::RECEIVE_BUFFER_BYTES;
        let mut first = buffers.lend();
        first.bytes.extend_from_slice(b"kept");
        let kept = first.split_frame(4);
        drop(first);
        assert!(!is_large());
        drop(kept);
        assert!(is_large());
    }

    #[test]
    fn beyond_the_limit_buffers_are_small() {
        let buffers = Buffers::new(1);
        let first = buffers.lend();
        let second = buffers.lend();
        assert!(second.bytes.capacity() < Limits::RECEIVE_BUFFER_BYTES);
        drop(second);
        drop(first);
        assert!(buffers.lend().bytes.capacity() >= Limits::RECEIVE_BUFFER_BYTES);
    }
}
