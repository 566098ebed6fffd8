//! Tolerates common deviations: values as strings, and extra members.

use std::borrow::Cow;

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::Value;
use shoal_protocol::{RawJson, RawObject, is_legal_name, may_be_listed_as, nesting_within};

use super::budget::charge;

/// A string with deeper JSON stays a string.
const MAX_NESTING: usize = 32;
/// Bytes of a name rewritten in about one step.
const BYTES_A_STEP: usize = 8;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Correction {
    Read(String),
    LeaveOut(String),
}

pub(super) fn are_forgivable(errors: &[ValidationError<'_>]) -> bool {
    let is_of_other_kind = |error: &ValidationError<'_>| {
        if !error.instance().is_number() {
            return false;
        }
        let at = error.instance_path();
        charge(errors.len() as u64);
        let mut there = errors.iter().filter(|other| other.instance_path() == at);
        there.any(names_other_kind)
    };
    errors.iter().all(|error| match error.kind() {
        Kind::Type { .. } if is_of_other_kind(error) => true,
        _ => is_forgivable(error),
    })
}

fn is_forgivable(error: &ValidationError<'_>) -> bool {
    match error.kind() {
        Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } if names_unlisted(error) => true,
        Kind::Type { .. } | Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } => {
            error.instance().is_string()
        }
        Kind::AdditionalProperties { .. } | Kind::UnevaluatedProperties { .. } => true,
        _ => names_unlisted(error) || names_other_kind(error),
    }
}

/// Whether the error may come from a member whose name tools cannot list: the caller sends `$top`, which an OpenAPI
/// tool lists as `top`.
///
/// Callers and schemas choose the names, so each comparison is [charged](charge).
pub(super) fn names_unlisted(error: &ValidationError<'_>) -> bool {
    match error.kind() {
        Kind::Required { property } => {
            let (Some(given), Some(listed)) = (error.instance().as_object(), property.as_str())
            else {
                return false;
            };
            given.keys().any(|own| {
                charge(1 + (own.len() / BYTES_A_STEP) as u64);
                may_be_listed_as(own, listed)
            })
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            charge(unexpected.len() as u64);
            unexpected.iter().all(|name| !is_legal_name(name))
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            charge(context.len() as u64);
            context
                .iter()
                .any(|choice| !choice.is_empty() && choice.iter().all(names_unlisted))
        }
        _ => false,
    }
}

fn names_other_kind(error: &ValidationError<'_>) -> bool {
    let sent = error.instance();
    let is_other = |named: &Value| match named {
        Value::String(_) => sent.is_number(),
        Value::Number(_) | Value::Bool(_) | Value::Null => sent.is_string(),
        _ => false,
    };
    match error.kind() {
        Kind::Enum { options } => options.as_array().is_some_and(|all| {
            charge(all.len() as u64);
            all.iter().any(is_other)
        }),
        Kind::Constant { expected_value } => is_other(expected_value),
        _ => false,
    }
}

/// Only top-level arguments are corrected.
pub(super) fn corrections(error: &ValidationError<'_>) -> Vec<Correction> {
    let path = error.instance_path().as_str();
    match error.kind() {
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected }
            if path.is_empty() =>
        {
            let other = unexpected.iter().filter(|name| is_legal_name(name));
            other.cloned().map(Correction::LeaveOut).collect()
        }
        _ if names_unlisted(error) => Vec::new(),
        _ if is_forgivable(error) => member(path).map(Correction::Read).into_iter().collect(),
        _ => Vec::new(),
    }
}

pub(super) fn corrected(arguments: &RawJson, corrections: &[Correction]) -> Option<RawJson> {
    let mut corrected = RawObject::of(arguments)?;
    for correction in corrections {
        match correction {
            Correction::LeaveOut(name) => drop(corrected.remove(name)),
            Correction::Read(name) => {
                if let Some(content) = corrected.get(name).as_ref().and_then(content) {
                    corrected.set(name, content);
                }
            }
        }
    }
    Some(corrected.to_json())
}

