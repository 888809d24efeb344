//! How far one follower is, as its leader knows.
//!
//! Kafka: `kafka.cluster.Replica`.

use std::time::Duration;

use model::{BrokerEpoch, Instant, Offset};

use crate::ReplicaBroker;

/// What a follower's Fetch of one partition says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fetched {
    pub(crate) offset: Offset,
    pub(crate) log_start: Offset,
    pub(crate) broker_epoch: Option<BrokerEpoch>,
}

/// A follower in one leader epoch.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    /// The broker, as the metadata has it.
    pub(crate) broker: ReplicaBroker,
    /// Its latest Fetch of this epoch.
    fetched: Option<Fetched>,
    /// When that was, and where the leader's log ended then.
    last_fetch: Option<(Instant, Offset)>,
    caught_up_at: Option<Instant>,
}

impl Progress {
    /// Nothing is known but whether it is in sync, which it then counts as having been until now.
    pub(crate) fn new(broker: ReplicaBroker, in_sync_at: Option<Instant>) -> Self {
        Self { broker, fetched: None, last_fetch: None, caught_up_at: in_sync_at }
    }

    pub(crate) fn handle_fetch(&mut self, now: Instant, fetched: Fetched, leader_end: Offset) {
        // It had everything when it asked now, or what it asks for now is all that there was when it asked last.
        let caught_up_at = match self.last_fetch {
            _ if fetched.offset >= leader_end => Some(now),
            Some((then, end)) if fetched.offset >= end => Some(then),
            _ => None,
        };
        self.caught_up_at = self.caught_up_at.max(caught_up_at);
        self.last_fetch = Some((now, leader_end));
        self.fetched = Some(fetched);
    }

    /// The end of its log, all safe; none before its first fetch of this epoch.
    pub(crate) fn end(&self) -> Option<Offset> {
        self.fetched.map(|fetched| fetched.offset)
    }

    pub(crate) fn log_start(&self) -> Option<Offset> {
        self.fetched.map(|fetched| fetched.log_start)
    }

    pub(crate) fn broker_epoch(&self) -> Option<BrokerEpoch> {
        self.fetched.and_then(|fetched| fetched.broker_epoch)
    }

    /// Whether a Fetch of this broker epoch is of an earlier life of the broker.
    pub(crate) fn is_outlived(&self, broker_epoch: Option<BrokerEpoch>) -> bool {
        broker_epoch.is_some() && broker_epoch < self.broker.epoch
    }

    /// Whether it may be in the ISR: alive, and what is known of it is of its present life (KIP-841, KIP-903).
    pub(crate) fn is_eligible(&self) -> bool {
        self.broker.is_active && self.broker.epoch.is_some() && self.broker_epoch() == self.broker.epoch
    }

    pub(crate) fn is_caught_up(&self, now: Instant, leader_end: Offset, lag_max: Duration) -> bool {
        self.end() == Some(leader_end) || self.lags_at(lag_max).is_some_and(|at| now < at)
    }

    /// When it has not been caught up for too long.
    pub(crate) fn lags_at(&self, lag_max: Duration) -> Option<Instant> {
        self.caught_up_at.map(|at| at.plus(lag_max))
    }
}
