//! The walk through a message before anything is built from it.
//!
//! It follows the table of the message's version and refuses what a decoder might believe: a length that the bytes left
//! could not fill with the smallest elements, a null where there is none, a tagged field that takes more or fewer bytes
//! than it declares, tags that do not rise, bytes left over. What passes makes the decoders behind it allocate in
//! proportion to the frame and never more than `Limits::MESSAGE_ELEMENTS_MAX` elements; it allocates nothing itself, but for
//! the error codes of a response.
//!
//! Kafka: none. Its decoders check only that an array is no longer than the bytes that remain.

use std::collections::BTreeSet;

use model::Limits;

use crate::schema::{Field, Kind, Schema};
use crate::tables::api;
use crate::varint;

/// Kafka's name of every field that has an error code.
const ERROR_CODE: &str = "ErrorCode";

/// Why a message is not what its table says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PreflightError {
    /// Kafka has no such API.
    #[error("there is no API with key {0}")]
    UnknownApi(i16),
    /// The API has no such version.
    #[error("{message} has no version {version}")]
    UnknownVersion {
        /// The message's name.
        message: &'static str,
        /// The version asked for.
        version: i16,
    },
    /// The message ends inside a value.
    #[error("the message ends inside a value")]
    Short,
    /// A length is negative, or more than the bytes left could hold.
    #[error("a length does not fit in the message")]
    Length,
    /// A varint is longer than its type.
    #[error("a varint is too long")]
    Varint,
    /// A null where the version has none.
    #[error("a null where this version allows none")]
    Null,
    /// The byte that says whether a structure is there is neither 1 nor negative; decoders would not agree on it.
    #[error("the mark of a structure is {0}, and not 1 or -1")]
    Mark(i8),
    /// The numbers of tagged fields do not rise, or one is more than an `i32` holds.
    #[error("the numbers of tagged fields are out of order or too large")]
    Tag,
    /// A tagged field takes more or fewer bytes than it declares.
    #[error("a tagged field does not fill its declared size")]
    TagSize,
    /// More elements than any client has reason to send.
    #[error("more than {} elements", Limits::MESSAGE_ELEMENTS_MAX)]
    TooMany,
    /// Bytes are left after the message.
    #[error("{0} bytes are left after the message")]
    Left(usize),
}

/// Checks the body of a request, to its last byte.
///
/// # Errors
/// Where the body is not what the table of this version says.
pub fn check_request(api_key: i16, version: i16, body: &[u8]) -> Result<(), PreflightError> {
    check(api(api_key).ok_or(PreflightError::UnknownApi(api_key))?.request, version, body)
}

/// Checks the body of a response, to its last byte.
///
/// # Errors
/// Where the body is not what the table of this version says.
pub(crate) fn check_response(api_key: i16, version: i16, body: &[u8]) -> Result<(), PreflightError> {
    check(api(api_key).ok_or(PreflightError::UnknownApi(api_key))?.response, version, body)
}

/// Checks a message of `schema`, to its last byte.
///
/// # Errors
/// Where the bytes are not what the table of this version says.
pub fn check(schema: &Schema, version: i16, body: &[u8]) -> Result<(), PreflightError> {
    walk(schema, version, body).map(drop)
}

/// Checks the body of a response, to its last byte, and gives the error codes in it, wherever they stand.
///
/// # Errors
/// Where the body is not what the table of this version says.
pub fn error_codes(api_key: i16, version: i16, body: &[u8]) -> Result<BTreeSet<i16>, PreflightError> {
    walk(api(api_key).ok_or(PreflightError::UnknownApi(api_key))?.response, version, body)
}

/// The error codes of a message that is what its schema says.
fn walk(schema: &Schema, version: i16, body: &[u8]) -> Result<BTreeSet<i16>, PreflightError> {
    if !schema.versions.contains(version) {
        return Err(PreflightError::UnknownVersion { message: schema.name, version });
    }
    let flexible = schema.flexible.contains(version);
    let mut walk = Walk { left: body, version, flexible, elements: 0, error_codes: BTreeSet::new() };
    walk.fields(schema.fields)?;
    match walk.left.len() {
        0 => Ok(walk.error_codes),
        left => Err(PreflightError::Left(left)),
    }
}

struct Walk<'a> {
    left: &'a [u8],
    version: i16,
    flexible: bool,
    elements: usize,
    /// Other than 0.
    error_codes: BTreeSet<i16>,
}

