//! Messages as plain values: encoded, decoded and walked by the tables alone, so that any message of any version can be
//! made, spoiled and compared without its struct.

use protocol::schema::{Field, Kind, Schema};

/// A value of a message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// Null.
    Null,
    /// A whole number of any width, or a boolean as 0 or 1.
    Int(i64),
    /// Float64.
    Float(f64),
    /// A uuid.
    Uuid([u8; 16]),
    /// A string.
    Text(String),
    /// Bytes or records.
    Bytes(Vec<u8>),
    /// An array.
    Array(Vec<Value>),
    /// The fields that are there, by name.
    Struct(Vec<(&'static str, Value)>),
}

impl Value {
    /// The field of a struct.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        let Self::Struct(fields) = self else { return None };
        fields.iter().find(|(each, _)| *each == name).map(|(_, value)| value)
    }

    /// The element at a path like `Topics.0.Name`.
    pub(crate) fn at(&self, path: &str) -> Option<&Value> {
        path.split('.').try_fold(self, |value, step| match value {
            Self::Array(elements) => elements.get(step.parse::<usize>().ok()?),
            _ => value.get(step),
        })
    }

    /// The same for changing it.
    pub(crate) fn at_mut(&mut self, path: &[Step]) -> Option<&mut Value> {
        path.iter().try_fold(self, |value, step| match (value, step) {
            (Self::Array(elements), Step::Index(index)) => elements.get_mut(*index),
            (Self::Struct(fields), Step::Field(name)) => {
                fields.iter_mut().find(|(each, _)| each == name).map(|(_, value)| value)
            }
            _ => None,
        })
    }
}

/// A step down into a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Into an array.
    Index(usize),
    /// Into a struct.
    Field(&'static str),
}

/// The bytes of a message. Fields that `value` does not have are zero, empty or, if they are tagged, left out.
pub(crate) fn encode(schema: &'static Schema, version: i16, value: &Value) -> Vec<u8> {
    let mut encoder = Encoder { bytes: Vec::new(), version, flexible: schema.flexible.contains(version) };
    encoder.fields(schema.fields, value);
    encoder.bytes
}

struct Encoder {
    bytes: Vec<u8>,
    version: i16,
    flexible: bool,
}

impl Encoder {
    fn fields(&mut self, fields: &'static [Field], value: &Value) {
        let version = self.version;
        let here = || fields.iter().filter(|field| field.versions.contains(version));
        for field in here().filter(|field| field.tag.is_none()) {
            let given = value.get(field.name);
            self.value(&field.kind, field.is_nullable(version), given);
        }
        if self.flexible {
            let tagged: Vec<_> =
                here().filter_map(|field| Some((field.tag?, field, value.get(field.name)?))).collect();
            self.varint(tagged.len());
            for (tag, field, given) in tagged {
                let before = std::mem::take(&mut self.bytes);
                self.value(&field.kind, field.is_nullable(version), Some(given));
                let bytes = std::mem::replace(&mut self.bytes, before);
                self.varint(tag as usize);
                self.varint(bytes.len());
                self.bytes.extend(bytes);
            }
        }
    }

    fn value(&mut self, kind: &'static Kind, nullable: bool, given: Option<&Value>) {
        match (kind, given) {
            (Kind::Struct(_), Some(Value::Null)) => self.bytes.push(0xff),
            (Kind::Struct(fields), given) => {
                if nullable {
                    self.bytes.push(1);
                }
                self.fields(fields, given.unwrap_or(&Value::Null));
            }
            (Kind::String | Kind::Bytes | Kind::Records | Kind::Array(_), Some(Value::Null)) => {
                self.length(kind, None);
            }
            (Kind::Array(element), Some(Value::Array(elements))) => {
                self.length(kind, Some(elements.len()));
                for each in elements {
                    self.value(element, false, Some(each));
                }
            }
            (_, Some(Value::Text(text))) => self.sized(kind, text.as_bytes()),
            (_, Some(Value::Bytes(bytes))) => self.sized(kind, bytes),
            (Kind::Uuid, Some(Value::Uuid(id))) => self.bytes.extend(id),
            (Kind::Float64, Some(Value::Float(number))) => self.bytes.extend(number.to_be_bytes()),
            (number, Some(Value::Int(value))) if number.is_number() => {
                let size = number.size_min(self.version, self.flexible);
                self.bytes.extend(&value.to_be_bytes()[8_usize.saturating_sub(size)..]);
            }
            (number, _) if number.is_number() => {
                let size = number.size_min(self.version, self.flexible);
                self.bytes.resize(self.bytes.len() + size, 0);
            }
            (sized, _) => self.length(sized, Some(0)),
        }
    }

    fn sized(&mut self, kind: &Kind, bytes: &[u8]) {
        self.length(kind, Some(bytes.len()));
        self.bytes.extend(bytes);
    }

    fn length(&mut self, kind: &Kind, length: Option<usize>) {
        match (self.flexible, kind) {
            (true, _) => self.varint(length.map_or(0, |length| length + 1)),
            (false, Kind::String) => {
                self.bytes.extend(length.map_or(-1, |length| length as i16).to_be_bytes());
            }
            (false, _) => self.bytes.extend(length.map_or(-1, |length| length as i32).to_be_bytes()),
        }
    }

    fn varint(&mut self, mut value: usize) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}

