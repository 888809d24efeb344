//! A leader asks the controller to change the ISR.
//!
//! Kafka: `Partition.submitAlterPartition`, `AlterPartitionManager`.

use model::{ErrorCode, Instant, NodeId};

use crate::action::AlterPartition;
use crate::isr::AlteredPartition;
use crate::mutant::Mutant;
use crate::replica::Role;
use crate::{Action, LogView, QuestionId, Replica};

impl Replica {
    /// The controller answered an AlterPartition: with the partition, or with an error of it or of the whole request.
    pub fn handle_alter_partition_answer(
        &mut self,
        now: Instant,
        log: &impl LogView,
        id: QuestionId,
        answer: Result<AlteredPartition, ErrorCode>,
    ) {
        self.now = self.now.max(now);
        let again_at = self.now.plus(self.config.alter_partition_backoff);
        let Role::Leader(leader) = &mut self.role else { return };
        let takes_stale = self.mutation.is(Mutant::StaleAlterPartition);
        if !leader.isr.is_asked(id) && !takes_stale {
            return;
        }
        match answer {
            Ok(altered) if takes_stale => leader.isr.handle_altered(&altered, self.mutation),
            Ok(altered)
                if altered.leader_epoch == leader.epoch
                    && altered.partition_epoch >= leader.isr.partition_epoch() =>
            {
                leader.isr.handle_altered(&altered, self.mutation);
            }
            // An answer of a controller that is behind.
            Ok(_) => leader.isr.retry(again_at, self.mutation),
            Err(error) => leader.isr.handle_refused(error, again_at, self.mutation),
        }
        self.settle_isr(log);
    }

    /// An AlterPartition will have no answer; the driver has made sure that it is not carried out after the next one.
    pub fn handle_alter_partition_failure(&mut self, now: Instant, id: QuestionId) {
        self.now = self.now.max(now);
        let again_at = self.now.plus(self.config.alter_partition_backoff);
        if let Role::Leader(leader) = &mut self.role
            && leader.isr.is_asked(id)
        {
            leader.isr.retry(again_at, self.mutation);
        }
    }

    /// A follower has just fetched. Only then: one that was removed because it is silent would join again at once.
    pub(crate) fn expand_isr(&mut self, log: &impl LogView, by: NodeId) {
        if let Role::Leader(leader) = &mut self.role
            && leader.isr.is_free(self.now)
            && leader.may_join(by, self.high_watermark, log.log_start())
        {
            let mut isr = leader.isr.committed().clone();
            isr.insert(by);
            leader.isr.propose(self.now, leader.members(&isr), self.mutation);
        }
    }

    pub(crate) fn shrink_isr(&mut self, log: &impl LogView) {
        let Role::Leader(leader) = &mut self.role else { return };
        if !leader.isr.is_free(self.now) {
            return;
        }
        let mut isr = leader.isr.committed().clone();
        let lagging = leader.lagging(self.now, log.log_end(), self.config.replica_lag_time_max);
        isr.retain(|id| !lagging.contains(id));
        if isr.len() < leader.isr.committed().len() {
            leader.isr.propose(self.now, leader.members(&isr), self.mutation);
        }
    }

    pub(crate) fn ask_controller(&mut self) {
        let id = match &self.role {
            Role::Leader(leader) if leader.isr.is_due(self.now) => self.next_question(),
            Role::Leader(_) | Role::Follower(_) => return,
        };
        let Role::Leader(leader) = &mut self.role else { return };
        leader.isr.asked(id);
        self.actions.push_back(Action::AlterPartition(AlterPartition {
            id,
            leader_epoch: leader.epoch,
            partition_epoch: leader.isr.partition_epoch(),
            isr: leader.target(),
        }));
    }
}
