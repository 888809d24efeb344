//! What the generated files are written in: structs, and what makes them messages.

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

/// Makes a struct a message as kafka-protocol's own are.
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
