//! Properties of record batches: what is built is read back, and what is broken is refused.

use bytes::Bytes;
use model::{ErrorCode, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, Timestamp};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use protocol::batch::{
    Batch, BatchBuilder, BatchError, Codec, CodecError, HEADER_BYTES, batches, compress, decompress,
    set_base_offset,
};

const BYTES_MAX: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Written {
    gap: i32,
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

fn field() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(any::<u8>(), 0..12), vec(b'a'..b'd', 100..400)]
}

fn written() -> impl Strategy<Value = Written> {
    let headers = vec((field(), option::of(field())), 0..4);
    (1..4i32, any::<i32>(), option::of(field()), option::of(field()), headers).prop_map(
        |(gap, timestamp, key, value, headers)| {
            let timestamp = i64::from(timestamp).abs();
            Written { gap, timestamp, key, value, headers }
        },
    )
}

fn codec() -> impl Strategy<Value = Codec> {
    proptest::sample::select(&Codec::ALL[..])
}

fn build(codec: Codec, records: &[Written]) -> Bytes {
    let mut builder = BatchBuilder::new()
        .base_offset(Offset(1000))
        .leader_epoch(LeaderEpoch(9))
        .producer(ProducerId(3), ProducerEpoch(1), Sequence(0))
        .codec(codec);
    let mut delta = -1;
    for record in records {
        delta += record.gap;
        let headers: Vec<_> =
            record.headers.iter().map(|(key, value)| (&key[..], value.as_deref())).collect();
        let timestamp = Timestamp(record.timestamp);
        builder.append_at(delta, timestamp, record.key.as_deref(), record.value.as_deref(), &headers);
    }
    builder.build()
}

/// Everything that can be read out of a batch; its offsets count from the batch's base.
fn read(bytes: &[u8]) -> Result<Vec<Written>, BatchError> {
    let batch = Batch::parse(bytes)?;
    batch.verify_crc()?;
    let mut last = batch.header.base_offset.plus(-1);
    let mut written = Vec::new();
    for record in &batch.records(BYTES_MAX)? {
        let record = record?;
        written.push(Written {
            gap: (record.offset.0 - last.0) as i32,
            timestamp: record.timestamp.0,
            key: record.key.map(<[u8]>::to_vec),
            value: record.value.map(<[u8]>::to_vec),
            headers: record.headers.iter().map(|(k, v)| (k.to_vec(), v.map(<[u8]>::to_vec))).collect(),
        });
        last = record.offset;
    }
    Ok(written)
}

/// Base offset and leader epoch are the broker's, not the producer's, and not under the CRC.
fn is_under_crc(at: usize) -> bool {
    !(0..8).contains(&at) && !(12..16).contains(&at)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_is_built_is_read_back(codec in codec(), records in vec(written(), 1..20)) {
        let bytes = build(codec, &records);
        let header = Batch::parse(&bytes).unwrap().header;
        prop_assert_eq!(header.record_count as usize, records.len());
        prop_assert_eq!(header.max_timestamp.0, records.iter().map(|r| r.timestamp).max().unwrap());
        prop_assert_eq!(header.next_offset().0, 1000 + records.iter().map(|r| i64::from(r.gap)).sum::<i64>());
        prop_assert_eq!(read(&bytes), Ok(records));
    }

    #[test]
    fn verifying_finds_what_reading_finds(
        mut records in vec(written(), 1..20), at: prop::sample::Index, byte: u8, changed: bool,
    ) {
        for record in &mut records {
            record.gap = 1;
        }
        let mut bytes = build(Codec::None, &records).to_vec();
        if changed {
            let at = HEADER_BYTES + at.index(bytes.len() - HEADER_BYTES);
            bytes[at] = byte;
        }
        let batch = Batch::parse(&bytes).unwrap();
        let read: Result<Vec<_>, _> = batch.records(BYTES_MAX).unwrap().iter().map(|r| r.map(|r| r.offset.0)).collect();
        let has_no_gaps = |offsets: Vec<i64>| offsets.into_iter().eq((1000..).take(records.len()));
        prop_assert_eq!(batch.verify_records().is_ok(), read.is_ok_and(has_no_gaps));
    }

    #[test]
    fn every_codec_gives_back_what_it_took(codec in codec(), bytes in vec(any::<u8>(), 0..100_000)) {
        let compressed = compress(codec, &bytes);
        prop_assert_eq!(decompress(codec, &compressed, bytes.len()), Ok(bytes));
    }

    #[test]
    fn a_run_of_batches_is_walked_in_order(runs in vec(vec(written(), 1..4), 0..6), cut in 1..HEADER_BYTES) {
        let built: Vec<_> = runs.iter().map(|records| build(Codec::None, records)).collect();
        let mut all = built.concat();
        let walked: Vec<_> = batches(&all).map(|batch| batch.unwrap().bytes.to_vec()).collect();
        prop_assert_eq!(walked, &built[..]);

        all.truncate(all.len().saturating_sub(cut));
        let cut: Vec<_> = batches(&all).collect();
        prop_assert_eq!(cut.len(), built.len());
        let is_cut = cut.last().map(|last| matches!(last, Err(BatchError::Incomplete { .. })));
        prop_assert_eq!(is_cut, built.last().map(|_| true));
    }

    #[test]
    fn whatever_bytes_come_nothing_panics(
        codec in codec(),
        records in vec(written(), 1..6),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        tail in vec(any::<u8>(), 0..40),
    ) {
        let mut bytes = build(codec, &records).to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.extend(tail);
        for batch in batches(&bytes).flatten() {
            let _ = (batch.header.last_offset(), batch.header.next_offset(), batch.header.last_sequence());
            if let Ok(records) = batch.records(BYTES_MAX) {
                prop_assert!(records.iter().count() <= records.size_bytes() + 1);
            }
        }
        for codec in Codec::ALL {
            let _ = decompress(codec, &bytes, BYTES_MAX);
        }
    }
}

