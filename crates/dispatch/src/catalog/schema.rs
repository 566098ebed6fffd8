use std::sync::Arc;

use jsonschema::{PatternOptions, Retrieve, ValidationError, ValidationOptions, Validator};
use serde_json::{Value, json};
use shoal_protocol::{RawJson, nesting_within};

use super::metered::Metered;
use super::search_cost::{MAX_BACKTRACKS, SearchCosts};

const MAX_SCHEMA_BYTES: usize = 256 * 1024;
const MAX_SCHEMA_NESTING: usize = 64;
const MAX_SUBSCHEMAS: usize = 2000;
const MAX_REGEX_BYTES: usize = 1 << 20;
const MAX_ERROR_CHARS: usize = 300;

/// The validator can branch at these keywords without an access to the value.
const IN_PLACE: &[&str] = &[
    "$dynamicRef",
    "$recursiveRef",
    "$ref",
    "allOf",
    "anyOf",
    "if",
    "not",
    "oneOf",
];
const NAMED: &[&str] = &[
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
    "properties",
];
/// Keywords whose values are not schemas.
const VALUES: &[&str] = &["const", "default", "enum", "examples"];

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SchemaError {
    #[error("the schema has {0} bytes, more than {MAX_SCHEMA_BYTES}")]
    TooLarge(usize),
    #[error("the schema nests deeper than {MAX_SCHEMA_NESTING} levels")]
    TooDeep,
    #[error("the schema has {0} subschemas, more than {MAX_SUBSCHEMAS}")]
    TooManySubschemas(usize),
    #[error("the schema is not JSON: {0}")]
    Unreadable(String),
    #[error("the schema does not compile: {0}")]
    Invalid(String),
}

#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) validator: Validator<Metered>,
    /// Whether a pattern needs backtracking, whose search the validator may give up.
    pub(super) backtracks: bool,
    pub(super) searches: SearchCosts,
}

pub(crate) fn read(schema: &RawJson) -> Result<Value, SchemaError> {
    if schema.len() > MAX_SCHEMA_BYTES {
        return Err(SchemaError::TooLarge(schema.len()));
    }
    if !nesting_within(schema.as_bytes(), MAX_SCHEMA_NESTING) {
        return Err(SchemaError::TooDeep);
    }
    let value: Value = schema
        .read()
        .map_err(|error| SchemaError::Unreadable(error.to_string()))?;
    let subschemas = objects_in(&value);
    if subschemas > MAX_SUBSCHEMAS {
        return Err(SchemaError::TooManySubschemas(subschemas));
    }
    Ok(value)
}

/// The default dialect is 2020-12. A `$ref` out of the document is an error, because compiling uses
/// no network.
pub(super) fn compile(schema: &Value) -> Result<Compiled, SchemaError> {
    let schema = looking(schema);
    if let Ok(validator) = linear(&schema) {
        return Ok(Compiled {
            validator,
            backtracks: false,
            searches: SearchCosts::of_schema(&schema, &|_| true),
        });
    }
    let patterns = PatternOptions::fancy_regex()
        .backtrack_limit(MAX_BACKTRACKS)
        .size_limit(MAX_REGEX_BYTES);
    let built = options().with_pattern_options(patterns).build(&schema);
    built
        .map(|validator| Compiled {
            validator,
            backtracks: true,
            searches: SearchCosts::of_schema(&schema, &is_linear),
        })
        .map_err(|error| SchemaError::Invalid(bounded(&error.to_string(), MAX_ERROR_CHARS)))
}

fn linear(schema: &Value) -> Result<Validator<Metered>, ValidationError<'_>> {
    let patterns = PatternOptions::regex().size_limit(MAX_REGEX_BYTES);
    options().with_pattern_options(patterns).build(schema)
}

fn is_linear(pattern: &str) -> bool {
    linear(&json!({"pattern": pattern})).is_ok()
}

fn options<'a>() -> ValidationOptions<'a, Arc<dyn Retrieve>, Metered> {
    ValidationOptions::default().offline()
}

