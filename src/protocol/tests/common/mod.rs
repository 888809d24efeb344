//! Messages out of nothing: bytes that follow a schema, with values by chance.

use fastrand::Rng;
use protocol::schema::{Field, Kind, Schema};

/// A message of `schema` with random values in every field, some of the tagged ones, and unknown tags.
pub(crate) fn random_message(schema: &'static Schema, version: i16, random: &mut Rng) -> Vec<u8> {
    let flexible = schema.flexible.contains(version);
    let mut message = RandomMessage { bytes: Vec::new(), version, flexible, random };
    message.fields(schema.fields);
    message.bytes
}

struct RandomMessage<'a> {
    bytes: Vec<u8>,
    version: i16,
    flexible: bool,
    random: &'a mut Rng,
}

impl RandomMessage<'_> {
    fn unsigned_varint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    fn length(&mut self, kind: &Kind, length: Option<usize>) {
        match (self.flexible, kind) {
            (true, _) => self.unsigned_varint(length.map_or(0, |n| n as u32 + 1)),
            (false, Kind::String) => self.bytes.extend(length.map_or(-1, |n| n as i16).to_be_bytes()),
            (false, _) => self.bytes.extend(length.map_or(-1, |n| n as i32).to_be_bytes()),
        }
    }

    fn fields(&mut self, fields: &'static [Field]) {
        let version = self.version;
        for field in fields.iter().filter(|f| f.tag.is_none() && f.versions.contains(version)) {
            self.value(&field.kind, field.is_nullable(version));
        }
        if self.flexible {
            self.tags(fields);
        }
    }

    fn tags(&mut self, fields: &'static [Field]) {
        let version = self.version;
        let known = fields.iter().filter(|f| f.tag.is_some() && f.versions.contains(version));
        let chosen: Vec<&Field> = known.filter(|_| self.random.bool()).collect();
        let unknown = self.random.u32(..10) / 8;
        self.unsigned_varint(chosen.len() as u32 + unknown);
        for field in chosen {
            let before = std::mem::take(&mut self.bytes);
            self.value(&field.kind, field.is_nullable(version));
            let value = std::mem::replace(&mut self.bytes, before);
            self.unsigned_varint(field.tag.unwrap_or_default());
            self.unsigned_varint(value.len() as u32);
            self.bytes.extend(value);
        }
        for tag in 0..unknown {
            self.unsigned_varint(100_000 + tag);
            self.unsigned_varint(3);
            self.bytes.extend([1, 2, 3]);
        }
    }

    fn value(&mut self, kind: &'static Kind, nullable: bool) {
        let null = nullable && self.random.u8(..4) == 0;
        match kind {
            Kind::Struct(fields) => {
                if nullable {
                    self.bytes.push(if null { 0xff } else { 1 });
                }
                if !null {
                    self.fields(fields);
                }
            }
            Kind::String | Kind::Bytes | Kind::Records | Kind::Array(_) if null => self.length(kind, None),
            Kind::Array(element) => {
                let length = self.random.usize(..4);
                self.length(kind, Some(length));
                (0..length).for_each(|_| self.value(element, false));
            }
            Kind::String | Kind::Bytes | Kind::Records => {
                let length = if self.random.u8(..20) == 0 { 200 } else { self.random.usize(..12) };
                self.length(kind, Some(length));
                let text = (0..length).map(|_| self.random.u8(b' '..=b'~')).collect::<Vec<u8>>();
                self.bytes.extend(text);
            }
            Kind::Bool => self.bytes.push(u8::from(self.random.bool())),
            number => {
                let small = self.random.bool();
                let size = number.size_min(self.version, self.flexible);
                let random = &mut *self.random;
                let byte = |i| if small && i + 1 < size { 0 } else { random.u8(..0x7f) };
                self.bytes.extend((0..size).map(byte).collect::<Vec<u8>>());
            }
        }
    }
}
