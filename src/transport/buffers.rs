//! Receive and send buffers: aligned, used again, and no more than so many at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Buf, BytesMut};
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
    from: Option<Arc<Buffers>>,
}

impl Buffers {
    pub(crate) fn new(at_once: usize) -> Arc<Self> {
        Arc::new(Self { free: Mutex::new(Vec::new()), lent: AtomicUsize::new(0), at_once })
    }

    pub(crate) fn lend(self: &Arc<Self>) -> Lent {
        if self.lent.fetch_add(1, Ordering::Relaxed) >= self.at_once {
            self.lent.fetch_sub(1, Ordering::Relaxed);
            return Lent { bytes: aligned(BytesMut::with_capacity(SMALL + ALIGNMENT)), from: None };
        }
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let bytes = aligned(free.unwrap_or_else(|| BytesMut::with_capacity(ALLOCATED)));
        Lent { bytes, from: Some(Arc::clone(self)) }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(buffers) = self.from.take() else { return };
        buffers.lent.fetch_sub(1, Ordering::Relaxed);
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        if bytes.try_reclaim(ALLOCATED) {
            buffers.free.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
        }
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
        let kept = first.bytes.split().freeze();
        drop(first);
        let mut second = buffers.lend();
        second.bytes.extend_from_slice(b"other");
        assert_eq!(kept, &b"kept"[..]);
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
