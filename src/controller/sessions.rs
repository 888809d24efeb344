//! When brokers were last heard of. Only the active controller knows, and no record says it: a new one begins anew.
//!
//! A session ends when its broker was silent for `broker.session.timeout.ms`, or when its connection closed and it did
//! not come back on another one within [`RECONNECT_TIME`]: a process that was killed is gone at once, while a
//! connection that was reset must not move a thousand leaders. A broker that was unfenced when this controller began
//! has a session from that moment on, or one that died in between would never be fenced (KAFKA-18138). The broker in the
//! controller's own process lives as long as the controller does: a process that was stopped for a while must not find
//! that it has fenced itself.
//!
//! Kafka: `BrokerHeartbeatManager`, `BrokerHeartbeatTracker`; KIP-631.

use std::collections::BTreeMap;
use std::time::Duration;

use metadata::Brokers;
use model::{BrokerEpoch, Instant, NodeId, Offset};

/// How long a broker may be without a connection.
const RECONNECT_TIME: Duration = Duration::from_millis(250);
/// A look at the sessions that comes this late was held up itself, and so was what the brokers said meanwhile.
const LATE: Duration = Duration::from_secs(1);

/// A connection of a broker to this node: a later one has a greater number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

impl ConnectionId {
    /// Of the broker that runs in the controller's own process.
    pub const LOCAL: Self = Self(0);
}

/// What is known of a broker's run.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    epoch: BrokerEpoch,
    /// When it was last heard of; of one that was not yet, when this controller began.
    heard: Instant,
    /// Where it was last heard; `None` if it was not yet.
    connection: Option<ConnectionId>,
    /// When that connection closed.
    closed: Option<Instant>,
    /// Where its last AlterPartition came in.
    altering: Option<ConnectionId>,
    /// The last metadata record that it said it has.
    pub(crate) metadata_offset: Offset,
    /// All brokers must have this record before it may stop.
    pub(crate) shutdown: Shutdown,
}

/// How far a controlled shutdown is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shutdown {
    No,
    /// It was decided; its records are being appended.
    Decided,
    /// This is its last record.
    Until(Offset),
}

/// The sessions of all brokers.
#[derive(Clone, Debug)]
pub(crate) struct Sessions {
    timeout: Duration,
    by_broker: BTreeMap<NodeId, Session>,
}

impl Session {
    fn new(epoch: BrokerEpoch, now: Instant) -> Self {
        Self {
            epoch,
            heard: now,
            connection: None,
            closed: None,
            altering: None,
            metadata_offset: Offset(-1),
            shutdown: Shutdown::No,
        }
    }

    /// Whether it was heard of since this controller began.
    pub(crate) fn was_heard(&self) -> bool {
        self.connection.is_some()
    }

    fn ends_at(&self, timeout: Duration) -> Instant {
        if self.connection == Some(ConnectionId::LOCAL) {
            return Instant(u64::MAX);
        }
        let silent = self.heard.plus(timeout);
        self.closed.map_or(silent, |closed| silent.min(closed.plus(RECONNECT_TIME)))
    }
}

impl Sessions {
    /// The sessions of a controller that begins now.
    pub(crate) fn begin(brokers: &Brokers, timeout: Duration, now: Instant) -> Self {
        let unfenced = brokers.unfenced();
        let by_broker = unfenced.map(|broker| (broker.id, Session::new(broker.epoch, now))).collect();
        Self { timeout, by_broker }
    }

    /// The session of this run.
    pub(crate) fn of(&self, id: NodeId, epoch: BrokerEpoch) -> Option<&Session> {
        self.by_broker.get(&id).filter(|session| session.epoch == epoch)
    }

    /// The session of this run, if it has not ended.
    pub(crate) fn live(&self, id: NodeId, epoch: BrokerEpoch, now: Instant) -> Option<&Session> {
        self.of(id, epoch).filter(|session| now < session.ends_at(self.timeout))
    }

