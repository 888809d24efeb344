//! Reads bytes that nobody has checked, front to back.

use super::RecordFault;

/// What is left to read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// How many bytes are left.
    pub(super) fn left(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing is left but a zero.
    #[inline]
    pub(super) fn is_zero(&self) -> bool {
        matches!(self.0, [0])
    }

    /// The next `N` bytes, if they are there.
    #[inline]
    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    /// The next `count` bytes, if they are there.
    #[inline]
    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// A varint of at most 32 bits, zigzag.
    #[inline]
    pub(super) fn varint(&mut self) -> Result<i32, RecordFault> {
        let raw = self.unsigned::<32>()? as u32;
        Ok((raw >> 1).cast_signed() ^ -(raw & 1).cast_signed())
    }

    /// A varint of at most 64 bits, zigzag.
    #[inline]
    pub(super) fn varlong(&mut self) -> Result<i64, RecordFault> {
        let raw = self.unsigned::<64>()?;
        Ok((raw >> 1).cast_signed() ^ -(raw & 1).cast_signed())
    }

    // Most numbers are one byte, most sizes two.
    #[inline]
    fn unsigned<const BITS: u32>(&mut self) -> Result<u64, RecordFault> {
        match *self.0 {
            [a @ 0..0x80, ref rest @ ..] => {
                self.0 = rest;
                Ok(u64::from(a))
            }
            [a, b @ 0..0x80, ref rest @ ..] => {
                self.0 = rest;
                Ok(u64::from(a & 0x7f) | u64::from(b) << 7)
            }
            _ => self.long::<BITS>(),
        }
    }

    #[cold]
    fn long<const BITS: u32>(&mut self) -> Result<u64, RecordFault> {
        let mut number = 0;
        for shift in (0..BITS).step_by(7) {
            let [byte] = self.array().ok_or(RecordFault::Cut)?;
            let seven = u64::from(byte & 0x7f);
            if BITS - shift < 7 && seven >> (BITS - shift) != 0 {
                return Err(RecordFault::NumberTooLong);
            }
            number |= seven << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(RecordFault::NumberTooLong)
    }
}

/// Writes a 32-bit number as a zigzag varint.
pub(super) fn put_varint(bytes: &mut Vec<u8>, number: i32) {
    put_varlong(bytes, i64::from(number));
}

/// Writes a 64-bit number as a zigzag varint.
pub(super) fn put_varlong(bytes: &mut Vec<u8>, number: i64) {
    let mut raw = ((number << 1) ^ (number >> 63)).cast_unsigned();
    while raw >= 0x80 {
        bytes.push(raw as u8 | 0x80);
        raw >>= 7;
    }
    bytes.push(raw as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn varints_are_zigzag() {
        for (number, bytes) in
            [(0, vec![0]), (-1, vec![1]), (1, vec![2]), (63, vec![126]), (-64, vec![127]), (64, vec![128, 1])]
        {
            let mut written = Vec::new();
            put_varint(&mut written, number);
            assert_eq!(written, bytes);
        }
    }

    #[test]
    fn numbers_that_their_type_cannot_hold_are_refused() {
        let too_many_bytes = [0x80, 0x80, 0x80, 0x80, 0x80, 0x00];
        let too_many_bits = [0xff, 0xff, 0xff, 0xff, 0x1f];
        for bytes in [&too_many_bytes[..], &too_many_bits] {
            assert_eq!(Cursor::new(bytes).varint(), Err(RecordFault::NumberTooLong));
        }
        assert_eq!(Cursor::new(&[0xff; 9]).varlong(), Err(RecordFault::Cut));
        assert_eq!(Cursor::new(&[0xff; 11]).varlong(), Err(RecordFault::NumberTooLong));
        let mut two = [0xff; 10];
        two[9] = 2;
        assert_eq!(Cursor::new(&two).varlong(), Err(RecordFault::NumberTooLong));
    }

    proptest! {
        #[test]
        fn numbers_go_both_ways(int: i32, long: i64) {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, int);
            put_varlong(&mut bytes, long);
            let mut cursor = Cursor::new(&bytes);
            prop_assert_eq!(cursor.varint(), Ok(int));
            prop_assert_eq!(cursor.varlong(), Ok(long));
            prop_assert_eq!(cursor.left(), 0);
        }
    }
}
