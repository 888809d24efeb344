//! Who holds how much of the memory for large frames, who waits for more, and who gives way. Time is an argument.
//!
//! The rules, by which whoever goes on sending gets through, and frames never wait for one another for ever:
//! 1. A frame holds memory for what has come of it, and room for a few times as much. What it only announces is nothing.
//! 2. More is given only as long as all frames that hold something can still be received to their ends, one after the
//!    other, with what is left (the banker's rule): so there is always one that can go on. Of those that wait, the one
//!    with the least to come is first, and no other goes before it.
//! 3. Who waits for longer than a second sheds as many as it needs of those that keep it waiting by their own fault:
//!    frames of which nothing came for some seconds, and those that come more slowly than a modem. Waiting here is no
//!    fault. A frame that comes faster is never shed, and who waits too long for such is refused.
//! 4. A whole frame is never shed: its request is being handled, and gives all of it back by itself.
//!
//! Invariant: all frames together hold no more than there is. One larger than that may come when it is alone.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use model::Instant;
use tokio::sync::Notify;

/// Nothing came for so long: the sender is silent.
const SILENT_AFTER: Duration = Duration::from_secs(3);
/// Bytes a second below which a sender is slow.
const SPEED_MIN: u128 = 16 << 10;

/// All large frames of all connections. Sizes in bytes.
pub(crate) struct Ledger {
    all: usize,
    left: usize,
    /// By age.
    frames: BTreeMap<u64, Frame>,
    next_id: u64,
}

struct Frame {
    /// What it will hold in the end.
    size: usize,
    held: usize,
    /// More than `held` while it waits.
    wanted: usize,
    received: usize,
    /// When it began, and when something of it came: both later by the time for which it waited.
    begun: Instant,
    heard: Instant,
    waits_since: Instant,
    state: State,
    wake: Arc<Notify>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Begun,
    Whole,
    Shed,
}

/// How it stands with a frame that asked for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Granted,
    Waiting,
    Shed,
}

impl Ledger {
    pub(crate) fn new(all: usize) -> Self {
        Self { all, left: all, frames: BTreeMap::new(), next_id: 0 }
    }

    /// A frame of `size` bytes, `received` of which have come. Its number, and what wakes it when it stands differently.
    pub(crate) fn begin(&mut self, size: usize, received: usize, now: Instant) -> (u64, Arc<Notify>) {
        let (id, wake) = (self.next_id, Arc::new(Notify::new()));
        let frame = Frame {
            size: size.min(self.all),
            held: 0,
            wanted: 0,
            received,
            begun: now,
            heard: now,
            waits_since: now,
            state: State::Begun,
            wake: Arc::clone(&wake),
        };
        self.frames.insert(id, frame);
        self.next_id += 1;
        (id, wake)
    }

    /// The frame wants to hold so many bytes in all.
    pub(crate) fn ask(&mut self, id: u64, bytes: usize, now: Instant) {
        if let Some(frame) = self.frames.get_mut(&id) {
            frame.wanted = bytes.min(frame.size).max(frame.held);
            frame.waits_since = now;
        }
        self.serve(now);
    }

    /// It does not wait any more.
    pub(crate) fn withdraw(&mut self, id: u64, now: Instant) {
        if let Some(frame) = self.frames.get_mut(&id) {
            frame.wanted = frame.held;
        }
        self.serve(now);
    }

    pub(crate) fn standing(&self, id: u64) -> Standing {
        match self.frames.get(&id) {
            Some(frame) if frame.waits() => Standing::Waiting,
            Some(frame) if frame.state != State::Shed => Standing::Granted,
            _ => Standing::Shed,
        }
    }

    /// So much of the frame has come in all.
    pub(crate) fn hear(&mut self, id: u64, received: usize, now: Instant) {
        if let Some(frame) = self.frames.get_mut(&id) {
            frame.received = received;
            frame.heard = now;
        }
    }

    pub(crate) fn complete(&mut self, id: u64) {
        if let Some(frame) = self.frames.get_mut(&id) {
            frame.state = State::Whole;
        }
    }

    /// Everything that the frame held comes back.
    pub(crate) fn end(&mut self, id: u64, now: Instant) {
        let Some(frame) = self.frames.remove(&id) else { return };
        self.left += frame.held;
        self.serve(now);
    }

    /// Rule 3, for a frame that has waited.
    pub(crate) fn relieve(&mut self, id: u64, now: Instant) {
        if self.standing(id) != Standing::Waiting {
            return;
        }
        let others = self.frames.iter().filter(|(other, _)| **other != id);
        let mut faults: Vec<_> =
            others.filter_map(|(other, frame)| frame.fault(now).map(|fault| (fault, *other))).collect();
        faults.sort_unstable();
        for (_, victim) in faults {
            if self.fits(id, self.left + self.leaving()) {
                return;
            }
            if let Some(frame) = self.frames.get_mut(&victim) {
                frame.state = State::Shed;
                frame.wake.notify_one();
            }
        }
    }

