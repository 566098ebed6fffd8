//! Checks arguments against a schema. Skips long strings whose content and length the schema ignores.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use memchr::{memchr, memchr2};
use serde_json::Value;
use shoal_protocol::RawJson;

use super::budget::{Budget, charge, within};
use super::lenient::{are_forgivable, corrected, corrections, names_unlisted};
use super::metered::MeteredNode;
use super::schema::{self, Compiled, SchemaError, bounded};
use crate::config::ArgumentPolicy;

const LONG: usize = 4 << 10;

/// Keywords that depend on the content or length of strings. A property may have such a name, which then only causes
/// a needless check.
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

/// Maximum problems in an error. The model pays tokens for each.
const MAX_PROBLEMS: usize = 5;
const MAX_PROBLEM_CHARS: usize = 300;
/// Maximum steps to describe problems, which can take far longer than to find one.
const PROBLEM_STEPS: u64 = 200_000;

/// Member names compared in about one step.
const COMPARED_A_STEP: usize = 16;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ArgumentVerdict {
    /// The arguments match the schema, or the policy forgives their errors.
    Valid,
    Invalid(String),
    TooComplex,
}

#[derive(Debug)]
pub(crate) struct Checker {
    compiled: Compiled,
    any_string: bool,
}

impl Checker {
    pub(crate) fn of(schema: &Value) -> Result<Self, SchemaError> {
        Ok(Self {
            compiled: schema::compile(schema)?,
            any_string: takes_any_string(schema),
        })
    }

    /// Reads a lone surrogate as an unknown character. Fails for invalid JSON.
    pub(crate) fn check(
        &self,
        arguments: &RawJson,
        policy: ArgumentPolicy,
        budget: Budget,
    ) -> Result<ArgumentVerdict, serde_json::Error> {
        self.check_text(arguments, policy, budget).or_else(|error| {
            match arguments.without_halves() {
                Some(text) => self.check_text(&text, policy, budget),
                None => Err(error),
            }
        })
    }

    fn check_text(
        &self,
        arguments: &RawJson,
        policy: ArgumentPolicy,
        budget: Budget,
    ) -> Result<ArgumentVerdict, serde_json::Error> {
        if self.any_string
            && let Some(outline) = outline(arguments.as_bytes())
            && self.is_valid(&serde_json::from_slice(&outline)?, budget) == Some(true)
        {
            return Ok(ArgumentVerdict::Valid);
        }
        let arguments = arguments.read()?;
        Ok(match self.is_valid(&arguments, budget) {
            Some(true) => ArgumentVerdict::Valid,
            Some(false) if policy.forgives() => match self.are_forgivable(&arguments, budget) {
                Some(true) => ArgumentVerdict::Valid,
                None if budget.steps < PROBLEM_STEPS => ArgumentVerdict::TooComplex,
                _ => self.refusal(&arguments, budget),
            },
            Some(false) => self.refusal(&arguments, budget),
            None => ArgumentVerdict::TooComplex,
        })
    }

    fn refusal(&self, arguments: &Value, budget: Budget) -> ArgumentVerdict {
        (self.problems(arguments, budget))
            .map_or(ArgumentVerdict::TooComplex, ArgumentVerdict::Invalid)
    }

    /// `None` if the arguments are valid or stay invalid.
    pub(crate) fn coerced(&self, arguments: &RawJson, budget: Budget) -> Option<RawJson> {
        let read = arguments.read().ok()?;
        if self.is_valid(&read, budget) != Some(false) {
            return None;
        }
        let found = self.errors(&read, budget, |errors| {
            let found: Vec<_> = errors.flat_map(|error| corrections(&error)).collect();
            let members = read.as_object().map_or(0, serde_json::Map::len);
            charge((found.len() * members / COMPARED_A_STEP) as u64);
            found
        })?;
        if found.is_empty() {
            return None;
        }
        let corrected = corrected(arguments, &found)?;
        let read = corrected.read().ok()?;
        let others =
            |mut errors: Errors<'_, '_>| Iterator::all(&mut errors, |error| names_unlisted(&error));
        let is_valid = self.is_valid(&read, budget) == Some(true)
            || self.errors(&read, budget, others) == Some(true);
        is_valid.then_some(corrected)
    }

    fn are_forgivable(&self, arguments: &Value, budget: Budget) -> Option<bool> {
        let all = |errors: Errors<'_, '_>| are_forgivable(&errors.collect::<Vec<_>>());
        self.errors(arguments, budget, all)
    }

    fn is_valid(&self, arguments: &Value, budget: Budget) -> Option<bool> {
        within(budget, self.compiled.searches, || {
            self.compiled.validator.is_valid(MeteredNode(arguments))
        })
    }

