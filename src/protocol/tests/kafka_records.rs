//! Records and files that Apache Kafka 4.4 wrote (`golden/make-records`) are read, and written again to the same bytes.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use protocol::batch::batches;
use protocol::records::metadata::MetadataRecord;
use protocol::records::offsets::{GroupMetadataValue, OffsetCommitValue, OffsetsKey};
use protocol::records::{ControlRecord, RecordError};

const METADATA_LOG: &[u8] = include_bytes!("golden/cluster-metadata.log");
const BOOTSTRAP: &[u8] = include_bytes!("golden/bootstrap.checkpoint");
const OFFSETS_LOG: &[u8] = include_bytes!("golden/consumer-offsets.log");

/// Calls `visit(is_control, key, value)` for every record.
fn records(log: &[u8], mut visit: impl FnMut(bool, Option<&[u8]>, Option<&[u8]>)) {
    for batch in batches(log) {
        let batch = batch.unwrap();
        batch.verify_crc().unwrap();
        for record in &batch.records(1 << 20).unwrap() {
            let record = record.unwrap();
            visit(batch.header.is_control(), record.key, record.value);
        }
    }
}

/// The types of control records, then those of metadata records, after each came back from its struct.
fn metadata_types(log: &[u8]) -> (Vec<i16>, BTreeSet<u32>) {
    let (mut control, mut types) = (Vec::new(), BTreeSet::new());
    records(log, |is_control, key, value| {
        let value = value.unwrap();
        if is_control {
            let record = ControlRecord::decode(key.unwrap(), value).unwrap();
            let (key_again, value_again) = record.encode().unwrap();
            assert_eq!((&key_again[..], &value_again[..]), (key.unwrap(), value), "{record:?}");
            let control_type = i16::from_be_bytes([key_again[2], key_again[3]]);
            control.push(control_type);
        } else {
            let record = MetadataRecord::decode(value).unwrap();
            assert_eq!(&record.encode()[..], value, "{record:?}");
            types.insert(record.record_type());
        }
    });
    (control, types)
}

#[test]
fn the_metadata_log_comes_back_byte_for_byte_in_the_versions_that_kafka_writes() {
    let (control, types) = metadata_types(METADATA_LOG);
    assert_eq!(control, [2, 5, 6], "leader change, kraft.version, voters");
    let expected = [0, 2, 3, 4, 5, 9, 11, 12, 14, 15, 17, 18, 19, 22, 23, 24, 27];
    assert_eq!(types, BTreeSet::from(expected));
}

#[test]
fn the_bootstrap_snapshot_comes_back_byte_for_byte() {
    let (control, types) = metadata_types(BOOTSTRAP);
    assert_eq!(control, [3, 5, 6, 4], "header, kraft.version, voters, footer");
    assert_eq!(types, BTreeSet::from([11, 12]));
}

#[test]
fn offsets_and_groups_come_back_byte_for_byte() {
    let (mut offsets, mut groups, mut tombstones) = (0, 0, 0);
    records(OFFSETS_LOG, |_, key, value| {
        let key = key.unwrap();
        let decoded = OffsetsKey::decode(key).unwrap();
        assert_eq!(&decoded.encode().unwrap()[..], key);
        match (decoded, value) {
            (_, None) => tombstones += 1,
            (OffsetsKey::OffsetCommit(_), Some(value)) => {
                let offset = OffsetCommitValue::decode(value).unwrap();
                assert_eq!(&offset.encode().unwrap()[..], value);
                offsets += 1;
            }
            (OffsetsKey::GroupMetadata(_), Some(value)) => {
                let group = GroupMetadataValue::decode(value).unwrap();
                assert_eq!(&group.encode().unwrap()[..], value);
                groups += 1;
            }
            (key, _) => panic!("{key:?}"),
        }
    });
    assert!(offsets > 0 && groups > 0 && tombstones > 0, "{offsets} {groups} {tombstones}");
}

#[test]
fn records_of_other_groups_and_unknown_types_are_told_apart_from_broken_ones() {
    assert_eq!(OffsetsKey::decode(&[0, 3, 0, 1, b'g']), Err(RecordError::UnknownType(3)));
    assert_eq!(OffsetsKey::decode(&[0]), Err(RecordError::Short));
    assert_eq!(MetadataRecord::decode(&[1, 99, 0]), Err(RecordError::UnknownType(99)));
    assert_eq!(MetadataRecord::decode(&[0, 2, 0]), Err(RecordError::FrameVersion(0)));
    assert!(MetadataRecord::decode(&[1, 2, 1, 0]).is_err());
}
