//! Encoding and decoding of the structs that this room adds to kafka-protocol's, by their tables.
//!
//! A generated struct lists its fields in the order of its table; the table says which versions have a field, where it
//! may be null and which tag it has. So one small runtime serves every struct, and the tables are the only description.
//!
//! Invariants: nothing here panics on any input; a length is believed only if that many elements can still follow, so
//! what is allocated is bounded by the input; a tagged field takes exactly the size that it declares.
//!
//! Kafka: `org.apache.kafka.common.protocol.{Readable,Writable}`, KIP-482.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::protocol::StrBytes;

use crate::schema::{Field, Kind, Schema};

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

/// Where values are written to; without an output it only counts.
pub(crate) struct Writer<'a> {
    out: Option<&'a mut dyn BufMut>,
    written: usize,
    version: i16,
    flexible: bool,
    nullable: bool,
}

/// Where values are read from.
pub(crate) struct Reader<'a> {
    bytes: &'a mut dyn Buf,
    version: i16,
    flexible: bool,
    nullable: bool,
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
    let mut r = Reader { bytes, version, flexible: flexible(M::SCHEMA, version)?, nullable: false };
    read_body(&mut r, M::SCHEMA.fields)
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
    let mut w = Writer { out, written: 0, version, flexible, nullable: false };
    write_body(message, &mut w, M::SCHEMA.fields)?;
    Ok(w.written)
}

fn flexible(schema: &'static Schema, version: i16) -> Result<bool, MessageError> {
    if schema.versions.contains(version) {
        Ok(schema.flexible.contains(version))
    } else {
        Err(MessageError::Version { message: schema.name, version })
    }
}

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) {
        self.written += bytes.len();
        if let Some(out) = &mut self.out {
            out.put_slice(bytes);
        }
    }

    fn unsigned_varint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.put(&[value as u8 | 0x80]);
            value >>= 7;
        }
        self.put(&[value as u8]);
    }

    /// The length of a value of `kind`, or the mark of a null.
    fn length(&mut self, kind: &Kind, length: Option<usize>) -> Result<(), MessageError> {
        let length = length.map(i32::try_from).transpose().map_err(|_| MessageError::TooLong)?;
        if self.flexible {
            self.unsigned_varint(length.map_or(0, |n| n as u32 + 1));
        } else if matches!(kind, Kind::String) {
            let short = i16::try_from(length.unwrap_or(-1)).map_err(|_| MessageError::TooLong)?;
            self.put(&short.to_be_bytes());
        } else {
            self.put(&length.unwrap_or(-1).to_be_bytes());
        }
        Ok(())
    }

    fn null(&mut self, kind: &Kind) -> Result<(), MessageError> {
        if !self.nullable {
            return Err(MessageError::Null);
        }
        match kind {
            Kind::Struct(_) => self.put(&(-1i8).to_be_bytes()),
            _ => self.length(kind, None)?,
        }
        Ok(())
    }

    fn value<T: Wire>(&mut self, value: &T, field: &'static Field) -> Result<(), MessageError> {
        self.nullable = field.is_nullable(self.version);
        value.write(self, &field.kind)
    }

    fn tagged<T: Wire>(&mut self, tag: u32, value: &T, field: &'static Field) -> Result<(), MessageError> {
        let mut count = Writer { out: None, written: 0, ..*self };
        count.value(value, field)?;
        let size = u32::try_from(count.written).map_err(|_| MessageError::TooLong)?;
        self.unsigned_varint(tag);
        self.unsigned_varint(size);
        self.value(value, field)
    }
}

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], MessageError> {
        let mut array = [0; N];
        self.bytes.try_copy_to_slice(&mut array).map_err(|_| MessageError::Short)?;
        Ok(array)
    }

    fn take(&mut self, length: usize) -> Result<Bytes, MessageError> {
        if length > self.bytes.remaining() {
            return Err(MessageError::Length);
        }
        Ok(self.bytes.copy_to_bytes(length))
    }

    fn unsigned_varint(&mut self) -> Result<u32, MessageError> {
        let mut value = 0;
        for shift in (0..32).step_by(7) {
            let [byte] = self.array()?;
            if shift == 28 && byte > 0x0f {
                break;
            }
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(MessageError::Length)
    }

    /// The length of a value of `kind`; `None` is a null.
    fn length(&mut self, kind: &Kind) -> Result<Option<usize>, MessageError> {
        let length = if self.flexible {
            i64::from(self.unsigned_varint()?) - 1
        } else if matches!(kind, Kind::String) {
            i64::from(i16::from_be_bytes(self.array()?))
        } else {
            i64::from(i32::from_be_bytes(self.array()?))
        };
        match length {
            -1 => Ok(None),
            _ => usize::try_from(length).map(Some).map_err(|_| MessageError::Length),
        }
    }

    fn value<T: Wire>(&mut self, field: &'static Field) -> Result<T, MessageError> {
        self.nullable = field.is_nullable(self.version);
        T::read(self, &field.kind)?.ok_or(MessageError::Null)
    }
}

