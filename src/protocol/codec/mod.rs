//! Encoding and decoding of the structs that this room adds to kafka-protocol's, by their tables.
//!
//! A generated struct lists its fields in the order of its table; the table says which versions have a field, where it
//! may be null and which tag it has. So one small runtime serves every struct, and the tables are the only description.
//!
//! Invariants: nothing here panics on any input; a length is believed only if that many elements can still follow, so
//! what is allocated is bounded by the input; a tagged field takes exactly the size that it declares.
//!
//! Kafka: `org.apache.kafka.common.protocol.{Readable,Writable}`, KIP-482.

mod macros;
mod read;
mod values;
mod write;

use bytes::{Buf, BufMut, Bytes, BytesMut};

pub(crate) use macros::{api, api_message, message, root};
pub(crate) use read::{ReadPass, Reader, read_struct};
pub(crate) use write::{WritePass, Writer, write_struct};

use crate::schema::{Kind, Schema};

/// Why a message could not be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// The bytes end inside a value.
    #[error("the bytes end inside a value")]
    Short,
    /// A length that is negative, or larger than what follows could fill.
    #[error("a length does not fit in the bytes that follow")]
    Length,
    /// A null where the version has none.
    #[error("a null where this version allows none")]
    Null,
    /// A string that is not UTF-8.
    #[error("a string is not UTF-8")]
    Utf8,
    /// A tagged field that takes more or fewer bytes than it declares.
    #[error("a tagged field does not fill its declared size")]
    TagSize,
    /// Bytes are left after the message.
    #[error("{0} bytes are left after the message")]
    Left(usize),
    /// A string or array too long for its length field.
    #[error("a value is too long for its length field")]
    TooLong,
    /// A value that the version cannot carry.
    #[error("version {version} cannot carry a value of {field}")]
    Field {
        /// The field's name.
        field: &'static str,
        /// The version asked for.
        version: i16,
    },
    /// The message has no such version.
    #[error("{message} has no version {version}")]
    Version {
        /// The message's name.
        message: &'static str,
        /// The version asked for.
        version: i16,
    },
    /// A struct and its table do not belong together.
    #[error("a struct and its table differ")]
    Table,
}

/// A value that the wire knows.
pub(crate) trait Wire: Sized {
    /// Writes it.
    fn write(&self, w: &mut Writer<'_>, kind: &'static Kind) -> Result<(), MessageError>;
    /// Reads it; `None` is a null.
    fn read(r: &mut Reader<'_>, kind: &'static Kind) -> Result<Option<Self>, MessageError>;
}

/// A struct made of fields; implemented by `message!`.
pub(crate) trait Struct: Default {
    /// Hands every field, with its default, to `pass` in the order of the table.
    fn write_fields(&self, pass: &mut WritePass<'_, '_>) -> Result<(), MessageError>;
    /// Lets `pass` fill every field in the order of the table.
    fn read_fields(&mut self, pass: &mut ReadPass<'_, '_>) -> Result<(), MessageError>;
}

/// A struct that is a message of its own.
pub(crate) trait Root: Struct {
    /// Its table.
    const SCHEMA: &'static Schema;
}

/// Writes `message` to `out`.
pub(crate) fn write<M: Root>(message: &M, out: &mut dyn BufMut, version: i16) -> Result<(), MessageError> {
    write_root(message, Some(out), version).map(|_| ())
}

/// The bytes that `write` would write.
pub(crate) fn size<M: Root>(message: &M, version: i16) -> Result<usize, MessageError> {
    write_root(message, None, version)
}

/// The bytes of `message`.
pub(crate) fn encode<M: Root>(message: &M, version: i16) -> Result<Bytes, MessageError> {
    let mut out = BytesMut::new();
    write(message, &mut out, version)?;
    Ok(out.freeze())
}

/// The newest version of a message.
pub(crate) fn newest<M: Root>() -> i16 {
    M::SCHEMA.versions.max
}

/// Reads a message and leaves what follows it.
pub(crate) fn read<M: Root>(bytes: &mut dyn Buf, version: i16) -> Result<M, MessageError> {
    read::read_root(bytes, version, flexible(M::SCHEMA, version)?, M::SCHEMA.fields)
}

/// Reads a message that ends where the bytes end.
pub(crate) fn decode<M: Root>(mut bytes: &[u8], version: i16) -> Result<M, MessageError> {
    let message = read(&mut bytes, version)?;
    if bytes.is_empty() { Ok(message) } else { Err(MessageError::Left(bytes.len())) }
}

