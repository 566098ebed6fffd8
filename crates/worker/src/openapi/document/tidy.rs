use serde_json::{Map, Value};

const DATA: [&str; 6] = ["const", "default", "enum", "example", "examples", "value"];
/// Members whose keys are names of the document's author.
const NAMED: [&str; 24] = [
    "$defs",
    "additionalOperations",
    "callbacks",
    "content",
    "definitions",
    "dependentSchemas",
    "encoding",
    "headers",
    "links",
    "mapping",
    "mediaTypes",
    "parameters",
    "pathItems",
    "paths",
    "patternProperties",
    "properties",
    "requestBodies",
    "responses",
    "schemas",
    "scopes",
    "securityDefinitions",
    "securitySchemes",
    "variables",
    "webhooks",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::openapi) enum ValueRole {
    Object,
    Names,
    Data,
}

impl ValueRole {
    pub(in crate::openapi) fn of(self, key: &str, value: &Value) -> Self {
        match self {
            Self::Data => Self::Data,
            Self::Names => Self::Object,
            Self::Object if DATA.contains(&key) || key.starts_with("x-") => Self::Data,
            Self::Object if value.is_object() && NAMED.contains(&key) => Self::Names,
            Self::Object => Self::Object,
        }
    }
}

/// Removes `null` members. Under a name that the author chose, `null` becomes an empty object.
pub(super) fn without_nulls(value: &mut Value) {
    tidy(value, ValueRole::Object);
}

fn tidy(value: &mut Value, place: ValueRole) {
    match value {
        Value::Object(members) => {
            match place {
                ValueRole::Names => {
                    let nulls = members.values_mut().filter(|value| value.is_null());
                    nulls.for_each(|value| *value = Value::Object(Map::new()));
                }
                _ => members.retain(|key, value| {
                    !value.is_null() || place.of(key, value) == ValueRole::Data
                }),
            }
            for (key, value) in members {
                match (key.as_str(), place.of(key, value)) {
                    (_, ValueRole::Data) => {}
                    ("security", _) if place == ValueRole::Object => requirements(value),
                    ("type", _) if place == ValueRole::Object => kinds(value),
                    (_, inner) => tidy(value, inner),
                }
            }
        }
        Value::Array(items) => {
            items.retain(|item| !item.is_null());
            items.iter_mut().for_each(|item| tidy(item, place));
        }
        _ => {}
    }
}

/// Writes missing scopes (`- scheme:`) as an empty list. Otherwise the scheme would be removed as
/// `null`, and the empty requirement would allow calls without credentials.
fn requirements(value: &mut Value) {
    for item in value.as_array_mut().into_iter().flatten() {
        for scopes in item.as_object_mut().into_iter().flat_map(Map::values_mut) {
            if scopes.is_null() {
                *scopes = Value::Array(Vec::new());
            }
        }
    }
}

/// YAML reads the `null` of `type: [string, null]` as a null value, not as a type's name.
fn kinds(value: &mut Value) {
    for kind in value.as_array_mut().into_iter().flatten() {
        if kind.is_null() {
            *kind = "null".into();
        }
    }
}
