//! The ways in which a good request is spoiled: each field to its bounds, to nothing, to null, to something unknown;
//! arrays emptied and doubled.

use protocol::schema::{Field, Kind, Schema};

use crate::value::{Step, Value};

/// A name that no broker has.
const UNKNOWN: &str = "nosuch";
const UNKNOWN_ID: [u8; 16] = [0xab; 16];

/// A spoiled request, and what was done to it.
pub(crate) struct Spoiled {
    /// The path of the field and its new value, `Topics.Name=empty`.
    pub(crate) how: String,
    /// The request.
    pub(crate) request: Value,
}

/// Every spoiled form of a request in one version. Of arrays the first element is taken.
pub(crate) fn spoil(schema: &'static Schema, version: i16, request: &Value) -> Vec<Spoiled> {
    let mut places = Vec::new();
    walk(schema.fields, version, request, &mut Vec::new(), &mut places);
    let forms = places.iter().flat_map(|place| {
        let now = value_at(request, &place.path);
        forms(place.field, version, now).into_iter().filter_map(move |(what, value)| {
            let mut spoiled = request.clone();
            *spoiled.at_mut(&place.path)? = value;
            Some(Spoiled { how: format!("{}={what}", name(&place.path)), request: spoiled })
        })
    });
    forms.collect()
}

struct Place {
    path: Vec<Step>,
    field: &'static Field,
}

fn walk(
    fields: &'static [Field],
    version: i16,
    value: &Value,
    path: &mut Vec<Step>,
    places: &mut Vec<Place>,
) {
    for field in fields.iter().filter(|field| field.versions.contains(version)) {
        let Some(inside) = value.get(field.name) else { continue };
        path.push(Step::Field(field.name));
        places.push(Place { path: path.clone(), field });
        match (&field.kind, inside) {
            (Kind::Struct(fields), Value::Struct(_)) => walk(fields, version, inside, path, places),
            (Kind::Array(Kind::Struct(fields)), Value::Array(elements)) if !elements.is_empty() => {
                path.push(Step::Index(0));
                walk(fields, version, &elements[0], path, places);
                path.pop();
            }
            _ => {}
        }
        path.pop();
    }
}

fn value_at<'a>(request: &'a Value, path: &[Step]) -> &'a Value {
    path.iter().fold(request, |value, step| match (value, step) {
        (Value::Array(elements), Step::Index(index)) => &elements[*index],
        (value, Step::Field(name)) => value.get(name).unwrap_or(&Value::Null),
        _ => &Value::Null,
    })
}

fn name(path: &[Step]) -> String {
    let fields = path.iter().filter_map(|step| match step {
        Step::Field(name) => Some(*name),
        Step::Index(_) => None,
    });
    fields.collect::<Vec<_>>().join(".")
}

/// The other values of a field.
fn forms(field: &'static Field, version: i16, now: &Value) -> Vec<(&'static str, Value)> {
    let mut forms = match (&field.kind, now) {
        (Kind::Bool, Value::Int(value)) => vec![("other", Value::Int(1 - value))],
        (Kind::Int8, _) => bounds(i64::from(i8::MIN), i64::from(i8::MAX)),
        (Kind::Int16, _) => bounds(i64::from(i16::MIN), i64::from(i16::MAX)),
        (Kind::Int32, _) => bounds(i64::from(i32::MIN), i64::from(i32::MAX)),
        (Kind::Int64, _) => bounds(i64::MIN, i64::MAX),
        (Kind::Uuid, _) => vec![("zero", Value::Uuid([0; 16])), ("unknown", Value::Uuid(UNKNOWN_ID))],
        (Kind::String, _) => {
            vec![("empty", Value::Text(String::new())), ("unknown", Value::Text(UNKNOWN.into()))]
        }
        (Kind::Bytes | Kind::Records, _) => vec![("empty", Value::Bytes(Vec::new()))],
        (Kind::Array(_), Value::Array(elements)) => arrays(elements),
        _ => Vec::new(),
    };
    if field.is_nullable(version) {
        forms.push(("null", Value::Null));
    }
    // A broker may or may not be done within a millisecond.
    let is_timeout = field.name.eq_ignore_ascii_case("TimeoutMs");
    forms.retain(|(what, value)| value != now && !(is_timeout && *what == "one"));
    forms
}

fn bounds(min: i64, max: i64) -> Vec<(&'static str, Value)> {
    let named = [("min", min), ("max", max), ("minus_one", -1), ("zero", 0), ("one", 1)];
    named.map(|(name, value)| (name, Value::Int(value))).into()
}

fn arrays(elements: &[Value]) -> Vec<(&'static str, Value)> {
    let doubled = elements.iter().chain(elements).cloned().collect();
    vec![("none", Value::Array(Vec::new())), ("twice", Value::Array(doubled))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::request;
    use protocol::tables::api;
    use serde_json::json;

    fn ways(version: i16) -> Vec<String> {
        let schema = api(3).expect("Metadata").request;
        let metadata = request(schema, &json!({"Topics": [{"Name": "t"}], "AllowAutoTopicCreation": false}));
        spoil(schema, version, &metadata).into_iter().map(|spoiled| spoiled.how).collect()
    }

    #[test]
    fn each_field_of_the_version_is_spoiled_in_each_way_of_its_kind() {
        let wanted = [
            "Topics=none",
            "Topics=twice",
            "Topics=null",
            "Topics.Name=empty",
            "Topics.Name=unknown",
            "AllowAutoTopicCreation=other",
        ];
        assert_eq!(ways(4), wanted);
    }

    #[test]
    fn a_field_that_the_version_does_not_have_is_left_alone() {
        assert_eq!(ways(0), ["Topics=none", "Topics=twice", "Topics.Name=empty", "Topics.Name=unknown"]);
    }
}
