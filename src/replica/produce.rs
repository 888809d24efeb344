//! Whether a leader takes records, and when they are committed.
//!
//! Kafka: `Partition.appendRecordsToLeader`, `checkEnoughReplicasReachOffset`.

use model::{LeaderEpoch, Offset};

use crate::replica::Role;
use crate::{ProduceError, Replica};

impl Replica {
    /// Whether records may be appended now, and in which epoch. `needs_min_isr` with acks=all.
    ///
    /// # Errors
    /// Nothing may be appended.
    pub fn check_append(&self, needs_min_isr: bool) -> Result<LeaderEpoch, ProduceError> {
        let Role::Leader(leader) = &self.role else { return Err(ProduceError::NotLeader) };
        let (isr, min_isr) = (leader.isr.committed().len(), leader.min_isr);
        if needs_min_isr && isr < min_isr {
            return Err(ProduceError::NotEnoughReplicas { isr, min_isr });
        }
        Ok(leader.epoch)
    }

    /// What became of records that were appended in `epoch` and end at `end`, exclusive; none while that is open. For a
    /// duplicate, `end` is where the original ends.
    pub fn verdict(&self, epoch: LeaderEpoch, end: Offset) -> Option<Result<(), ProduceError>> {
        let leader = match &self.role {
            Role::Leader(leader) if leader.led_since <= epoch => leader,
            // What was appended then may have been cut since, and others may stand there.
            Role::Leader(_) | Role::Follower(_) => return Some(Err(ProduceError::NotLeader)),
        };
        if self.high_watermark < end {
            return None;
        }
        let (isr, min_isr) = (leader.isr.maximal().len(), leader.min_isr);
        let is_enough = isr >= min_isr;
        Some(if is_enough {
            Ok(())
        } else {
            Err(ProduceError::NotEnoughReplicasAfterAppend { isr, min_isr })
        })
    }
}