/// Which fields of a struct are written.
#[derive(Clone, Copy, PartialEq)]
enum Writing {
    Plain,
    CountTagged,
    Tagged,
}

/// One walk over the fields of a struct that is written.
pub(crate) struct WritePass<'p, 'w> {
    w: &'p mut Writer<'w>,
    fields: std::slice::Iter<'static, Field>,
    writing: Writing,
    tagged: u32,
}

impl WritePass<'_, '_> {
    /// Takes the next field of the table.
    pub(crate) fn field<T: Wire + PartialEq>(&mut self, value: &T, default: &T) -> Result<(), MessageError> {
        let field = self.fields.next().ok_or(MessageError::Table)?;
        let version = self.w.version;
        if !field.versions.contains(version) {
            if value == default || field.ignorable {
                return Ok(());
            }
            return Err(MessageError::Field { field: field.name, version });
        }
        match (self.writing, field.tag) {
            (Writing::Plain, None) => self.w.value(value, field)?,
            (Writing::CountTagged, Some(_)) => self.tagged += u32::from(value != default),
            (Writing::Tagged, Some(tag)) if value != default => self.w.tagged(tag, value, field)?,
            _ => {}
        }
        Ok(())
    }
}

/// Which fields of a struct are read.
#[derive(Clone, Copy)]
enum Reading {
    Plain,
    Tagged(u32),
}

/// One walk over the fields of a struct that is read.
pub(crate) struct ReadPass<'p, 'r> {
    r: &'p mut Reader<'r>,
    fields: std::slice::Iter<'static, Field>,
    reading: Reading,
    found: bool,
}

impl ReadPass<'_, '_> {
    /// Fills the next field of the table, where it is its turn.
    pub(crate) fn field<T: Wire>(&mut self, slot: &mut T) -> Result<(), MessageError> {
        let field = self.fields.next().ok_or(MessageError::Table)?;
        if !field.versions.contains(self.r.version) {
            return Ok(());
        }
        match (self.reading, field.tag) {
            (Reading::Plain, None) => *slot = self.r.value(field)?,
            (Reading::Tagged(tag), Some(own)) if tag == own => {
                *slot = self.r.value(field)?;
                self.found = true;
            }
            _ => {}
        }
        Ok(())
    }
}

/// Writes a struct that is a field or an element.
pub(crate) fn write_struct<S: Struct>(
    value: &S,
    w: &mut Writer<'_>,
    kind: &'static Kind,
) -> Result<(), MessageError> {
    let Kind::Struct(fields) = kind else { return Err(MessageError::Table) };
    if w.nullable {
        w.put(&1i8.to_be_bytes());
    }
    write_body(value, w, fields)
}

fn write_body<S: Struct>(
    value: &S,
    w: &mut Writer<'_>,
    fields: &'static [Field],
) -> Result<(), MessageError> {
    let walk = |w: &mut Writer<'_>, writing| {
        let mut pass = WritePass { w, fields: fields.iter(), writing, tagged: 0 };
        value.write_fields(&mut pass)?;
        Ok(pass.tagged)
    };
    walk(w, Writing::Plain)?;
    let tagged = walk(w, Writing::CountTagged)?;
    if w.flexible {
        w.unsigned_varint(tagged);
        walk(w, Writing::Tagged)?;
    }
    Ok(())
}

/// Reads a struct that is a field or an element.
pub(crate) fn read_struct<S: Struct>(
    r: &mut Reader<'_>,
    kind: &'static Kind,
) -> Result<Option<S>, MessageError> {
    let Kind::Struct(fields) = kind else { return Err(MessageError::Table) };
    if r.nullable {
        let [mark] = r.array()?;
        if (mark as i8) < 0 {
            return Ok(None);
        }
    }
    read_body(r, fields).map(Some)
}

fn read_body<S: Struct>(r: &mut Reader<'_>, fields: &'static [Field]) -> Result<S, MessageError> {
    let mut value = S::default();
    let fields = fields.iter();
    value.read_fields(&mut ReadPass { r, fields: fields.clone(), reading: Reading::Plain, found: false })?;
    if !r.flexible {
        return Ok(value);
    }
    for _ in 0..r.unsigned_varint()? {
        let reading = Reading::Tagged(r.unsigned_varint()?);
        let size = r.unsigned_varint()?;
        let mut bytes = r.take(size as usize)?;
        let mut inner =
            Reader { bytes: &mut bytes, version: r.version, flexible: r.flexible, nullable: false };
        let mut pass = ReadPass { r: &mut inner, fields: fields.clone(), reading, found: false };
        value.read_fields(&mut pass)?;
        if pass.found && bytes.has_remaining() {
            return Err(MessageError::TagSize);
        }
    }
    Ok(value)
}

