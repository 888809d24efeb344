//! Waiting for partitions: one signal, registered with as many partitions as a request names.
//!
//! A partition fires the signal of a waiter whose offset its high watermark has reached, and those of all waiters when
//! it fails or goes away; whoever waited then looks at the partition again. Dropping a [`Registration`] takes the
//! waiter out, so an idle partition does not collect the long polls of its past.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use model::Offset;
use tokio::sync::Notify;

use crate::Partition;

/// Wakes one waiting request.
pub struct Signal {
    left: AtomicUsize,
    wake: Notify,
}

impl Signal {
    /// A signal that wakes after `count` firings; at once for 0.
    pub fn new(count: usize) -> Arc<Self> {
        Arc::new(Self { left: AtomicUsize::new(count), wake: Notify::new() })
    }

    /// Ends when it has been fired often enough.
    pub async fn done(&self) {
        while self.left.load(Ordering::Acquire) > 0 {
            self.wake.notified().await;
        }
    }

    pub(crate) fn fire(&self) {
        let before = self.left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1));
        if before == Ok(1) {
            self.wake.notify_one();
        }
    }
}

/// A waiter's place at one partition.
pub struct Registration {
    partition: Arc<Partition>,
    signal: Arc<Signal>,
}

impl Registration {
    pub(crate) fn new(partition: Arc<Partition>, signal: Arc<Signal>) -> Self {
        Self { partition, signal }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.partition.forget(&self.signal);
    }
}

/// The waiters of one partition.
#[derive(Default)]
pub(crate) struct Waiters(Vec<(Offset, Arc<Signal>)>);

impl Waiters {
    /// Fires `signal` once the high watermark has reached `offset`.
    pub(crate) fn add(&mut self, offset: Offset, signal: &Arc<Signal>) {
        self.0.push((offset, signal.clone()));
    }

    /// Fires those whose offset is reached.
    pub(crate) fn reached(&mut self, high_watermark: Offset) {
        self.0.retain(|(offset, signal)| {
            let waits = *offset > high_watermark;
            if !waits {
                signal.fire();
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
        self.0.len()
    }

    pub(crate) fn forget(&mut self, signal: &Arc<Signal>) {
        self.0.retain(|(_, waiting)| !Arc::ptr_eq(waiting, signal));
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    fn is_done(signal: &Signal) -> bool {
        pin!(signal.done()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn a_signal_for_all_waits_for_the_last() {
        let signal = Signal::new(2);
        let (mut first, mut second) = (Waiters::default(), Waiters::default());
        first.add(Offset(5), &signal);
        second.add(Offset(7), &signal);
        first.reached(Offset(5));
        second.reached(Offset(6));
        assert!(!is_done(&signal));
        second.reached(Offset(7));
        assert!(is_done(&signal));
    }

    #[test]
    fn a_signal_for_any_wakes_once() {
        let signal = Signal::new(1);
        let mut waiters = Waiters::default();
        waiters.add(Offset(1), &signal);
        waiters.add(Offset(2), &signal);
        waiters.all();
        assert!(is_done(&signal));
    }

    #[test]
    fn a_forgotten_waiter_is_gone() {
        let signal = Signal::new(1);
        let mut waiters = Waiters::default();
        waiters.add(Offset(1), &signal);
        waiters.forget(&signal);
        assert!(waiters.0.is_empty());
    }
}
