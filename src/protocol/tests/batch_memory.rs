//! How much memory reading a batch takes: none for the header, the CRC and the walk, and a small multiple of the cap for
//! what is decompressed, whatever the bytes say.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::alloc::System;

use model::Timestamp;
use protocol::batch::{BatchBuilder, BatchError, Codec, CodecError, batches, compress, decompress};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const CAP: usize = 1 << 20;
/// A codec's tables and windows: lz4's blocks may be 4 MiB each.
const CODEC_BYTES: usize = 10 << 20;

// The counters are the process's, so the tests of this file are one.
#[test]
fn memory_is_bounded() {
    header_crc_and_walk_allocate_nothing();
    announced_counts_are_not_believed();
    Codec::ALL.into_iter().for_each(a_bomb_stops_at_the_cap);
    a_short_snappy_block_that_says_it_is_long_is_refused();
}

fn allocated(work: impl FnOnce()) -> usize {
    let region = Region::new(ALLOCATOR);
    work();
    region.change().bytes_allocated
}

fn header_crc_and_walk_allocate_nothing() {
    let mut builder = BatchBuilder::new().timestamp(Timestamp(1));
    for i in 0..1000u32 {
        builder.append(Some(&i.to_be_bytes()), Some(&[7; 100]), &[(b"h", Some(b"1")), (b"h", None)]);
    }
    let bytes = builder.build();
    let mut headers = 0;
    let taken = allocated(|| {
        for batch in batches(&bytes) {
            let batch = batch.unwrap();
            batch.verify_crc().unwrap();
            for record in &batch.records(CAP).unwrap() {
                headers += record.unwrap().headers.iter().count();
            }
        }
    });
    assert_eq!((headers, taken), (2000, 0));
}

fn announced_counts_are_not_believed() {
    let mut builder = BatchBuilder::new();
    builder.append(None, None, &[]);
    let mut bytes = builder.build().to_vec();
    bytes[57..61].copy_from_slice(&i32::MAX.to_be_bytes());
    let taken = allocated(|| {
        let batch = batches(&bytes).next().unwrap().unwrap();
        let error = batch.records(CAP).unwrap_err();
        assert!(matches!(error, BatchError::InvalidRecordCount { count: i32::MAX, .. }));
    });
    assert_eq!(taken, 0);
}

fn a_bomb_stops_at_the_cap(codec: Codec) {
    let bomb = compress(codec, &vec![0; 64 << 20]);
    let taken = allocated(|| {
        let error = decompress(codec, &bomb, CAP).unwrap_err();
        assert_eq!(error, CodecError::TooLarge { bytes_max: CAP });
    });
    assert!(taken <= 4 * CAP + CODEC_BYTES, "{codec} took {taken} bytes");
}

fn a_short_snappy_block_that_says_it_is_long_is_refused() {
    let says_4_gib = [0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0, 0];
    let taken = allocated(|| assert!(decompress(Codec::Snappy, &says_4_gib, usize::MAX).is_err()));
    assert!(taken < 1 << 10, "{taken}");
}
