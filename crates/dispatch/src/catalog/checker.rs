//! The check of a tool's arguments, which does not read long strings that the schema does not ask about.

use jsonschema::Validator;
use memchr::{memchr, memchr2};
use serde_json::Value;
use shoal_protocol::RawJson;

use super::schema::{self, SchemaError};

/// Bytes of a string that is worth leaving out.
const LONG: usize = 4 << 10;

/// Keywords to which it matters what a string says or how long it is. A property of such a name costs time, no more.
const ABOUT_CONTENT: &[&str] = &[
    "const",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "enum",
    "format",
    "maxLength",
    "minLength",
    "pattern",
    "uniqueItems",
];

/// Checks the arguments of one tool against its schema.
#[derive(Debug)]
pub(crate) struct Checker {
    validator: Validator,
    /// Whether every string is as good as any other to the schema.
    any_string: bool,
}

impl Checker {
    /// Compiles a schema.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub(crate) fn of(schema: &Value) -> Result<Self, SchemaError> {
        Ok(Self {
            validator: schema::compile(schema)?,
            any_string: takes_any_string(schema),
        })
    }

    /// What is wrong with the arguments, for a model to mend; `None` when nothing is.
    ///
    /// # Errors
    /// The parser's, where they cannot be read.
    pub(crate) fn problems(
        &self,
        arguments: &RawJson,
    ) -> Result<Option<String>, serde_json::Error> {
        if self.any_string
            && let Some(outline) = outline(arguments.as_bytes())
            && self.validator.is_valid(&serde_json::from_slice(&outline)?)
        {
            return Ok(None);
        }
        // What is wrong is told with the strings in it.
        Ok(schema::problems(&self.validator, &arguments.read()?))
    }
}

/// Whether the schema judges all strings alike. What is defined elsewhere is not looked at, and may not.
fn takes_any_string(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.iter().all(|(key, value)| {
            let elsewhere = || value.as_str().is_some_and(|to| !to.starts_with('#'));
            let refers = key.ends_with("Ref") || key == "$ref";
            let asks = ABOUT_CONTENT.contains(&key.as_str()) || refers && elsewhere();
            !asks && takes_any_string(value)
        }),
        Value::Array(items) => items.iter().all(takes_any_string),
        _ => true,
    }
}

/// A valid JSON text with empty strings in place of its long ones; `None` where it has none. Names of members stay, and so
/// do strings with escapes, which a parser may refuse.
fn outline(text: &[u8]) -> Option<Vec<u8>> {
    let mut outline = Vec::new();
    let (mut at, mut kept) = (0, 0);
    while let Some(open) = text.get(at..).and_then(|rest| memchr(b'"', rest)) {
        let start = at + open + 1;
        let (end, plain) = end_of_string(text, start)?;
        if plain && end - start >= LONG && !is_name(&text[end + 1..]) {
            outline.extend_from_slice(&text[kept..start]);
            kept = end;
        }
        at = end + 1;
    }
    if kept == 0 {
        return None;
    }
    outline.extend_from_slice(&text[kept..]);
    Some(outline)
}

/// Where the string that begins at `start` has its closing quote, and whether it is without escapes.
fn end_of_string(text: &[u8], start: usize) -> Option<(usize, bool)> {
    let (mut at, mut plain) = (start, true);
    loop {
        at += memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            return Some((at, plain));
        }
        plain = false;
        at += 2;
    }
}

/// Whether the string before `rest` is the name of a member.
fn is_name(rest: &[u8]) -> bool {
    let next = rest.iter().find(|byte| !byte.is_ascii_whitespace());
    next == Some(&b':')
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use shoal_protocol::RawJson;

    use super::{Checker, LONG, outline, takes_any_string};

    fn long() -> String {
        "x".repeat(LONG)
    }

    #[test]
    fn long_strings_are_left_out_and_nothing_else() {
        let (long, short) = (long(), "x".repeat(LONG - 1));
        let cut = |value: &Value| {
            let text = value.to_string();
            outline(text.as_bytes()).map(|cut| serde_json::from_slice::<Value>(&cut).unwrap())
        };
        assert_eq!(
            cut(&json!({"a": long, "b": [1, long, {"c": "\"\\"}], "d": short})),
            Some(json!({"a": "", "b": [1, "", {"c": "\"\\"}], "d": short}))
        );
        for whole in [
            json!({long.clone(): 1}),
            json!({"a": format!("\n{long}")}),
            json!({"a": short, "b": "\\"}),
            json!([]),
        ] {
            assert_eq!(cut(&whole), None, "{whole}");
        }
        let spaced = format!(r#"{{"{long}" : "{long}" , "b":"{long}"}}"#);
        let value: Value = serde_json::from_slice(&outline(spaced.as_bytes()).unwrap()).unwrap();
        assert_eq!(value, json!({long: "", "b": ""}));
        for broken in [r#"{"a":"#, r#"{"a":"b"#, r#"{"a":"b\"#, r#"{"a":"b\""#] {
            assert_eq!(outline(broken.as_bytes()), None);
        }
    }

    #[test]
    fn a_schema_that_asks_what_a_string_says_is_recognized() {
        assert!(takes_any_string(&json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/a"}, "n": {"minimum": 3}},
            "$defs": {"a": {"type": ["string", "null"], "description": "b"}},
            "required": ["a"],
        })));
        for keyword in super::ABOUT_CONTENT {
            let schema = json!({"properties": {"a": {"anyOf": [{"type": "null"}, {*keyword: 1}]}}});
            assert!(!takes_any_string(&schema), "{schema}");
        }
        for elsewhere in ["$ref", "$dynamicRef", "$recursiveRef"] {
            let schema =
                json!({"items": {elsewhere: "https://json-schema.org/draft/2020-12/schema"}});
            assert!(!takes_any_string(&schema), "{schema}");
        }
    }

    #[test]
    fn long_arguments_are_judged_as_short_ones() {
        for (schema, value, good) in [
            (json!({"type": "string"}), json!(long()), true),
            (json!({"type": "integer"}), json!(long()), false),
            (json!({"maxLength": 10}), json!(long()), false),
            (json!({"minLength": 10}), json!(long()), true),
            (json!({"enum": [long()]}), json!(long()), true),
            (json!({"pattern": "^x*$"}), json!(long()), true),
            (
                json!({"type": "array", "items": {"type": "null"}}),
                json!([long()]),
                false,
            ),
        ] {
            let schema = json!({"type": "object", "properties": {"a": schema}, "required": ["a"]});
            let checker = Checker::of(&schema).unwrap();
            let problems = checker
                .problems(&RawJson::of(&json!({"a": value})))
                .unwrap();
            assert_eq!(problems.is_none(), good, "{schema}: {problems:?}");
            if let Some(problems) = problems {
                assert!(problems.contains("xxx"), "{problems}");
            }
            let missing = checker
                .problems(&RawJson::of(&json!({"b": long()})))
                .unwrap();
            assert!(missing.unwrap().contains("\"a\" is a required property"));
        }
    }
}