/// Parses as strictly as Shoal parses a client's message.
fn content(text: &RawJson) -> Option<RawJson> {
    let text = text.string()?;
    if !nesting_within(text.as_bytes(), MAX_NESTING) {
        return None;
    }
    let json: Box<serde_json::value::RawValue> = serde_json::from_str(&text).ok()?;
    let json = RawJson::from_valid(json.get().to_owned().into());
    json.names_members_once().then_some(json)
}

fn member(path: &str) -> Option<String> {
    let step = path.strip_prefix('/')?;
    if step.contains('/') {
        return None;
    }
    let step: Cow<'_, str> = match step.contains('~') {
        true => step.replace("~1", "/").replace("~0", "~").into(),
        false => step.into(),
    };
    Some(step.into_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use shoal_protocol::RawJson;

    use super::super::budget::Budget;
    use super::super::checker::{ArgumentVerdict, Checker};
    use crate::config::ArgumentPolicy;
    use crate::slow_checks::AT_ONCE;

    const BUDGET: Budget = Budget {
        steps: 1_000_000,
        stack: 1 << 20,
        time: Duration::from_secs(60),
    };

    fn checker() -> Checker {
        let schema = json!({
            "type": "object", "additionalProperties": false, "required": ["count"],
            "properties": {
                "count": { "type": "integer", "maximum": 9_007_199_254_740_993_u64 },
                "a/b~c": { "type": "array", "items": { "type": "string" } },
                "maybe": { "anyOf": [{ "type": "array" }, { "type": "null" }] },
                "deep": { "type": "object", "properties": { "n": { "type": "number" } } },
                "text": { "type": "string", "maxLength": 3 },
                "level": { "type": "integer", "enum": [1, 2] },
                "size": { "type": "string", "enum": ["1", "2"] },
                "on": { "const": true },
                "one": { "anyOf": [{ "type": "object", "required": ["kind"] }, { "type": "array" }] },
            },
        });
        Checker::of(&schema).unwrap()
    }

    #[test]
    fn strings_and_members_of_the_client_are_forgiven_and_nothing_else() {
        let check = |policy, text: &'static str| {
            let verdict = checker().check(&RawJson::from_static(text), policy, BUDGET);
            verdict.unwrap() == ArgumentVerdict::Valid
        };
        for (text, forgiven) in [
            (r#"{"count":"1"}"#, true),
            (r#"{"count":"one"}"#, true),
            (r#"{"count":1,"sessionId":"x","action":7}"#, true),
            (r#"{"count":1,"maybe":"[1]","deep":{"n":"2"}}"#, true),
            (r#"{"count":1,"level":"2"}"#, true),
            (r#"{"count":1,"level":"3"}"#, true),
            (r#"{"count":1,"size":2}"#, true),
            (r#"{"count":1,"on":"true"}"#, true),
            (r#"{"count":1,"level":3}"#, false),
            (r#"{"count":1,"size":"3"}"#, false),
            (r#"{"count":1,"size":true}"#, false),
            (r#"{"count":true}"#, false),
            (r#"{"count":1.5}"#, false),
            (r#"{"sessionId":"x"}"#, false),
            (r#"{"$count":1,"c d":2,"one":{"@kind":1}}"#, true),
            (r#"{"$counted":1}"#, false),
            (r#"{"count":1,"one":{"@kind":1}}"#, true),
            (r#"{"count":1,"one":{"other":1}}"#, false),
            (r#"{"count":"1","text":"long"}"#, false),
            (r#"{"count":1,"text":5}"#, false),
        ] {
            assert_eq!(check(ArgumentPolicy::Pass, text), forgiven, "{text}");
            assert_eq!(check(ArgumentPolicy::Coerce, text), forgiven, "{text}");
            assert!(!check(ArgumentPolicy::Strict, text), "{text}");
        }
    }

    #[test]
    fn comparing_the_names_sent_with_the_missing_ones_is_paid_for() {
        let missing: Vec<String> = (0..100).map(|at| format!("m{at}")).collect();
        let checker = Checker::of(&json!({ "type": "object", "required": missing })).unwrap();
        let check = |others: usize| {
            let others = (0..others).map(|at| format!("$x{at}"));
            let sent = others.chain(missing.iter().map(|name| format!("${name}")));
            let sent: serde_json::Map<_, _> = sent.map(|name| (name, json!(1))).collect();
            let budget = Budget {
                steps: 50_000,
                ..BUDGET
            };
            let verdict = checker.check(&RawJson::of(&sent), ArgumentPolicy::Pass, budget);
            verdict.unwrap() == ArgumentVerdict::Valid
        };
        assert!(check(0));
        assert!(!check(2_000));
    }

    #[test]
    fn many_wrong_items_are_judged_as_a_few() {
        let schema = json!({
            "type": "object",
            "properties": { "list": { "type": "array", "items": { "type": "integer" } } },
        });
        let checker = Checker::of(&schema).unwrap();
        let check = |items: usize, steps: u64| {
            let sent = RawJson::of(&json!({ "list": vec!["1"; items] }));
            let budget = Budget { steps, ..BUDGET };
            let verdict = checker.check(&sent, ArgumentPolicy::Pass, budget);
            verdict.unwrap()
        };
        assert_eq!(check(150, AT_ONCE.steps), ArgumentVerdict::Valid);
        assert_eq!(check(500, BUDGET.steps), ArgumentVerdict::Valid);
        assert_eq!(check(500, AT_ONCE.steps), ArgumentVerdict::TooComplex);
    }

    #[test]
    fn leaving_members_out_is_paid_for() {
        let coerced = |extra: usize| {
            let extra = (0..extra).map(|at| (format!("x{at}"), json!(1)));
            let sent: serde_json::Map<_, _> = extra.chain([("count".into(), json!(1))]).collect();
            let budget = Budget {
                steps: 50_000,
                ..BUDGET
            };
            checker().coerced(&RawJson::of(&sent), budget)
        };
        assert_eq!(coerced(100).unwrap().as_str(), r#"{"count":1}"#);
        assert_eq!(coerced(2_000), None);
    }

    #[test]
    fn what_can_be_read_fits_afterwards_and_is_spelled_as_before() {
        let coerced = |text: &'static str| {
            let coerced = checker().coerced(&RawJson::from_static(text), BUDGET);
            coerced.map(|coerced| coerced.as_str().to_owned())
        };
        for (text, expected) in [
            (
                r#"{"count":"9007199254740993"}"#,
                r#"{"count":9007199254740993}"#,
            ),
            (r#"{"count": "1.0", "n8n":{}}"#, r#"{"count":1.0}"#),
            (
                r#"{"count":1,"a/b~c":"[\"x\"]"}"#,
                r#"{"count":1,"a/b~c":["x"]}"#,
            ),
            (
                r#"{"count":1,"maybe":"null"}"#,
                r#"{"count":1,"maybe":null}"#,
            ),
            (r#"{"count":1,"level":"2"}"#, r#"{"count":1,"level":2}"#),
            (r#"{"count":1,"on":"true"}"#, r#"{"count":1,"on":true}"#),
            (
                r#"{"$count":1,"level":"2","n8n":{}}"#,
                r#"{"$count":1,"level":2}"#,
            ),
        ] {
            assert_eq!(coerced(text).as_deref(), Some(expected), "{text}");
        }
        for text in [
            r#"{"count":1}"#,
            r#"{"$count":1}"#,
            r#"{"count":"one"}"#,
            r#"{"count":"true"}"#,
            r#"{"count":"1","text":"long"}"#,
            r#"{"count":1,"deep":"{\"n\":1,\"n\":2}"}"#,
            r#"{"count":1,"deep":{"n":"2"}}"#,
        ] {
            assert_eq!(coerced(text), None, "{text}");
        }
        let deep = format!(
            r#"{{"count":1,"maybe":"{}{}"}}"#,
            "[".repeat(40),
            "]".repeat(40)
        );
        let deep = RawJson::from_valid(deep.into());
        assert_eq!(checker().coerced(&deep, BUDGET), None);
    }
}
