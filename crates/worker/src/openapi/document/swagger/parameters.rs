use serde_json::{Map, Value, json};

use super::super::{Document, text};
use super::JSON;

const FORM: &str = "application/x-www-form-urlencoded";
const MULTIPART: &str = "multipart/form-data";
const NO_SCHEMA: [&str; 8] = [
    "allowEmptyValue",
    "collectionFormat",
    "description",
    "in",
    "name",
    "required",
    "schema",
    "$ref",
];

pub(super) struct GivenParameters {
    pub(super) parameters: Vec<Value>,
    pub(super) body: Option<Value>,
}

pub(super) fn given(
    document: &Document,
    common: Option<&Value>,
    own: Option<&Value>,
    consumes: &[String],
) -> GivenParameters {
    let (mut parameters, mut body, mut fields) = (Vec::new(), None, Vec::new());
    for parameter in effective(document, [common, own]) {
        match parameter.get("in").and_then(Value::as_str) {
            Some("body") => body = Some(parameter),
            Some("formData") => fields.push(parameter),
            _ => parameters.push(converted(parameter)),
        }
    }
    let body = match (body, fields.is_empty()) {
        (Some(body), _) => Some(of_body(body, consumes)),
        (None, false) => Some(of_fields(&fields, consumes)),
        (None, true) => None,
    };
    GivenParameters { parameters, body }
}

/// Merges lists of parameters; later ones replace earlier ones. A dangling reference stays, so that
/// a later step reports it.
fn effective<'a>(document: &'a Document, lists: [Option<&'a Value>; 2]) -> Vec<&'a Value> {
    let mut all: Vec<&Value> = Vec::new();
    for written in lists.into_iter().flatten() {
        let list = document.resolve(written).ok().and_then(Value::as_array);
        for parameter in list.into_iter().flatten() {
            let parameter = document.resolve(parameter).unwrap_or(parameter);
            let same = |other: &&mut &Value| {
                ["name", "in"]
                    .iter()
                    .all(|key| parameter.get(key).is_some() && other.get(key) == parameter.get(key))
            };
            match all.iter_mut().find(same) {
                Some(other) => *other = parameter,
                None => all.push(parameter),
            }
        }
    }
    all
}

fn converted(parameter: &Value) -> Value {
    let Value::Object(members) = parameter else {
        return parameter.clone();
    };
    let mut converted: Map<String, Value> = members
        .iter()
        .filter(|(name, _)| {
            ["description", "in", "name", "required", "$ref"].contains(&name.as_str())
        })
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    converted.insert("schema".into(), schema(members));
    if let Some(style) = list_format(members) {
        converted.insert("style".into(), style.into());
    }
    Value::Object(converted)
}

fn list_format(members: &Map<String, Value>) -> Option<String> {
    let is_list = members.get("type").is_some_and(|kind| kind == "array");
    let said = members.get("collectionFormat").map(text);
    is_list.then(|| said.unwrap_or_else(|| "csv".to_owned()))
}

/// Swagger 2.0 writes the schema's keywords into the parameter itself.
fn schema(members: &Map<String, Value>) -> Value {
    if let Some(schema) = members.get("schema") {
        return schema.clone();
    }
    if members.get("type").is_some_and(|kind| kind == "file") {
        return json!({ "type": "string", "format": "binary" });
    }
    let own = members
        .iter()
        .filter(|(name, _)| !NO_SCHEMA.contains(&name.as_str()));
    Value::Object(
        own.map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
    )
}

fn of_body(parameter: &Value, consumes: &[String]) -> Value {
    let schema = parameter
        .get("schema")
        .cloned()
        .unwrap_or_else(|| json!({}));
    let json = [JSON.to_owned()];
    let consumes = if consumes.is_empty() { &json } else { consumes };
    let content: Map<String, Value> = consumes
        .iter()
        .map(|media| (media.clone(), json!({ "schema": schema })))
        .collect();
    with_notes(parameter, json!({ "content": content }))
}

fn with_notes(parameter: &Value, mut body: Value) -> Value {
    for note in ["description", "required"] {
        if let Some(said) = parameter.get(note) {
            body[note] = said.clone();
        }
    }
    body
}

fn of_fields(fields: &[&Value], consumes: &[String]) -> Value {
    let mut properties = Map::new();
    let (mut required, mut encoding) = (Vec::new(), Map::new());
    let mut has_files = false;
    for members in fields.iter().filter_map(|field| field.as_object()) {
        let name = members.get("name").map(text).unwrap_or_default();
        has_files |= members.get("type").is_some_and(|kind| kind == "file");
        let mut schema = schema(members);
        if let (Some(about), Value::Object(schema)) = (members.get("description"), &mut schema) {
            schema.insert("description".into(), about.clone());
        }
        if members.get("required") == Some(&Value::Bool(true)) {
            required.push(Value::String(name.clone()));
        }
        if let Some(style) = list_format(members) {
            encoding.insert(name.clone(), json!({ "style": style }));
        }
        properties.insert(name, schema);
    }
    let says = |media: &str| consumes.iter().any(|said| said.starts_with(media));
    let media = match has_files || says(MULTIPART) && !says(FORM) {
        true => MULTIPART,
        false => FORM,
    };
    let is_required = !required.is_empty();
    let mut schema = json!({ "type": "object", "properties": properties });
    if is_required {
        schema["required"] = Value::Array(required);
    }
    json!({
        "required": is_required,
        "content": { media: { "schema": schema, "encoding": encoding } },
    })
}