impl Walk<'_> {
    fn skip(&mut self, bytes: usize) -> Result<(), PreflightError> {
        self.left = self.left.get(bytes..).ok_or(PreflightError::Short)?;
        Ok(())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], PreflightError> {
        let (first, rest) = self.left.split_first_chunk().ok_or(PreflightError::Short)?;
        self.left = rest;
        Ok(*first)
    }

    fn unsigned_varint(&mut self) -> Result<u32, PreflightError> {
        let cut = if self.left.len() < 5 { PreflightError::Short } else { PreflightError::Varint };
        let (value, size) = varint::unsigned(self.left).ok_or(cut)?;
        self.skip(size)?;
        Ok(value)
    }

    /// The length of a value whose elements take at least `size_min` bytes each; `None` is a null.
    fn length(&mut self, kind: &Kind, size_min: usize) -> Result<Option<usize>, PreflightError> {
        let length = if self.flexible {
            i64::from(self.unsigned_varint()?) - 1
        } else if matches!(kind, Kind::String) {
            i64::from(i16::from_be_bytes(self.array()?))
        } else {
            i64::from(i32::from_be_bytes(self.array()?))
        };
        if length == -1 {
            return Ok(None);
        }
        let length = usize::try_from(length).map_err(|_| PreflightError::Length)?;
        if length > self.left.len() / size_min { Err(PreflightError::Length) } else { Ok(Some(length)) }
    }

    fn fields(&mut self, fields: &'static [Field]) -> Result<(), PreflightError> {
        for field in fields {
            if field.tag.is_none() && field.versions.contains(self.version) {
                self.note_error(field);
                self.value(&field.kind, field.is_nullable(self.version))?;
            }
        }
        if self.flexible { self.tags(fields) } else { Ok(()) }
    }

    fn note_error(&mut self, field: &Field) {
        if matches!(field.kind, Kind::Int16)
            && field.name == ERROR_CODE
            && let Some(code) =
                self.left.first_chunk().copied().map(i16::from_be_bytes).filter(|code| *code != 0)
        {
            self.error_codes.insert(code);
        }
    }

    fn tags(&mut self, fields: &'static [Field]) -> Result<(), PreflightError> {
        let mut next = 0;
        for _ in 0..self.unsigned_varint()? {
            self.count(1)?;
            let tag = self.unsigned_varint()?;
            // kafka-protocol keeps an unknown tag as an i32, and loses a negative one when it encodes.
            if tag < next || i32::try_from(tag).is_err() {
                return Err(PreflightError::Tag);
            }
            next = tag + 1;
            let size = self.unsigned_varint()? as usize;
            let (inside, after) = self.left.split_at_checked(size).ok_or(PreflightError::Length)?;
            let known = |f: &&Field| f.tag == Some(tag) && f.versions.contains(self.version);
            if let Some(field) = fields.iter().find(known) {
                self.left = inside;
                self.value(&field.kind, field.is_nullable(self.version))?;
                if !self.left.is_empty() {
                    return Err(PreflightError::TagSize);
                }
            }
            self.left = after;
        }
        Ok(())
    }

    fn value(&mut self, kind: &'static Kind, nullable: bool) -> Result<(), PreflightError> {
        match kind {
            Kind::String | Kind::Bytes | Kind::Records => match self.length(kind, 1)? {
                Some(length) => self.skip(length),
                None => null(nullable),
            },
            Kind::Array(element) => match self.length(kind, element.size_min(self.version, self.flexible))? {
                Some(length) => self.elements(element, length),
                None => null(nullable),
            },
            Kind::Struct(fields) => {
                match nullable.then(|| self.array().map(i8::from_be_bytes)).transpose()? {
                    None | Some(1) => self.fields(fields),
                    Some(mark) if mark < 0 => Ok(()),
                    Some(mark) => Err(PreflightError::Mark(mark)),
                }
            }
            number => self.skip(number.size_min(self.version, self.flexible)),
        }
    }

    fn elements(&mut self, element: &'static Kind, length: usize) -> Result<(), PreflightError> {
        if element.is_number() {
            return self.skip(length * element.size_min(self.version, self.flexible));
        }
        self.count(length)?;
        (0..length).try_for_each(|_| self.value(element, false))
    }

    fn count(&mut self, elements: usize) -> Result<(), PreflightError> {
        self.elements += elements;
        if self.elements > Limits::MESSAGE_ELEMENTS_MAX { Err(PreflightError::TooMany) } else { Ok(()) }
    }
}

