//! For the tests of answers: whether each version that is served can say them.

use protocol::Encodable;

use crate::TABLE;

/// Encodes the answer of `answer` at every version of the API.
pub(crate) fn encodes<R: Encodable>(api: &str, answer: impl Fn(i16) -> R) {
    let row = TABLE.iter().find(|row| row.name == api).expect("an API of the table");
    for version in row.min..=row.max {
        let encoded = protocol::encode_response(1, row.key, version, &answer(version));
        assert!(encoded.is_ok(), "{api} v{version}: {encoded:?}");
    }
}
