//! A plain model of the controller, for one partition: registrations, fencing, ISR and ELR, elections, AlterPartition.
//!
//! It never fails and never forgets; what nodes hear of it comes late. The real one stands in for it in the simulation of
//! whole clusters.
//!
//! Kafka: `ReplicationControlManager`, `PartitionChangeBuilder`; KIP-631, KIP-841, KIP-903, KIP-966.

use std::collections::{BTreeMap, BTreeSet};

use model::{BrokerEpoch, ErrorCode, LeaderEpoch, NodeId, PartitionEpoch};
use replica::{AlterPartition, AlteredPartition, PartitionState, ReplicaBroker};

#[derive(Clone, Copy, Debug)]
pub struct Broker {
    pub epoch: BrokerEpoch,
    pub fenced: bool,
    pub shutting_down: bool,
}

impl Broker {
    fn is_active(&self) -> bool {
        !self.fenced && !self.shutting_down
    }
}

#[derive(Clone, Debug)]
pub struct Controller {
    /// Grows with every record.
    pub version: i64,
    pub brokers: BTreeMap<NodeId, Broker>,
    pub replicas: Vec<NodeId>,
    /// What the replicas are to become; the same where nothing is under way.
    pub target: Vec<NodeId>,
    pub isr: BTreeSet<NodeId>,
    pub elr: BTreeSet<NodeId>,
    pub leader: NodeId,
    pub leader_epoch: LeaderEpoch,
    pub partition_epoch: PartitionEpoch,
    pub min_isr: usize,
    /// `unclean.leader.election.enable`.
    pub unclean: bool,
    /// Whether a leader was ever elected although it may lack what is committed.
    pub elected_uncleanly: bool,
}

impl Controller {
    /// A partition that nobody leads yet; all its replicas count as in sync.
    pub fn new(replicas: Vec<NodeId>, min_isr: usize) -> Self {
        Self {
            version: 0,
            brokers: BTreeMap::new(),
            isr: BTreeSet::new(),
            elr: replicas.iter().copied().collect(),
            target: replicas.clone(),
            replicas,
            leader: NodeId::NONE,
            leader_epoch: LeaderEpoch(0),
            partition_epoch: PartitionEpoch(0),
            min_isr,
            unclean: false,
            elected_uncleanly: false,
        }
    }

    pub fn image(&self) -> PartitionState {
        let broker = |id: &NodeId| ReplicaBroker {
            id: *id,
            epoch: self.brokers.get(id).map(|broker| broker.epoch),
            is_active: self.is_active(*id),
        };
        PartitionState {
            leader: self.leader,
            leader_epoch: self.leader_epoch,
            partition_epoch: self.partition_epoch,
            replicas: self.replicas.iter().map(broker).collect(),
            isr: self.isr.iter().copied().collect(),
            min_isr: self.min_isr,
        }
    }

    pub fn is_active(&self, id: NodeId) -> bool {
        self.brokers.get(&id).is_some_and(Broker::is_active)
    }

    pub fn effective_min_isr(&self) -> usize {
        self.min_isr.min(self.replicas.len())
    }

    // ---- brokers

    /// A process registers, fenced at first. `holds_all`: it still has all that its disk ever promised.
    pub fn register(&mut self, id: NodeId, holds_all: bool) -> BrokerEpoch {
        self.version += 1;
        let epoch = BrokerEpoch(self.version);
        self.brokers.insert(id, Broker { epoch, fenced: true, shutting_down: false });
        // Whoever led in an earlier life leads no more, though nobody may have missed it.
        let isr = self.isr.iter().copied().filter(|member| *member != id).collect();
        let lost = if holds_all { NodeId::NONE } else { id };
        self.change(isr, lost);
        epoch
    }

    /// It has seen its own registration.
    pub fn unfence(&mut self, id: NodeId, epoch: BrokerEpoch) {
        if let Some(broker) = self.brokers.get_mut(&id)
            && broker.epoch == epoch
            && broker.fenced
        {
            broker.fenced = false;
            self.version += 1;
            self.change(self.isr.clone(), NodeId::NONE);
        }
    }

    pub fn fence(&mut self, id: NodeId, epoch: BrokerEpoch) {
        if let Some(broker) = self.brokers.get_mut(&id)
            && broker.epoch == epoch
            && !broker.fenced
        {
            broker.fenced = true;
            self.leave(id);
        }
    }

    pub fn shut_down(&mut self, id: NodeId) {
        if let Some(broker) = self.brokers.get_mut(&id) {
            broker.shutting_down = true;
            self.leave(id);
        }
    }

    fn leave(&mut self, id: NodeId) {
        self.version += 1;
        let isr = self.isr.iter().copied().filter(|member| *member != id).collect();
        self.change(isr, NodeId::NONE);
    }

    // ---- the partition

    /// Sets the ISR, keeps the ELR, elects. `lost` has lost what it held.
    fn change(&mut self, isr: BTreeSet<NodeId>, lost: NodeId) {
        let before = (self.isr.clone(), self.elr.clone(), self.leader);
        if isr.len() >= self.effective_min_isr() {
            self.elr.clear();
        } else {
            let old = self.isr.iter().filter(|id| !isr.contains(id));
            self.elr.extend(old);
        }
        self.isr = isr;
        self.elr.retain(|id| *id != lost && !self.isr.contains(id));
        self.elect();
        if before != (self.isr.clone(), self.elr.clone(), self.leader) {
            self.partition_epoch.0 += 1;
        }
    }

