//! Heartbeat: a member lives, and learns whether to join again (Kafka: `GroupMetadataManager.classicGroupHeartbeat`).

use model::ErrorCode;

use crate::command::{GroupState, Heartbeat};
use crate::turn::Turn;

impl Turn<'_> {
    /// The error that the member is told.
    pub(crate) fn heartbeat(&mut self, heartbeat: &Heartbeat) -> ErrorCode {
        if let Err(error) = self.check_heartbeat(heartbeat) {
            return error;
        }
        match self.group.state {
            GroupState::Empty | GroupState::Dead => ErrorCode::UnknownMemberId,
            GroupState::PreparingRebalance => {
                self.restart_session(&heartbeat.member_id);
                ErrorCode::RebalanceInProgress
            }
            GroupState::CompletingRebalance | GroupState::Stable => {
                self.restart_session(&heartbeat.member_id);
                ErrorCode::None
            }
        }
    }

    fn check_heartbeat(&self, heartbeat: &Heartbeat) -> Result<(), ErrorCode> {
        self.group.check_member(&heartbeat.member_id, heartbeat.group_instance_id.as_ref())?;
        if heartbeat.generation == self.group.generation { Ok(()) } else { Err(ErrorCode::IllegalGeneration) }
    }
}
