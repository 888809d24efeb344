//! The structs of messages, one module a message as in kafka-protocol.

use std::fmt::Write as _;

use anyhow::{Context, Result, ensure};

use crate::naming::{constant, field as field_name, snake};
use crate::spec::{Default, Field, Message};

/// Whose types the structs have.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Style {
    /// Those of kafka-protocol: strings that point into the frame, newtypes of names.
    Api,
    /// Those of the rooms that keep records: owned strings, `model::Uuid`.
    Record,
}

/// The modules of `messages`; `tables` is the path of their tables. Each module's main struct is re-exported.
pub(crate) fn modules(messages: &[&Message], style: Style, tables: &str) -> Result<String> {
    let mut text = String::new();
    for message in messages {
        let name = &message.name;
        writeln!(text, "pub use {}::{name};", snake(name))?;
    }
    for message in messages {
        text.push_str(&module(message, style, tables)?);
    }
    Ok(text)
}

fn module(message: &Message, style: Style, tables: &str) -> Result<String> {
    let name = &message.name;
    let mut structs = Structs { message, style, text: String::new(), written: Vec::new() };
    structs.add(name, &message.fields)?;
    let root = if style == Style::Api { "api_message" } else { "root" };
    Ok(format!(
        "\npub mod {module} {{\nuse super::prelude::*;\n\n{structs}{root}!({name}, {tables}::{constant});\n}}\n",
        module = snake(name),
        structs = structs.text,
        constant = constant(name),
    ))
}

struct Structs<'a> {
    message: &'a Message,
    style: Style,
    text: String,
    written: Vec<String>,
}

impl<'a> Structs<'a> {
    fn add(&mut self, name: &str, fields: &'a [Field]) -> Result<()> {
        if self.written.iter().any(|written| written == name) {
            return Ok(());
        }
        self.written.push(name.to_owned());
        let fields = Message::in_order(fields);
        let mut text = format!("    message!({name} {{\n");
        for field in &fields {
            let rust_name = field_name(&field.name);
            let with = format!("with_{}", snake(&field.name));
            write!(text, "        {rust_name} {with}: {}", self.rust_type(field))?;
            if let Some(default) = self.default(field)? {
                write!(text, " = {default}")?;
            }
            text.push_str(",\n");
        }
        text.push_str("    });\n\n");
        self.text.push_str(&text);
        for field in fields {
            let structure = field.kind.trim_start_matches("[]");
            if structure.starts_with(char::is_uppercase) {
                self.add(structure, self.message.fields_of(field, structure)?)?;
            }
        }
        Ok(())
    }

    fn rust_type(&self, field: &Field) -> String {
        let plain = match field.kind.strip_prefix("[]") {
            Some(element) => format!("Vec<{}>", self.plain_type(field, element)),
            None => self.plain_type(field, &field.kind),
        };
        if field.nullable_versions.is_none() { plain } else { format!("Option<{plain}>") }
    }

    fn plain_type(&self, field: &Field, kind: &str) -> String {
        let api = self.style == Style::Api;
        match (kind, field.entity_type.as_deref()) {
            ("string", Some("topicName")) if api => "TopicName",
            ("string", Some("groupId")) if api => "GroupId",
            ("string", Some("transactionalId")) if api => "TransactionalId",
            ("int32", Some("brokerId")) if api => "BrokerId",
            ("int64", Some("producerId")) if api => "ProducerId",
            ("string", _) if api => "StrBytes",
            ("string", _) => "String",
            ("int8", _) => "i8",
            ("int16", _) => "i16",
            ("uint16", _) => "u16",
            ("int32", _) => "i32",
            ("int64", _) => "i64",
            ("float64", _) => "f64",
            ("uuid", _) => "Uuid",
            ("bytes" | "records", _) => "Bytes",
            (other, _) => other,
        }
        .to_owned()
    }

    /// The default where it is not Rust's own. A nullable field without a default is empty, not null.
    fn default(&self, field: &Field) -> Result<Option<String>> {
        let nullable = !field.nullable_versions.is_none();
        let text = match field.default() {
            Some(Default::Null) => {
                ensure!(nullable, "{} is never null, but that is its default", field.name);
                return Ok(None);
            }
            Some(Default::Text(text)) if !text.is_empty() => text,
            _ => return Ok(nullable.then(|| format!("Some({}::default())", self.turbofish(field)))),
        };
        let value = match field.kind.as_str() {
            "bool" | "float64" => text,
            _ => number(&text).with_context(|| format!("{}: default {text}", field.name))?,
        };
        let value = if self.rust_type(field).ends_with("Id") && field.entity_type.is_some() {
            format!("{}({value})", self.rust_type(field))
        } else {
            value
        };
        let is_rusts = matches!(value.as_str(), "0" | "false");
        Ok((!is_rusts).then_some(value))
    }

    fn turbofish(&self, field: &Field) -> String {
        if field.kind.starts_with("[]") { "Vec".to_owned() } else { self.plain_type(field, &field.kind) }
    }
}

/// A number as Rust's literal; Kafka's may be hexadecimal.
fn number(text: &str) -> Result<String> {
    let number = match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16)?,
        None => text.parse()?,
    };
    Ok(match number {
        -2_147_483_648 => "i32::MIN".to_owned(),
        2_147_483_647 => "i32::MAX".to_owned(),
        number => number.to_string(),
    })
}
