//! Request and response headers, and whole frames.
//!
//! ```text
//! request   [length i32] [api key i16] [api version i16] [correlation id i32] [client id: nullable string] [tags]* body
//! response  [length i32] [correlation id i32] [tags]* body                   * only in flexible header versions
//! ```
//! The client id keeps its two-byte length in every version.
//!
//! Kafka: `RequestHeader`, `ResponseHeader`, `ApiMessageType.requestHeaderVersion`.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::protocol::{Encodable, StrBytes};
use model::Limits;

use crate::schema::ApiSpec;
use crate::tables::api;

/// What a request says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// Which API.
    pub api_key: i16,
    /// Which version of it; not yet checked against what is served.
    pub api_version: i16,
    /// What the response repeats.
    pub correlation_id: i32,
    /// How the client calls itself.
    pub client_id: Option<StrBytes>,
}

/// Why a frame was not read or written. A connection that sends such a frame is closed, for nothing tells what to answer.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The header does not fit in the frame.
    #[error("the frame ends inside the header")]
    Short,
    /// The client id has a negative length other than null's, or is not UTF-8.
    #[error("the client id is not a string")]
    ClientId,
    /// The tagged fields of the header are no tagged fields.
    #[error("the tagged fields of the header are malformed")]
    Tags,
    /// Kafka has no such API.
    #[error("there is no API with key {0}")]
    UnknownApi(i16),
    /// The message cannot be encoded in this version.
    #[error("{api} version {version}: {source}")]
    Encode {
        /// The API's name.
        api: &'static str,
        /// The version asked for.
        version: i16,
        /// What the encoder says.
        source: anyhow::Error,
    },
    /// The frame would be larger than anyone takes: a short request may ask for the same thing many times.
    #[error("a frame of {0} bytes")]
    TooLarge(usize),
}

/// Reads the header of a request and leaves the body. `frame` starts after the length.
///
/// # Errors
/// Where the header is malformed or names an API that Kafka does not have.
pub fn decode_request_header(frame: &mut Bytes) -> Result<RequestHeader, FrameError> {
    let short = |_| FrameError::Short;
    let api_key = frame.try_get_i16().map_err(short)?;
    let api_version = frame.try_get_i16().map_err(short)?;
    let correlation_id = frame.try_get_i32().map_err(short)?;
    let api = api(api_key).ok_or(FrameError::UnknownApi(api_key))?;
    let client_id = client_id(frame)?;
    if api.request_header_version(api_version) == 2 {
        skip_tags(frame)?;
    }
    Ok(RequestHeader { api_key, api_version, correlation_id, client_id })
}

/// A whole response frame, its length in front.
///
/// # Errors
/// Where `message` has a value that the version cannot carry, or the frame would be larger than `Limits::ANSWER_BYTES_MAX`.
pub fn encode_response(
    correlation_id: i32,
    api_key: i16,
    version: i16,
    message: &impl Encodable,
) -> Result<Bytes, FrameError> {
    let api = api(api_key).ok_or(FrameError::UnknownApi(api_key))?;
    let mut header = correlation_id.to_be_bytes().to_vec();
    if api.response_header_version(version) == 1 {
        header.push(0);
    }
    encode_frame(api, version, &header, message)
}

/// A whole request frame, its length in front.
///
/// # Errors
/// Where `message` has a value that the version cannot carry, the client id is longer than a string may be, or the
/// frame would not fit its length field.
pub fn encode_request(header: &RequestHeader, message: &impl Encodable) -> Result<Bytes, FrameError> {
    let (api, bytes) = request_header(header)?;
    encode_frame(api, header.api_version, &bytes, message)
}

/// A whole request frame around a body that is encoded already, its length in front.
///
/// # Errors
/// Where the client id is longer than a string may be, or the frame would be larger than `Limits::ANSWER_BYTES_MAX`.
pub fn frame_request(header: &RequestHeader, body: &[u8]) -> Result<Bytes, FrameError> {
    let (_, bytes) = request_header(header)?;
    let size = bytes.len() + body.len();
    let mut frame = BytesMut::with_capacity(4 + size);
    frame.put_i32(i32::try_from(size).map_err(|_| FrameError::TooLarge(size))?);
    frame.put_slice(&bytes);
    frame.put_slice(body);
    Ok(frame.freeze())
}

fn request_header(header: &RequestHeader) -> Result<(&'static ApiSpec, Vec<u8>), FrameError> {
    let api = api(header.api_key).ok_or(FrameError::UnknownApi(header.api_key))?;
    let client_id = header.client_id.as_ref().map_or(&[][..], |id| id.as_bytes());
    let length = i16::try_from(client_id.len()).map_err(|_| FrameError::ClientId)?;
    let mut bytes = Vec::with_capacity(11 + client_id.len());
    bytes.put_i16(header.api_key);
    bytes.put_i16(header.api_version);
    bytes.put_i32(header.correlation_id);
    bytes.put_i16(if header.client_id.is_some() { length } else { -1 });
    bytes.put_slice(client_id);
    if api.request_header_version(header.api_version) == 2 {
        bytes.put_u8(0);
    }
    Ok((api, bytes))
}

/// Reads the header of a response of this API and version and leaves the body: the correlation id. `frame` starts after
/// the length.
///
/// # Errors
/// Where the header is malformed.
pub fn decode_response_header(frame: &mut Bytes, api_key: i16, version: i16) -> Result<i32, FrameError> {
    let api = api(api_key).ok_or(FrameError::UnknownApi(api_key))?;
    let correlation_id = frame.try_get_i32().map_err(|_| FrameError::Short)?;
    if api.response_header_version(version) == 1 {
        skip_tags(frame)?;
    }
    Ok(correlation_id)
}

