//! The shape of Kafka's messages, as data: what the generated tables are made of.
//!
//! One table serves the preflight (`preflight`), the codec of the structs that this room adds (`codec`) and the tests,
//! so that they cannot disagree. Names, types and versions are those of Kafka's message specifications; nothing else
//! of them is kept.
//!
//! Kafka: `clients/src/main/resources/common/message/*.json`, KIP-482 (flexible versions, tagged fields).

/// A range of versions, both ends inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// The first one.
    pub min: i16,
    /// The last one; below `min` where there is none.
    pub max: i16,
}

impl Versions {
    /// No version at all.
    pub const NONE: Self = Self { min: 0, max: -1 };

    /// Whether `version` is in the range.
    pub const fn contains(self, version: i16) -> bool {
        self.min <= version && version <= self.max
    }
}

/// From `min` on.
pub(crate) const fn since(min: i16) -> Versions {
    Versions { min, max: i16::MAX }
}

/// From `min` to `max`, both inclusive.
pub(crate) const fn between(min: i16, max: i16) -> Versions {
    Versions { min, max }
}

/// A message.
#[derive(Debug)]
pub struct Schema {
    /// Kafka's name of it.
    pub name: &'static str,
    /// The versions that Kafka 4.4 knows.
    pub versions: Versions,
    /// The versions that have compact lengths and tagged fields.
    pub flexible: Versions,
    /// Its fields: the plain ones in the order of the wire, then the tagged ones by their number.
    pub fields: &'static [Field],
}

/// A field of a message or of a structure inside one.
#[derive(Debug)]
pub struct Field {
    /// Kafka's name of it.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// The versions that have it.
    pub versions: Versions,
    /// The versions in which it may be null.
    pub nullable: Versions,
    /// Its number where it is a tagged field.
    pub tag: Option<u32>,
    /// Whether a value is dropped silently for a version that does not have the field.
    pub ignorable: bool,
}

/// What a field holds.
#[derive(Debug)]
#[expect(missing_docs, reason = "the names are Kafka's")]
pub enum Kind {
    Bool,
    Int8,
    Int16,
    Uint16,
    Int32,
    Int64,
    Float64,
    Uuid,
    String,
    Bytes,
    Records,
    Array(&'static Self),
    Struct(&'static [Field]),
}

pub(crate) const fn field(name: &'static str, kind: Kind, versions: Versions) -> Field {
    Field { name, kind, versions, nullable: Versions::NONE, tag: None, ignorable: false }
}

impl Field {
    pub(crate) const fn null(mut self, nullable: Versions) -> Self {
        self.nullable = nullable;
        self
    }

    pub(crate) const fn tag(mut self, tag: u32) -> Self {
        self.tag = Some(tag);
        self
    }

    pub(crate) const fn ignorable(mut self) -> Self {
        self.ignorable = true;
        self
    }

    /// Whether `version` may hold a null here.
    pub fn is_nullable(&self, version: i16) -> bool {
        self.nullable.contains(version)
    }
}

impl Kind {
    /// The fewest bytes that a value takes, one that is not null. Never zero.
    pub fn size_min(&self, version: i16, flexible: bool) -> usize {
        match self {
            Self::Bool | Self::Int8 => 1,
            Self::String | Self::Bytes | Self::Records | Self::Array(_) if flexible => 1,
            Self::Int16 | Self::Uint16 | Self::String => 2,
            Self::Int32 | Self::Bytes | Self::Records | Self::Array(_) => 4,
            Self::Int64 | Self::Float64 => 8,
            Self::Uuid => 16,
            Self::Struct(fields) => fields_size_min(fields, version, flexible).max(1),
        }
    }

    /// Whether its values hold no memory of their own and are no larger in memory than on the wire.
    pub fn is_number(&self) -> bool {
        !matches!(self, Self::String | Self::Bytes | Self::Records | Self::Array(_) | Self::Struct(_))
    }
}

fn fields_size_min(fields: &[Field], version: i16, flexible: bool) -> usize {
    let plain = fields.iter().filter(|f| f.tag.is_none() && f.versions.contains(version));
    let sizes = plain.map(|f| match f.kind {
        Kind::Struct(_) if f.is_nullable(version) => 1,
        _ => f.kind.size_min(version, flexible),
    });
    sizes.sum::<usize>() + usize::from(flexible)
}

/// A request and its response.
#[derive(Debug)]
pub struct ApiSpec {
    /// Kafka's number for it.
    pub key: i16,
    /// Kafka's name for it, `Produce`.
    pub name: &'static str,
    /// The versions that Kafka 4.4 knows, an unstable last one included.
    pub versions: Versions,
    /// Whether the last version is not yet stable: not to be advertised.
    pub latest_unstable: bool,
    /// Whether Kafka serves it on a broker's listeners.
    pub broker: bool,
    /// Whether Kafka serves it on a controller's listeners.
    pub controller: bool,
    /// What the client sends.
    pub request: &'static Schema,
    /// What it gets.
    pub response: &'static Schema,
}

impl ApiSpec {
    /// The versions without an unstable last one.
    pub fn stable_versions(&self) -> Versions {
        Versions { max: self.versions.max - i16::from(self.latest_unstable), ..self.versions }
    }

    /// 2 where the header of this version's request has tagged fields, else 1.
    pub fn request_header_version(&self, version: i16) -> i16 {
        1 + i16::from(self.request.flexible.contains(version))
    }

    /// 1 where the header of this version's response has tagged fields, else 0. ApiVersions never has them, for the
    /// client does not know yet what the broker understands.
    pub fn response_header_version(&self, version: i16) -> i16 {
        i16::from(self.key != 18 && self.response.flexible.contains(version))
    }
}
