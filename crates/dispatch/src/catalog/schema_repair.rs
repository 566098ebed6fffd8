//! Repairs schemas of objects that clients' parsers would refuse.

use serde_json::{Map, Value, json};
use shoal_protocol::{
    RawJson, nesting_within, rewrite_exclusive_limits, rewrite_item_list, rewrite_required_flags,
};

/// Limits of the schemas that Shoal repairs below their root.
const MAX_NESTING: usize = 64;
const MAX_BYTES: usize = 256 * 1024;
const MAX_TOLD: usize = 10;

#[derive(Debug, PartialEq)]
pub(super) struct Repaired {
    pub(super) schema: RawJson,
    pub(super) changes: Vec<String>,
}

#[derive(Debug, PartialEq)]
pub(super) enum Schema {
    Fits,
    Repaired(Repaired),
    Unfit,
}

impl Schema {
    pub(super) fn of(raw: &RawJson) -> Self {
        let Ok(mut schema) = raw.read::<Map<String, Value>>() else {
            return Self::Unfit;
        };
        let mut changes = Vec::new();
        if !repair_root(&mut schema, &mut changes) {
            return Self::Unfit;
        }
        if raw.len() <= MAX_BYTES && nesting_within(raw.as_bytes(), MAX_NESTING) {
            let dialect = Dialect::of(&schema);
            if dialect == Dialect::Old {
                schema.remove("$schema");
                changes.push("$schema names a draft before draft-06".to_owned());
            }
            modernize(&mut schema, dialect, "", &mut changes);
        }
        if changes.is_empty() {
            return Self::Fits;
        }
        changes.truncate(MAX_TOLD);
        Self::Repaired(Repaired {
            schema: RawJson::of(&schema),
            changes,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    /// Draft-03 or draft-04, which clients' validators do not know.
    Old,
    /// No dialect. Clients assume 2020-12.
    Unsaid,
    Known,
}

impl Dialect {
    fn of(schema: &Map<String, Value>) -> Self {
        match schema.get("$schema").and_then(Value::as_str) {
            Some(name) if name.contains("draft-03") || name.contains("draft-04") => Self::Old,
            Some(_) => Self::Known,
            None => Self::Unsaid,
        }
    }
}

/// `false` if the schema does not describe an object.
fn repair_root(root: &mut Map<String, Value>, changes: &mut Vec<String>) -> bool {
    let describes_object = match root.get("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        // Some servers write absent members as null.
        other => other.is_none_or(Value::is_null),
    };
    if !describes_object && !root.get("properties").is_some_and(Value::is_object) {
        return false;
    }
    resolve_root(root, changes);
    if root.get("type").and_then(Value::as_str) != Some("object") {
        root.insert("type".to_owned(), json!("object"));
        changes.push("type is not \"object\"".to_owned());
    }
    match root.get_mut("properties") {
        None => {}
        Some(Value::Object(properties)) => {
            for (name, schema) in properties
                .iter_mut()
                .filter(|(_, schema)| !schema.is_object())
            {
                *schema = match schema {
                    Value::Bool(false) => json!({"not": {}}),
                    _ => json!({}),
                };
                changes.push(format!("properties.{name} is not an object"));
            }
        }
        Some(_) => {
            root.shift_remove("properties");
            changes.push("properties is not an object".to_owned());
        }
    }
    match root.get_mut("required") {
        None => {}
        Some(Value::Array(names)) => {
            let before = names.len();
            names.retain(Value::is_string);
            if names.len() < before {
                changes.push("required has other members than names".to_owned());
            }
        }
        Some(_) => {
            root.shift_remove("required");
            changes.push("required is not a list".to_owned());
        }
    }
    true
}

/// Copies a root `$ref`'s target, for clients that look for parameters only in the root.
fn resolve_root(root: &mut Map<String, Value>, changes: &mut Vec<String>) {
    if root.contains_key("properties") {
        return;
    }
    let reference = root.get("$ref").and_then(Value::as_str);
    let Some(pointer) = reference.and_then(|reference| reference.strip_prefix('#')) else {
        return;
    };
    let whole = Value::Object(root.clone());
    let Some(Value::Object(target)) = whole.pointer(pointer) else {
        return;
    };
    // A copied `$ref` or `$id` would change its meaning, so clients must resolve such a target themselves.
    if target.contains_key("$ref") || target.contains_key("$id") || pointer.is_empty() {
        return;
    }
    root.shift_remove("$ref");
    for (name, value) in target {
        root.entry(name.clone()).or_insert_with(|| value.clone());
    }
    changes.push("$ref stands at the root".to_owned());
}

fn modernize(
    schema: &mut Map<String, Value>,
    dialect: Dialect,
    path: &str,
    changes: &mut Vec<String>,
) {
    if dialect != Dialect::Known {
        for keyword in rewrite_exclusive_limits(schema) {
            changes.push(format!("{path}{keyword} is a boolean"));
        }
        if rewrite_item_list(schema) {
            changes.push(format!("{path}items is a list"));
        }
        for name in rewrite_required_flags(schema) {
            changes.push(format!("{path}properties.{name}.required is a boolean"));
        }
    }
    for (keyword, value) in schema.iter_mut() {
        match value {
            Value::Object(named) if NAMED.contains(&keyword.as_str()) => {
                for (name, schema) in named.iter_mut() {
                    if let Value::Object(schema) = schema {
                        modernize(
                            schema,
                            dialect,
                            &format!("{path}{keyword}.{name}."),
                            changes,
                        );
                    }
                }
            }
            Value::Object(schema) if SINGLE.contains(&keyword.as_str()) => {
                modernize(schema, dialect, &format!("{path}{keyword}."), changes);
            }
            Value::Array(schemas) if SEVERAL.contains(&keyword.as_str()) => {
                for (at, schema) in schemas.iter_mut().enumerate() {
                    if let Value::Object(schema) = schema {
                        modernize(schema, dialect, &format!("{path}{keyword}.{at}."), changes);
                    }
                }
            }
            _ => {}
        }
    }
}

const NAMED: &[&str] = &[
    "$defs",
    "definitions",
    "dependentSchemas",
    "patternProperties",
    "properties",
];
const SINGLE: &[&str] = &[
    "additionalItems",
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
const SEVERAL: &[&str] = &["allOf", "anyOf", "items", "oneOf", "prefixItems"];

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use shoal_protocol::RawJson;

    use super::{Repaired, Schema};

    fn repaired(schema: &Value) -> Value {
        match Schema::of(&RawJson::of(schema)) {
            Schema::Repaired(Repaired { schema, changes }) => {
                assert!(!changes.is_empty());
                let schema: Value = schema.read().unwrap();
                jsonschema::validator_for(&schema).unwrap();
                assert_eq!(Schema::of(&RawJson::of(&schema)), Schema::Fits, "{schema}");
                schema
            }
            other => panic!("{schema}: {other:?}"),
        }
    }

    #[test]
    fn what_clients_take_stays_as_it_is() {
        for schema in [
            r#"{"type":"object"}"#,
            r#"{"type":"object","properties":{"a":{"properties":{"b":true}},"required":{"type":"boolean"}},"required":["a"]}"#,
            r#"{"type":"object","anyOf":[{"required":["a"]}],"x":1.50}"#,
            r#"{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"items":[{}]}}}"#,
            r#"{"type":"object","properties":{"n":{"default":{"exclusiveMinimum":true}}}}"#,
        ] {
            let raw = RawJson::from_static(schema);
            assert_eq!(Schema::of(&raw), Schema::Fits, "{schema}");
        }
    }

    #[test]
    fn only_the_part_that_clients_refuse_is_changed() {
        let q = json!({"q": {"type": "string"}});
        for (odd, mended) in [
            (json!({}), json!({"type": "object"})),
            (
                json!({"type": null, "properties": q}),
                json!({"type": "object", "properties": q}),
            ),
            (
                json!({"properties": q, "required": ["q"]}),
                json!({"properties": q, "required": ["q"], "type": "object"}),
            ),
            (
                json!({"type": ["object", "null"], "properties": q}),
                json!({"type": "object", "properties": q}),
            ),
            (
                json!({"type": "string", "properties": q}),
                json!({"type": "object", "properties": q}),
            ),
            (
                json!({"type": "object", "properties": q, "required": null}),
                json!({"type": "object", "properties": q}),
            ),
            (
                json!({"type": "object", "properties": q, "required": ["q", 5]}),
                json!({"type": "object", "properties": q, "required": ["q"]}),
            ),
            (
                json!({"type": "object", "properties": null, "x": 1}),
                json!({"type": "object", "x": 1}),
            ),
            (
                json!({"type": "object", "properties": {"any": true, "never": false, "q": {"type": "string"}}, "required": ["any"]}),
                json!({"type": "object", "properties": {"any": {}, "never": {"not": {}}, "q": {"type": "string"}}, "required": ["any"]}),
            ),
            (
                json!({"anyOf": [{"type": "object", "properties": q}, {"type": "object"}]}),
                json!({"anyOf": [{"type": "object", "properties": q}, {"type": "object"}], "type": "object"}),
            ),
            (
                json!({"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "properties": q, "required": ["q"]}}}),
                json!({"$defs": {"A": {"type": "object", "properties": q, "required": ["q"]}}, "type": "object", "properties": q, "required": ["q"]}),
            ),
        ] {
            assert_eq!(repaired(&odd), mended);
        }
    }

    #[test]
    fn keywords_of_old_drafts_become_those_that_clients_know() {
        let odd = json!({
            "$schema": "http://json-schema.org/draft-04/schema#",
            "type": "object",
            "required": ["o"],
            "properties": {
                "n": {"type": "number", "minimum": 0, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false},
                "m": {"type": "string", "required": true},
                "o": {"type": "array", "items": [{"type": "string"}], "additionalItems": false},
            },
        });
        let mended = json!({
            "type": "object",
            "required": ["o", "m"],
            "properties": {
                "n": {"type": "number", "exclusiveMinimum": 0, "maximum": 9},
                "m": {"type": "string"},
                "o": {"type": "array", "prefixItems": [{"type": "string"}], "items": false},
            },
        });
        assert_eq!(repaired(&odd), mended);
    }

    #[test]
    fn what_describes_no_object_is_not_repaired() {
        for schema in [
            "[]",
            "true",
            "null",
            r#"{"type":"array"}"#,
            r#"{"type":"nonsense"}"#,
        ] {
            assert_eq!(Schema::of(&RawJson::from_static(schema)), Schema::Unfit);
        }
    }
}
