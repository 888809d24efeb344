//! The questions to one leader: which are open, which are in flight by which lane, and what is being flushed.
//!
//! Invariants: a question is in flight at most once; a partition asks one thing at a time, its latest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{LeaderEpoch, TopicIdPartition};
use replica::{FetchState, QuestionId};

use crate::Partition;

/// A way to the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    Main,
    /// For what is asked while the main one waits for the leader.
    Aside,
}

/// All of them.
#[derive(Default)]
pub(crate) struct Asked {
    open: BTreeMap<TopicIdPartition, Open>,
    listings: BTreeMap<TopicIdPartition, Listing>,
    /// Of each lane, how many questions are in flight.
    in_flight: [usize; 2],
    /// Of each lane, the partitions that flush what it brought.
    flushing: [BTreeSet<TopicIdPartition>; 2],
    /// Whether the main lane waits for the leader.
    main_waits: bool,
}

struct Open {
    partition: Arc<Partition>,
    state: FetchState,
    /// By which lane it is in flight.
    lane: Option<Lane>,
}

/// A question where the leader's log starts and ends.
pub(crate) struct Listing {
    pub(crate) partition: Arc<Partition>,
    pub(crate) id: QuestionId,
    pub(crate) leader_epoch: LeaderEpoch,
}

/// What a lane asks next.
pub(crate) enum Next {
    Offsets(Listing),
    Records(BTreeMap<TopicIdPartition, FetchState>),
}

impl Asked {
    /// A partition asks for records.
    pub(crate) fn ask(&mut self, partition: &Arc<Partition>, state: FetchState) {
        self.leave(partition.id);
        self.open.insert(partition.id, Open { partition: partition.clone(), state, lane: None });
    }

    /// A partition asks where the leader's log starts and ends.
    pub(crate) fn ask_offsets(&mut self, listing: Listing) {
        self.leave(listing.partition.id);
        self.listings.insert(listing.partition.id, listing);
    }

    /// A partition asks nothing more.
    pub(crate) fn leave(&mut self, id: TopicIdPartition) {
        self.take_out(id);
        self.listings.remove(&id);
        self.settled(id);
    }

    /// Nothing is being flushed of this partition.
    pub(crate) fn settled(&mut self, id: TopicIdPartition) {
        for flushing in &mut self.flushing {
            flushing.remove(&id);
        }
    }

    fn take_out(&mut self, id: TopicIdPartition) -> Option<Open> {
        let open = self.open.remove(&id)?;
        if let Some(lane) = open.lane {
            self.in_flight[lane as usize] -= 1;
        }
        Some(open)
    }

    /// What this lane asks now; it is then in flight. The aside lane has its turn while the main one waits.
    pub(crate) fn take(&mut self, lane: Lane) -> Option<Next> {
        if lane == Lane::Aside && !self.main_waits {
            return None;
        }
        if let Some((_, listing)) = self.listings.pop_first() {
            self.main_waits |= lane == Lane::Main;
            return Some(Next::Offsets(listing));
        }
        let free = self.open.iter_mut().filter(|(_, open)| open.lane.is_none());
        let wanted: BTreeMap<_, _> = free
            .map(|(id, open)| {
                open.lane = Some(lane);
                (*id, open.state)
            })
            .collect();
        self.in_flight[lane as usize] += wanted.len();
        self.main_waits |= lane == Lane::Main && !wanted.is_empty();
        (!wanted.is_empty()).then_some(Next::Records(wanted))
    }

    /// Takes the question out that this lane brought the answer of, which may have to be flushed; none where it is not
    /// asked any more.
    pub(crate) fn answered(
        &mut self,
        id: TopicIdPartition,
        lane: Lane,
    ) -> Option<(Arc<Partition>, FetchState)> {
        self.open.get(&id).filter(|open| open.lane == Some(lane))?;
        let Open { partition, state, .. } = self.take_out(id)?;
        self.flushing[lane as usize].insert(id);
        Some((partition, state))
    }

    /// The lane does not wait any more: what it left open may be asked again.
    pub(crate) fn returned(&mut self, lane: Lane) {
        self.main_waits &= lane != Lane::Main;
        self.in_flight[lane as usize] = 0;
        for open in self.open.values_mut().filter(|open| open.lane == Some(lane)) {
            open.lane = None;
        }
    }

    /// Whether nobody wants the answer any more that this lane waits for.
    pub(crate) fn is_deserted(&self, lane: Lane) -> bool {
        self.in_flight[lane as usize] == 0
    }

    /// Whether all that this lane brought is flushed, or no longer wanted.
    pub(crate) fn is_flushed(&self, lane: Lane) -> bool {
        self.flushing[lane as usize].is_empty()
    }
}