    /// Rule 2.
    fn serve(&mut self, now: Instant) {
        while let Some(id) = self.first_waiting().filter(|id| self.fits(*id, self.left)) {
            let Some(frame) = self.frames.get_mut(&id) else { return };
            self.left -= frame.missing();
            frame.grant(now);
        }
    }

    #[cfg(test)]
    pub(crate) fn shares(&self) -> usize {
        self.frames.values().filter(|frame| frame.held > 0).count()
    }

    pub(crate) fn first_waiting(&self) -> Option<u64> {
        let waiting = self.frames.iter().filter(|(_, frame)| frame.waits());
        waiting.min_by_key(|(id, frame)| (frame.to_come(), **id)).map(|(id, _)| *id)
    }

    /// Whether the frame can be given what it wants of `left`, and all can be received to their ends then.
    fn fits(&self, id: u64, left: usize) -> bool {
        let frame = &self.frames[&id];
        let Some(mut left) = left.checked_sub(frame.missing()) else { return false };
        let given = (frame.size - frame.wanted, frame.wanted);
        let others = self.frames.iter().filter(|(other, frame)| **other != id && frame.counts());
        let others = others.map(|(_, frame)| (frame.to_come(), frame.held));
        let mut all: Vec<_> = others.chain([given]).collect();
        all.sort_unstable();
        all.into_iter().all(|(to_come, held)| {
            let can_end = to_come <= left;
            left += held;
            can_end
        })
    }

    fn leaving(&self) -> usize {
        self.frames.values().filter(|frame| frame.state == State::Shed).map(|frame| frame.held).sum()
    }
}

impl Frame {
    fn missing(&self) -> usize {
        self.wanted - self.held
    }

    fn waits(&self) -> bool {
        self.state == State::Begun && self.missing() > 0
    }

    fn counts(&self) -> bool {
        self.state != State::Shed && self.held > 0
    }

    fn to_come(&self) -> usize {
        self.size - self.held
    }

    fn grant(&mut self, now: Instant) {
        let waited = now.since(self.waits_since);
        self.held = self.wanted;
        self.begun = self.begun.plus(waited);
        self.heard = self.heard.plus(waited);
        self.wake.notify_one();
    }

    /// Why it may be shed; the worst is the least.
    fn fault(&self, now: Instant) -> Option<(Reverse<Duration>, u128)> {
        let now = if self.waits() { self.waits_since } else { now };
        let silence = Some(now.since(self.heard)).filter(|silence| *silence >= SILENT_AFTER);
        let speed = self.received as u128 * 1000 / now.since(self.begun).as_millis().max(1);
        let is_at_fault = silence.is_some() || speed < SPEED_MIN;
        (self.state == State::Begun && self.held > 0 && is_at_fault)
            .then_some((Reverse(silence.unwrap_or_default()), speed))
    }
}

#[cfg(test)]
mod tests {
    use super::Standing::{Granted, Shed, Waiting};
    use super::*;

    const KIB: usize = 1 << 10;
    const MIB: usize = 1 << 20;

    fn at(millis: u64) -> Instant {
        Instant(millis * 1_000_000)
    }

    /// A frame of `size` that asked for so much of it.
    fn frame(ledger: &mut Ledger, size: usize, wanted: usize) -> u64 {
        let (id, _) = ledger.begin(size, wanted, at(0));
        ledger.ask(id, wanted, at(0));
        id
    }

    fn standings<const N: usize>(ledger: &Ledger, ids: [u64; N]) -> [Standing; N] {
        ids.map(|id| ledger.standing(id))
    }

    #[test]
    fn what_a_frame_held_comes_back_when_it_ends() {
        let mut ledger = Ledger::new(100);
        let id = frame(&mut ledger, 40, 10);
        ledger.ask(id, 40, at(0));
        assert_eq!((ledger.standing(id), ledger.left), (Granted, 60));
        ledger.end(id, at(0));
        assert_eq!(ledger.left, 100);
    }

    #[test]
    fn a_frame_larger_than_everything_comes_when_it_is_alone() {
        let mut ledger = Ledger::new(100);
        let other = frame(&mut ledger, 10, 1);
        let large = frame(&mut ledger, 1000, 1000);
        assert_eq!(ledger.standing(large), Waiting);
        ledger.end(other, at(0));
        assert_eq!((ledger.standing(large), ledger.left), (Granted, 0));
    }