impl<T: Wire> Wire for Option<T> {
    fn write(&self, w: &mut Writer<'_>, kind: &'static Kind) -> Result<(), MessageError> {
        match self {
            Some(value) => value.write(w, kind),
            None => w.null(kind),
        }
    }

    fn read(r: &mut Reader<'_>, kind: &'static Kind) -> Result<Option<Self>, MessageError> {
        let nullable = r.nullable;
        match T::read(r, kind)? {
            None if !nullable => Err(MessageError::Null),
            value => Ok(Some(value)),
        }
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn write(&self, w: &mut Writer<'_>, kind: &'static Kind) -> Result<(), MessageError> {
        let Kind::Array(element) = kind else { return Err(MessageError::Table) };
        w.length(kind, Some(self.len()))?;
        self.iter().try_for_each(|value| {
            w.nullable = false;
            value.write(w, element)
        })
    }

    fn read(r: &mut Reader<'_>, kind: &'static Kind) -> Result<Option<Self>, MessageError> {
        let Kind::Array(element) = kind else { return Err(MessageError::Table) };
        let Some(length) = r.length(kind)? else { return Ok(None) };
        if length > r.bytes.remaining() / element.size_min(r.version, r.flexible) {
            return Err(MessageError::Length);
        }
        let mut values = Vec::with_capacity(length);
        for _ in 0..length {
            r.nullable = false;
            values.push(T::read(r, element)?.ok_or(MessageError::Null)?);
        }
        Ok(Some(values))
    }
}

macro_rules! number {
    ($($type:ty)*) => {$(
        impl Wire for $type {
            fn write(&self, w: &mut Writer<'_>, _: &'static Kind) -> Result<(), MessageError> {
                w.put(&self.to_be_bytes());
                Ok(())
            }

            fn read(r: &mut Reader<'_>, _: &'static Kind) -> Result<Option<Self>, MessageError> {
                Ok(Some(Self::from_be_bytes(r.array()?)))
            }
        }
    )*};
}

number!(i8 i16 u16 i32 u32 i64 f64);

/// Types that are another one on the wire.
macro_rules! through {
    ($($type:ty: $wire:ty, |$value:ident| $to:expr, |$read:ident| $from:expr;)*) => {$(
        impl Wire for $type {
            fn write(&self, w: &mut Writer<'_>, kind: &'static Kind) -> Result<(), MessageError> {
                let $value = self;
                <$wire as Wire>::write($to, w, kind)
            }

            fn read(r: &mut Reader<'_>, kind: &'static Kind) -> Result<Option<Self>, MessageError> {
                let Some($read) = <$wire as Wire>::read(r, kind)? else { return Ok(None) };
                $from.map(Some)
            }
        }
    )*};
}

through! {
    bool: i8, |value| &i8::from(*value), |byte| Ok(byte != 0);
    crate::messages::BrokerId: i32, |value| &value.0, |id| Ok(Self(id));
    crate::messages::ProducerId: i64, |value| &value.0, |id| Ok(Self(id));
    crate::messages::GroupId: StrBytes, |value| &value.0, |text| Ok(Self(text));
    crate::messages::TopicName: StrBytes, |value| &value.0, |text| Ok(Self(text));
    crate::messages::TransactionalId: StrBytes, |value| &value.0, |text| Ok(Self(text));
}

/// Types that are a length and bytes on the wire.
macro_rules! bytes {
    ($($type:ty: $as_bytes:ident, |$read:ident| $from:expr;)*) => {$(
        impl Wire for $type {
            fn write(&self, w: &mut Writer<'_>, kind: &'static Kind) -> Result<(), MessageError> {
                w.length(kind, Some(self.len()))?;
                w.put(self.$as_bytes());
                Ok(())
            }

            fn read(r: &mut Reader<'_>, kind: &'static Kind) -> Result<Option<Self>, MessageError> {
                let Some(length) = r.length(kind)? else { return Ok(None) };
                let $read = r.take(length)?;
                $from.map(Some).map_err(|_| MessageError::Utf8)
            }
        }
    )*};
}

bytes! {
    Bytes: as_ref, |bytes| Ok::<_, MessageError>(bytes);
    StrBytes: as_bytes, |bytes| Self::from_utf8(bytes);
    String: as_bytes, |bytes| Self::from_utf8(bytes.into());
}

impl Wire for model::Uuid {
    fn write(&self, w: &mut Writer<'_>, _: &'static Kind) -> Result<(), MessageError> {
        w.put(&self.0);
        Ok(())
    }