fn write_root<M: Root>(
    message: &M,
    out: Option<&mut dyn BufMut>,
    version: i16,
) -> Result<usize, MessageError> {
    let flexible = flexible(M::SCHEMA, version)?;
    write::write_root(message, out, version, flexible, M::SCHEMA.fields)
}

fn flexible(schema: &'static Schema, version: i16) -> Result<bool, MessageError> {
    if schema.versions.contains(version) {
        Ok(schema.flexible.contains(version))
    } else {
        Err(MessageError::Version { message: schema.name, version })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::streams_group_heartbeat_request::Topology;
    use crate::messages::{
        ApiVersionsRequest, ApiVersionsResponse, OffsetFetchRequest, StreamsGroupHeartbeatRequest,
    };
    use crate::records::metadata::{BrokerRegistrationChangeRecord, PartitionChangeRecord, TopicRecord};

    #[test]
    fn a_value_that_the_version_lacks_is_refused_unless_it_may_be_dropped() {
        let request = ApiVersionsRequest::default().with_client_software_name("x".into());
        assert!(encode(&request, 3).is_ok());
        assert!(encode(&request, 0).is_ok(), "ignorable");
        let change = BrokerRegistrationChangeRecord { in_controlled_shutdown: 1, ..Default::default() };
        let refused = MessageError::Field { field: "InControlledShutdown", version: 0 };
        assert_eq!(encode(&change, 0), Err(refused));
        assert!(encode(&change, 1).is_ok());
    }

    #[test]
    fn tagged_fields_are_written_by_their_number_and_only_where_they_say_something() {
        let change = PartitionChangeRecord { leader: 3, directories: Some(vec![]), ..Default::default() };
        let bytes = encode(&change, 2).expect("encodes");
        assert_eq!(bytes[20..], [2, 1, 4, 0, 0, 0, 3, 8, 1, 1]);
        assert_eq!(decode(&bytes, 2), Ok(change));
    }

    #[test]
    fn a_null_where_none_is_allowed_is_refused_both_ways() {
        let all = OffsetFetchRequest { topics: None, ..Default::default() };
        assert!(encode(&all, 2).is_ok());
        assert_eq!(encode(&all, 1), Err(MessageError::Null));
        assert_eq!(decode::<TopicRecord>(&[0; 18], 0), Err(MessageError::Null));
    }

    #[test]
    fn a_tagged_field_fills_its_declared_size() {
        let response = ApiVersionsResponse::default().with_zk_migration_ready(true);
        let mut bytes = encode(&response, 3).expect("encodes").to_vec();
        assert_eq!(bytes[bytes.len() - 3..], [3, 1, 1]);
        let size = bytes.len() - 2;
        bytes[size] = 2;
        assert_eq!(decode::<ApiVersionsResponse>(&bytes, 3), Err(MessageError::Length));
        bytes.push(0);
        assert_eq!(decode::<ApiVersionsResponse>(&bytes, 3), Err(MessageError::TagSize));
    }

    #[test]
    fn unknown_tags_are_skipped() {
        let bytes = [&[2, b'a'][..], &[7; 16], &[2, 90, 2, 1, 1, 91, 0]].concat();
        let topic = TopicRecord { name: "a".to_owned(), topic_id: model::Uuid([7; 16]) };
        assert_eq!(decode(&bytes, 0), Ok(topic));
    }

    #[test]
    fn bytes_after_the_message_and_unknown_versions_are_refused() {
        let bytes = [&[2, b'a'][..], &[7; 16], &[0, 0]].concat();
        assert_eq!(decode::<TopicRecord>(&bytes, 0), Err(MessageError::Left(1)));
        let unknown = MessageError::Version { message: "TopicRecord", version: 1 };
        assert_eq!(decode::<TopicRecord>(&bytes, 1), Err(unknown));
    }

    #[test]
    fn a_struct_may_be_null() {
        let request = StreamsGroupHeartbeatRequest::default();
        assert_eq!(request.topology, None);
        let bytes = encode(&request, 0).expect("encodes");
        assert_eq!(decode(&bytes, 0), Ok(request.clone()));
        let with = request.with_topology(Some(Topology::default()));
        let longer = encode(&with, 0).expect("encodes");
        assert!(longer.len() > bytes.len());
        assert_eq!(decode(&longer, 0), Ok(with));
    }
}
