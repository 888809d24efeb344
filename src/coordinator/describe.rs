//! DescribeGroups and ListGroups (Kafka: `GroupMetadataManager.describeGroups`, `listGroups`; KIP-518, KIP-848).

use bytes::Bytes;
use model::{ErrorCode, GroupId};

use crate::command::{DescribedGroup, DescribedMember, GroupState, List, ListedGroup};
use crate::delete::not_found;
use crate::group::Group;
use crate::groups::Groups;
use crate::member::Member;

const CLASSIC: &str = "classic";

impl Groups {
    /// A group as it stands; one that does not exist is dead.
    pub fn describe(&self, group_id: &GroupId) -> DescribedGroup {
        self.group(group_id).map_or_else(|| missing(group_id), describe)
    }

    /// The groups that pass the filters.
    pub fn list(&self, list: &List) -> Vec<ListedGroup> {
        let passes = |filter: &[String], name: &str| {
            filter.is_empty() || filter.iter().any(|wanted| wanted.eq_ignore_ascii_case(name))
        };
        if !passes(&list.types, CLASSIC) {
            return Vec::new();
        }
        self.by_id.values().filter(|group| passes(&list.states, group.state.as_str())).map(listed).collect()
    }
}

fn missing(group_id: &GroupId) -> DescribedGroup {
    DescribedGroup {
        group_id: group_id.clone(),
        error: ErrorCode::GroupIdNotFound,
        error_message: Some(not_found(group_id)),
        state: GroupState::Dead,
        protocol_type: "".into(),
        protocol: "".into(),
        members: Vec::new(),
    }
}

fn describe(group: &Group) -> DescribedGroup {
    let protocol = group.protocol.clone().filter(|_| group.is(GroupState::Stable));
    DescribedGroup {
        group_id: group.id.clone(),
        error: ErrorCode::None,
        error_message: None,
        state: group.state,
        protocol_type: group.protocol_type.clone().unwrap_or_else(|| "".into()),
        members: group.members.iter().map(|member| describe_member(member, protocol.as_deref())).collect(),
        protocol: protocol.unwrap_or_else(|| "".into()),
    }
}

fn describe_member(member: &Member, protocol: Option<&str>) -> DescribedMember {
    DescribedMember {
        member_id: member.id.clone(),
        group_instance_id: member.group_instance_id.clone(),
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        metadata: protocol.map_or_else(Bytes::new, |protocol| member.metadata(protocol)),
        assignment: protocol.map_or_else(Bytes::new, |_| member.assignment.clone()),
    }
}

fn listed(group: &Group) -> ListedGroup {
    ListedGroup {
        group_id: group.id.clone(),
        protocol_type: group.protocol_type.clone().unwrap_or_else(|| "".into()),
        state: group.state,
        group_type: CLASSIC,
    }
}
