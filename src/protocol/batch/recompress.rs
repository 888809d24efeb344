//! The same batch under another codec: for topics whose `compression.type` is not `producer`.
//!
//! The records stay as they are, since their offsets and times are relative to the header; only codec, length and CRC
//! become others.
//!
//! Kafka: `LogValidator.validateMessagesAndAssignOffsetsCompressed`, which builds the batch anew for this.

use super::{Batch, BatchError, Codec, compress, decompress, setters};

/// The batch with its records compressed by `codec`; they pass through at most `bytes_max` bytes in between. Whether
/// they are well-formed is not looked at.
///
/// # Errors
/// The batch's own codec is unknown, or its bytes are corrupt or too many.
pub fn recompress(batch: &Batch<'_>, codec: Codec, bytes_max: usize) -> Result<Vec<u8>, BatchError> {
    let attributes = batch.header.attributes;
    let (header, payload) = batch.split();
    let records = decompress(attributes.codec()?, payload, bytes_max)?;
    let mut bytes = [header, &compress(codec, &records)].concat();
    setters::set_attributes(&mut bytes, attributes.with_codec(codec));
    setters::set_length_and_crc(&mut bytes);
    Ok(bytes)
}
