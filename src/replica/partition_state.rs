//! What the metadata says of a partition and of the brokers that hold its replicas.
//!
//! Kafka: `PartitionRegistration`, `BrokerRegistration`.

use model::{BrokerEpoch, LeaderEpoch, NodeId, PartitionEpoch};

/// A partition, as one image of the metadata has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionState {
    /// Who leads; [`NodeId::NONE`] if nobody does.
    pub leader: NodeId,
    /// Grows with every change of leader, and when a replica is removed.
    pub leader_epoch: LeaderEpoch,
    /// Grows with every change.
    pub partition_epoch: PartitionEpoch,
    /// The brokers that have a replica.
    pub replicas: Vec<ReplicaBroker>,
    /// The replicas that are in sync.
    pub isr: Vec<NodeId>,
    /// `min.insync.replicas`.
    pub min_isr: usize,
}

/// A broker that has a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaBroker {
    /// Which.
    pub id: NodeId,
    /// Its registration; none where it has none.
    pub epoch: Option<BrokerEpoch>,
    /// Whether it may be in sync: neither fenced nor in controlled shutdown (KIP-841).
    pub is_active: bool,
}

impl PartitionState {
    /// Before any metadata.
    pub(crate) fn unknown() -> Self {
        Self {
            leader: NodeId::NONE,
            leader_epoch: LeaderEpoch::NONE,
            partition_epoch: PartitionEpoch(-1),
            replicas: Vec::new(),
            isr: Vec::new(),
            min_isr: 1,
        }
    }

    /// How many must be in sync: no more than there are replicas.
    pub(crate) fn effective_min_isr(&self) -> usize {
        self.min_isr.min(self.replicas.len())
    }
}
