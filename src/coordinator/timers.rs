//! What a group waits for, by time.

use std::collections::{BTreeMap, BTreeSet};

use model::{GroupId, Instant, MemberId};

/// Something that happens to a group when nobody acts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// The join phase ends.
    Join(GroupId),
    /// The sync phase ends.
    Sync(GroupId),
    /// A member's session ends, or a pending member is forgotten.
    Member(GroupId, MemberId),
}

/// All timers of one machine: each is set once at most.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    due: BTreeMap<Timer, Instant>,
    by_time: BTreeSet<(Instant, Timer)>,
}

impl Timers {
    /// Sets a timer, whether or not it was set before.
    pub(crate) fn set(&mut self, timer: Timer, at: Instant) {
        self.cancel(&timer);
        self.by_time.insert((at, timer.clone()));
        self.due.insert(timer, at);
    }

    /// Well if it is not set.
    pub(crate) fn cancel(&mut self, timer: &Timer) {
        if let Some(at) = self.due.remove(timer) {
            self.by_time.remove(&(at, timer.clone()));
        }
    }

    /// When the next one is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Takes one that is due.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Timer> {
        if self.next()? > now {
            return None;
        }
        let (_, timer) = self.by_time.pop_first()?;
        self.due.remove(&timer);
        Some(timer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_that_is_set_again_fires_once_at_the_later_time() {
        let mut timers = Timers::default();
        let timer = Timer::Join("g".into());
        timers.set(timer.clone(), Instant(5));
        timers.set(timer.clone(), Instant(9));
        assert_eq!(timers.pop(Instant(8)), None);
        assert_eq!(timers.pop(Instant(9)), Some(timer));
        assert_eq!(timers.pop(Instant(99)), None);
    }
}
