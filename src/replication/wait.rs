//! Waiting for partitions: one signal, registered with as many partitions as a request names.
//!
//! A partition fires the signal of a waiter whose offset its high watermark, or for a follower its log end, has reached, and
//! those of all waiters when it fails, goes away or is led elsewhere; whoever waited then looks at that partition again. Dropping a [`Registration`] takes the
//! waiter out, so an idle partition does not collect the long polls of its past.
//!
//! Invariants: a registration fires its signal at most once.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::Offset;
use tokio::sync::Notify;

use crate::{Awaited, Partition};

/// Wakes one waiting request.
pub struct Signal {
    count: usize,
    /// Places of the registrations that fired.
    fired: Mutex<Vec<usize>>,
    wake: Notify,
}

impl Signal {
    /// A signal that wakes after `count` firings; at once for 0.
    pub fn new(count: usize) -> Arc<Self> {
        Arc::new(Self { count, fired: Mutex::new(Vec::with_capacity(count)), wake: Notify::new() })
    }

    /// Ends when it has been fired often enough, and gives the places of who fired it since the last time.
    pub async fn fired(&self) -> Vec<usize> {
        loop {
            if let Some(fired) = self.take() {
                return fired;
            }
            self.wake.notified().await;
        }
    }

    fn take(&self) -> Option<Vec<usize>> {
        let mut fired = self.lock();
        (fired.len() >= self.count).then(|| std::mem::take(&mut *fired))
    }

    pub(crate) fn fire(&self, place: usize) {
        let mut fired = self.lock();
        fired.push(place);
        if fired.len() == self.count {
            self.wake.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<usize>> {
        self.fired.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A waiter's place at one partition.
pub struct Registration {
    partition: Arc<Partition>,
    awaited: Awaited,
    /// None where the signal fired at once.
    ticket: Option<Ticket>,
}

impl Registration {
    pub(crate) fn new(partition: Arc<Partition>, awaited: Awaited, ticket: Option<Ticket>) -> Self {
        Self { partition, awaited, ticket }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.partition.forget(self.awaited, ticket);
        }
    }
}

/// A waiter's number among all that a partition ever had.
pub(crate) type Ticket = u64;

/// The waiters of one partition.
#[derive(Default)]
pub(crate) struct Waiters {
    /// By ticket: who leaves is mostly the oldest or the newest.
    waiting: VecDeque<Waiter>,
    next: Ticket,
}

struct Waiter {
    ticket: Ticket,
    offset: Offset,
    signal: Arc<Signal>,
    place: usize,
}

impl Waiters {
    /// Fires `signal` for `place` once `offset` is reached.
    pub(crate) fn add(&mut self, offset: Offset, signal: &Arc<Signal>, place: usize) -> Ticket {
        let ticket = self.next;
        self.next += 1;
        self.waiting.push_back(Waiter { ticket, offset, signal: signal.clone(), place });
        ticket
    }

    /// Fires those whose offset is reached.
    pub(crate) fn reached(&mut self, end: Offset) {
        self.waiting.retain(|waiter| {
            let waits = waiter.offset > end;
            if !waits {
                waiter.signal.fire(waiter.place);
            }
            waits
        });
    }

    /// Fires all: the partition failed, or is led elsewhere.
    pub(crate) fn all(&mut self) {
        self.reached(Offset(i64::MAX));
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Takes a waiter out, if it has not fired.
    pub(crate) fn forget(&mut self, ticket: Ticket) {
        if let Ok(at) = self.waiting.binary_search_by_key(&ticket, |waiter| waiter.ticket) {
            self.waiting.remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn fired(signal: &Signal) -> Option<Vec<usize>> {
        match pin!(signal.fired()).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(places) => Some(places),
            Poll::Pending => None,
        }
    }

    #[test]
    fn a_signal_for_all_waits_for_the_last() {
        let signal = Signal::new(2);
        let (mut first, mut second) = (Waiters::default(), Waiters::default());
        first.add(Offset(5), &signal, 0);
        second.add(Offset(7), &signal, 1);
        first.reached(Offset(5));
        second.reached(Offset(6));
        assert_eq!(fired(&signal), None);
        second.reached(Offset(7));
        assert_eq!(fired(&signal), Some(vec![0, 1]));
    }

    #[test]
    fn a_signal_for_nothing_wakes_at_once() {
        assert_eq!(fired(&Signal::new(0)), Some(vec![]));
    }

    #[test]
    fn a_signal_for_any_says_who_fired_it_since_the_last_time() {
        let signal = Signal::new(1);
        let mut waiters = Waiters::default();
        for (place, offset) in [(7, 3), (8, 1), (9, 2)] {
            waiters.add(Offset(offset), &signal, place);
        }
        waiters.reached(Offset(2));
        assert_eq!(fired(&signal), Some(vec![8, 9]));
        assert_eq!(fired(&signal), None);
        waiters.all();
        assert_eq!(fired(&signal), Some(vec![7]));
    }

    #[test]
    fn a_forgotten_waiter_is_gone_and_others_of_its_offset_are_not() {
        let signal = Signal::new(1);
        let mut waiters = Waiters::default();
        let ticket = waiters.add(Offset(1), &signal, 0);
        waiters.add(Offset(1), &signal, 1);
        waiters.forget(ticket);
        waiters.all();
        assert_eq!(fired(&signal), Some(vec![1]));
    }
}
