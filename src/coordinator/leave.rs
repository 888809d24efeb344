//! LeaveGroup: members go, or an administrator takes them out by name (Kafka:
//! `GroupMetadataManager.classicGroupLeave`, KIP-345).

use model::ErrorCode;

use crate::command::{GroupState, Leave, LeaveReply, LeavingMember};
use crate::turn::Turn;

impl Turn<'_> {
    /// What became of each.
    pub(crate) fn leave(&mut self, leave: Leave) -> LeaveReply {
        let members: Vec<_> = leave
            .members
            .into_iter()
            .map(|leaving| {
                let error = self.leave_one(&leaving).err().unwrap_or(ErrorCode::None);
                (leaving, error)
            })
            .collect();
        if members.iter().any(|(_, error)| error.is_none()) {
            self.go_on_without_them();
        }
        LeaveReply { error: ErrorCode::None, members }
    }

    fn leave_one(&mut self, leaving: &LeavingMember) -> Result<(), ErrorCode> {
        let instance = leaving.group_instance_id.as_ref();
        let member_id = if leaving.member_id.as_str().is_empty() {
            let named = instance.and_then(|instance| self.group.members.static_id(instance));
            named.cloned().ok_or(ErrorCode::UnknownMemberId)?
        } else {
            if !self.group.pending_join.contains(&leaving.member_id) {
                self.group.check_member(&leaving.member_id, instance)?;
            }
            leaving.member_id.clone()
        };
        self.remove(&member_id);
        Ok(())
    }

    fn go_on_without_them(&mut self) {
        match self.group.state {
            GroupState::Stable | GroupState::CompletingRebalance => self.rebalance_or_complete_join(),
            GroupState::PreparingRebalance => self.complete_join_if_all_joined(),
            GroupState::Empty | GroupState::Dead => {}
        }
    }
}
