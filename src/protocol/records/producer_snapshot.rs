//! The `.snapshot` file of a partition: what its producers had written up to the offset that names the file.
//!
//! ```text
//! [version i16 = 1] [crc u32] [count i32] entries…      the CRC-32C covers what follows it
//! ```
//!
//! Kafka: `ProducerStateManager.{readSnapshot,writeSnapshot}`.

use bytes::{BufMut, Bytes, BytesMut};

use super::RecordError;
use crate::codec;
use crate::generated::control::ProducerSnapshot;
pub use crate::generated::control::producer_snapshot::ProducerEntry;

const VERSION: i16 = 1;
/// Version and CRC.
const HEADER_BYTES: usize = 6;

/// The bytes of a snapshot file.
pub fn encode_producer_snapshot(entries: Vec<ProducerEntry>) -> Bytes {
    let snapshot = ProducerSnapshot { crc: 0, producer_entries: entries };
    let message =
        codec::encode(&snapshot, VERSION).expect("producer states have no part that could be too long");
    let (_crc, covered) = message.split_at(4);
    let mut file = BytesMut::with_capacity(HEADER_BYTES + covered.len());
    file.put_i16(VERSION);
    file.put_u32(crc32c::crc32c(covered));
    file.put_slice(covered);
    file.freeze()
}

/// Reads a snapshot file.
///
/// # Errors
/// Where it is cut, of another version, or its checksum does not match.
pub fn decode_producer_snapshot(file: &[u8]) -> Result<Vec<ProducerEntry>, RecordError> {
    let (version, message) = file.split_first_chunk().ok_or(RecordError::Short)?;
    let version = i16::from_be_bytes(*version);
    if version != VERSION {
        return Err(RecordError::UnknownVersion { record_type: 0, version: version.into() });
    }
    let snapshot: ProducerSnapshot = codec::decode(message, VERSION)?;
    let covered = file.get(HEADER_BYTES..).ok_or(RecordError::Short)?;
    if crc32c::crc32c(covered) == snapshot.crc {
        Ok(snapshot.producer_entries)
    } else {
        Err(RecordError::Checksum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_comes_back_and_a_flipped_bit_is_seen() {
        let entry = ProducerEntry {
            producer_id: 7,
            last_offset: 41,
            current_txn_first_offset: -1,
            ..Default::default()
        };
        let file = encode_producer_snapshot(vec![entry.clone(), entry.clone()]);
        assert_eq!(file.len(), 6 + 4 + 2 * 46);
        assert_eq!(decode_producer_snapshot(&file), Ok(vec![entry.clone(), entry]));
        for byte in 0..file.len() {
            let mut bad = file.to_vec();
            bad[byte] ^= 1;
            assert!(decode_producer_snapshot(&bad).is_err(), "byte {byte}");
            assert!(decode_producer_snapshot(&file[..byte]).is_err(), "cut at {byte}");
        }
    }
}
