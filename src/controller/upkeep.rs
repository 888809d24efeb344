//! What the controller does without being asked, by the clock.
//!
//! Whoever runs it calls [`Controller::handle_tick`] at the [`Controller::deadline`], and again until that lies ahead:
//! one thing is decided at a time, on the image that the one before it made.
//!
//! Kafka: `PeriodicTaskControlManager`, `QuorumController`'s periodic tasks; KIP-631.

use std::time::Duration;

use model::{Instant, NodeId};

use crate::mutant::Mutant;
use crate::{Config, Controller, Decision};

/// How often partitions without a leader get one uncleanly, where that is allowed (`unclean.leader.election.interval.ms`).
const UNCLEAN_ELECTION_INTERVAL: Duration = Duration::from_mins(5);

/// How often it is looked whether internal topics can grow, where there are several brokers.
const GROWTH_INTERVAL: Duration = Duration::from_secs(1);

/// When the controller has to look after what.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    balance: Option<Instant>,
    unclean_election: Instant,
    growth: Instant,
}

impl Schedule {
    pub(crate) fn begin(config: &Config, now: Instant) -> Self {
        Self {
            balance: config.balance_interval().map(|interval| now.plus(interval)),
            unclean_election: now.plus(UNCLEAN_ELECTION_INTERVAL),
            growth: now.plus(GROWTH_INTERVAL),
        }
    }
}

impl Controller {
    /// When to call [`Controller::handle_tick`] next.
    pub fn deadline(&self) -> Instant {
        let session = self.sessions.deadline(&self.image.brokers);
        let growth = Some(self.schedule.growth).filter(|_| self.has_several_brokers());
        let others = [session, self.schedule.balance, growth];
        others.into_iter().flatten().fold(self.schedule.unclean_election, Instant::min)
    }

    /// Decides on what is due now. The reply is who was fenced. A call that comes a second too late fences nobody: it gives
    /// the brokers their time anew.
    pub fn handle_tick(&mut self, now: Instant) -> Decision<Vec<NodeId>> {
        self.sessions.excuse_if_late(&self.image.brokers, now);
        let mut ended = self.sessions.ended(&self.image.brokers, now);
        if self.mutation.is(Mutant::SilentBrokerForgotten) {
            ended.retain(|id| self.sessions.was_heard(*id));
        }
        if !ended.is_empty() {
            self.sessions.forget(&ended);
            return Decision { records: self.fence(&ended), reply: ended };
        }
        if self.schedule.unclean_election <= now {
            self.schedule.unclean_election = now.plus(UNCLEAN_ELECTION_INTERVAL);
            return Decision { records: self.unclean_elections(), reply: Vec::new() };
        }
        if self.schedule.balance.is_some_and(|at| at <= now) {
            let (records, has_more) = self.balance();
            let interval = self.config.balance_interval();
            self.schedule.balance = interval.map(|interval| if has_more { now } else { now.plus(interval) });
            return Decision { records, reply: Vec::new() };
        }
        if self.has_several_brokers() && self.schedule.growth <= now {
            self.schedule.growth = now.plus(GROWTH_INTERVAL);
            return Decision { records: self.grow_internal_topics(), reply: Vec::new() };
        }
        Decision::nothing(Vec::new())
    }

    fn has_several_brokers(&self) -> bool {
        self.image.brokers.unfenced().nth(1).is_some()
    }
}