/// Adds a keyword with which the validator accesses the value, and so [pays](super::budget), at each branch.
fn looking(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if refers(&schema) {
        look(&mut schema);
    }
    schema
}

fn look(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(look),
        Value::Object(members) => {
            for (keyword, value) in members.iter_mut() {
                match value {
                    Value::Object(named) if NAMED.contains(&keyword.as_str()) => {
                        named.values_mut().for_each(look);
                    }
                    _ if VALUES.contains(&keyword.as_str()) => {}
                    _ => look(value),
                }
            }
            if IN_PLACE
                .iter()
                .any(|keyword| members.contains_key(*keyword))
            {
                // Always true, and checked first.
                members.entry("minProperties").or_insert(Value::from(0));
            }
        }
        _ => {}
    }
}

fn refers(schema: &Value) -> bool {
    match schema {
        Value::Array(items) => items.iter().any(refers),
        Value::Object(members) => members
            .iter()
            .any(|(key, value)| key.ends_with("Ref") || key == "$ref" || refers(value)),
        _ => false,
    }
}

/// Counts objects and, in arrays, booleans, which are numerous only there.
fn objects_in(value: &Value) -> usize {
    match value {
        Value::Object(members) => 1 + members.values().map(objects_in).sum::<usize>(),
        Value::Array(items) => items.iter().map(in_array).sum(),
        _ => 0,
    }
}

fn in_array(item: &Value) -> usize {
    match item {
        Value::Bool(_) => 1,
        other => objects_in(other),
    }
}

pub(super) fn bounded(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shoal_protocol::RawJson;

    use super::{SchemaError, compile, looking, read};

    #[test]
    fn a_schema_beyond_the_limits_is_refused() {
        let deep = format!(
            "{}{}",
            r#"{"not":"#.repeat(70),
            "1".to_owned() + &"}".repeat(70)
        );
        assert!(matches!(
            read(&RawJson::from_valid(deep.into())),
            Err(SchemaError::TooDeep)
        ));
        let wide = json!({"anyOf": vec![json!({}); 3000]});
        assert!(matches!(
            read(&RawJson::of(&wide)),
            Err(SchemaError::TooManySubschemas(3001))
        ));
        let long = json!({"description": "x".repeat(300_000)});
        assert!(matches!(
            read(&RawJson::of(&long)),
            Err(SchemaError::TooLarge(_))
        ));
    }

    #[test]
    fn a_schema_elsewhere_is_never_fetched() {
        for target in ["http://127.0.0.1:9/x.json", "file:///etc/hostname"] {
            assert!(matches!(
                compile(&json!({"$ref": target})),
                Err(SchemaError::Invalid(_))
            ));
        }
    }

    #[test]
    fn branches_are_looked_at_and_nothing_else_changes() {
        let branches = json!({
            "properties": {"not": {"$ref": "#/$defs/a"}, "if": {"const": {"anyOf": []}}},
            "$defs": {"a": {"anyOf": [true, {"type": "string"}]}, "minProperties": {"not": {}}}
        });
        let looked = json!({
            "properties": {"not": {"$ref": "#/$defs/a", "minProperties": 0}, "if": {"const": {"anyOf": []}}},
            "$defs": {
                "a": {"anyOf": [true, {"type": "string"}], "minProperties": 0},
                "minProperties": {"not": {}, "minProperties": 0}
            }
        });
        assert_eq!(looking(&branches), looked);
        let alone = json!({"anyOf": [{"not": {}}], "items": {"oneOf": [true, false]}});
        assert_eq!(looking(&alone), alone);
    }

    #[test]
    fn only_patterns_that_need_it_backtrack() {
        for (pattern, backtracks) in [
            ("^(a+)+$", false),
            ("^\\d{4}-\\d{2}$", false),
            ("^(?!x).*$", true),
        ] {
            let compiled = compile(&json!({"pattern": pattern})).unwrap();
            assert_eq!(compiled.backtracks, backtracks, "{pattern}");
        }
        assert!(compile(&json!({"pattern": "("})).is_err());
        assert!(compile(&json!({"type":"nonsense"})).is_err());
    }
}
