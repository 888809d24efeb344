//! What bytes from a peer or a disk go through in this room. Each target takes any bytes; it panics only if the room is
//! wrong. They are run by cargo-fuzz (`protocol-tests/fuzz`) and, over its corpus, by `cargo test`.

use std::fmt::Debug;

use bytes::{Buf, Bytes, BytesMut};
use model::{LeaderEpoch, Offset, Timestamp};
use protocol::batch::{batches as batches_of, set_base_offset, set_leader_epoch, set_log_append_time};
use protocol::messages::*;
use protocol::records::metadata::MetadataRecord;
use protocol::records::offsets::{
    GroupMetadataValue, LegacyOffsetCommitValue, OffsetCommitValue, OffsetsKey,
};
use protocol::records::{ControlRecord, QuorumState};
use protocol::{Decodable, Encodable, decode, decode_request_header, decode_response};

const DECOMPRESSED_BYTES_MAX: usize = 1 << 20;

/// A request frame without its length.
pub(crate) fn request(frame: &[u8]) {
    let mut body = Bytes::copy_from_slice(frame);
    let Ok(header) = decode_request_header(&mut body) else { return };
    macro_rules! each {
        ($key:literal, $request:ident, $response:ident) => {
            if header.api_key == $key {
                if let Ok(message) = decode::<$request>(header.api_version, body.clone()) {
                    comes_back(message, header.api_version, decode::<$request>);
                }
            }
        };
    }
    protocol::for_each_api!(each);
}

/// The key and the version of an API, then the body of its response.
pub(crate) fn response(bytes: &[u8]) {
    let mut body = Bytes::copy_from_slice(bytes);
    let (Ok(key), Ok(version)) = (body.try_get_i16(), body.try_get_i16()) else { return };
    macro_rules! each {
        ($key:literal, $request:ident, $response:ident) => {
            if key == $key {
                if let Ok(message) = decode_response::<$request>(version, body.clone()) {
                    comes_back(message, version, decode_response::<$request>);
                }
            }
        };
    }
    protocol::for_each_api!(each);
}

/// The value of a record of `__cluster_metadata`.
pub(crate) fn metadata_record(value: &[u8]) {
    if let Ok(record) = MetadataRecord::decode(value) {
        // Bytes are compared, for not a number differs from itself.
        let bytes = record.encode();
        let again = MetadataRecord::decode(&bytes).expect("a record that was written");
        assert_eq!(again.encode(), bytes, "{record:?}");
    }
}

/// A record of `__consumer_offsets`: the length of its key, the key, the value.
pub(crate) fn offsets_record(bytes: &[u8]) {
    let Some((key, value)) = split(bytes) else { return };
    if let Ok(key) = OffsetsKey::decode(key) {
        assert_eq!(OffsetsKey::decode(&key.encode().expect("a key that was read")), Ok(key));
    }
    let _ = LegacyOffsetCommitValue::decode(value);
    let _ = OffsetCommitValue::decode(value);
    let _ = GroupMetadataValue::decode(value);
}

/// A control record: the length of its key, the key, the value.
pub(crate) fn control_record(bytes: &[u8]) {
    let Some((key, value)) = split(bytes) else { return };
    if let Ok(record) = ControlRecord::decode(key, value) {
        let (key, value) = record.encode().expect("a record that was read");
        assert_eq!(ControlRecord::decode(&key, &value), Ok(record));
    }
}

/// A `quorum-state` file.
pub(crate) fn quorum_state(file: &[u8]) {
    if let Ok(state) = QuorumState::decode(file) {
        assert_eq!(QuorumState::decode(state.encode().as_bytes()), Ok(state));
    }
}

/// Record batches, one after the other.
pub(crate) fn batches(bytes: &[u8]) {
    for batch in batches_of(bytes) {
        let Ok(batch) = batch else { return };
        let was_right = batch.verify_crc().is_ok();
        if let Ok(records) = batch.records(DECOMPRESSED_BYTES_MAX) {
            for record in &records {
                let Ok(record) = record else { break };
                record.headers.iter().for_each(drop);
            }
        }
        let mut changed = batch.bytes.to_vec();
        set_base_offset(&mut changed, Offset(7));
        set_leader_epoch(&mut changed, LeaderEpoch(3));
        set_log_append_time(&mut changed, Timestamp(1));
        let changed = batches_of(&changed).next().expect("a batch").expect("one that was whole");
        assert!(!was_right || changed.verify_crc().is_ok());
    }
}

/// What was decoded is encoded in the same version to bytes that mean the same.
fn comes_back<M, E>(message: M, version: i16, decode: impl Fn(i16, Bytes) -> Result<M, E>)
where
    M: Encodable + Decodable + Debug,
    E: Debug,
{
    let bytes = encode(&message, version);
    let again = decode(version, bytes.clone()).expect("a message that was encoded");
    assert_eq!(encode(&again, version), bytes, "{message:?}");
}

fn encode(message: &impl Encodable, version: i16) -> Bytes {
    let mut bytes = BytesMut::new();
    message.encode(&mut bytes, version).expect("a message that was decoded");
    bytes.freeze()
}

fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(*length))
}
