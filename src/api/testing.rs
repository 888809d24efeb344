//! For the tests of APIs: requests as they come, and whether each version that is served can say an answer.

use bytes::Bytes;
use protocol::{Encodable, RequestHeader};

use crate::TABLE;

/// Encodes the answer of `answer` at every version of the API.
pub(crate) fn encodes<R: Encodable>(api: &str, answer: impl Fn(i16) -> R) {
    let row = TABLE.iter().find(|row| row.name == api).expect("an API of the table");
    for version in row.min..=row.max {
        let encoded = protocol::encode_response(1, row.key, version, &answer(version));
        assert!(encoded.is_ok(), "{api} v{version}: {encoded:?}");
    }
}

/// The body of a request, alone in its memory.
pub(crate) fn requested(api_key: i16, api_version: i16, request: &impl Encodable) -> Bytes {
    let header = RequestHeader { api_key, api_version, correlation_id: 1, client_id: None };
    let mut frame = protocol::encode_request(&header, request).expect("a request").split_off(4);
    protocol::decode_request_header(&mut frame).expect("a header");
    frame
}
