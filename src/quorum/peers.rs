//! Requests in flight, at most one a peer, and when a peer is asked again.
//!
//! Invariant: an answer is known by its request's id only while that request is in flight; late, doubled and
//! foreign answers are nobody's.

use std::collections::BTreeMap;

use model::Instant;

use crate::{Peer, RequestId};

#[derive(Clone, Debug, Default)]
pub(crate) struct Peers {
    slots: BTreeMap<Peer, Slot>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    in_flight: Option<(RequestId, Instant)>,
    /// Not to be asked before.
    again_at: Instant,
    /// Not to be asked at all.
    done: bool,
}

impl Slot {
    fn is_ready(&self, now: Instant) -> bool {
        !self.done && self.in_flight.is_none() && self.again_at <= now
    }

    fn deadline(&self) -> Option<Instant> {
        match self.in_flight {
            Some((_, expires)) => Some(expires),
            None => Some(self.again_at).filter(|_| !self.done),
        }
    }
}

impl Peers {
    pub(crate) fn clear(&mut self) {
        self.slots.clear();
    }

    /// Whether this peer may be asked now.
    pub(crate) fn is_ready(&self, peer: Peer, now: Instant) -> bool {
        self.slots.get(&peer).is_none_or(|slot| slot.is_ready(now))
    }

    /// Whether anybody is being asked.
    pub(crate) fn is_waiting(&self) -> bool {
        self.slots.values().any(|slot| slot.in_flight.is_some())
    }

    pub(crate) fn sent(&mut self, peer: Peer, id: RequestId, expires: Instant) {
        self.slots.entry(peer).or_default().in_flight = Some((id, expires));
    }

    /// The answer to `id` is there: whose is it, if anybody's?
    pub(crate) fn take(&mut self, id: RequestId) -> Option<Peer> {
        let found =
            self.slots.iter_mut().find(|(_, slot)| slot.in_flight.is_some_and(|(sent, _)| sent == id));
        let (peer, slot) = found?;
        slot.in_flight = None;
        Some(*peer)
    }

    pub(crate) fn back_off(&mut self, peer: Peer, until: Instant) {
        self.slots.entry(peer).or_default().again_at = until;
    }

    /// The peer has answered what it was asked for.
    pub(crate) fn finish(&mut self, peer: Peer) {
        self.slots.entry(peer).or_default().done = true;
    }

    /// Gives up what took too long. Another pause is not needed after that.
    pub(crate) fn expire(&mut self, now: Instant) {
        for slot in self.slots.values_mut() {
            if slot.in_flight.is_some_and(|(_, expires)| expires <= now) {
                slot.in_flight = None;
                slot.again_at = now;
            }
        }
    }

    /// When something is to be given up, or asked again, after `now`.
    pub(crate) fn deadline(&self, now: Instant) -> Option<Instant> {
        let deadlines = self.slots.values().filter_map(Slot::deadline);
        deadlines.filter(|deadline| *deadline > now).min()
    }
}
