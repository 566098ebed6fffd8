//! The value of one keyword as JSON Schema 2020-12 wants it. A value that cannot be understood is lost, and nothing else.

use serde_json::{Number, Value, json};

/// The types of JSON Schema.
const TYPES: [&str; 7] = [
    "array", "boolean", "integer", "null", "number", "object", "string",
];
/// Bytes of a default that a schema keeps.
const DEFAULT: usize = 512;

/// The value of a keyword that holds no schema; `None` where it means nothing, or nothing to a client.
pub(super) fn value(keyword: &str, value: &Value, choices: usize) -> Option<Value> {
    match keyword {
        "type" => {
            let kinds = types(Some(value));
            (!kinds.is_empty()).then(|| super::whole::written(&kinds))
        }
        "enum" => choices_of(value, choices),
        "const" => Some(value.clone()),
        "default" => (super::size(value) <= DEFAULT && !value.is_null()).then(|| value.clone()),
        "title" => match value {
            Value::String(title) if title.len() <= TITLE => Some(value.clone()),
            _ => None,
        },
        "format" | "contentEncoding" | "contentMediaType" => {
            value.is_string().then(|| value.clone())
        }
        "deprecated" | "uniqueItems" => (*value == json!(true)).then(|| value.clone()),
        "minimum" | "maximum" => number(value),
        // Booleans are words of draft-04, which the whole schema explains.
        "exclusiveMinimum" | "exclusiveMaximum" => match value {
            Value::Bool(_) => Some(value.clone()),
            _ => number(value),
        },
        "multipleOf" => number(value).filter(|it| it.as_f64().is_some_and(|it| it > 0.0)),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => count(value),
        // A flag is a word of draft-03, which the schema around the property explains.
        "required" => {
            let names = value.as_array()?.iter();
            Some(Value::Array(unique(names.filter(|name| name.is_string()))))
        }
        "dependentRequired" => {
            let sound = |names: &Value| {
                let names = names.as_array();
                names.is_some_and(|names| names.iter().all(Value::is_string))
            };
            let named = value.as_object();
            named
                .is_some_and(|named| named.values().all(sound))
                .then(|| value.clone())
        }
        _ => None,
    }
}

/// Bytes of a title that a schema keeps.
const TITLE: usize = 100;

/// The types that a schema names, in the words of JSON Schema.
pub(super) fn types(value: Option<&Value>) -> Vec<&'static str> {
    let named = match value {
        Some(Value::String(name)) => vec![name.as_str()],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        // YAML reads the word as a value.
        Some(Value::Null) => vec!["null"],
        _ => Vec::new(),
    };
    let mut kinds = Vec::new();
    for name in named {
        // One that is unknown may stand for any: then nothing is said.
        let Some(kind) = kind(name) else {
            return Vec::new();
        };
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
}

fn kind(name: &str) -> Option<&'static str> {
    let lower = name.trim().to_ascii_lowercase();
    if let Some(kind) = TYPES.iter().find(|kind| **kind == lower) {
        return Some(kind);
    }
    match lower.as_str() {
        "file" | "binary" | "byte" | "str" | "text" | "date" | "datetime" | "date-time"
        | "time" | "uuid" | "uri" | "url" | "email" => Some("string"),
        "int" | "int32" | "int64" | "long" | "short" => Some("integer"),
        "float" | "double" | "decimal" | "float32" | "float64" => Some("number"),
        "bool" => Some("boolean"),
        "list" => Some("array"),
        "dict" | "map" | "hash" => Some("object"),
        _ => None,
    }
}

fn number(value: &Value) -> Option<Value> {
    match value {
        Value::Number(_) => Some(value.clone()),
        Value::String(written) => {
            let number: Number = serde_json::from_str(written.trim()).ok()?;
            Some(Value::Number(number))
        }
        _ => None,
    }
}

/// A number that counts something.
fn count(value: &Value) -> Option<Value> {
    let number = number(value)?;
    let whole = number
        .as_f64()
        .filter(|it| it.fract() == 0.0 && *it >= 0.0)?;
    match number.as_u64() {
        Some(_) => Some(number),
        // Larger than anything that is counted, or written as 5.0.
        None => (whole <= 9_007_199_254_740_991.0).then(|| json!(whole as u64)),
    }
}

fn choices_of(value: &Value, most: usize) -> Option<Value> {
    let choices = value.as_array().filter(|choices| choices.len() <= most)?;
    let choices = unique(choices.iter());
    (!choices.is_empty()).then_some(Value::Array(choices))
}

fn unique<'v>(values: impl Iterator<Item = &'v Value>) -> Vec<Value> {
    let mut seen = std::collections::HashSet::new();
    let new = values.filter(|value| seen.insert(value.to_string()));
    new.cloned().collect()
}
