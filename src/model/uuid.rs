//! UUIDs in Kafka's text form: 22 characters of URL-safe base64 without padding (Kafka: `org.apache.kafka.common.Uuid`).

use std::fmt;
use std::str::FromStr;

/// 128 bits. Zero is "none".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Uuid(pub [u8; 16]);

/// The text is not 22 characters of URL-safe base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseUuidError;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl Uuid {
    /// None.
    pub const ZERO: Self = Self([0; 16]);

    /// Whether it is none.
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }

    /// Whether it is one of the hundred that name nothing by themselves (Kafka: `DirectoryId.reserved`).
    pub fn is_reserved(&self) -> bool {
        u128::from_be_bytes(self.0) < 100
    }

    /// A version 4 UUID out of 16 random bytes.
    pub fn from_random(mut bytes: [u8; 16]) -> Self {
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        Self(bytes)
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = u128::from_be_bytes(self.0);
        // 21 characters hold 126 bits; the last one the remaining two, shifted to its top.
        let text: String = (0..22)
            .map(|i| {
                let six = if i < 21 { bits >> (122 - 6 * i) } else { bits << 4 };
                char::from(ALPHABET[(six & 63) as usize])
            })
            .collect();
        f.write_str(&text)
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Uuid {
    type Err = ParseUuidError;

    fn from_str(text: &str) -> Result<Self, ParseUuidError> {
        if text.len() != 22 {
            return Err(ParseUuidError);
        }
        let mut bits: u128 = 0;
        for (i, c) in text.bytes().enumerate() {
            let six = ALPHABET.iter().position(|a| *a == c).ok_or(ParseUuidError)? as u128;
            bits = if i < 21 { bits << 6 | six } else { bits << 2 | six >> 4 };
        }
        Ok(Self(bits.to_be_bytes()))
    }
}

impl fmt::Display for ParseUuidError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not 22 characters of URL-safe base64")
    }
}

impl std::error::Error for ParseUuidError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_kafkas() {
        let metadata_topic = Uuid(1u128.to_be_bytes());
        assert_eq!(metadata_topic.to_string(), "AAAAAAAAAAAAAAAAAAAAAQ");
        assert_eq!("AAAAAAAAAAAAAAAAAAAAAQ".parse(), Ok(metadata_topic));
    }

    #[test]
    fn text_and_bytes_go_both_ways() {
        for seed in 0..200u128 {
            let id = Uuid(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c834).to_be_bytes());
            assert_eq!(id.to_string().parse(), Ok(id));
        }
    }

    #[test]
    fn other_text_is_refused() {
        for text in ["", "AAAA", "AAAAAAAAAAAAAAAAAAAAA=", "AAAAAAAAAAAAAAAAAAAAAQA"] {
            assert_eq!(text.parse::<Uuid>(), Err(ParseUuidError));
        }
    }
}
