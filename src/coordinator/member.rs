//! One member of a group (Kafka: `ClassicGroupMember`).

use std::time::Duration;

use bytes::Bytes;
use model::{GroupInstanceId, MemberId, Uuid};

use crate::command::{Join, Protocol, Text, Token};

/// A member: what it said of itself, what it was told to do, and which of its requests wait.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) id: MemberId,
    pub(crate) group_instance_id: Option<GroupInstanceId>,
    pub(crate) client_id: Text,
    pub(crate) client_host: Text,
    pub(crate) session_timeout: Duration,
    pub(crate) rebalance_timeout: Duration,
    pub(crate) protocols: Vec<Protocol>,
    pub(crate) assignment: Bytes,
    /// It has not been told its id yet, so no heartbeat can come.
    pub(crate) is_new: bool,
    pub(crate) awaiting_join: Option<Token>,
    pub(crate) awaiting_sync: Option<Token>,
}

impl Member {
    /// The member that a JoinGroup describes.
    pub(crate) fn joining(join: &Join, member_id: MemberId) -> Self {
        Self {
            id: member_id,
            group_instance_id: join.group_instance_id.clone(),
            client_id: join.client_id.clone(),
            client_host: join.client_host.clone(),
            session_timeout: join.session_timeout,
            rebalance_timeout: join.rebalance_timeout,
            protocols: join.protocols.clone(),
            assignment: Bytes::new(),
            is_new: true,
            awaiting_join: None,
            awaiting_sync: None,
        }
    }

    /// What it said in `protocol`; empty where it does not have it.
    pub(crate) fn metadata(&self, protocol: &str) -> Bytes {
        self.protocols.iter().find(|p| &*p.name == protocol).map_or_else(Bytes::new, |p| p.metadata.clone())
    }

    /// Whether silence is no fault of it: it waits for the group.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.is_new && (self.awaiting_join.is_some() || self.awaiting_sync.is_some())
    }
}

/// A new member's id: its name or its client's id, and something unique in Java's form of a UUID.
pub(crate) fn new_member_id(join: &Join) -> MemberId {
    let prefix = join.group_instance_id.as_ref().map_or(&*join.client_id, GroupInstanceId::as_str);
    format!("{prefix}-{}", java_uuid(join.fresh_id)).into()
}

fn java_uuid(uuid: Uuid) -> String {
    let hex = format!("{:032x}", u128::from_be_bytes(uuid.0));
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_written_as_java_does() {
        let id = Uuid(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef_u128.to_be_bytes());
        assert_eq!(java_uuid(id), "01234567-89ab-cdef-0123-456789abcdef");
    }
}