fn null(nullable: bool) -> Result<(), PreflightError> {
    if nullable { Ok(()) } else { Err(PreflightError::Null) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UnregisterController's request: an id, and tagged fields of which none is known.
    fn tags(bytes: &[u8]) -> Result<(), PreflightError> {
        check_request(94, 0, &[&[0, 0, 0, 1], bytes].concat())
    }

    #[test]
    fn a_structure_is_marked_by_one_or_is_not_there() {
        // DescribeTopicPartitions: no topics, a limit, the cursor's mark, then either a cursor or the end.
        let body = |mark: u8, rest: &[u8]| [&[1, 0, 0, 0, 9, mark], rest].concat();
        assert_eq!(check_request(75, 0, &body(1, &[2, b't', 0, 0, 0, 0, 0, 0])), Ok(()));
        assert_eq!(check_request(75, 0, &body(0xff, &[0])), Ok(()));
        assert_eq!(check_request(75, 0, &body(0x61, &[0])), Err(PreflightError::Mark(0x61)));
    }

    #[test]
    fn error_codes_are_found_wherever_they_stand() {
        // DeleteTopics' response, version 1: throttle time, then of each topic a name and a code.
        let body = [0, 0, 0, 0, 0, 0, 0, 3, 0, 1, b'a', 0, 41, 0, 1, b'b', 0, 0, 0, 1, b'c', 0, 3];
        assert_eq!(error_codes(20, 1, &body), Ok(BTreeSet::from([3, 41])));
        // FindCoordinator's, version 3: throttle time, a code, no message, a node, an empty host, a port, no tags.
        let body = [0, 0, 0, 0, 0, 15, 0, 0xff, 0xff, 0xff, 0xff, 1, 0xff, 0xff, 0xff, 0xff, 0];
        assert_eq!(error_codes(10, 3, &body), Ok(BTreeSet::from([15])));
        assert_eq!(error_codes(10, 3, &body[..15]), Err(PreflightError::Short));
    }

    #[test]
    fn unknown_tags_pass_where_their_numbers_rise() {
        assert_eq!(tags(&[0]), Ok(()));
        assert_eq!(tags(&[2, 7, 1, 0xaa, 9, 0]), Ok(()));
        assert_eq!(tags(&[2, 7, 0, 7, 0]), Err(PreflightError::Tag));
        assert_eq!(tags(&[2, 9, 0, 7, 0]), Err(PreflightError::Tag));
        assert_eq!(tags(&[1, 0xff, 0xff, 0xff, 0xff, 0x07, 0]), Ok(()));
        assert_eq!(tags(&[1, 0xff, 0xff, 0xff, 0xff, 0x08, 0]), Err(PreflightError::Tag));
    }

    #[test]
    fn a_tag_that_is_longer_than_the_message_is_refused() {
        assert_eq!(tags(&[1, 7, 2, 0xaa]), Err(PreflightError::Length));
        assert_eq!(tags(&[3, 7, 1, 0xaa]), Err(PreflightError::Short));
        assert_eq!(tags(&[0, 0]), Err(PreflightError::Left(1)));
    }

    #[test]
    fn a_known_tag_takes_what_it_declares() {
        // ApiVersions' response, version 3: error, keys, throttle time, then tag 3, a bool.
        let response = |tagged: &[u8]| [&[0, 0, 1, 0, 0, 0, 0, 1, 3], tagged].concat();
        assert_eq!(check_response(18, 3, &response(&[1, 1])), Ok(()));
        assert_eq!(check_response(18, 3, &response(&[2, 1, 0])), Err(PreflightError::TagSize));
        assert_eq!(check_response(18, 3, &response(&[0])), Err(PreflightError::Short));
    }

    #[test]
    fn a_null_is_refused_where_the_version_has_none() {
        // Metadata, version 0: the topics are never null; from version 1 on they may be.
        assert_eq!(check_request(3, 0, &[0xff; 4]), Err(PreflightError::Null));
        assert_eq!(check_request(3, 1, &[0xff; 4]), Ok(()));
        assert_eq!(check_request(3, 1, &[0xff, 0xff, 0xff, 0xfe]), Err(PreflightError::Length));
    }

    #[test]
    fn unknown_apis_and_versions_are_refused() {
        assert_eq!(check_request(4, 0, &[]), Err(PreflightError::UnknownApi(4)));
        let unknown = PreflightError::UnknownVersion { message: "MetadataRequest", version: 14 };
        assert_eq!(check_request(3, 14, &[]), Err(unknown));
    }
}
