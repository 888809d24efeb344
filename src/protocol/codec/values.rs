//! How single values, arrays and nulls are written and read.

use bytes::{Buf, Bytes};
use kafka_protocol::protocol::StrBytes;

use super::{MessageError, Reader, Wire, Writer};
use crate::schema::Kind;

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

number!(i8 i16 u16 i32 i64 f64);

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
