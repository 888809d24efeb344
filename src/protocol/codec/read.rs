//! Reading structs by their tables.

use bytes::{Buf, Bytes};

use super::{MessageError, Struct, Wire};
use crate::schema::{Field, Kind};

/// Where values are read from.
pub(crate) struct Reader<'a> {
    pub(super) bytes: &'a mut dyn Buf,
    pub(super) version: i16,
    pub(super) flexible: bool,
    pub(super) nullable: bool,
}

impl Reader<'_> {
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], MessageError> {
        let mut array = [0; N];
        self.bytes.try_copy_to_slice(&mut array).map_err(|_| MessageError::Short)?;
        Ok(array)
    }

    pub(super) fn take(&mut self, length: usize) -> Result<Bytes, MessageError> {
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
    pub(super) fn length(&mut self, kind: &Kind) -> Result<Option<usize>, MessageError> {
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

/// Reads a message and leaves what follows it.
pub(super) fn read_root<S: Struct>(
    bytes: &mut dyn Buf,
    version: i16,
    flexible: bool,
    fields: &'static [Field],
) -> Result<S, MessageError> {
    read_body(&mut Reader { bytes, version, flexible, nullable: false }, fields)
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
