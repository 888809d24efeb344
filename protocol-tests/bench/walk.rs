//! Reads what is needed out of a frame where it lies: neither generator nor floor shall spend time on structs.

use anyhow::{Context, Result, ensure};

/// A place in a flexible message.
pub(crate) struct Walk<'a>(pub(crate) &'a [u8]);

impl<'a> Walk<'a> {
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).context("the frame ends too early")?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        Ok(self.take(N)?.try_into()?)
    }

    pub(crate) fn i16(&mut self) -> Result<i16> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    pub(crate) fn i32(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    pub(crate) fn i64(&mut self) -> Result<i64> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    fn varint(&mut self) -> Result<usize> {
        let (mut value, mut shift) = (0, 0);
        loop {
            let [byte] = self.array()?;
            value |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
            shift += 7;
            ensure!(shift < 35, "a varint does not end");
        }
    }

    /// How many elements follow; null counts as none.
    pub(crate) fn compact_count(&mut self) -> Result<usize> {
        Ok(self.varint()?.saturating_sub(1))
    }

    /// A compact string or compact bytes; null counts as empty.
    pub(crate) fn compact_bytes(&mut self) -> Result<&'a [u8]> {
        let count = self.compact_count()?;
        self.take(count)
    }

    pub(crate) fn tags(&mut self) -> Result<()> {
        for _ in 0..self.varint()? {
            self.varint()?;
            let size = self.varint()?;
            self.take(size)?;
        }
        Ok(())
    }
}
