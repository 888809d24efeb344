//! Heartbeats: a broker says that it lives, up to where it has the metadata, and what it wants; it is told where it
//! stands.
//!
//! A broker is fenced, unfenced, in controlled shutdown, or told to stop. It is unfenced when it wants to be and has
//! read the metadata log up to its registration: then it knows of every epoch that was before. It may stop when it leads
//! nothing and all other active brokers know that it does not.
//!
//! Kafka: `ReplicationControlManager.processBrokerHeartbeat`, `BrokerHeartbeatManager.calculateNextBrokerState`; KIP-631,
//! KIP-841, KIP-858.

use metadata::Broker;
use model::{BrokerEpoch, DirectoryId, Instant, NodeId, Offset, TopicIdPartition};
use protocol::records::metadata::MetadataRecord;

use crate::mutant::Mutant;
use crate::sessions::Shutdown;
use crate::{BrokerError, ConnectionId, Controller, Decision};

/// What a broker says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// The broker.
    pub id: NodeId,
    /// The epoch of its registration.
    pub epoch: BrokerEpoch,
    /// The offset of the last metadata record that it applied.
    pub metadata_offset: Offset,
    /// Whether it wants to be fenced: it is not ready.
    pub want_fence: bool,
    /// Whether it wants to stop.
    pub want_shut_down: bool,
    /// Its log folders that failed since it registered.
    pub offline_directories: Vec<DirectoryId>,
    /// Replicas whose logs were recovered to an end below their checkpointed high watermark. It counts in the heartbeat
    /// that unfences, and until then the broker leaves those checkpoints as they are.
    pub lost: Vec<TopicIdPartition>,
    /// Where the heartbeat came in.
    pub connection: ConnectionId,
}

/// Where a broker stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeartbeatReply {
    /// It has read the metadata log up to its registration.
    pub is_caught_up: bool,
    /// It is fenced.
    pub is_fenced: bool,
    /// It may stop now.
    pub should_shut_down: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Fenced,
    Unfenced,
    ControlledShutdown,
    ShutdownNow,
}

impl Controller {
    /// Decides on what a heartbeat asks for.
    pub fn heartbeat(
        &mut self,
        heartbeat: &Heartbeat,
        now: Instant,
    ) -> Decision<Result<HeartbeatReply, BrokerError>> {
        if let Err(error) = self.check_epoch(heartbeat.id, heartbeat.epoch) {
            return Decision::nothing(Err(error));
        }
        let Some(broker) = self.image.brokers.get(heartbeat.id).cloned() else {
            return Decision::nothing(Err(BrokerError::NoRegistration(heartbeat.id)));
        };
        let offline = self.directories_offline(&broker, &heartbeat.offline_directories);
        let (before, next) = self.next_state(&broker, heartbeat);
        // A folder that failed comes first: what the broker wants may depend on it, and it will ask again.
        let after = if offline.is_empty() { next } else { before };
        let records = if before == after { offline } else { self.transition(&broker, heartbeat, after) };
        self.touch(heartbeat, after, now);
        let reply = HeartbeatReply {
            is_caught_up: is_caught_up(heartbeat),
            is_fenced: matches!(after, State::Fenced | State::ShutdownNow),
            should_shut_down: after == State::ShutdownNow,
        };
        Decision { records, reply: Ok(reply) }
    }

    /// A connection of a broker closed: it has a moment to come back on another one. `None` is for a broker that has not
    /// been heard of since this controller began, such as the one that this node just followed as its leader.
    pub fn handle_connection_closed(
        &mut self,
        id: NodeId,
        epoch: BrokerEpoch,
        connection: Option<ConnectionId>,
        now: Instant,
    ) {
        self.sessions.close(id, epoch, connection, now);
    }

    fn next_state(&self, broker: &Broker, heartbeat: &Heartbeat) -> (State, State) {
        let shutdown =
            self.sessions.of(broker.id, broker.epoch).map_or(Shutdown::No, |session| session.shutdown);
        if broker.fenced {
            // Who was told to stop comes back by another registration only.
            let may_unfence = !broker.in_controlled_shutdown
                && (is_caught_up(heartbeat) || self.mutation.is(Mutant::UnfencedTooEarly));
            let next = match (heartbeat.want_shut_down, heartbeat.want_fence) {
                (true, _) => State::ShutdownNow,
                (false, false) if may_unfence => State::Unfenced,
                (false, _) => State::Fenced,
            };
            return (State::Fenced, next);
        }
        if shutdown != Shutdown::No {
            return (State::ControlledShutdown, self.shutdown_state(broker.id, shutdown));
        }
        let next = match (heartbeat.want_fence, heartbeat.want_shut_down) {
            (false, false) => State::Unfenced,
            (true, false) => State::Fenced,
            (false, true) if self.leads_any(broker.id) => State::ControlledShutdown,
            (_, true) => State::ShutdownNow,
        };
        (State::Unfenced, next)
    }

    fn shutdown_state(&self, id: NodeId, shutdown: Shutdown) -> State {
        let others = self.sessions.metadata_offset_of_others(&self.image.brokers, id);
        let others_know = |last: Offset| others.is_none_or(|others| last <= others);
        match shutdown {
            Shutdown::Until(last) if others_know(last) && !self.leads_any(id) => State::ShutdownNow,
            _ => State::ControlledShutdown,
        }
    }

    fn transition(&self, broker: &Broker, heartbeat: &Heartbeat, after: State) -> Vec<MetadataRecord> {
        match after {
            State::Unfenced => self.unfence(broker, &heartbeat.lost),
            State::ControlledShutdown => self.begin_shutdown(broker),
            State::Fenced | State::ShutdownNow if broker.fenced => Vec::new(),
            State::Fenced | State::ShutdownNow => self.fence(&[broker.id]),
        }
    }

    fn touch(&mut self, heartbeat: &Heartbeat, after: State, now: Instant) {
        let session = self.sessions.hear(heartbeat.id, heartbeat.epoch, heartbeat.connection, now);
        session.metadata_offset = heartbeat.metadata_offset;
        session.shutdown = match (after, session.shutdown) {
            (State::ControlledShutdown, Shutdown::No) => Shutdown::Decided,
            (State::ControlledShutdown, shutdown) => shutdown,
            _ => Shutdown::No,
        };
    }
}

fn is_caught_up(heartbeat: &Heartbeat) -> bool {
    heartbeat.metadata_offset.0 >= heartbeat.epoch.0
}
