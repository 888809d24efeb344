//! Makes the batches that Ottla itself writes: offsets, groups, metadata, markers.

use bytes::Bytes;
use model::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, Timestamp};

use super::cursor::{put_varint, put_varlong};
use super::header::MAGIC;
use super::{Attributes, Codec, HEADER_BYTES, compress, setters};

/// A batch that grows record by record.
///
/// Offset deltas start at 0 and have no gaps, unless [`Self::append_at`] says otherwise.
#[derive(Clone, Debug)]
pub struct BatchBuilder {
    base_offset: Offset,
    leader_epoch: LeaderEpoch,
    attributes: Attributes,
    codec: Codec,
    timestamp: Timestamp,
    producer: (ProducerId, ProducerEpoch, Sequence),
    base_timestamp: Option<Timestamp>,
    max_timestamp: Timestamp,
    last_offset_delta: i32,
    record_count: i32,
    records: Vec<u8>,
    /// Of the record that is being written: kept for its capacity.
    fields: Vec<u8>,
}

impl Default for BatchBuilder {
    fn default() -> Self {
        Self {
            base_offset: Offset(0),
            leader_epoch: LeaderEpoch::NONE,
            attributes: Attributes::default(),
            codec: Codec::None,
            timestamp: Timestamp::NONE,
            producer: (ProducerId::NONE, ProducerEpoch::NONE, Sequence::NONE),
            base_timestamp: None,
            max_timestamp: Timestamp::NONE,
            last_offset_delta: -1,
            record_count: 0,
            records: Vec::new(),
            fields: Vec::new(),
        }
    }
}

impl BatchBuilder {
    /// At offset 0, of no leader and no producer, not compressed, without a time.
    pub fn new() -> Self {
        Self::default()
    }

    /// The offset of the first record.
    pub fn base_offset(mut self, offset: Offset) -> Self {
        self.base_offset = offset;
        self
    }

    /// The epoch of the leader that appends it.
    pub fn leader_epoch(mut self, epoch: LeaderEpoch) -> Self {
        self.leader_epoch = epoch;
        self
    }

    /// The time of every record that is appended from now on.
    pub fn timestamp(mut self, timestamp: Timestamp) -> Self {
        self.timestamp = timestamp;
        self
    }

    /// The records are markers for brokers, not data.
    pub fn control(mut self) -> Self {
        self.attributes = self.attributes.with_control();
        self
    }

    /// The records belong to a transaction.
    pub fn transactional(mut self) -> Self {
        self.attributes = self.attributes.with_transactional();
        self
    }

    /// Who writes it, and the number of the first record in the producer's stream.
    pub fn producer(mut self, id: ProducerId, epoch: ProducerEpoch, base_sequence: Sequence) -> Self {
        self.producer = (id, epoch, base_sequence);
        self
    }

    /// How the records are compressed.
    pub fn codec(mut self, codec: Codec) -> Self {
        self.codec = codec;
        self
    }

    /// Adds a record behind the last one, at the time that [`Self::timestamp`] set.
    pub fn append(&mut self, key: Option<&[u8]>, value: Option<&[u8]>, headers: &[(&[u8], Option<&[u8]>)]) {
        self.append_at(self.last_offset_delta + 1, self.timestamp, key, value, headers);
    }

    /// Adds a record with an offset delta and a time of its own.
    ///
    /// # Panics
    /// `offset_delta` is not greater than the last record's.
    pub fn append_at(
        &mut self,
        offset_delta: i32,
        timestamp: Timestamp,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(&[u8], Option<&[u8]>)],
    ) {
        assert!(offset_delta > self.last_offset_delta, "offsets grow within a batch");
        let base = *self.base_timestamp.get_or_insert(timestamp);
        self.fields.clear();
        self.fields.push(0);
        put_varlong(&mut self.fields, timestamp.0.wrapping_sub(base.0));
        put_varint(&mut self.fields, offset_delta);
        put_nullable(&mut self.fields, key);
        put_nullable(&mut self.fields, value);
        put_varint(&mut self.fields, headers.len() as i32);
        for (key, value) in headers {
            put_nullable(&mut self.fields, Some(key));
            put_nullable(&mut self.fields, *value);
        }
        put_nullable(&mut self.records, Some(&self.fields));
        self.max_timestamp = self.max_timestamp.max(timestamp);
        self.last_offset_delta = offset_delta;
        self.record_count += 1;
    }

    /// How many records were appended.
    pub fn record_count(&self) -> i32 {
        self.record_count
    }

    /// Bytes of the batch so far, before compression.
    pub fn size_bytes(&self) -> usize {
        HEADER_BYTES + self.records.len()
    }

    /// The whole batch.
    ///
    /// # Panics
    /// The batch is larger than 2 GiB: whoever appends has a limit far below that.
    pub fn build(self) -> Bytes {
        let mut batch = Vec::with_capacity(self.size_bytes());
        self.put_header(&mut batch);
        match self.codec {
            Codec::None => batch.extend_from_slice(&self.records),
            codec => batch.extend_from_slice(&compress(codec, &self.records)),
        }
        setters::set_length_and_crc(&mut batch);
        batch.into()
    }

    // Length and CRC are set when the rest is there.
    fn put_header(&self, batch: &mut Vec<u8>) {
        let (producer_id, producer_epoch, base_sequence) = self.producer;
        batch.extend_from_slice(&self.base_offset.0.to_be_bytes());
        batch.extend_from_slice(&0i32.to_be_bytes());
        batch.extend_from_slice(&self.leader_epoch.0.to_be_bytes());
        batch.extend_from_slice(&MAGIC.to_be_bytes());
        batch.extend_from_slice(&0u32.to_be_bytes());
        batch.extend_from_slice(&self.attributes.with_codec(self.codec).0.to_be_bytes());
        batch.extend_from_slice(&self.last_offset_delta.to_be_bytes());
        batch.extend_from_slice(&self.base_timestamp.unwrap_or(Timestamp::NONE).0.to_be_bytes());
        batch.extend_from_slice(&self.max_timestamp.0.to_be_bytes());
        batch.extend_from_slice(&producer_id.0.to_be_bytes());
        batch.extend_from_slice(&producer_epoch.0.to_be_bytes());
        batch.extend_from_slice(&base_sequence.0.to_be_bytes());
        batch.extend_from_slice(&self.record_count.to_be_bytes());
    }
}

fn put_nullable(bytes: &mut Vec<u8>, field: Option<&[u8]>) {
    match field {
        Some(field) => {
            put_varint(bytes, i32::try_from(field.len()).expect("a record is smaller than 2 GiB"));
            bytes.extend_from_slice(field);
        }
        None => put_varint(bytes, -1),
    }
}
