//! The state of a partition: its replicas, who leads, who is in sync.
//!
//! Invariants (the controller keeps them): the in-sync replicas are replicas, the leader is one of them or there is
//! none; eligible leader replicas are replicas that are not in sync (KIP-966); the leader epoch grows with every change
//! of leader, the partition epoch with every change.
//!
//! Kafka: `PartitionRegistration`.

use model::{DirectoryId, LeaderEpoch, NodeId, PartitionEpoch, PartitionIndex, TopicId};
use protocol::records::metadata::{PartitionChangeRecord, PartitionRecord};

/// What the cluster knows of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// The brokers that have a replica, the preferred leader first.
    pub replicas: Vec<NodeId>,
    /// The log folder of each replica, in the same order; [`Partition::UNASSIGNED`] where the broker may choose.
    pub directories: Vec<DirectoryId>,
    /// The replicas that are in sync.
    pub isr: Vec<NodeId>,
    /// Replicas that go when the reassignment is done.
    pub removing_replicas: Vec<NodeId>,
    /// Replicas that came with the reassignment.
    pub adding_replicas: Vec<NodeId>,
    /// Replicas that are not in sync and yet hold all that was committed.
    pub elr: Vec<NodeId>,
    /// Who was in sync when nobody was any more.
    pub last_known_elr: Vec<NodeId>,
    /// Who leads; [`NodeId::NONE`] if nobody does.
    pub leader: NodeId,
    /// Grows with every change of leader.
    pub leader_epoch: LeaderEpoch,
    /// Grows with every change.
    pub partition_epoch: PartitionEpoch,
    /// Whether the leader was elected although it was not in sync.
    pub recovery: LeaderRecovery,
}

/// Whether a leader holds all that was committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LeaderRecovery {
    /// It does.
    #[default]
    Recovered,
    /// It was elected uncleanly and has not cleaned up yet.
    Recovering,
}

/// In a change record: the leader stays, and so does its epoch.
const NO_LEADER_CHANGE: i32 = -2;

impl Partition {
    /// The broker may put the replica in the folder that it likes (Kafka: `DirectoryId.UNASSIGNED`).
    pub const UNASSIGNED: DirectoryId = model::Uuid([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    /// The record is older than folders (Kafka: `DirectoryId.MIGRATING`).
    pub const MIGRATING: DirectoryId = model::Uuid([0; 16]);

    /// Whether an id says something of folders instead of naming one (Kafka: `DirectoryId.reserved`).
    pub fn is_reserved(directory: DirectoryId) -> bool {
        directory.is_reserved()
    }

    /// Whether `node` has a replica.
    pub fn has_replica(&self, node: NodeId) -> bool {
        self.replicas.contains(&node)
    }

    /// The log folder of the replica on `node`; [`Partition::UNASSIGNED`] if it has none.
    pub fn directory(&self, node: NodeId) -> DirectoryId {
        let place = self.replicas.iter().position(|replica| *replica == node);
        place.and_then(|place| self.directories.get(place).copied()).unwrap_or(Self::UNASSIGNED)
    }

    /// Whether replicas come or go.
    pub fn is_reassigning(&self) -> bool {
        !self.adding_replicas.is_empty() || !self.removing_replicas.is_empty()
    }

    pub(crate) fn from_record(record: &PartitionRecord) -> Self {
        Self {
            replicas: nodes(&record.replicas),
            directories: directories(&record.directories, record.replicas.len()),
            isr: nodes(&record.isr),
            removing_replicas: nodes(&record.removing_replicas),
            adding_replicas: nodes(&record.adding_replicas),
            elr: nodes(record.eligible_leader_replicas.as_deref().unwrap_or_default()),
            last_known_elr: nodes(record.last_known_elr.as_deref().unwrap_or_default()),
            leader: NodeId(record.leader),
            leader_epoch: LeaderEpoch(record.leader_epoch),
            partition_epoch: PartitionEpoch(record.partition_epoch),
            recovery: LeaderRecovery::from_code(record.leader_recovery_state),
        }
    }

    /// The record that creates a partition in this state.
    pub fn to_record(&self, topic_id: TopicId, partition: PartitionIndex) -> PartitionRecord {
        PartitionRecord {
            partition_id: partition,
            topic_id,
            replicas: ids(&self.replicas),
            isr: ids(&self.isr),
            removing_replicas: ids(&self.removing_replicas),
            adding_replicas: ids(&self.adding_replicas),
            leader: self.leader.0,
            leader_epoch: self.leader_epoch.0,
            partition_epoch: self.partition_epoch.0,
            directories: self.directories.clone(),
            leader_recovery_state: self.recovery as i8,
            eligible_leader_replicas: some_ids(&self.elr),
            last_known_elr: some_ids(&self.last_known_elr),
        }
    }

    pub(crate) fn changed_by(&self, change: &PartitionChangeRecord) -> Self {
        let replace =
            |new: &Option<Vec<i32>>, old: &Vec<NodeId>| new.as_deref().map_or_else(|| old.clone(), nodes);
        let replicas = replace(&change.replicas, &self.replicas);
        let leader_stays = change.leader == NO_LEADER_CHANGE;
        Self {
            directories: self.directories_after(change, &replicas),
            replicas,
            isr: replace(&change.isr, &self.isr),
            removing_replicas: replace(&change.removing_replicas, &self.removing_replicas),
            adding_replicas: replace(&change.adding_replicas, &self.adding_replicas),
            elr: replace(&change.eligible_leader_replicas, &self.elr),
            last_known_elr: replace(&change.last_known_elr, &self.last_known_elr),
            leader: if leader_stays { self.leader } else { NodeId(change.leader) },
            leader_epoch: LeaderEpoch(self.leader_epoch.0.saturating_add(i32::from(!leader_stays))),
            partition_epoch: PartitionEpoch(self.partition_epoch.0.saturating_add(1)),
            recovery: match change.leader_recovery_state {
                -1 => self.recovery,
                code => LeaderRecovery::from_code(code),
            },
        }
    }

    /// A replica that stays keeps its folder, a new one has none yet.
    fn directories_after(&self, change: &PartitionChangeRecord, replicas: &[NodeId]) -> Vec<DirectoryId> {
        if let Some(new) = &change.directories {
            return directories(new, replicas.len());
        }
        replicas.iter().map(|node| self.directory(*node)).collect()
    }

    /// Forgets the eligible leader replicas; whether there were any.
    pub(crate) fn clear_elr(&mut self) -> bool {
        let had = !self.elr.is_empty() || !self.last_known_elr.is_empty();
        if had {
            self.elr.clear();
            self.last_known_elr.clear();
            self.partition_epoch = PartitionEpoch(self.partition_epoch.0.saturating_add(1));
        }
        had
    }
}

impl LeaderRecovery {
    fn from_code(code: i8) -> Self {
        if code == Self::Recovering as i8 { Self::Recovering } else { Self::Recovered }
    }
}

fn nodes(ids: &[i32]) -> Vec<NodeId> {
    ids.iter().copied().map(NodeId).collect()
}

fn ids(nodes: &[NodeId]) -> Vec<i32> {
    nodes.iter().map(|node| node.0).collect()
}

/// The field is absent where there is nothing to say.
fn some_ids(nodes: &[NodeId]) -> Option<Vec<i32>> {
    Some(ids(nodes)).filter(|ids| !ids.is_empty())
}

/// One folder a replica, whatever the record has of them.
fn directories(from: &[DirectoryId], replicas: usize) -> Vec<DirectoryId> {
    (0..replicas).map(|i| from.get(i).copied().unwrap_or(Partition::MIGRATING)).collect()
}
