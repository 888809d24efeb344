//! A leader's listener, as far as followers need it: Fetch without sessions, and ListOffsets. The real one is `api`'s.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use env::{Chunk, Env, Link};
use model::{BrokerEpoch, ErrorCode, LeaderEpoch, NodeId, Offset, TopicIdPartition, Uuid};
use protocol::messages::api_versions_response::ApiVersion;
use protocol::messages::fetch_request::FetchPartition;
use protocol::messages::fetch_response::{EpochEndOffset, FetchableTopicResponse, PartitionData};
use protocol::messages::list_offsets_response::{ListOffsetsPartitionResponse, ListOffsetsTopicResponse};
use protocol::messages::{
    ApiVersionsResponse, FetchRequest, FetchResponse, ListOffsetsRequest, ListOffsetsResponse,
};
use protocol::{FromWire, RequestHeader, decode};

use crate::*;

const FETCH: i16 = 1;
const LIST_OFFSETS: i16 = 2;
const API_VERSIONS: i16 = 18;
pub(super) const PORT: u16 = 9092;

pub(super) async fn serve(env: Env, replication: Arc<Replication>) {
    let mut listener = env.net.listen(&format!(":{PORT}"), 1 << 20).await.expect("a port");
    while let Ok(link) = listener.accept().await {
        env.exec.spawn("connection", Box::pin(converse(env.clone(), replication.clone(), link)));
    }
}

async fn converse(env: Env, replication: Arc<Replication>, mut link: Link) {
    let mut frames = Vec::new();
    while link.reader.recv(&mut frames).await.is_ok() {
        for mut frame in frames.drain(..) {
            let header = protocol::decode_request_header(&mut frame).expect("a request");
            let answer = answer(&env, &replication, &header, frame).await;
            if link.writer.send(vec![Chunk::Bytes(answer)]).await.is_err() {
                return;
            }
        }
    }
}

async fn answer(env: &Env, replication: &Replication, header: &RequestHeader, body: Bytes) -> Bytes {
    let RequestHeader { api_key, api_version, correlation_id, .. } = *header;
    match api_key {
        FETCH => {
            let request = decode::<FetchRequest>(api_version, body).expect("a fetch");
            let response = fetch(env, replication, &request).await;
            protocol::encode_response(correlation_id, api_key, api_version, &response)
        }
        LIST_OFFSETS => {
            let request = decode::<ListOffsetsRequest>(api_version, body).expect("a question");
            let response = list_offsets(replication, &request);
            protocol::encode_response(correlation_id, api_key, api_version, &response)
        }
        _ => {
            let api = |(key, max)| ApiVersion::default().with_api_key(key).with_max_version(max);
            let served = [(FETCH, 17), (LIST_OFFSETS, 10), (API_VERSIONS, 4)].map(api).to_vec();
            let (version, error) = if api_version <= 4 { (api_version, 0) } else { (0, 35) };
            let response = ApiVersionsResponse::default().with_error_code(error).with_api_keys(served);
            protocol::encode_response(correlation_id, API_VERSIONS, version, &response)
        }
    }
    .expect("an answer")
}

async fn fetch(env: &Env, replication: &Replication, request: &FetchRequest) -> FetchResponse {
    let deadline = env.clock.now().plus(Duration::from_millis(request.max_wait_ms as u64));
    let mut response = read_all(replication, request, true);
    while !says_something(&response) && env.clock.now() < deadline {
        let signal = Signal::new(1);
        let _registrations: Vec<_> = partitions(request)
            .filter_map(|(id, wanted)| {
                let partition = replication.partition_by_id(id).ok()?;
                let more = Awaited::LogEnd(Offset(wanted.fetch_offset + 1));
                Some(partition.register(more, &signal, 0))
            })
            .collect();
        env::timeout(env.clock.as_ref(), deadline, signal.fired()).await;
        response = read_all(replication, request, false);
    }
    response
}

