//! `model` types to and from those of the messages.
//!
//! Both sides belong to other crates, so that neither `From` nor `Into` may be implemented for them.

use kafka_protocol::messages;
use kafka_protocol::protocol::StrBytes;

/// A `model` type that messages spell otherwise.
pub trait ToWire<W> {
    /// The same as messages have it.
    fn to_wire(&self) -> W;
}

/// A `model` type that comes from messages. Text is copied, so that what is kept does not hold the frame.
pub trait FromWire<W> {
    /// The same as messages have it.
    fn from_wire(wire: &W) -> Self;
}

macro_rules! numbers {
    ($($model:ident: $wire:ty, |$to:ident| $wired:expr, |$from:ident| $modelled:expr;)*) => {$(
        impl ToWire<$wire> for model::$model {
            fn to_wire(&self) -> $wire {
                let $to = self;
                $wired
            }
        }

        impl FromWire<$wire> for model::$model {
            fn from_wire($from: &$wire) -> Self {
                $modelled
            }
        }
    )*};
}

numbers! {
    NodeId: messages::BrokerId, |id| messages::BrokerId(id.0), |id| model::NodeId(id.0);
    NodeId: i32, |id| id.0, |id| model::NodeId(*id);
    ProducerId: messages::ProducerId, |id| messages::ProducerId(id.0), |id| model::ProducerId(id.0);
    ProducerId: i64, |id| id.0, |id| model::ProducerId(*id);
    ProducerEpoch: i16, |epoch| epoch.0, |epoch| model::ProducerEpoch(*epoch);
    Offset: i64, |offset| offset.0, |offset| model::Offset(*offset);
    Timestamp: i64, |time| time.0, |time| model::Timestamp(*time);
    BrokerEpoch: i64, |epoch| epoch.0, |epoch| model::BrokerEpoch(*epoch);
    LeaderEpoch: i32, |epoch| epoch.0, |epoch| model::LeaderEpoch(*epoch);
    PartitionEpoch: i32, |epoch| epoch.0, |epoch| model::PartitionEpoch(*epoch);
    Sequence: i32, |sequence| sequence.0, |sequence| model::Sequence(*sequence);
    Uuid: uuid::Uuid, |id| uuid::Uuid::from_bytes(id.0), |id| model::Uuid(*id.as_bytes());
    TopicName: messages::TopicName, |name| messages::TopicName(text(name.as_str())),
        |name| name.as_str().into();
    TopicName: StrBytes, |name| text(name.as_str()), |name| name.as_str().into();
    GroupId: messages::GroupId, |id| messages::GroupId(text(id.as_str())), |id| id.as_str().into();
    GroupId: StrBytes, |id| text(id.as_str()), |id| id.as_str().into();
    MemberId: StrBytes, |id| text(id.as_str()), |id| id.as_str().into();
    GroupInstanceId: StrBytes, |id| text(id.as_str()), |id| id.as_str().into();
    ClusterId: StrBytes, |id| text(id.as_str()), |id| id.as_str().into();
}

impl ToWire<i16> for model::ErrorCode {
    fn to_wire(&self) -> i16 {
        self.code()
    }
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}
