//! FetchResponse, encoded around its records instead of through them: payloads are chunks of their own, never copied.
//!
//! ```text
//! throttle i32 | error i16, session i32 (7+) | topics [ name (..12) or id (13+) | partitions [
//!     index i32, error i16, high watermark i64, last stable i64, log start i64 (5+),
//!     aborted [ producer i64, first offset i64 ] or null, preferred replica i32 (11+), records bytes,
//!     tag 0 (12+): diverging epoch i32, its end i64 ] ]
//! ```
//!
//! From version 12 on lengths are unsigned varints of length + 1 and each structure ends with its tagged fields.
//!
//! Kafka: `FetchResponse.json`.

use bytes::{BufMut, Bytes, BytesMut};
use env::Chunk;
use model::{ErrorCode, Offset};
use protocol::{FrameError, RequestHeader};
use replication::{EpochEnd, Slice};

use crate::Answer;
use crate::fetch_session::{Key, Told, TopicRef};

/// Records shorter than this are copied between the fields: a chunk of their own would cost more.
const COPY_BYTES_MAX: usize = 1024;
const FLEXIBLE: i16 = 12;

/// The answer to a Fetch.
#[derive(Default)]
pub(crate) struct FetchAnswer {
    pub(crate) error: i16,
    pub(crate) session_id: i32,
    pub(crate) partitions: Vec<PartitionAnswer>,
}

/// The answer for one partition; those of one topic stand together.
pub(crate) struct PartitionAnswer {
    pub(crate) key: Key,
    pub(crate) error: ErrorCode,
    pub(crate) high_watermark: Offset,
    pub(crate) last_stable_offset: Offset,
    pub(crate) log_start: Offset,
    /// Whether the reader wants committed records only, and so is told which transactions were aborted: none.
    pub(crate) knows_aborted: bool,
    /// Where the reader's log is not a prefix of this one: up to here it may be (KIP-595).
    pub(crate) diverging: Option<EpochEnd>,
    pub(crate) slice: Slice,
    /// Up to where its reader could read.
    pub(crate) readable_end: Offset,
}

impl PartitionAnswer {
    /// Nothing but an error.
    pub(crate) fn failed(key: Key, error: ErrorCode) -> Self {
        let none = Offset(-1);
        Self {
            key,
            error,
            high_watermark: none,
            last_stable_offset: none,
            log_start: none,
            knows_aborted: false,
            diverging: None,
            slice: Slice::Empty,
            readable_end: none,
        }
    }
}

impl Told for PartitionAnswer {
    fn key(&self) -> &Key {
        &self.key
    }

    fn error(&self) -> ErrorCode {
        self.error
    }

    fn high_watermark(&self) -> Offset {
        self.high_watermark
    }

    fn log_start(&self) -> Offset {
        self.log_start
    }

    fn has_records(&self) -> bool {
        !self.slice.is_empty()
    }

    fn diverges(&self) -> bool {
        self.diverging.is_some()
    }
}

impl Answer for FetchAnswer {
    fn encode(self, header: &RequestHeader) -> Result<Vec<Chunk>, FrameError> {
        let mut out = Out::new(header.api_version);
        out.fields.put_i32(0); // the frame's length, when it is known
        out.fields.put_i32(header.correlation_id);
        out.tags();
        out.fields.put_i32(0); // throttle
        if header.api_version >= 7 {
            out.fields.put_i16(self.error);
            out.fields.put_i32(self.session_id);
        }
        let topics: Vec<_> =
            self.partitions.chunk_by(|a, b| a.key.topic == b.key.topic).map(<[_]>::len).collect();
        out.array(topics.len());
        let mut partitions = self.partitions.into_iter();
        for count in topics {
            out.topic(partitions.by_ref().take(count), count);
        }
        out.tags();
        Ok(out.finish())
    }
}

/// The frame as it grows: finished chunks, and the fields after them.
struct Out {
    version: i16,
    chunks: Vec<Chunk>,
    bytes: usize,
    fields: BytesMut,
}

impl Out {
    fn new(version: i16) -> Self {
        Self { version, chunks: Vec::new(), bytes: 0, fields: BytesMut::with_capacity(512) }
    }

    fn topic(&mut self, partitions: impl Iterator<Item = PartitionAnswer>, count: usize) {
        for (at, partition) in partitions.enumerate() {
            if at == 0 {
                match &partition.key.topic {
                    TopicRef::Id(id) => self.fields.put_slice(&id.0),
                    TopicRef::Name(name) => self.string(name.as_str()),
                }
                self.array(count);
            }
            self.partition(partition);
        }
        self.tags();
    }

