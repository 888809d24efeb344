//! The memory of all large frames together, and waiting for a share of it. Who gets it is for the `ledger` to say.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use env::Clock;
use tokio::sync::Notify;

use crate::ledger::{Ledger, Standing};

/// How long a frame waits before others give way to it.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long it waits for those that do not.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// Bytes that frames too large for a receive buffer may hold at once, over all connections.
#[derive(Clone)]
pub(crate) struct Budget(Arc<Shared>);

struct Shared {
    ledger: Mutex<Ledger>,
    clock: Arc<dyn Clock>,
}

/// What one frame holds of the budget, until it is dropped.
pub(crate) struct Share {
    budget: Budget,
    id: u64,
    wake: Arc<Notify>,
}

/// Why a frame is not received to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It gave way to others.
    Shed,
    /// Others did not give theirs back in time.
    NoRoom,
}

impl Budget {
    pub(crate) fn new(bytes: usize, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Shared { ledger: Mutex::new(Ledger::new(bytes.max(1))), clock }))
    }

    /// For a frame of `size` bytes, `received` of which have come. It holds nothing yet.
    pub(crate) fn begin(&self, size: usize, received: usize) -> Share {
        let (id, wake) = self.ledger().begin(size, received, self.0.clock.now());
        Share { budget: self.clone(), id, wake }
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.0.clock
    }

    /// How many frames hold a share.
    #[cfg(test)]
    pub(crate) fn shares(&self) -> usize {
        self.ledger().shares()
    }

    #[cfg(test)]
    pub(crate) fn is_waited_for(&self) -> bool {
        self.ledger().first_waiting().is_some()
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.0.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    /// Waits until the frame may hold `bytes` in all.
    pub(crate) async fn grow(&self, bytes: usize) -> Result<(), Refused> {
        let clock = self.budget.clock();
        let deadline = clock.now().plus(WAIT_MAX);
        self.budget.ledger().ask(self.id, bytes, clock.now());
        let _asking = Asking(self);
        loop {
            match self.standing() {
                Standing::Granted => return Ok(()),
                Standing::Shed => return Err(Refused::Shed),
                Standing::Waiting if clock.now() >= deadline => return Err(Refused::NoRoom),
                Standing::Waiting => {}
            }
            let look_again = clock.now().plus(PATIENCE).min(deadline);
            if env::timeout(clock, look_again, self.wake.notified()).await.is_none() {
                self.budget.ledger().relieve(self.id, clock.now());
            }
        }
    }

    /// So much of the frame has come in all.
    pub(crate) fn hear(&self, received: usize) {
        self.budget.ledger().hear(self.id, received, self.budget.clock().now());
    }

    /// All of the frame has come.
    pub(crate) fn complete(&self) {
        self.budget.ledger().complete(self.id);
    }

    /// Ends when the frame has to give way.
    pub(crate) async fn shed(&self) {
        while self.standing() != Standing::Shed {
            self.wake.notified().await;
        }
    }

    fn standing(&self) -> Standing {
        self.budget.ledger().standing(self.id)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.ledger().end(self.id, self.budget.clock().now());
    }
}

/// A frame that waits no longer must not be kept in the queue.
struct Asking<'a>(&'a Share);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.budget.ledger().withdraw(self.0.id, self.0.budget.clock().now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manual_clock::ManualClock;

    const SECOND: Duration = Duration::from_secs(1);

    /// A budget of eight bytes, and a share of all of them.
    async fn taken() -> (Arc<ManualClock>, Budget, Share) {
        let clock = Arc::new(ManualClock::default());
        let budget = Budget::new(8, clock.clone());
        let all = budget.begin(8, 8);
        all.grow(8).await.unwrap();
        (clock, budget, all)
    }

    #[tokio::test]
    async fn who_waits_gets_what_comes_back() {
        let (_clock, budget, all) = taken().await;
        let share = budget.begin(8, 1);
        let (result, ()) = tokio::join!(biased; share.grow(1), async { drop(all) });
        assert_eq!(result, Ok(()));
    }

    #[tokio::test]
    async fn the_silent_give_way() {
        let (clock, budget, all) = taken().await;
        let share = budget.begin(8, 1);
        let gives_way = async {
            all.shed().await;
            drop(all);
        };
        let time = async {
            for _ in 0..4 {
                clock.advance(SECOND).await;
            }
        };
        let (result, (), ()) = tokio::join!(biased; share.grow(1), gives_way, time);
        assert_eq!(result, Ok(()));
    }

    #[tokio::test]
    async fn who_waits_too_long_for_whole_frames_is_refused() {
        let (clock, budget, all) = taken().await;
        all.complete();
        let share = budget.begin(8, 1);
        let time = async {
            for _ in 0..30 {
                clock.advance(SECOND).await;
            }
        };
        let (result, ()) = tokio::join!(biased; share.grow(1), time);
        assert_eq!(result, Err(Refused::NoRoom));
    }

    #[tokio::test]
    async fn who_gives_up_waiting_does_not_stand_in_the_way() {
        let (_clock, budget, all) = taken().await;
        let (first, second) = (budget.begin(8, 1), budget.begin(8, 1));
        let given_up = tokio::select! {
            biased;
            _ = first.grow(8) => false,
            () = tokio::task::yield_now() => true,
        };
        assert!(given_up);
        drop(all);
        assert_eq!(second.grow(1).await, Ok(()));
    }
}
