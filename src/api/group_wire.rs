//! What the group APIs share: words to and from the wire.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use coordinator::{Text, TopicErrors};
use model::{GroupInstanceId, MemberId};
use protocol::{FromWire, StrBytes, ToWire};

/// A client's address as Java prints it, and as groups are described with: `/127.0.0.1`, `/0:0:0:0:0:0:0:1`.
pub(crate) fn client_host(peer: SocketAddr) -> Text {
    match peer.ip().to_canonical() {
        IpAddr::V4(ip) => format!("/{ip}").into(),
        IpAddr::V6(ip) => {
            let groups: Vec<_> = ip.segments().iter().map(|group| format!("{group:x}")).collect();
            format!("/{}", groups.join(":")).into()
        }
    }
}

/// The topics of both, each once; what was not known comes first, as Kafka's answers have it.
pub(crate) fn merged(unknown: Vec<TopicErrors>, known: Vec<TopicErrors>) -> Vec<TopicErrors> {
    let (mut topics, mut places) = (unknown, BTreeMap::new());
    for (place, topic) in topics.iter().enumerate() {
        places.entry((topic.topic.clone(), topic.topic_id)).or_insert(place);
    }
    for more in known {
        let place = *places.entry((more.topic.clone(), more.topic_id)).or_insert(topics.len());
        match topics.get_mut(place) {
            Some(topic) => topic.partitions.extend(more.partitions),
            None => topics.push(more),
        }
    }
    topics
}

/// Milliseconds as clients send them; what is negative is no time at all.
pub(crate) fn millis(millis: i32) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

pub(crate) fn text_of(wire: &StrBytes) -> Text {
    wire.as_str().into()
}

pub(crate) fn member_id(wire: &StrBytes) -> MemberId {
    MemberId::from_wire(wire)
}

pub(crate) fn instance_id(wire: Option<&StrBytes>) -> Option<GroupInstanceId> {
    wire.map(GroupInstanceId::from_wire)
}

pub(crate) fn instance_to_wire(id: Option<&GroupInstanceId>) -> Option<StrBytes> {
    id.map(ToWire::to_wire)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_printed_as_java_does() {
        for (address, host) in [
            ("127.0.0.1:1", "/127.0.0.1"),
            ("[::ffff:10.0.0.7]:1", "/10.0.0.7"),
            ("[::1]:1", "/0:0:0:0:0:0:0:1"),
            ("[fe80::a:b]:1", "/fe80:0:0:0:0:0:a:b"),
        ] {
            assert_eq!(&*client_host(address.parse().expect("an address")), host);
        }
    }
}