/// The value of a message that fills `bytes` exactly.
///
/// # Errors
/// What is wrong with the bytes.
pub(crate) fn decode(schema: &'static Schema, version: i16, bytes: &[u8]) -> Result<Value, String> {
    let mut decoder = Decoder { bytes, version, flexible: schema.flexible.contains(version) };
    let value = decoder.fields(schema.fields)?;
    if decoder.bytes.is_empty() { Ok(value) } else { Err(format!("{} bytes are left", decoder.bytes.len())) }
}

struct Decoder<'a> {
    bytes: &'a [u8],
    version: i16,
    flexible: bool,
}

impl<'a> Decoder<'a> {
    fn fields(&mut self, fields: &'static [Field]) -> Result<Value, String> {
        let version = self.version;
        let here = || fields.iter().filter(|field| field.versions.contains(version));
        let mut values = Vec::new();
        for field in here().filter(|field| field.tag.is_none()) {
            let value = self.value(&field.kind, field.is_nullable(version));
            values.push((field.name, value.map_err(|error| format!("{}: {error}", field.name))?));
        }
        for _ in 0..if self.flexible { self.varint()? } else { 0 } {
            let (tag, size) = (self.varint()?, self.varint()?);
            let mut inside = Decoder { bytes: self.take(size)?, ..*self };
            if let Some(field) = here().find(|field| field.tag == Some(tag as u32)) {
                values.push((field.name, inside.value(&field.kind, field.is_nullable(version))?));
            }
        }
        Ok(Value::Struct(values))
    }

    fn value(&mut self, kind: &'static Kind, nullable: bool) -> Result<Value, String> {
        Ok(match kind {
            Kind::Struct(_) if nullable && self.take(1)?[0] == 0xff => Value::Null,
            Kind::Struct(fields) => self.fields(fields)?,
            Kind::Array(element) => match self.length(kind)? {
                None => Value::Null,
                Some(length) => {
                    let elements = (0..length).map(|_| self.value(element, false));
                    Value::Array(elements.collect::<Result<_, _>>()?)
                }
            },
            Kind::String => match self.length(kind)? {
                None => Value::Null,
                Some(length) => Value::Text(String::from_utf8_lossy(self.take(length)?).into_owned()),
            },
            Kind::Bytes | Kind::Records => match self.length(kind)? {
                None => Value::Null,
                Some(length) => Value::Bytes(self.take(length)?.to_vec()),
            },
            Kind::Uuid => Value::Uuid(self.take(16)?.try_into().map_err(|_| "a short uuid")?),
            Kind::Float64 => {
                Value::Float(f64::from_be_bytes(self.take(8)?.try_into().map_err(|_| "a short number")?))
            }
            number => {
                let size = number.size_min(self.version, self.flexible);
                Value::Int(whole(self.take(size)?, matches!(kind, Kind::Uint16)))
            }
        })
    }

    fn length(&mut self, kind: &Kind) -> Result<Option<usize>, String> {
        let length = match (self.flexible, kind) {
            (true, _) => self.varint()? as i64 - 1,
            (false, Kind::String) => whole(self.take(2)?, false),
            (false, _) => whole(self.take(4)?, false),
        };
        match length {
            -1 => Ok(None),
            length if length < -1 => Err(format!("length {length}")),
            length => Ok(Some(length as usize)),
        }
    }

    fn varint(&mut self) -> Result<usize, String> {
        let mut value = 0;
        for shift in (0..35).step_by(7) {
            let byte = self.take(1)?[0];
            value |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err("an endless varint".into())
    }

    fn take(&mut self, size: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.bytes.split_at_checked(size).ok_or("the bytes end too early")?;
        self.bytes = rest;
        Ok(taken)
    }
}

/// A big-endian number of one to eight bytes.
fn whole(bytes: &[u8], unsigned: bool) -> i64 {
    let negative = !unsigned && bytes.first().is_some_and(|byte| *byte >= 0x80);
    bytes.iter().fold(if negative { -1 } else { 0 }, |value, byte| value << 8 | i64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::tables::{APIS, api};

    #[test]
    fn what_is_encoded_passes_the_preflight_and_decodes_to_the_same_bytes() {
        for api in APIS {
            for version in api.versions.min..=api.versions.max {
                let bytes = encode(api.request, version, &Value::Struct(Vec::new()));
                assert!(protocol::check_request(api.key, version, &bytes).is_ok(), "{} {version}", api.name);
                let value = decode(api.request, version, &bytes).expect("decodes");
                assert_eq!(encode(api.request, version, &value), bytes, "{} {version}", api.name);
            }
        }
    }

    #[test]
    fn negative_numbers_keep_their_sign() {
        let fetch = api(1).expect("Fetch").request;
        let value = Value::Struct(vec![("ReplicaId", Value::Int(-2)), ("MaxWaitMs", Value::Int(300))]);
        let decoded = decode(fetch, 4, &encode(fetch, 4, &value)).expect("decodes");
        assert_eq!(decoded.get("ReplicaId"), Some(&Value::Int(-2)));
        assert_eq!(decoded.at("MaxWaitMs"), Some(&Value::Int(300)));
    }

    #[test]
    fn a_cut_message_is_an_error() {
        let metadata = api(3).expect("Metadata").request;
        let bytes = encode(metadata, 9, &Value::Struct(Vec::new()));
        assert!(decode(metadata, 9, &bytes[..bytes.len() - 1]).is_err());
    }
}