    fn partition(&mut self, partition: PartitionAnswer) {
        self.fields.put_i32(partition.key.partition);
        self.fields.put_i16(partition.error.code());
        self.fields.put_i64(partition.high_watermark.0);
        self.fields.put_i64(partition.last_stable_offset.0);
        if self.version >= 5 {
            self.fields.put_i64(partition.log_start.0);
        }
        if partition.knows_aborted {
            self.array(0);
        } else {
            self.no_array();
        }
        if self.version >= 11 {
            self.fields.put_i32(-1); // preferred read replica
        }
        self.records(partition.slice);
        match partition.diverging.filter(|_| self.version >= FLEXIBLE) {
            Some(end) => self.diverging(end),
            None => self.tags(),
        }
    }

    /// One tagged field, which is a structure without tagged fields.
    fn diverging(&mut self, end: EpochEnd) {
        const EPOCH_END_BYTES: u8 = 13;
        self.fields.put_slice(&[1, 0, EPOCH_END_BYTES]);
        self.fields.put_i32(end.epoch.0);
        self.fields.put_i64(end.end.0);
        self.tags();
    }

    fn records(&mut self, slice: Slice) {
        self.length(slice.len());
        match slice {
            Slice::Empty => {}
            Slice::Cached(bytes) if bytes.len() <= COPY_BYTES_MAX => self.fields.put_slice(&bytes),
            Slice::Cached(bytes) => self.chunk(Chunk::Bytes(bytes.clone()), bytes.len()),
            Slice::File(range) => {
                let length = range.length;
                self.chunk(Chunk::File(range), length);
            }
        }
    }

    fn chunk(&mut self, chunk: Chunk, length: usize) {
        self.cut();
        self.chunks.push(chunk);
        self.bytes += length;
    }

    fn cut(&mut self) {
        let fields = self.fields.split().freeze();
        self.bytes += fields.len();
        self.chunks.push(Chunk::Bytes(fields));
    }

    fn is_flexible(&self) -> bool {
        self.version >= FLEXIBLE
    }

    fn tags(&mut self) {
        if self.is_flexible() {
            self.fields.put_u8(0);
        }
    }

    fn array(&mut self, count: usize) {
        self.length(count);
    }

    fn no_array(&mut self) {
        if self.is_flexible() { self.fields.put_u8(0) } else { self.fields.put_i32(-1) }
    }

    fn string(&mut self, text: &str) {
        if self.is_flexible() {
            self.length(text.len());
        } else {
            self.fields.put_i16(text.len() as i16);
        }
        self.fields.put_slice(text.as_bytes());
    }