fn says_something(response: &FetchResponse) -> bool {
    let mut partitions = response.responses.iter().flat_map(|topic| &topic.partitions);
    partitions.any(|said| {
        said.error_code != 0
            || said.diverging_epoch.epoch >= 0
            || said.records.as_ref().is_some_and(|records| !records.is_empty())
    })
}

fn partitions(request: &FetchRequest) -> impl Iterator<Item = (TopicIdPartition, &FetchPartition)> {
    request.topics.iter().flat_map(|topic| {
        let topic_id = Uuid::from_wire(&topic.topic_id);
        topic
            .partitions
            .iter()
            .map(move |wanted| (TopicIdPartition { topic_id, partition: wanted.partition }, wanted))
    })
}

fn read_all(replication: &Replication, request: &FetchRequest, is_new: bool) -> FetchResponse {
    let topics = request.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|wanted| {
            let topic_id = Uuid::from_wire(&topic.topic_id);
            let id = TopicIdPartition { topic_id, partition: wanted.partition };
            let read = read(replication, id, request, wanted, is_new);
            said(read).with_partition_index(wanted.partition)
        });
        FetchableTopicResponse::default().with_topic_id(topic.topic_id).with_partitions(partitions.collect())
    });
    FetchResponse::default().with_responses(topics.collect())
}

fn read(
    replication: &Replication,
    id: TopicIdPartition,
    request: &FetchRequest,
    wanted: &FetchPartition,
    is_new: bool,
) -> Result<Read, ErrorCode> {
    let some = |epoch: i32| (epoch >= 0).then_some(LeaderEpoch(epoch));
    let from = FollowerFetch {
        replica: NodeId(request.replica_state.replica_id.0),
        broker_epoch: Some(BrokerEpoch(request.replica_state.replica_epoch)),
        log_start: Offset(wanted.log_start_offset),
        request: crate::FetchRequest {
            leader_epoch: some(wanted.current_leader_epoch),
            offset: Offset(wanted.fetch_offset),
            last_fetched_epoch: some(wanted.last_fetched_epoch),
        },
    };
    let limits = ReadLimits { bytes_max: wanted.partition_max_bytes as usize, at_least_one: true };
    let partition = replication.partition_by_id(id)?;
    partition.fetch_as_follower(&from, limits, is_new).map_err(|error| ErrorCode::from(&error))
}

fn said(read: Result<Read, ErrorCode>) -> PartitionData {
    match read {
        Err(error) => PartitionData::default().with_error_code(error.code()),
        Ok(read) => {
            let said = PartitionData::default()
                .with_high_watermark(read.high_watermark.0)
                .with_log_start_offset(read.log_start.0)
                .with_records(Some(read.slice.read().expect("a disk")));
            match read.diverging {
                None => said,
                Some(end) => said.with_diverging_epoch(
                    EpochEndOffset::default().with_epoch(end.epoch.0).with_end_offset(end.end.0),
                ),
            }
        }
    }
}

fn list_offsets(replication: &Replication, request: &ListOffsetsRequest) -> ListOffsetsResponse {
    let [topic] = request.topics.as_slice() else { panic!("one topic") };
    let [wanted] = topic.partitions.as_slice() else { panic!("one partition") };
    let offsets = replication.partition(&topic.name, wanted.partition_index).and_then(|partition| {
        partition.check_epoch(LeaderEpoch(wanted.current_leader_epoch))?;
        partition.offsets()
    });
    let heard = ListOffsetsPartitionResponse::default().with_partition_index(wanted.partition_index);
    let heard = match offsets {
        Ok(offsets) if wanted.timestamp == -2 => heard.with_offset(offsets.log_start.0),
        Ok(offsets) => heard.with_offset(offsets.log_end.0),
        Err(error) => heard.with_error_code(ErrorCode::from(error).code()),
    };
    let topic =
        ListOffsetsTopicResponse::default().with_name(topic.name.clone()).with_partitions(vec![heard]);
    ListOffsetsResponse::default().with_topics(vec![topic])
}