fn samples() -> impl Iterator<Item = (Vec<Written>, Bytes)> {
    let record = |value: &str| Written {
        gap: 1,
        timestamp: 7,
        key: Some(b"key".to_vec()),
        value: Some(value.repeat(30).into_bytes()),
        headers: vec![(b"h".to_vec(), None), (b"h".to_vec(), Some(b"again".to_vec()))],
    };
    let records = vec![record("one"), record("two")];
    Codec::ALL.into_iter().map(move |codec| (records.clone(), build(codec, &records)))
}

#[test]
fn every_cut_is_incomplete() {
    for (_, batch) in samples() {
        for end in 0..batch.len() {
            let error = Batch::parse(&batch[..end]).unwrap_err();
            assert!(matches!(error, BatchError::Incomplete { there, .. } if there == end), "{end}: {error}");
        }
    }
}

#[test]
fn every_flipped_bit_is_refused_or_changes_nothing_of_the_producers() {
    for (records, batch) in samples() {
        for bit in 0..batch.len() * 8 {
            let mut flipped = batch.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            match read(&flipped) {
                Ok(read) => assert!(read == records && !is_under_crc(bit / 8), "bit {bit}"),
                Err(error) => assert_eq!(ErrorCode::from(error), expected_code(&error), "bit {bit}: {error}"),
            }
        }
    }
}

/// Kafka's, for the same bytes.
fn expected_code(error: &BatchError) -> ErrorCode {
    match error {
        BatchError::Incomplete { .. } | BatchError::UnsupportedMagic { .. } => ErrorCode::InvalidRecord,
        _ => ErrorCode::CorruptMessage,
    }
}

#[test]
fn a_length_that_no_version_ever_had_is_refused_as_soon_as_it_is_there() {
    for length in [-1, 0, 13] {
        let mut start = [0; 16];
        start[8..12].copy_from_slice(&i32::to_be_bytes(length));
        assert_eq!(Batch::parse(&start).unwrap_err(), BatchError::InvalidLength { length });
        assert!(matches!(Batch::parse(&start[..11]), Err(BatchError::Incomplete { .. })));
    }
}

#[test]
fn message_sets_of_old_clients_have_their_own_error() {
    let (_, batch) = samples().next().unwrap();
    let mut old = batch.to_vec();
    for magic in [0, 1] {
        old[16] = magic;
        // A message set of one small message is shorter than a header of today.
        let error = Batch::parse(&old[..30]).unwrap_err();
        assert_eq!(error, BatchError::UnsupportedMagic { magic: magic as i8 });
    }
}

#[test]
fn a_last_offset_that_no_log_can_hold_is_refused() {
    let (_, batch) = samples().next().unwrap();
    let mut last = batch.to_vec();
    set_base_offset(&mut last, Offset(i64::MAX - 1));
    assert!(matches!(Batch::parse(&last), Err(BatchError::OffsetOverflow { .. })));
    set_base_offset(&mut last, Offset(i64::MAX - 2));
    assert!(Batch::parse(&last).is_ok());
    let last_offset_delta = 23..27;
    last[last_offset_delta].copy_from_slice(&(-1i32).to_be_bytes());
    set_base_offset(&mut last, Offset(i64::MIN));
    assert!(matches!(Batch::parse(&last), Err(BatchError::OffsetOverflow { .. })));
}

#[test]
fn a_codec_that_nobody_knows_is_refused() {
    for id in 5..8 {
        let (_, batch) = samples().next().unwrap();
        let mut batch = batch.to_vec();
        batch[22] = id;
        let header = Batch::parse(&batch).unwrap().header;
        assert_eq!(header.attributes.codec(), Err(CodecError::Unknown { id }));
    }
}

#[test]
fn one_raw_snappy_block_is_read_too() {
    let text = b"librdkafka once wrote snappy without a frame around it".repeat(9);
    let raw = snap::raw::Encoder::new().compress_vec(&text).unwrap();
    assert_eq!(decompress(Codec::Snappy, &raw, BYTES_MAX).unwrap(), text);
}