    /// The length of an array or of bytes.
    fn length(&mut self, length: usize) {
        if !self.is_flexible() {
            self.fields.put_i32(length as i32);
            return;
        }
        let mut rest = length as u64 + 1;
        while rest >= 0x80 {
            self.fields.put_u8(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.fields.put_u8(rest as u8);
    }

    fn finish(mut self) -> Vec<Chunk> {
        self.cut();
        let length = (self.bytes - 4) as i32;
        if let Some(Chunk::Bytes(first)) = self.chunks.first_mut() {
            let mut head = BytesMut::from(&**first);
            head[..4].copy_from_slice(&length.to_be_bytes());
            *first = Bytes::from(head);
        }
        self.chunks
    }
}

#[cfg(test)]
mod tests {
    use model::Uuid;
    use protocol::messages::fetch_response::{
        EpochEndOffset, FetchableTopicResponse, LeaderIdAndEpoch, PartitionData,
    };
    use protocol::messages::{FetchRequest, FetchResponse};
    use protocol::{StrBytes, ToWire};

    use super::*;

    const ID: Uuid = Uuid([9; 16]);

    fn partition(partition: i32, records: &'static [u8], version: i16) -> PartitionAnswer {
        let topic = if version >= 13 { TopicRef::Id(ID) } else { TopicRef::Name("orders".into()) };
        PartitionAnswer {
            key: Key { topic, partition },
            error: ErrorCode::None,
            high_watermark: Offset(7),
            last_stable_offset: Offset(6),
            log_start: Offset(2),
            knows_aborted: false,
            diverging: None,
            slice: Slice::Cached(Bytes::from_static(records)),
            readable_end: Offset(7),
        }
    }

    fn expected(answer: &[(i32, &'static [u8])], version: i16) -> FetchResponse {
        let partitions = answer.iter().map(|(index, records)| {
            PartitionData::default()
                .with_partition_index(*index)
                .with_high_watermark(7)
                .with_last_stable_offset(6)
                .with_log_start_offset(if version >= 5 { 2 } else { -1 })
                .with_aborted_transactions(None)
                .with_current_leader(LeaderIdAndEpoch::default())
                .with_records(Some(Bytes::from_static(records)))
        });
        let topic = FetchableTopicResponse::default().with_partitions(partitions.collect());
        let topic = if version >= 13 {
            topic.with_topic_id(ID.to_wire())
        } else {
            topic.with_topic(StrBytes::from_static_str("orders").into())
        };
        FetchResponse::default().with_session_id(if version >= 7 { 5 } else { 0 }).with_responses(vec![topic])
    }

    fn sent(chunks: Vec<Chunk>) -> Vec<u8> {
        chunks
            .into_iter()
            .flat_map(|chunk| match chunk {
                Chunk::Bytes(bytes) => bytes.to_vec(),
                Chunk::File(_) => unreachable!("no file was answered with"),
            })
            .collect()
    }

    #[test]
    fn every_version_is_encoded_as_the_tables_say() {
        static LARGE: [u8; 5000] = [3; 5000];
        for version in 4..=18 {
            let header =
                RequestHeader { api_key: 1, api_version: version, correlation_id: 42, client_id: None };
            let answer = [(0, &LARGE[..]), (3, &b""[..]), (4, &b"abc"[..])];
            let partitions = answer.iter().map(|(index, records)| partition(*index, records, version));
            let ours = FetchAnswer { error: 0, session_id: 5, partitions: partitions.collect() };
            let theirs =
                protocol::encode_response(42, 1, version, &expected(&answer, version)).expect("encodes");
            assert_eq!(sent(ours.encode(&header).expect("encodes")), theirs, "version {version}");
        }
    }

    #[test]
    fn where_logs_diverge_is_told_in_a_tagged_field() {
        let end = EpochEnd { epoch: model::LeaderEpoch(3), end: Offset(11) };
        for version in 12..=18 {
            let header =
                RequestHeader { api_key: 1, api_version: version, correlation_id: 42, client_id: None };
            let answer = PartitionAnswer { diverging: Some(end), ..partition(0, b"", version) };
            let ours = FetchAnswer { error: 0, session_id: 5, partitions: vec![answer] };
            let mut theirs = expected(&[(0, b"")], version);
            theirs.responses[0].partitions[0].diverging_epoch =
                EpochEndOffset::default().with_epoch(3).with_end_offset(11);
            let theirs = protocol::encode_response(42, 1, version, &theirs).expect("encodes");
            assert_eq!(sent(ours.encode(&header).expect("encodes")), theirs, "version {version}");
        }
    }

    #[test]
    fn large_records_are_not_copied() {
        static LARGE: [u8; 5000] = [3; 5000];
        let header = RequestHeader { api_key: 1, api_version: 12, correlation_id: 1, client_id: None };
        let ours = FetchAnswer { error: 0, session_id: 0, partitions: vec![partition(0, &LARGE, 12)] };
        let chunks = ours.encode(&header).expect("encodes");
        let is_same =
            |chunk: &Chunk| matches!(chunk, Chunk::Bytes(bytes) if bytes.as_ptr() == LARGE.as_ptr());
        assert!(chunks.iter().any(is_same));
    }

    #[test]
    fn only_a_reader_of_committed_records_is_told_that_no_transaction_was_aborted() {
        for (version, knows_aborted) in (4..=18).flat_map(|version| [(version, false), (version, true)]) {
            let header =
                RequestHeader { api_key: 1, api_version: version, correlation_id: 1, client_id: None };
            let answer = PartitionAnswer { knows_aborted, ..partition(0, b"", version) };
            let ours = FetchAnswer { error: 0, session_id: 0, partitions: vec![answer] };
            let frame = Bytes::from(sent(ours.encode(&header).expect("encodes")));
            let body = frame.slice(8 + usize::from(version >= FLEXIBLE)..);
            let response = protocol::decode_response::<FetchRequest>(version, body).expect("decodes");
            let aborted = response.responses[0].partitions[0].aborted_transactions.as_ref();
            assert_eq!(aborted.map(Vec::len), knows_aborted.then_some(0), "version {version}");
        }
    }
}