    #[test]
    fn a_frame_begins_only_where_those_that_have_begun_can_still_end() {
        let mut ledger = Ledger::new(100);
        let [first, second] = [(); 2].map(|()| frame(&mut ledger, 95, 10));
        assert_eq!(
            standings(&ledger, [first, second]),
            [Granted, Waiting],
            "after it none could have come to its end"
        );
        let small = frame(&mut ledger, 20, 10);
        assert_eq!(
            ledger.standing(small),
            Granted,
            "there is always room for it to end before the large one"
        );
        ledger.ask(small, 20, at(0));
        ledger.ask(first, 95, at(0));
        assert_eq!(standings(&ledger, [small, first]), [Granted, Waiting]);
        ledger.end(small, at(0));
        assert_eq!(standings(&ledger, [first, second]), [Granted, Waiting]);
        ledger.end(first, at(0));
        assert_eq!(ledger.standing(second), Granted);
    }

    #[test]
    fn who_has_the_least_to_come_is_first() {
        let mut ledger = Ledger::new(100);
        let all = frame(&mut ledger, 100, 100);
        let [much, little] = [80, 70].map(|size| frame(&mut ledger, size, 60));
        ledger.end(all, at(0));
        assert_eq!(standings(&ledger, [much, little]), [Waiting, Granted]);
    }

    #[test]
    fn the_silent_are_shed_before_the_slow_and_no_more_of_them_than_is_needed() {
        let mut ledger = Ledger::new(4 * MIB);
        let [silent, slow, fast, whole] = [(); 4].map(|()| frame(&mut ledger, MIB, MIB));
        ledger.hear(silent, MIB - 1, at(100));
        ledger.hear(slow, 30 * KIB, at(3900));
        ledger.hear(fast, 300 * KIB, at(3900));
        ledger.complete(whole);
        let [first, second, third] = [(); 3].map(|()| frame(&mut ledger, MIB, MIB));
        ledger.relieve(first, at(4000));
        assert_eq!(standings(&ledger, [silent, slow, fast, whole]), [Shed, Granted, Granted, Granted]);
        ledger.end(silent, at(4001));
        assert_eq!(ledger.standing(first), Granted);
        ledger.relieve(second, at(5000));
        assert_eq!(standings(&ledger, [slow, fast, whole]), [Shed, Granted, Granted]);
        ledger.end(slow, at(5001));
        ledger.hear(first, MIB - 1, at(6000));
        ledger.hear(second, MIB - 1, at(6000));
        ledger.relieve(third, at(6001));
        assert_eq!(standings(&ledger, [fast, whole, third]), [Granted, Granted, Waiting]);
    }

    #[test]
    fn waiting_for_memory_is_no_fault() {
        let mut ledger = Ledger::new(2 * MIB);
        let [waiting, other] = [(); 2].map(|()| frame(&mut ledger, 2 * MIB, 900 * KIB));
        assert_eq!(ledger.standing(other), Waiting);
        ledger.hear(waiting, 900 * KIB, at(10));
        let whole = frame(&mut ledger, 300 * KIB, 300 * KIB);
        ledger.complete(whole);
        ledger.ask(waiting, 2 * MIB, at(10));
        ledger.relieve(other, at(9000));
        assert_eq!(standings(&ledger, [waiting, other]), [Waiting, Waiting]);
        ledger.end(whole, at(9000));
        ledger.relieve(other, at(11_000));
        assert_eq!(
            standings(&ledger, [waiting, other]),
            [Granted, Waiting],
            "its two seconds of silence count alone"
        );
        ledger.relieve(other, at(12_000));
        assert_eq!(ledger.standing(waiting), Shed);
    }

    #[test]
    fn many_frames_that_all_come_at_once_all_come_to_their_ends() {
        let mut ledger = Ledger::new(8 * MIB);
        let sizes = (1..=40).map(|i| i * 100 * KIB);
        let mut coming: Vec<_> =
            sizes.map(|size| (frame(&mut ledger, size, size.min(64 * KIB)), size)).collect();
        for round in 0.. {
            let before = coming.len();
            coming.retain(|(id, size)| {
                let held = ledger.frames[id].held;
                match ledger.standing(*id) {
                    Waiting => {}
                    Granted if held < *size => ledger.ask(*id, 4 * held, at(round)),
                    Granted => ledger.end(*id, at(round)),
                    Shed => panic!("{id} was shed"),
                }
                ledger.frames.contains_key(id)
            });
            if coming.is_empty() {
                break;
            }
            assert!(round < 500, "{before} frames wait for one another");
        }
        assert_eq!(ledger.left, 8 * MIB);
    }
}