    fn read(r: &mut Reader<'_>, _: &'static Kind) -> Result<Option<Self>, MessageError> {
        Ok(Some(Self(r.array()?)))
    }
}

impl Wire for uuid::Uuid {
    fn write(&self, w: &mut Writer<'_>, _: &'static Kind) -> Result<(), MessageError> {
        w.put(self.as_bytes());
        Ok(())
    }

    fn read(r: &mut Reader<'_>, _: &'static Kind) -> Result<Option<Self>, MessageError> {
        Ok(Some(Self::from_bytes(r.array()?)))
    }
}

/// Defines a struct and its walk over the fields of its table. A field is `name setter: type = default`.
macro_rules! message {
    (@default $type:ty) => { <$type>::default() };
    (@default $type:ty, $default:expr) => { $default };
    ($name:ident { $($field:ident $with:ident: $type:ty $(= $default:expr)?,)* }) => {
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $(pub $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: message!(@default $type $(, $default)?),)* }
            }
        }

        #[allow(dead_code, reason = "as in kafka-protocol every field has its setter")]
        impl $name {
            $(
                #[must_use]
                pub fn $with(mut self, value: $type) -> Self {
                    self.$field = value;
                    self
                }
            )*
        }

        impl $crate::codec::Struct for $name {
            fn write_fields(
                &self,
                pass: &mut $crate::codec::WritePass<'_, '_>,
            ) -> Result<(), $crate::codec::MessageError> {
                let _ = &pass;
                $(pass.field(&self.$field, &message!(@default $type $(, $default)?))?;)*
                Ok(())
            }

            fn read_fields(
                &mut self,
                pass: &mut $crate::codec::ReadPass<'_, '_>,
            ) -> Result<(), $crate::codec::MessageError> {
                let _ = &pass;
                $(pass.field(&mut self.$field)?;)*
                Ok(())
            }
        }

        impl $crate::codec::Wire for $name {
            fn write(
                &self,
                w: &mut $crate::codec::Writer<'_>,
                kind: &'static $crate::schema::Kind,
            ) -> Result<(), $crate::codec::MessageError> {
                $crate::codec::write_struct(self, w, kind)
            }

            fn read(
                r: &mut $crate::codec::Reader<'_>,
                kind: &'static $crate::schema::Kind,
            ) -> Result<Option<Self>, $crate::codec::MessageError> {
                $crate::codec::read_struct(r, kind)
            }
        }
    };
}

/// Gives a struct its table.
macro_rules! root {
    ($name:ident, $schema:path) => {
        impl $crate::codec::Root for $name {
            const SCHEMA: &'static $crate::schema::Schema = &$schema;
        }
    };
}

/// Makes a struct a message as kafka-protocol's own are; `$plus` is the header version where nothing is flexible.
macro_rules! api_message {
    ($name:ident, $schema:path) => {
        root!($name, $schema);

        impl kafka_protocol::protocol::Message for $name {
            const VERSIONS: kafka_protocol::protocol::VersionRange = kafka_protocol::protocol::VersionRange {
                min: <$name as $crate::codec::Root>::SCHEMA.versions.min,
                max: <$name as $crate::codec::Root>::SCHEMA.versions.max,
            };
            const DEPRECATED_VERSIONS: Option<kafka_protocol::protocol::VersionRange> = None;
        }

        impl kafka_protocol::protocol::Encodable for $name {
            fn encode<B: kafka_protocol::protocol::buf::ByteBufMut>(
                &self,
                buf: &mut B,
                version: i16,
            ) -> anyhow::Result<()> {
                Ok($crate::codec::write(self, buf, version)?)
            }

            fn compute_size(&self, version: i16) -> anyhow::Result<usize> {
                Ok($crate::codec::size(self, version)?)
            }
        }

        impl kafka_protocol::protocol::Decodable for $name {
            fn decode<B: kafka_protocol::protocol::buf::ByteBuf>(
                buf: &mut B,
                version: i16,
            ) -> anyhow::Result<Self> {
                Ok($crate::codec::read(buf, version)?)
            }
        }
    };
}

/// Ties a request to its key and its response.
macro_rules! api {
    ($key:literal, $request:ident, $response:ident) => {
        impl kafka_protocol::protocol::HeaderVersion for $request {
            fn header_version(version: i16) -> i16 {
                $crate::tables::api($key).map_or(1, |api| api.request_header_version(version))
            }
        }

        impl kafka_protocol::protocol::HeaderVersion for $response {
            fn header_version(version: i16) -> i16 {
                $crate::tables::api($key).map_or(0, |api| api.response_header_version(version))
            }
        }

        impl kafka_protocol::protocol::Request for $request {
            const KEY: i16 = $key;
            type Response = $response;
        }
    };
}

pub(crate) use {api, api_message, message, root};
