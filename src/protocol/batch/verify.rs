//! Whether the records of a batch that is not compressed are what its header says, at the least cost: nothing is taken
//! apart that need not be.

use super::cursor::Cursor;
use super::records::{Headers, nullable, record_timestamp};
use super::{Batch, BatchError, BatchHeader, RecordFault};

impl Batch<'_> {
    /// Walks the records: their sizes and fields fit, their offsets have no gaps, there are as many as the header counts,
    /// and nothing is left over. Of a compressed batch its bytes are taken for records.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn verify_records(&self) -> Result<(), BatchError> {
        let mut cursor = Cursor::new(self.payload());
        self.header.check_record_count(cursor.left())?;
        for index in 0..self.header.record_count {
            verify_record(&self.header, &mut cursor, index)
                .map_err(|fault| BatchError::InvalidRecord { index, fault })?;
        }
        match cursor.left() {
            0 => Ok(()),
            bytes => Err(BatchError::LeftOver { bytes }),
        }
    }
}

#[inline]
fn verify_record(header: &BatchHeader, cursor: &mut Cursor<'_>, index: i32) -> Result<(), RecordFault> {
    let size = usize::try_from(cursor.varint()?).map_err(|_| RecordFault::Size)?;
    let mut fields = Cursor::new(cursor.take(size).ok_or(RecordFault::Cut)?);
    let [_attributes] = fields.array().ok_or(RecordFault::Cut)?;
    record_timestamp(header, fields.varlong()?)?;
    if fields.varint()? != index {
        return Err(RecordFault::Offset);
    }
    nullable(&mut fields)?;
    nullable(&mut fields)?;
    if fields.is_zero() { Ok(()) } else { Headers::read(fields).map(drop) }
}
