//! Requests written as JSON, with Kafka's field names, and filled in for the broker that they go to.

use std::collections::BTreeMap;

use protocol::schema::{Field, Kind, Schema};
use serde_json::Value as Json;

use crate::value::Value;

/// What differs from broker to broker: topic ids, member ids, producer ids, each by the name that requests use.
#[derive(Default)]
pub(crate) struct Names(BTreeMap<String, Value>);

impl Names {
    /// Gives a name a value.
    pub(crate) fn set(&mut self, name: impl Into<String>, value: Value) {
        self.0.insert(name.into(), value);
    }

    /// What a text stands for: `$name`, or itself.
    fn resolve(&self, text: &str) -> Value {
        let named = text.strip_prefix('$').map(|name| self.0.get(name).cloned());
        named.map_or_else(|| Value::Text(text.into()), |value| value.unwrap_or(Value::Null))
    }

    /// The value of a name that is a number, else `-1`.
    pub(crate) fn number(&self, name: &str) -> i64 {
        if let Some(Value::Int(number)) = self.0.get(name) { *number } else { -1 }
    }
}

/// The fields that a JSON object gives, in the shape of the schema. A text `$name` stays a text until [`fill`].
///
/// # Panics
/// Where the JSON names a field that the schema does not have, or gives it another kind of value.
pub(crate) fn request(schema: &'static Schema, json: &Json) -> Value {
    structure(schema.fields, json)
}

fn structure(fields: &'static [Field], json: &Json) -> Value {
    let Json::Object(given) = json else { panic!("{json} is no object") };
    let known = |name: &str| fields.iter().find(|field| field.name.eq_ignore_ascii_case(name));
    let lifted = given.iter().map(|(name, value)| {
        let field = known(name).unwrap_or_else(|| panic!("no field {name}"));
        (field.name, value_of(&field.kind, value))
    });
    Value::Struct(lifted.collect())
}

fn value_of(kind: &'static Kind, json: &Json) -> Value {
    match (kind, json) {
        (_, Json::Null) => Value::Null,
        (Kind::Array(element), Json::Array(values)) => {
            Value::Array(values.iter().map(|value| value_of(element, value)).collect())
        }
        (Kind::Struct(fields), object) => structure(fields, object),
        (_, Json::Bool(value)) => Value::Int(i64::from(*value)),
        (_, Json::Number(number)) => Value::Int(number.as_i64().expect("a whole number")),
        (_, Json::String(text)) if text.starts_with('$') => Value::Text(text.clone()),
        (Kind::Bytes | Kind::Records, Json::String(text)) => Value::Bytes(text.as_bytes().to_vec()),
        (Kind::Uuid, Json::String(_)) => Value::Uuid([0; 16]),
        (_, Json::String(text)) => Value::Text(text.clone()),
        (_, other) => panic!("{other} is no value"),
    }
}

/// A request with every `$name` replaced.
pub(crate) fn fill(value: &Value, names: &Names) -> Value {
    match value {
        Value::Text(text) => names.resolve(text),
        Value::Array(values) => Value::Array(values.iter().map(|each| fill(each, names)).collect()),
        Value::Struct(fields) => {
            Value::Struct(fields.iter().map(|(name, each)| (*name, fill(each, names))).collect())
        }
        other => other.clone(),
    }
}