    /// `None` if the validator may have given up a pattern search, because then there may be no problem.
    fn problems(&self, arguments: &Value, budget: Budget) -> Option<String> {
        let told = self.errors(arguments, budget, tell);
        told.unwrap_or_else(|| {
            let many = "arguments: they do not match the tool's inputSchema, in too many ways to list them";
            (!self.compiled.backtracks).then(|| many.to_owned())
        })
    }

    /// `None` if the budget is exhausted.
    fn errors<T>(
        &self,
        arguments: &Value,
        budget: Budget,
        read: impl FnOnce(Errors<'_, '_>) -> T,
    ) -> Option<T> {
        // `is_valid` may have given up a backtracking search. Only a full validation proves an error then.
        let steps = match self.compiled.backtracks {
            true => budget.steps,
            false => budget.steps.min(PROBLEM_STEPS),
        };
        within(Budget { steps, ..budget }, self.compiled.searches, || {
            let mut errors = self.compiled.validator.iter_errors(MeteredNode(arguments));
            read(&mut errors)
        })
    }
}

type Errors<'a, 'e> = &'a mut dyn Iterator<Item = ValidationError<'e>>;

/// `None` if an error only says that a pattern search was given up.
fn tell(errors: Errors<'_, '_>) -> Option<String> {
    let mut problems = Vec::new();
    for error in (&mut *errors).take(MAX_PROBLEMS) {
        if let ValidationErrorKind::BacktrackLimitExceeded { .. } = error.kind() {
            return None;
        }
        let path = error.instance_path().as_str();
        let place = if path.is_empty() { "arguments" } else { path };
        problems.push(format!(
            "{place}: {}",
            bounded(&error.to_string(), MAX_PROBLEM_CHARS)
        ));
    }
    if errors.next().is_some() {
        problems.push("and more".to_owned());
    }
    Some(problems.join("; "))
}

/// A reference to another document counts as no.
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

