use serde_json::{Number, Value, json};

const TYPES: [&str; 7] = [
    "array", "boolean", "integer", "null", "number", "object", "string",
];
const DEFAULT: usize = 512;

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
        // Draft-04 uses booleans, which `whole` converts.
        "exclusiveMinimum" | "exclusiveMaximum" => match value {
            Value::Bool(_) => Some(value.clone()),
            _ => number(value),
        },
        "multipleOf" => number(value).filter(|it| it.as_f64().is_some_and(|it| it > 0.0)),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => count(value),
        // Draft-03 uses a flag, which the parent schema converts.
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

const TITLE: usize = 100;

pub(super) fn types(value: Option<&Value>) -> Vec<&'static str> {
    let named = match value {
        Some(Value::String(name)) => vec![name.as_str()],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        // YAML reads an unquoted `null` as a null value.
        Some(Value::Null) => vec!["null"],
        _ => Vec::new(),
    };
    let mut kinds = Vec::new();
    for name in named {
        // An unknown type may mean any type.
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

fn count(value: &Value) -> Option<Value> {
    let number = number(value)?;
    let whole = number
        .as_f64()
        .filter(|it| it.fract() == 0.0 && *it >= 0.0)?;
    match number.as_u64() {
        Some(_) => Some(number),
        // A count written as 5.0 is converted; a count too large to matter is left out.
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