    fn elect(&mut self) {
        if self.isr.contains(&self.leader) && self.is_active(self.leader) {
            return;
        }
        let first = |among: &BTreeSet<NodeId>| {
            self.replicas.iter().copied().find(|id| among.contains(id) && self.is_active(*id))
        };
        let clean = first(&self.isr).or_else(|| self.isr.is_empty().then(|| first(&self.elr)).flatten());
        let all = self.replicas.iter().copied().collect();
        let uncleanly = || self.unclean.then(|| first(&all)).flatten();
        let (leader, is_clean) = (clean.or_else(uncleanly), clean.is_some());
        let leader = leader.unwrap_or(NodeId::NONE);
        if leader != self.leader {
            self.lead(leader);
        }
        if leader != NodeId::NONE && !self.isr.contains(&leader) {
            self.isr.insert(leader);
            self.elr.remove(&leader);
            if !is_clean {
                self.isr = [leader].into();
                self.elr.clear();
                self.elected_uncleanly = true;
            }
            if self.isr.len() >= self.effective_min_isr() {
                self.elr.clear();
            }
        }
    }

    fn lead(&mut self, leader: NodeId) {
        self.leader = leader;
        self.leader_epoch.0 += 1;
    }

    /// Another member of the ISR leads.
    pub fn move_leader(&mut self) {
        let others = |id: &&NodeId| **id != self.leader && self.isr.contains(id) && self.is_active(**id);
        if let Some(other) = self.replicas.iter().find(others).copied() {
            self.version += 1;
            self.lead(other);
            self.partition_epoch.0 += 1;
        }
    }

    pub fn set_min_isr(&mut self, min_isr: usize) {
        if min_isr == self.min_isr {
            return;
        }
        self.version += 1;
        self.min_isr = min_isr;
        if !self.elr.is_empty() && self.leader != NodeId::NONE {
            self.elr.clear();
            self.partition_epoch.0 += 1;
        }
    }

    /// Replicas become these: first all of both, and only these when those that are new are in sync.
    pub fn reassign(&mut self, target: Vec<NodeId>) {
        self.version += 1;
        self.target = target;
        let mut all = self.target.clone();
        all.extend(self.replicas.iter().filter(|id| !self.target.contains(id)));
        self.replicas = all;
        self.partition_epoch.0 += 1;
        self.finish_reassignment();
    }

    fn finish_reassignment(&mut self) {
        let staying: BTreeSet<NodeId> =
            self.isr.iter().copied().filter(|id| self.target.contains(id)).collect();
        let is_done = self.target.iter().all(|id| staying.contains(id));
        if !is_done || self.replicas == self.target {
            return;
        }
        let removes = self.replicas.len() > self.target.len();
        self.replicas = self.target.clone();
        let epoch = self.leader_epoch;
        self.partition_epoch.0 += 1;
        self.elr.retain(|id| staying.contains(id));
        self.change(staying, NodeId::NONE);
        // What the leader knows of a removed replica must not outlive it.
        if removes && self.leader_epoch == epoch {
            self.leader_epoch.0 += 1;
        }
    }

    /// Kafka's order of checks.
    pub fn alter(
        &mut self,
        sender: NodeId,
        broker_epoch: BrokerEpoch,
        asked: &AlterPartition,
    ) -> Result<AlteredPartition, ErrorCode> {
        if self.brokers.get(&sender).is_none_or(|broker| broker.epoch != broker_epoch) {
            return Err(ErrorCode::StaleBrokerEpoch);
        }
        if asked.leader_epoch > self.leader_epoch || asked.partition_epoch > self.partition_epoch {
            return Err(ErrorCode::NotController);
        }
        if asked.leader_epoch < self.leader_epoch {
            return Err(ErrorCode::FencedLeaderEpoch);
        }
        if sender != self.leader {
            return Err(ErrorCode::InvalidRequest);
        }
        if asked.partition_epoch < self.partition_epoch {
            return Err(ErrorCode::InvalidUpdateVersion);
        }
        let isr: BTreeSet<NodeId> = asked.isr.iter().map(|member| member.id).collect();
        if !isr.contains(&self.leader) || !isr.iter().all(|id| self.replicas.contains(id)) {
            return Err(ErrorCode::InvalidRequest);
        }
        let is_eligible = |id: NodeId, epoch: Option<BrokerEpoch>| {
            self.is_active(id) && epoch.is_none_or(|epoch| self.brokers[&id].epoch == epoch)
        };
        if !asked.isr.iter().all(|member| is_eligible(member.id, member.broker_epoch)) {
            return Err(ErrorCode::IneligibleReplica);
        }
        self.version += 1;
        let (leader, epoch) = (self.leader, self.leader_epoch);
        self.change(isr, NodeId::NONE);
        self.finish_reassignment();
        if (leader, epoch) != (self.leader, self.leader_epoch) {
            return Err(ErrorCode::NewLeaderElected);
        }
        Ok(AlteredPartition {
            leader_epoch: self.leader_epoch,
            partition_epoch: self.partition_epoch,
            isr: self.isr.iter().copied().collect(),
        })
    }

    /// What must hold between its own words.
    pub fn check(&self) {
        let all: BTreeSet<_> = self.replicas.iter().copied().collect();
        assert!(
            self.isr.is_subset(&all) && self.elr.is_subset(&all),
            "{self:?}: who is no replica is in sync"
        );
        assert!(self.isr.is_disjoint(&self.elr), "{self:?}: in sync and eligible at once");
        let has_enough = self.isr.len() >= self.effective_min_isr();
        assert!(!has_enough || self.elr.is_empty(), "{self:?}: an ELR though enough are in sync");
        assert!(self.isr.iter().all(|id| self.is_active(*id)), "{self:?}: a fenced broker is in sync");
        assert!(
            self.leader == NodeId::NONE || self.isr.contains(&self.leader),
            "{self:?}: the leader is not in sync"
        );
    }
}
