//! The fields that a broker sets in a batch that a producer sent, in place.
//!
//! Base offset and leader epoch are not under the CRC, so setting them costs nothing. Each function wants the bytes of
//! exactly one batch that [`super::batches`] accepted, and panics on anything else.

use model::{LeaderEpoch, Offset, Timestamp};

use super::header::{ATTRIBUTES, BASE_OFFSET, CRC, LEADER_EPOCH, LENGTH, MAX_TIMESTAMP};
use super::iterate::crc_of;
use super::{Attributes, HEADER_BYTES};

/// Sets the offset of the first record.
pub fn set_base_offset(batch: &mut [u8], offset: Offset) {
    header_of(batch)[BASE_OFFSET].copy_from_slice(&offset.0.to_be_bytes());
}

/// Sets the epoch of the leader that appends it.
pub fn set_leader_epoch(batch: &mut [u8], epoch: LeaderEpoch) {
    header_of(batch)[LEADER_EPOCH].copy_from_slice(&epoch.0.to_be_bytes());
}

/// Says that the broker appended all records at `now`, and computes the CRC anew.
pub fn set_log_append_time(batch: &mut [u8], now: Timestamp) {
    let header = header_of(batch);
    let attributes = Attributes(i16::from_be_bytes([header[ATTRIBUTES.start], header[ATTRIBUTES.start + 1]]));
    header[ATTRIBUTES].copy_from_slice(&attributes.with_log_append_time().0.to_be_bytes());
    header[MAX_TIMESTAMP].copy_from_slice(&now.0.to_be_bytes());
    set_crc(batch);
}

/// Sets the length field to what is there, and computes the CRC anew.
pub(super) fn set_length_and_crc(batch: &mut [u8]) {
    let length = i32::try_from(batch.len() - LENGTH.end).expect("a batch is smaller than 2 GiB");
    header_of(batch)[LENGTH].copy_from_slice(&length.to_be_bytes());
    set_crc(batch);
}

fn set_crc(batch: &mut [u8]) {
    let crc = crc_of(batch);
    header_of(batch)[CRC].copy_from_slice(&crc.to_be_bytes());
}

fn header_of(batch: &mut [u8]) -> &mut [u8; HEADER_BYTES] {
    batch.first_chunk_mut().expect("a whole batch, as the walk over batches gave it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Batch, BatchBuilder, TimestampType};

    fn one_record() -> Vec<u8> {
        let mut builder = BatchBuilder::new().timestamp(Timestamp(7));
        builder.append(None, Some(b"value"), &[]);
        builder.build().to_vec()
    }

    #[test]
    fn offset_and_epoch_leave_the_crc_right() {
        let mut batch = one_record();
        set_base_offset(&mut batch, Offset(41));
        set_leader_epoch(&mut batch, LeaderEpoch(3));
        let batch = Batch::parse(&batch).unwrap();
        batch.verify_crc().unwrap();
        assert_eq!((batch.header.base_offset, batch.header.leader_epoch), (Offset(41), LeaderEpoch(3)));
    }

    #[test]
    fn log_append_time_holds_for_every_record_and_the_crc_is_right() {
        let mut batch = one_record();
        set_log_append_time(&mut batch, Timestamp(99));
        let batch = Batch::parse(&batch).unwrap();
        batch.verify_crc().unwrap();
        assert_eq!(batch.header.attributes.timestamp_type(), TimestampType::LogAppendTime);
        assert_eq!(batch.header.max_timestamp, Timestamp(99));
        let records = batch.records(1 << 10).unwrap();
        let record = records.iter().next().unwrap().unwrap();
        assert_eq!(record.timestamp, Timestamp(99));
    }
}