fn encode_frame(
    api: &ApiSpec,
    version: i16,
    header: &[u8],
    message: &impl Encodable,
) -> Result<Bytes, FrameError> {
    let encode = |source| FrameError::Encode { api: api.name, version, source };
    let size = header.len() + message.compute_size(version).map_err(encode)?;
    if size > Limits::ANSWER_BYTES_MAX {
        return Err(FrameError::TooLarge(size));
    }
    let mut frame = BytesMut::with_capacity(4 + size);
    frame.put_i32(size as i32);
    frame.put_slice(header);
    message.encode(&mut frame, version).map_err(encode)?;
    assert_eq!(frame.len(), 4 + size, "{} version {version} is not as long as computed", api.name);
    Ok(frame.freeze())
}

fn client_id(frame: &mut Bytes) -> Result<Option<StrBytes>, FrameError> {
    let length = match frame.try_get_i16().map_err(|_| FrameError::Short)? {
        -1 => return Ok(None),
        length => usize::try_from(length).map_err(|_| FrameError::ClientId)?,
    };
    if length > frame.len() {
        return Err(FrameError::Short);
    }
    let text = frame.split_to(length);
    StrBytes::from_utf8(text).map(Some).map_err(|_| FrameError::ClientId)
}

/// No header has a tagged field that this broker knows.
fn skip_tags(frame: &mut Bytes) -> Result<(), FrameError> {
    for _ in 0..unsigned_varint(frame)? {
        unsigned_varint(frame)?;
        let size = unsigned_varint(frame)? as usize;
        if size > frame.len() {
            return Err(FrameError::Tags);
        }
        frame.advance(size);
    }
    Ok(())
}

fn unsigned_varint(frame: &mut Bytes) -> Result<u32, FrameError> {
    let (value, size) = crate::varint::unsigned(frame).ok_or(FrameError::Tags)?;
    frame.advance(size);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::{ApiVersionsResponse, HeartbeatResponse, MetadataRequest};

    fn header(api_key: i16, api_version: i16) -> RequestHeader {
        RequestHeader { api_key, api_version, correlation_id: 7, client_id: Some("me".into()) }
    }

    #[test]
    fn a_header_comes_back_and_the_body_is_left() {
        for version in [8, 9] {
            let request = MetadataRequest::default();
            let mut frame = encode_request(&header(3, version), &request).expect("encodes");
            assert_eq!(frame.get_i32() as usize, frame.len());
            assert_eq!(decode_request_header(&mut frame).expect("decodes"), header(3, version));
            assert!(crate::check_request(3, version, &frame).is_ok());
        }
    }

    #[test]
    fn a_body_that_is_encoded_already_gets_the_same_frame() {
        for version in [8, 9] {
            let request = MetadataRequest::default();
            let frame = encode_request(&header(3, version), &request).expect("encodes");
            let mut body = frame.slice(4..);
            decode_request_header(&mut body).expect("decodes");
            assert_eq!(frame_request(&header(3, version), &body).expect("fits"), frame);
        }
    }

    #[test]
    fn every_cut_header_is_refused() {
        let frame = [0, 3, 0, 9, 0, 0, 0, 1, 0, 2, b'm', b'e', 1, 5, 1, 0];
        for end in 0..frame.len() {
            assert!(decode_request_header(&mut Bytes::copy_from_slice(&frame[..end])).is_err(), "{end}");
        }
        assert!(decode_request_header(&mut Bytes::copy_from_slice(&frame)).is_ok());
    }

    #[test]
    fn a_null_client_id_is_none_and_another_negative_length_is_refused() {
        let null = [0, 18, 0, 0, 0, 0, 0, 1, 0xff, 0xff];
        let header = decode_request_header(&mut Bytes::copy_from_slice(&null)).expect("decodes");
        assert_eq!(header.client_id, None);
        let minus_two = [0, 18, 0, 0, 0, 0, 0, 1, 0xff, 0xfe];
        assert!(matches!(
            decode_request_header(&mut Bytes::copy_from_slice(&minus_two)),
            Err(FrameError::ClientId)
        ));
    }

    #[test]
    fn an_unknown_key_is_refused_and_a_newer_version_is_not() {
        let unknown = [0, 4, 0, 0, 0, 0, 0, 1, 0xff, 0xff];
        assert!(matches!(
            decode_request_header(&mut Bytes::copy_from_slice(&unknown)),
            Err(FrameError::UnknownApi(4))
        ));
        let newer = [0, 18, 0x7f, 0xff, 0, 0, 0, 1, 0xff, 0xff, 0];
        assert!(decode_request_header(&mut Bytes::copy_from_slice(&newer)).is_ok());
    }

    #[test]
    fn a_response_header_comes_back_and_the_body_is_left() {
        for version in [3, 4] {
            let mut frame = encode_response(7, 12, version, &HeartbeatResponse::default()).expect("encodes");
            frame.advance(4);
            assert_eq!(decode_response_header(&mut frame, 12, version).expect("decodes"), 7);
            assert!(crate::preflight::check_response(12, version, &frame).is_ok());
        }
        let cut = Bytes::from_static(&[0, 0, 0, 1]);
        assert!(matches!(decode_response_header(&mut cut.clone(), 12, 4), Err(FrameError::Tags)));
        assert!(matches!(decode_response_header(&mut cut.slice(1..), 12, 4), Err(FrameError::Short)));
    }

    #[test]
    fn an_api_versions_response_never_has_tags_in_its_header() {
        let frame = encode_response(1, 18, 3, &ApiVersionsResponse::default()).expect("encodes");
        assert_eq!(frame[4..10], [0, 0, 0, 1, 0, 0]);
        assert_eq!(frame.len(), 4 + 4 + 2 + 1 + 4 + 1);
    }
}