    /// A broker spoke.
    pub(crate) fn hear(
        &mut self,
        id: NodeId,
        epoch: BrokerEpoch,
        connection: ConnectionId,
        now: Instant,
    ) -> &mut Session {
        let session = self.by_broker.entry(id).or_insert_with(|| Session::new(epoch, now));
        if session.epoch != epoch {
            *session = Session::new(epoch, now);
        }
        session.heard = now;
        if session.connection.is_none_or(|latest| connection > latest) {
            session.connection = Some(connection);
            session.closed = None;
        }
        session
    }

    /// A connection closed. One that its broker has already left for another says nothing.
    pub(crate) fn close(
        &mut self,
        id: NodeId,
        epoch: BrokerEpoch,
        connection: Option<ConnectionId>,
        now: Instant,
    ) {
        let session = self.by_broker.get_mut(&id).filter(|session| session.epoch == epoch);
        if let Some(session) = session.filter(|session| session.connection == connection) {
            session.closed.get_or_insert(now);
        }
    }

    /// Whether an AlterPartition that came in there is the latest of its broker's run: one on an older connection was given
    /// up, and must not be carried out after the ones behind it.
    pub(crate) fn alters(&mut self, id: NodeId, epoch: BrokerEpoch, connection: ConnectionId) -> bool {
        let Some(session) = self.by_broker.get_mut(&id).filter(|session| session.epoch == epoch) else {
            return true;
        };
        let is_latest = session.altering.is_none_or(|latest| latest <= connection);
        session.altering = session.altering.max(Some(connection));
        is_latest
    }

    /// Whether a broker was heard of since this controller began.
    pub(crate) fn was_heard(&self, id: NodeId) -> bool {
        self.by_broker.get(&id).is_some_and(Session::was_heard)
    }

    pub(crate) fn forget(&mut self, gone: &[NodeId]) {
        self.by_broker.retain(|id, _| !gone.contains(id));
    }

    /// Goes on to later brokers: sessions of runs that are gone end, shutdowns learn up to where they were appended.
    pub(crate) fn advance(&mut self, brokers: &Brokers, end: Offset) {
        self.by_broker
            .retain(|id, session| brokers.get(*id).is_some_and(|broker| broker.epoch == session.epoch));
        for session in self.by_broker.values_mut() {
            if session.shutdown == Shutdown::Decided {
                session.shutdown = Shutdown::Until(Offset(end.0 - 1));
            }
        }
    }

    /// When the first session of an unfenced broker ends.
    pub(crate) fn deadline(&self, brokers: &Brokers) -> Option<Instant> {
        self.unfenced(brokers).map(|(_, session)| session.ends_at(self.timeout)).min()
    }

    /// The unfenced brokers whose sessions have ended.
    pub(crate) fn ended(&self, brokers: &Brokers, now: Instant) -> Vec<NodeId> {
        let ended = self.unfenced(brokers).filter(|(_, session)| session.ends_at(self.timeout) <= now);
        ended.map(|(id, _)| id).collect()
    }

    /// Gives all sessions their time anew if this look at them comes too late to say who was silent.
    pub(crate) fn excuse_if_late(&mut self, brokers: &Brokers, now: Instant) {
        if self.deadline(brokers).is_none_or(|deadline| now.since(deadline) < LATE) {
            return;
        }
        for session in self.by_broker.values_mut() {
            session.heard = now;
            session.closed = session.closed.map(|_| now);
        }
    }

    /// What all active brokers but this one have of the metadata log; none where there is no other.
    pub(crate) fn metadata_offset_of_others(&self, brokers: &Brokers, id: NodeId) -> Option<Offset> {
        let others = brokers.iter().filter(|broker| broker.is_active() && broker.id != id);
        let known = |broker: &std::sync::Arc<metadata::Broker>| {
            self.of(broker.id, broker.epoch).map_or(Offset(-1), |session| session.metadata_offset)
        };
        others.map(known).min()
    }

    fn unfenced<'a>(&'a self, brokers: &'a Brokers) -> impl Iterator<Item = (NodeId, &'a Session)> {
        brokers.unfenced().filter_map(|broker| Some((broker.id, self.of(broker.id, broker.epoch)?)))
    }
}
