//! Writing structs by their tables.

use bytes::BufMut;

use super::{MessageError, Struct, Wire};
use crate::schema::{Field, Kind};
use crate::varint;

/// Where values are written to; without an output it only counts.
pub(crate) struct Writer<'a> {
    out: Option<&'a mut dyn BufMut>,
    written: usize,
    version: i16,
    flexible: bool,
    pub(super) nullable: bool,
}

impl Writer<'_> {
    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.written += bytes.len();
        if let Some(out) = &mut self.out {
            out.put_slice(bytes);
        }
    }

    fn unsigned_varint(&mut self, value: u32) {
        varint::put_unsigned(value, |byte| self.put(&[byte]));
    }

    /// The length of a value of `kind`, or the mark of a null.
    pub(super) fn length(&mut self, kind: &Kind, length: Option<usize>) -> Result<(), MessageError> {
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

    pub(super) fn null(&mut self, kind: &Kind) -> Result<(), MessageError> {
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

/// Writes a message and gives its size; without `out` it only counts.
pub(super) fn write_root<S: Struct>(
    message: &S,
    out: Option<&mut dyn BufMut>,
    version: i16,
    flexible: bool,
    fields: &'static [Field],
) -> Result<usize, MessageError> {
    let mut w = Writer { out, written: 0, version, flexible, nullable: false };
    write_body(message, &mut w, fields)?;
    Ok(w.written)
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
