//! Unsigned varints: seven bits a byte, the lowest first, the top bit says that more follow.

/// The number at the start of `bytes` and how many bytes it takes; `None` where it is cut or does not fit in 32 bits.
pub(crate) fn unsigned(bytes: &[u8]) -> Option<(u32, usize)> {
    let mut value = 0;
    for (i, byte) in bytes.iter().take(5).enumerate() {
        if i == 4 && *byte > 0x0f {
            return None;
        }
        value |= u32::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            return Some((value, i + 1));
        }
    }
    None
}

/// Hands the bytes of `value` to `put`, one after the other.
pub(crate) fn put_unsigned(mut value: u32, mut put: impl FnMut(u8)) {
    while value >= 0x80 {
        put(value as u8 | 0x80);
        value >>= 7;
    }
    put(value as u8);
}

#[cfg(test)]
mod tests {
    use super::{put_unsigned, unsigned};

    #[test]
    fn what_is_put_comes_back() {
        for value in [0, 1, 127, 128, 300, 1 << 21, u32::MAX] {
            let mut bytes = Vec::new();
            put_unsigned(value, |byte| bytes.push(byte));
            assert_eq!(unsigned(&bytes), Some((value, bytes.len())));
        }
    }

    #[test]
    fn five_bytes_hold_32_bits_and_not_more() {
        assert_eq!(unsigned(&[0x00]), Some((0, 1)));
        assert_eq!(unsigned(&[0x80, 0x01, 0xff]), Some((128, 2)));
        assert_eq!(unsigned(&[0xff, 0xff, 0xff, 0xff, 0x0f]), Some((u32::MAX, 5)));
        assert_eq!(unsigned(&[0xff, 0xff, 0xff, 0xff, 0x10]), None);
        assert_eq!(unsigned(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x00]), None);
        assert_eq!(unsigned(&[0x80]), None);
    }
}
