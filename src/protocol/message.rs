//! From a body of bytes to a struct: preflight, then decode. Of a response nothing may be left; what follows a request is
//! ignored, as Kafka does.

use bytes::Bytes;
use kafka_protocol::protocol::{Decodable, Request};
use model::ErrorCode;

use crate::preflight::{PreflightError, check_request, check_response};
use crate::{FrameError, MessageError};

/// Why a body became no struct.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// It is not what its table says.
    #[error(transparent)]
    Preflight(#[from] PreflightError),
    /// The decoder refused a value: text that is not UTF-8, or a version that the struct does not have.
    #[error("{0}")]
    Value(anyhow::Error),
    /// The decoder left bytes that the preflight had seen.
    #[error("{0} bytes are left after the message")]
    Left(usize),
}

/// Decodes the body of a request. Its bytes and strings are slices of `body`: who keeps one keeps the frame.
///
/// Bytes after the message are ignored: librdkafka 2.16 sends three of them with a Metadata request for all topics.
///
/// # Errors
/// Where the body does not begin with a message of this version.
pub fn decode<R: Request>(version: i16, mut body: Bytes) -> Result<R, DecodeError> {
    match check_request(R::KEY, version, &body) {
        Ok(()) => {}
        Err(PreflightError::Left(left)) => body.truncate(body.len() - left),
        Err(error) => return Err(error.into()),
    }
    R::decode(&mut body, version).map_err(DecodeError::Value)
}

/// Decodes the body of the response to a request of type `R`.
///
/// # Errors
/// Where the body is not exactly one message of this version.
pub fn decode_response<R: Request>(version: i16, body: Bytes) -> Result<R::Response, DecodeError> {
    check_response(R::KEY, version, &body)?;
    whole(version, body)
}

fn whole<M: Decodable>(version: i16, mut body: Bytes) -> Result<M, DecodeError> {
    let message = M::decode(&mut body, version).map_err(DecodeError::Value)?;
    if body.is_empty() { Ok(message) } else { Err(DecodeError::Left(body.len())) }
}

impl From<&PreflightError> for ErrorCode {
    fn from(error: &PreflightError) -> Self {
        match error {
            PreflightError::UnknownApi(_) | PreflightError::UnknownVersion { .. } => Self::UnsupportedVersion,
            PreflightError::Short
            | PreflightError::Length
            | PreflightError::Varint
            | PreflightError::Null
            | PreflightError::Mark(_)
            | PreflightError::Tag
            | PreflightError::TagSize
            | PreflightError::TooMany
            | PreflightError::Left(_) => Self::InvalidRequest,
        }
    }
}

impl From<&DecodeError> for ErrorCode {
    fn from(error: &DecodeError) -> Self {
        match error {
            DecodeError::Preflight(error) => error.into(),
            DecodeError::Value(_) | DecodeError::Left(_) => Self::InvalidRequest,
        }
    }
}

impl From<&FrameError> for ErrorCode {
    fn from(error: &FrameError) -> Self {
        match error {
            FrameError::UnknownApi(_) => Self::UnsupportedVersion,
            FrameError::Short | FrameError::ClientId | FrameError::Tags => Self::InvalidRequest,
            FrameError::Encode { .. } | FrameError::TooLarge(_) => Self::UnknownServerError,
        }
    }
}

impl From<&MessageError> for ErrorCode {
    fn from(error: &MessageError) -> Self {
        match error {
            MessageError::Version { .. } => Self::UnsupportedVersion,
            MessageError::Short
            | MessageError::Length
            | MessageError::Null
            | MessageError::Utf8
            | MessageError::TagSize
            | MessageError::Left(_) => Self::CorruptMessage,
            MessageError::TooLong | MessageError::Field { .. } | MessageError::Table => {
                Self::UnknownServerError
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::{MetadataRequest, MetadataResponse};

    #[test]
    fn bytes_after_a_request_are_ignored() {
        // All topics, as librdkafka 2.16 asks for them.
        let body = Bytes::from_static(&[0, 0, 0, 0, 1, 0, 0]);
        let request: MetadataRequest = decode(13, body).expect("decodes");
        assert_eq!(request.topics, None);
    }

    #[test]
    fn bytes_after_a_response_are_refused() {
        let mut body = bytes::BytesMut::new();
        kafka_protocol::protocol::Encodable::encode(&MetadataResponse::default(), &mut body, 13)
            .expect("encodes");
        body.extend_from_slice(&[0]);
        assert!(decode_response::<MetadataRequest>(13, body.freeze()).is_err());
    }
}