/// `None` without long strings. Keeps member names, and strings with escapes, which a parser may
/// refuse.
fn outline(text: &[u8]) -> Option<Vec<u8>> {
    if text.len() < LONG {
        return None;
    }
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

fn is_name(rest: &[u8]) -> bool {
    let next = rest.iter().find(|byte| !byte.is_ascii_whitespace());
    next == Some(&b':')
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};
    use shoal_protocol::RawJson;

    use super::{
        ArgumentPolicy, ArgumentVerdict, Budget, Checker, LONG, outline, takes_any_string,
    };

    const STRICT: ArgumentPolicy = ArgumentPolicy::Strict;

    const BUDGET: Budget = Budget {
        steps: 1_000_000,
        stack: 1 << 20,
        time: Duration::from_secs(60),
    };

    fn problems(checker: &Checker, arguments: &Value) -> Option<String> {
        let arguments = RawJson::of(arguments);
        match checker.check(&arguments, STRICT, BUDGET).unwrap() {
            ArgumentVerdict::Valid => None,
            ArgumentVerdict::Invalid(problems) => Some(problems),
            ArgumentVerdict::TooComplex => panic!("too complex"),
        }
    }

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
            let broken = " ".repeat(LONG) + broken;
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
            let found = problems(&checker, &json!({"a": value}));
            assert_eq!(found.is_none(), good, "{schema}: {found:?}");
            if let Some(found) = found {
                assert!(found.contains("xxx"), "{found}");
            }
            let missing = problems(&checker, &json!({"b": long()}));
            assert!(missing.unwrap().contains("\"a\" is a required property"));
        }
    }

    fn judged(schema: &Value, value: &Value) -> (ArgumentVerdict, ArgumentVerdict) {
        let checker = Checker::of(&json!({"properties": {"a": schema}})).unwrap();
        let arguments = RawJson::of(&json!({"a": value}));
        let quick = Budget {
            steps: 20_000,
            ..BUDGET
        };
        let check = |budget| checker.check(&arguments, STRICT, budget).unwrap();
        (check(quick), check(BUDGET))
    }

    #[test]
    fn a_search_that_might_take_long_is_not_begun() {
        let password = "(?=.*[A-Z])(?=.*[0-9]).{8,}";
        for pattern in [
            "(?=a*b)a",
            password,
            "(?<=ba*)c",
            "(?:(?=(?:(?=.*b)a)*)a)*c",
            "(a*)*\\1b",
        ] {
            let text = "a".repeat(20_000) + "c";
            for (schema, value) in [
                (json!({"pattern": pattern}), json!(text)),
                (
                    json!({"propertyNames": {"pattern": pattern}}),
                    json!({&text: 1}),
                ),
                (
                    json!({"patternProperties": {pattern: {"type": "null"}}}),
                    json!({&text: 1}),
                ),
                (
                    json!({"not": {"anyOf": [{"pattern": pattern}]}}),
                    json!(text),
                ),
            ] {
                let found = judged(&schema, &value);
                assert_eq!(
                    found,
                    (ArgumentVerdict::TooComplex, ArgumentVerdict::TooComplex),
                    "{schema}"
                );
            }
        }
        let schema = json!({"pattern": password});
        for (value, good) in [("Passw0rd", true), ("passw0rd", false)] {
            let (quick, slow) = judged(&schema, &json!(value));
            assert_eq!(
                (
                    quick == ArgumentVerdict::Valid,
                    slow == ArgumentVerdict::Valid
                ),
                (good, good)
            );
        }
    }

    #[test]
    fn many_searches_cost_as_much_as_a_long_one() {
        let schema = json!({"items": {"pattern": "(?=a*b)a"}});
        let texts = vec!["a".repeat(40); 1000];
        let (quick, _) = judged(&schema, &json!(texts));
        assert_eq!(quick, ArgumentVerdict::TooComplex);
        let schema = json!({"pattern": "[ac]*a[ac]{400}b"});
        let (quick, _) = judged(&schema, &json!("a".repeat(20_000)));
        assert_eq!(quick, ArgumentVerdict::TooComplex);
        let all: Vec<Value> = (0..200)
            .map(|at| json!({"pattern": format!("(?=a*{at})a")}))
            .collect();
        let (quick, _) = judged(&json!({"not": {"anyOf": all}}), &json!("a".repeat(200)));
        assert_eq!(quick, ArgumentVerdict::TooComplex);
    }

    #[test]
    fn a_search_that_is_given_up_is_no_reason_to_refuse_arguments_as_wrong() {
        let schema = json!({"pattern": "^(?:(a|aa)\\1?)+$"});
        let (_, slow) = judged(&schema, &json!("a".repeat(60) + "!"));
        assert_eq!(slow, ArgumentVerdict::TooComplex);
        let from_everywhere = json!({"pattern": "(?=a*b)a"});
        let (_, slow) = judged(&from_everywhere, &json!("a".repeat(3_000) + "c"));
        assert_eq!(slow, ArgumentVerdict::TooComplex);
        let (_, slow) = judged(&schema, &json!("b"));
        assert!(matches!(slow, ArgumentVerdict::Invalid(text) if text.contains("does not match")));
    }

    #[test]
    fn what_is_asked_only_once_may_be_asked_of_a_long_text() {
        for (pattern, good) in [
            ("^(?!\\s*$).+", true),
            ("^(?=.*a)(?!.*--)[a-z-]+$", true),
            ("^(?!.*aa)[a-z-]+$", false),
            ("^[a-z]+$", true),
        ] {
            let (_, slow) = judged(&json!({"pattern": pattern}), &json!("a".repeat(500_000)));
            assert_eq!(slow == ArgumentVerdict::Valid, good, "{pattern}: {slow:?}");
            assert_ne!(slow, ArgumentVerdict::TooComplex, "{pattern}");
        }
    }

    #[test]
    fn problems_name_the_path_and_what_was_expected() {
        let schema = json!({"type":"object","required":["b"],
            "properties":{"a":{"type":"array","items":{"type":"integer"}}}});
        let checker = Checker::of(&schema).unwrap();
        let text = problems(&checker, &json!({"a":[1,"x"]})).unwrap();
        assert!(text.contains("/a/1") && text.contains("integer"), "{text}");
        assert!(text.contains("\"b\" is a required property"), "{text}");
        assert_eq!(problems(&checker, &json!({"a":[1],"b":0})), None);
    }

    #[test]
    fn problems_are_few_and_short() {
        let checker =
            Checker::of(&json!({"type":"object","additionalProperties":{"type":"null"}})).unwrap();
        let many: Value = (0..50)
            .map(|n| (format!("k{n}"), json!("x".repeat(10_000))))
            .collect::<serde_json::Map<_, _>>()
            .into();
        let text = problems(&checker, &many).unwrap();
        assert!(text.len() < 2_500 && text.ends_with("and more"));
    }

    #[test]
    fn the_declared_draft_is_honoured() {
        let draft7 = json!({"$schema":"http://json-schema.org/draft-07/schema#",
            "properties":{"a":{"items":[{"type":"string"}]}}});
        let checker = Checker::of(&draft7).unwrap();
        assert!(problems(&checker, &json!({"a":[1]})).is_some());
    }
}
