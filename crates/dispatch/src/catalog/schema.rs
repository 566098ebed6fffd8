//! Argument validation against a tool's `inputSchema`, with bounded schemas and no network.

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;
use shoal_protocol::{RawJson, nesting_within};

const MAX_SCHEMA_BYTES: usize = 256 * 1024;
const MAX_SCHEMA_NESTING: usize = 64;
const MAX_SUBSCHEMAS: usize = 2000;
/// A pattern that backtracks more than this on one string is attacking, not matching.
const MAX_REGEX_STEPS: usize = 100_000;
const MAX_REGEX_BYTES: usize = 1 << 20;
/// More problems than a model can mend at once only cost tokens.
const MAX_PROBLEMS: usize = 5;
const MAX_PROBLEM_CHARS: usize = 300;

/// Why a schema is not used.
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

/// Reads a schema within the limits.
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

/// Compiles a schema: 2020-12 unless `$schema` says otherwise; a `$ref` that leaves the document is
/// an error.
pub(crate) fn compile(schema: &Value) -> Result<Validator, SchemaError> {
    jsonschema::options()
        .offline()
        .with_pattern_options(
            PatternOptions::fancy_regex()
                .backtrack_limit(MAX_REGEX_STEPS)
                .size_limit(MAX_REGEX_BYTES),
        )
        .build(schema)
        .map_err(|error| SchemaError::Invalid(bounded(&error.to_string())))
}

/// What is wrong with the arguments, for a model to mend; `None` when nothing is.
pub(crate) fn problems(validator: &Validator, arguments: &Value) -> Option<String> {
    if validator.is_valid(arguments) {
        return None;
    }
    let mut errors = validator.iter_errors(arguments);
    let mut problems: Vec<String> = errors
        .by_ref()
        .take(MAX_PROBLEMS)
        .map(|error| {
            let path = error.instance_path().as_str();
            let place = if path.is_empty() { "arguments" } else { path };
            format!("{place}: {}", bounded(&error.to_string()))
        })
        .collect();
    if errors.next().is_some() {
        problems.push("and more".to_owned());
    }
    Some(problems.join("; "))
}

/// Every subschema is an object, so the objects bound the subschemas.
fn objects_in(value: &Value) -> usize {
    match value {
        Value::Object(members) => 1 + members.values().map(objects_in).sum::<usize>(),
        Value::Array(items) => items.iter().map(objects_in).sum(),
        _ => 0,
    }
}

fn bounded(text: &str) -> String {
    match text.char_indices().nth(MAX_PROBLEM_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use shoal_protocol::RawJson;

    use super::{SchemaError, compile, problems, read};

    #[test]
    fn problems_name_the_path_and_what_was_expected() {
        let schema = json!({"type":"object","required":["b"],
            "properties":{"a":{"type":"array","items":{"type":"integer"}}}});
        let validator = compile(&schema).unwrap();
        let text = problems(&validator, &json!({"a":[1,"x"]})).unwrap();
        assert!(text.contains("/a/1") && text.contains("integer"), "{text}");
        assert!(text.contains("\"b\" is a required property"), "{text}");
        assert_eq!(problems(&validator, &json!({"a":[1],"b":0})), None);
    }

    #[test]
    fn problems_are_few_and_short() {
        let validator =
            compile(&json!({"type":"object","additionalProperties":{"type":"null"}})).unwrap();
        let many: Value = (0..50)
            .map(|n| (format!("k{n}"), json!("x".repeat(10_000))))
            .collect::<serde_json::Map<_, _>>()
            .into();
        let text = problems(&validator, &many).unwrap();
        assert!(text.len() < 2_500 && text.ends_with("and more"));
    }

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
    fn the_declared_draft_is_honoured() {
        let draft7 = json!({"$schema":"http://json-schema.org/draft-07/schema#",
            "properties":{"a":{"items":[{"type":"string"}]}}});
        let validator = compile(&draft7).unwrap();
        assert!(problems(&validator, &json!({"a":[1]})).is_some());
        assert!(compile(&json!({"type":"nonsense"})).is_err());
    }
}
