//! The topics that a consumer says it wants (Kafka: `ConsumerProtocol`, `ConsumerProtocolSubscription` v0, with which
//! every later version begins).

use std::collections::BTreeSet;

use bytes::{Buf, Bytes};
use model::TopicName;

/// Adds the topics of one member's protocol metadata to `topics`; `None` where it is not a consumer's.
///
/// ```text
/// version i16 | topics: count i32, each: length i16, bytes | ...
/// ```
pub(crate) fn add_topics(mut metadata: Bytes, topics: &mut BTreeSet<TopicName>) -> Option<()> {
    if metadata.try_get_i16().ok()? < 0 {
        return None;
    }
    let count = metadata.try_get_i32().ok()?;
    for _ in 0..count {
        let length = usize::try_from(metadata.try_get_i16().ok()?).ok()?;
        if metadata.remaining() < length {
            return None;
        }
        let name = metadata.split_to(length);
        topics.insert(std::str::from_utf8(&name).ok()?.into());
    }
    (count >= 0).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topics(metadata: &'static [u8]) -> Option<Vec<String>> {
        let mut topics = BTreeSet::new();
        add_topics(Bytes::from_static(metadata), &mut topics)?;
        Some(topics.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn the_topics_of_any_version_are_read() {
        let metadata = b"\x00\x03\x00\x00\x00\x02\x00\x01b\x00\x01a\xff\xff\xff\xff and more";
        assert_eq!(topics(metadata), Some(vec!["a".into(), "b".into()]));
    }

    #[test]
    fn what_is_no_subscription_is_refused() {
        for metadata in [
            &b""[..],
            b"\x00",
            b"\x00\x00\x00\x00\x00\x01",
            b"\x00\x00\x7f\xff\xff\xff\x00\x05a",
            b"\xff\xff\0\0\0\0",
        ] {
            assert_eq!(topics(metadata), None);
        }
    }
}
