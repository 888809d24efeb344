//! Whether two brokers said the same: answers without ids, times and addresses, and where they differ.

use crate::peer::Outcome;
use crate::value::Value;

/// Milliseconds since the epoch that can only be a time of today.
const TIMES_FROM: i64 = 1_600_000_000_000;

/// Fields that each broker chooses for itself, unless they are empty, null or negative.
const OWN: &[&str] = &[
    "TopicId",
    "ClusterId",
    "Host",
    "Port",
    "ProducerId",
    "MemberId",
    "Leader",
    "SessionId",
    "ReplicaDirectoryId",
    "LogDir",
    "NextTopicId",
];
/// Fields that grow by themselves, or measure this machine.
const MEASURED: &[&str] = &[
    "FinalizedFeaturesEpoch",
    "TotalBytes",
    "UsableBytes",
    "PartitionSize",
    "LastFetchTimestamp",
    "LastCaughtUpTimestamp",
];

/// The differences of two outcomes, as `path: one's value, the other's value`.
pub(crate) fn differences(key: i16, one: &Outcome, other: &Outcome) -> Vec<String> {
    match (one, other) {
        (Outcome::Answer(one), Outcome::Answer(other)) => {
            let mut found = Vec::new();
            collect(&masked(key, "", one), &masked(key, "", other), "", &mut found);
            found
        }
        (one, other) if one == other => Vec::new(),
        (one, other) => vec![format!(": {} | {}", short(one), short(other))],
    }
}

/// An outcome in one line.
pub(crate) fn short(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Answer(value) => text(&masked(-1, "", value)),
        other => format!("{other:?}"),
    }
}

fn masked(key: i16, name: &str, value: &Value) -> Value {
    let is_quorum = key == 55 && ["HighWatermark", "LogEndOffset", "LeaderEpoch"].contains(&name);
    match value {
        _ if MEASURED.contains(&name) || is_quorum => Value::Text("measured".into()),
        Value::Text(text) if OWN.contains(&name) && !text.is_empty() => Value::Text("own".into()),
        Value::Text(text) if name == "BatchIndexErrorMessage" => Value::Text(without_times(text)),
        Value::Text(text) if text.contains("/ottla-tests-") => Value::Text("own".into()),
        Value::Uuid(id) if *id != [0; 16] => Value::Text("own".into()),
        // Producer ids begin at 0; a session or a port does not.
        Value::Int(number)
            if OWN.contains(&name) && (*number > 0 || name == "ProducerId" && *number == 0) =>
        {
            Value::Text("own".into())
        }
        Value::Int(number) if *number > TIMES_FROM && *number < 2 * TIMES_FROM => Value::Text("time".into()),
        Value::Array(elements) => {
            let known = elements.iter().filter(|each| !is_later(each));
            let mut elements: Vec<_> = known.map(|each| masked(key, name, each)).collect();
            // Most arrays have no order of their own; where one has, a real client shows it.
            elements.sort_by_cached_key(text);
            Value::Array(elements)
        }
        Value::Struct(fields) => {
            Value::Struct(fields.iter().map(|(name, each)| (*name, masked(key, name, each))).collect())
        }
        other => other.clone(),
    }
}

/// A text without the numbers that are as long as a time.
fn without_times(text: &str) -> String {
    let words = text.split_inclusive(|each: char| !each.is_ascii_digit());
    words.filter(|word| word.len() < 13).collect()
}

/// Whether it is about a topic of a coordinator that Ottla does not have yet; Kafka makes these when they are asked for.
fn is_later(element: &Value) -> bool {
    let names = ["Name", "TopicName", "Topic"].iter().filter_map(|field| element.get(field));
    let later = ["__transaction_state", "__share_group_state"];
    names.into_iter().any(|name| matches!(name, Value::Text(name) if later.contains(&name.as_str())))
}

fn collect(one: &Value, other: &Value, path: &str, found: &mut Vec<String>) {
    match (one, other) {
        (one, other) if one == other => {}
        (Value::Array(ones), Value::Array(others)) if ones.len() == others.len() => {
            for (one, other) in ones.iter().zip(others) {
                collect(one, other, path, found);
            }
        }
        (Value::Array(ones), Value::Array(others)) => {
            let only = |some: &[Value], rest: &[Value]| {
                let left: Vec<_> = some.iter().filter(|each| !rest.contains(each)).map(text).collect();
                format!("{} of {}, only here: {}", left.len(), some.len(), left.join(" "))
            };
            found.push(format!("{path}[]: {} | {}", only(ones, others), only(others, ones)));
        }
        (Value::Struct(ones), Value::Struct(_)) => {
            let names = ones.iter().map(|(name, _)| *name);
            let Value::Struct(others) = other else { return };
            let more = others.iter().map(|(name, _)| *name).filter(|name| one.get(name).is_none());
            for name in names.chain(more) {
                let absent = Value::Text("absent".into());
                let (one, other) = (one.get(name).unwrap_or(&absent), other.get(name).unwrap_or(&absent));
                let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
                collect(one, other, &path, found);
            }
        }
        (one, other) => found.push(format!("{path}: {} | {}", text(one), text(other))),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Uuid(_) => "0".into(),
        Value::Text(text) => format!("'{text}'"),
        Value::Bytes(bytes) => format!("{} bytes, sum {}", bytes.len(), sum(bytes)),
        Value::Array(values) => format!("[{}]", values.iter().map(text).collect::<Vec<_>>().join(" ")),
        Value::Struct(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{name}={}", text(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(" "))
        }
    }
}

fn sum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |sum, byte| sum.rotate_left(5) ^ u32::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: i64, host: &str) -> Outcome {
        let fields = vec![("ErrorCode", Value::Int(code)), ("Host", Value::Text(host.into()))];
        Outcome::Answer(Value::Struct(fields))
    }

    #[test]
    fn addresses_do_not_count() {
        assert!(differences(3, &answer(0, "a"), &answer(0, "b")).is_empty());
    }

    #[test]
    fn an_address_and_none_are_not_the_same() {
        assert_eq!(differences(3, &answer(0, "a"), &answer(0, "")), ["Host: 'own' | ''"]);
    }

    #[test]
    fn another_error_code_is_found_at_its_path() {
        assert_eq!(differences(3, &answer(0, "a"), &answer(3, "a")), ["ErrorCode: 0 | 3"]);
    }

    #[test]
    fn closing_is_not_answering() {
        assert_eq!(differences(3, &Outcome::Closed, &answer(0, "a")).len(), 1);
        assert!(differences(3, &Outcome::Closed, &Outcome::Closed).is_empty());
    }
}
