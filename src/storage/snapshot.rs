//! Snapshots of the producers of a log: `%020d.snapshot`, named by the offset, exclusive, up to which they are true.
//!
//! ```text
//! version i16 = 1 | CRC-32C u32 of all behind it | count i32 | producers
//! producer: id i64, epoch i16, last sequence i32, last offset i64, offset delta i32, timestamp i64,
//!           coordinator epoch i32, first offset of the open transaction i64 (-1)
//! ```
//!
//! Only the last batch of each producer is in it: the windows are completed from the log. Kafka: `ProducerSnapshot.json`, `ProducerStateManager`.

use model::{Offset, ProducerEpoch, ProducerId, Sequence, Timestamp};

use crate::producers::{ProducerState, ProducerWindowBatch, Producers};

const VERSION: i16 = 1;
const CRC_END: usize = 6;
const PRODUCER_BYTES: usize = 46;

/// The file's bytes.
pub(crate) fn encode(producers: &Producers) -> Vec<u8> {
    let states = producers.sorted();
    let mut bytes = Vec::with_capacity(CRC_END + 4 + states.len() * PRODUCER_BYTES);
    bytes.extend_from_slice(&VERSION.to_be_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&(states.len() as i32).to_be_bytes());
    for state in states {
        put_producer(&mut bytes, state);
    }
    let (head, body) = bytes.split_at_mut(CRC_END);
    if let Some(crc) = head.last_chunk_mut::<4>() {
        *crc = crc32c::crc32c(body).to_be_bytes();
    }
    bytes
}

fn put_producer(bytes: &mut Vec<u8>, state: &ProducerState) {
    let last = state.last_batch();
    let last_offset = last.map_or(Offset(-1), |batch| batch.last_offset);
    bytes.extend_from_slice(&state.producer_id.0.to_be_bytes());
    bytes.extend_from_slice(&state.epoch.0.to_be_bytes());
    bytes.extend_from_slice(&state.last_sequence().0.to_be_bytes());
    bytes.extend_from_slice(&last_offset.0.to_be_bytes());
    bytes.extend_from_slice(&last.map_or(0, |batch| batch.offset_delta).to_be_bytes());
    bytes.extend_from_slice(&state.last_timestamp.0.to_be_bytes());
    bytes.extend_from_slice(&state.coordinator_epoch.to_be_bytes());
    bytes.extend_from_slice(&state.transaction_start.map_or(-1, |offset| offset.0).to_be_bytes());
}

/// Reads the file.
///
/// # Errors
/// What is wrong, in words.
pub(crate) fn parse(bytes: &[u8]) -> Result<Producers, &'static str> {
    let (version, rest) = bytes.split_first_chunk().ok_or("is cut")?;
    if i16::from_be_bytes(*version) != VERSION {
        return Err("has an unknown version");
    }
    let (crc, body) = rest.split_first_chunk().ok_or("is cut")?;
    if u32::from_be_bytes(*crc) != crc32c::crc32c(body) {
        return Err("has a CRC that does not fit");
    }
    let (count, producers) = body.split_first_chunk().ok_or("is cut")?;
    let (producers, rest) = producers.as_chunks::<PRODUCER_BYTES>();
    if usize::try_from(i32::from_be_bytes(*count)) != Ok(producers.len()) || !rest.is_empty() {
        return Err("has more or fewer producers than it says");
    }
    let mut states = Producers::default();
    for producer in producers {
        states.restore(read_producer(producer).ok_or("has a malformed producer")?);
    }
    Ok(states)
}

fn read_producer(bytes: &[u8]) -> Option<ProducerState> {
    let (id, bytes) = bytes.split_first_chunk()?;
    let (epoch, bytes) = bytes.split_first_chunk()?;
    let (last_sequence, bytes) = bytes.split_first_chunk()?;
    let (last_offset, bytes) = bytes.split_first_chunk()?;
    let (offset_delta, bytes) = bytes.split_first_chunk()?;
    let (timestamp, bytes) = bytes.split_first_chunk()?;
    let (coordinator_epoch, bytes) = bytes.split_first_chunk()?;
    let transaction_start = i64::from_be_bytes(*bytes.first_chunk()?);
    let timestamp = Timestamp(i64::from_be_bytes(*timestamp));
    let last = ProducerWindowBatch {
        last_sequence: Sequence(i32::from_be_bytes(*last_sequence)),
        last_offset: Offset(i64::from_be_bytes(*last_offset)),
        offset_delta: i32::from_be_bytes(*offset_delta),
        timestamp,
    };
    let wrote = last.last_sequence >= Sequence(0) && last.offset_delta >= 0 && last.last_offset >= Offset(0);
    Some(ProducerState::restored(
        ProducerId(i64::from_be_bytes(*id)),
        ProducerEpoch(i16::from_be_bytes(*epoch)),
        i32::from_be_bytes(*coordinator_epoch),
        timestamp,
        (transaction_start >= 0).then_some(Offset(transaction_start)),
        wrote.then_some(last),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Producers {
        let mut producers = Producers::default();
        for id in 0..4 {
            let last = ProducerWindowBatch {
                last_sequence: Sequence(9),
                last_offset: Offset(100 + id),
                offset_delta: 4,
                timestamp: Timestamp(5000),
            };
            let open = (id == 2).then_some(Offset(90));
            let (id, last) = (ProducerId(id), (id != 3).then_some(last));
            producers.restore(ProducerState::restored(id, ProducerEpoch(1), -1, Timestamp(5000), open, last));
        }
        producers
    }

    #[test]
    fn the_file_goes_both_ways() {
        let bytes = encode(&some());
        assert_eq!(bytes.len(), 10 + 4 * PRODUCER_BYTES);
        assert_eq!(parse(&bytes), Ok(some()));
        assert_eq!(parse(&encode(&Producers::default())), Ok(Producers::default()));
    }

    #[test]
    fn a_cut_or_changed_file_is_an_error() {
        let bytes = encode(&some());
        for end in 0..bytes.len() {
            assert!(parse(&bytes[..end]).is_err(), "cut at {end}");
        }
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            assert!(parse(&changed).is_err(), "changed at {at}");
        }
    }
}
