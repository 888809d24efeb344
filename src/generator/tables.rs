//! The schema tables and the list of APIs.

use std::fmt::Write as _;

use anyhow::{Context, Result, bail};

use crate::naming::constant;
use crate::spec::{Field, Message, Versions};

/// The table of one message.
pub(crate) fn schema(message: &Message) -> Result<String> {
    Ok(format!(
        "pub static {}: Schema = Schema {{ name: \"{}\", versions: {}, flexible: {}, fields: &[{}] }};\n\n",
        constant(&message.name),
        message.name,
        versions(message.valid_versions),
        versions(message.flexible_versions),
        fields(message, &message.fields)?,
    ))
}

/// The list of APIs, and a macro that names the structs of each.
pub(crate) fn apis(requests: &[&Message], responses: &[&Message]) -> Result<String> {
    let mut list = String::from("pub static APIS: &[ApiSpec] = &[\n");
    let mut each = String::new();
    for request in requests {
        let key = request.api_key.context("a request without a key")?;
        let response = responses.iter().find(|response| response.api_key == Some(key));
        let response = response.with_context(|| format!("{} has no response", request.name))?;
        let name = request.name.strip_suffix("Request").unwrap_or(&request.name);
        let listens = |listener: &str| request.listeners.iter().any(|l| l == listener);
        writeln!(
            list,
            "ApiSpec {{ key: {key}, name: \"{name}\", versions: {}, latest_unstable: {}, broker: {}, \
             controller: {}, request: &requests::{}, response: &responses::{} }},",
            versions(request.valid_versions),
            request.latest_version_unstable,
            listens("broker"),
            listens("controller"),
            constant(&request.name),
            constant(&response.name),
        )?;
        writeln!(each, "$each!({key}, {}, {});", request.name, response.name)?;
    }
    list.push_str("];\n\n");
    write!(
        list,
        "/// Calls `$each!(key, Request, Response)` for every API.\n\
         #[macro_export]\nmacro_rules! for_each_api {{ ($each:ident) => {{ {each} }}; }}\n"
    )?;
    Ok(list)
}

fn fields(message: &Message, fields: &[Field]) -> Result<String> {
    Message::in_order(fields).into_iter().map(|f| field(message, f)).collect()
}

fn field(message: &Message, field: &Field) -> Result<String> {
    let mut text = format!(
        "field(\"{}\", {}, {})",
        field.name,
        kind(message, field, &field.kind)?,
        versions(field.versions()?)
    );
    if !field.nullable_versions.is_none() {
        write!(text, ".null({})", versions(field.nullable_versions))?;
    }
    if let Some(tag) = field.tag {
        write!(text, ".tag({tag})")?;
    }
    if field.ignorable {
        text.push_str(".ignorable()");
    }
    text.push_str(",\n");
    Ok(text)
}

fn kind(message: &Message, field: &Field, name: &str) -> Result<String> {
    if let Some(element) = name.strip_prefix("[]") {
        return Ok(format!("Array(&{})", kind(message, field, element)?));
    }
    Ok(match name {
        "bool" | "int8" | "int16" | "uint16" | "int32" | "int64" | "float64" | "uuid" | "string"
        | "bytes" | "records" => {
            let (first, rest) = name.split_at(1);
            format!("{}{rest}", first.to_uppercase())
        }
        structure if structure.starts_with(char::is_uppercase) => {
            format!("Struct(&[{}])", fields(message, message.fields_of(field, structure)?)?)
        }
        other => bail!("{}: unknown type {other}", field.name),
    })
}

fn versions(versions: Versions) -> String {
    match versions {
        none if none.is_none() => "Versions::NONE".to_owned(),
        Versions { min, max: i16::MAX } => format!("since({min})"),
        Versions { min, max } => format!("between({min}, {max})"),
    }
}
