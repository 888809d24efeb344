//! Batches that Apache Kafka made (golden/MakeBatches.java), one file a codec, read record by record.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use model::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, Timestamp};
use proptest::collection::vec;
use proptest::prelude::*;
use protocol::batch::{Batch, Codec, HEADER_BYTES, Record, TimestampType, batches, decompress};

const BYTES_MAX: usize = 1 << 20;
const FIRST_TIMESTAMP: i64 = 1_700_000_000_000;

fn golden(codec: Codec) -> &'static [u8] {
    match codec {
        Codec::None => include_bytes!("golden/none.batches"),
        Codec::Gzip => include_bytes!("golden/gzip.batches"),
        Codec::Snappy => include_bytes!("golden/snappy.batches"),
        Codec::Lz4 => include_bytes!("golden/lz4.batches"),
        Codec::Zstd => include_bytes!("golden/zstd.batches"),
    }
}

#[test]
fn kafkas_headers_are_read_field_by_field() {
    for codec in Codec::ALL {
        let batch = Batch::parse(golden(codec)).unwrap();
        batch.verify_crc().unwrap();
        let header = batch.header;
        assert_eq!((header.base_offset, header.last_offset()), (Offset(100), Offset(107)));
        assert_eq!((header.leader_epoch, header.record_count), (LeaderEpoch(5), 8));
        assert_eq!((header.producer_id, header.producer_epoch), (ProducerId(4711), ProducerEpoch(2)));
        assert_eq!((header.base_sequence, header.last_sequence()), (Sequence(i32::MAX - 1), Sequence(5)));
        assert_eq!((header.base_timestamp, header.max_timestamp), (timestamp(0), timestamp(7)));
        assert_eq!(header.attributes.codec(), Ok(codec));
        assert_eq!(header.attributes.timestamp_type(), TimestampType::CreateTime);
        assert!(!header.is_transactional() && !header.is_control());
    }
}

#[test]
fn kafkas_records_are_read_from_every_codec() {
    for codec in Codec::ALL {
        let sizes: Vec<usize> = batches(golden(codec)).map(|batch| check_records(&batch.unwrap())).collect();
        let expected: &[usize] = if codec == Codec::None { &[8] } else { &[8, 300] };
        assert_eq!(sizes, expected, "{codec}");
    }
}

#[test]
fn kafkas_records_are_not_decompressed_beyond_the_cap() {
    for codec in Codec::ALL.into_iter().skip(1) {
        let batch = batches(golden(codec)).last().unwrap().unwrap();
        let size = batch.records(BYTES_MAX).unwrap().size_bytes();
        assert!(batch.records(size).is_ok(), "{codec}");
        assert!(batch.records(size - 1).is_err(), "{codec}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    // The CRC would keep almost all of these away from the codecs and the walk, so it is not asked.
    #[test]
    fn kafkas_records_with_bytes_changed_are_read_or_refused(
        codec in proptest::sample::select(&Codec::ALL[..]),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in 0..40usize,
    ) {
        let mut bytes = golden(codec)[HEADER_BYTES..].to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(bytes.len() - cut);
        if let Ok(records) = decompress(codec, &bytes, BYTES_MAX) {
            prop_assert!(records.len() <= BYTES_MAX);
        }
        let batch = [&golden(codec)[..HEADER_BYTES], &bytes].concat();
        for batch in batches(&batch).flatten() {
            let records = batch.records(BYTES_MAX);
            prop_assert!(records.is_err() || records.unwrap().iter().count() <= batch.header.record_count as usize + 1);
        }
    }
}

fn check_records(batch: &Batch<'_>) -> usize {
    batch.verify_crc().unwrap();
    let records = batch.records(BYTES_MAX).unwrap();
    for (i, record) in records.iter().enumerate() {
        check_record(batch, i as i32, &record.unwrap());
    }
    records.iter().count()
}

fn check_record(batch: &Batch<'_>, i: i32, record: &Record<'_>) {
    let key = (i % 5 != 0).then(|| format!("key-{i}"));
    let value = (i % 7 != 3).then(|| format!("value {i} ").repeat((i % 4 * 12) as usize));
    assert_eq!(record.key, key.as_deref().map(str::as_bytes));
    assert_eq!(record.value, value.as_deref().map(str::as_bytes));
    assert_eq!(record.offset, batch.header.base_offset.plus(i64::from(i)));
    assert_eq!(record.sequence, batch.header.base_sequence.plus(i));
    assert_eq!(record.timestamp, timestamp(i));
    let headers: Vec<_> = record.headers.iter().collect();
    let doubled: [(&[u8], Option<&[u8]>); 4] =
        [(b"doubled", Some(b"first")), (b"doubled", Some(b"second")), (b"null", None), (b"", Some(b""))];
    assert_eq!(headers, if i % 3 == 0 { &doubled[..] } else { &[] });
}

fn timestamp(i: i32) -> Timestamp {
    Timestamp(FIRST_TIMESTAMP + 7 * i64::from(i))
}
