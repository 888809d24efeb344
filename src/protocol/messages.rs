//! Every request and response struct under one path, each covering the stable versions of Kafka 4.4.
//!
//! Most are kafka-protocol's. Those that it lacks, or knows only in older versions, are generated here in the same
//! style: public fields, `Default`, `with_*`, the same traits. An explicit `use` wins over a glob, so the names below
//! replace the crate's.

pub use kafka_protocol::messages::*;

pub use crate::generated::messages::{
    AddRaftVoterRequest, AddRaftVoterResponse, ApiVersionsRequest, ApiVersionsResponse,
    BrokerHeartbeatRequest, BrokerHeartbeatResponse, DeleteGroupsRequest, DeleteGroupsResponse,
    DescribeLogDirsRequest, DescribeLogDirsResponse, DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse, ListOffsetsRequest, ListOffsetsResponse, OffsetCommitRequest,
    OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse, ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse, ShareAcknowledgeRequest, ShareAcknowledgeResponse, ShareFetchRequest,
    ShareFetchResponse, StreamsGroupDescribeRequest, StreamsGroupDescribeResponse,
    StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse,
    StreamsGroupTopologyDescriptionUpdateRequest, StreamsGroupTopologyDescriptionUpdateResponse,
    TxnOffsetCommitRequest, TxnOffsetCommitResponse, UnregisterControllerRequest,
    UnregisterControllerResponse, WriteShareGroupStateRequest, WriteShareGroupStateResponse,
    WriteTxnMarkersRequest, WriteTxnMarkersResponse, add_raft_voter_request, add_raft_voter_response,
    api_versions_request, api_versions_response, broker_heartbeat_request, broker_heartbeat_response,
    delete_groups_request, delete_groups_response, describe_log_dirs_request, describe_log_dirs_response,
    describe_share_group_offsets_request, describe_share_group_offsets_response, list_offsets_request,
    list_offsets_response, offset_commit_request, offset_commit_response, offset_fetch_request,
    offset_fetch_response, read_share_group_state_summary_request, read_share_group_state_summary_response,
    share_acknowledge_request, share_acknowledge_response, share_fetch_request, share_fetch_response,
    streams_group_describe_request, streams_group_describe_response, streams_group_heartbeat_request,
    streams_group_heartbeat_response, streams_group_topology_description_update_request,
    streams_group_topology_description_update_response, txn_offset_commit_request,
    txn_offset_commit_response, unregister_controller_request, unregister_controller_response,
    write_share_group_state_request, write_share_group_state_response, write_txn_markers_request,
    write_txn_markers_response,
};
