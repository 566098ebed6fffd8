use serde_json::{Value, json};

use super::{Fitted, fitted};

fn fitting(schema: &Value, answer: Value) -> Option<Value> {
    let validator = jsonschema::validator_for(schema).unwrap();
    match fitted(answer.clone(), schema, answer.to_string().len()) {
        Fitted::Whole => {
            assert!(validator.is_valid(&answer), "{answer}");
            None
        }
        Fitted::Partly(part) => {
            assert!(validator.is_valid(&part), "{part}");
            assert!(!validator.is_valid(&answer), "{answer}");
            Some(part)
        }
    }
}

fn pets() -> Value {
    json!({
        "type": "object",
        "properties": {
            "pets": { "type": ["array", "null"], "items": { "$ref": "#/$defs/Pet" } },
            "owner": { "anyOf": [{ "type": ["string", "null"] }, { "$ref": "#/$defs/Owner" }] },
            "tags": { "type": ["object", "null"], "additionalProperties": { "type": ["string", "null"] } },
        },
        "$defs": {
            "Pet": { "type": ["object", "null"], "properties": {
                "id": { "type": ["integer", "null"] }, "friend": { "$ref": "#/$defs/Pet" } } },
            "Owner": { "allOf": [
                { "type": ["object", "null"], "properties": { "name": { "type": ["string", "null"] } } },
                { "type": ["object", "null"], "properties": { "age": { "type": ["number", "null"] } } },
            ] },
        },
    })
}

#[test]
fn an_answer_that_fits_stays_as_it_is() {
    for answer in [
        json!({}),
        json!({ "pets": null, "more": [1], "owner": "me" }),
        json!({ "pets": [{ "id": 1.0, "friend": { "id": 2, "x": {} } }, null], "tags": { "a": "b" } }),
        json!({ "owner": { "name": "a", "age": 1.5 } }),
    ] {
        assert_eq!(fitting(&pets(), answer), None);
    }
}

#[test]
fn only_what_breaks_the_schema_is_left_out() {
    for (answer, left) in [
        (
            json!({ "pets": [{ "id": "1", "friend": { "id": 1.5, "x": 1 } }, "two", { "id": 3 }] }),
            json!({ "pets": [{ "friend": { "x": 1 } }, null, { "id": 3 }] }),
        ),
        (
            json!({ "pets": 5, "tags": { "a": 1, "b": "c" } }),
            json!({ "tags": { "b": "c" } }),
        ),
        (
            json!({ "owner": { "name": 5, "age": "old", "x": 1 } }),
            json!({ "owner": { "x": 1 } }),
        ),
        (json!({ "owner": 5 }), json!({})),
    ] {
        assert_eq!(fitting(&pets(), answer), Some(left));
    }
}

#[test]
fn an_answer_that_is_no_object_has_a_member_of_its_own() {
    assert_eq!(fitting(&pets(), json!([1])), Some(json!({ "result": [1] })));
    assert_eq!(fitting(&pets(), json!("a")), Some(json!({ "result": "a" })));
    let taken =
        json!({ "type": "object", "properties": { "result": { "type": ["string", "null"] } } });
    assert_eq!(fitting(&taken, json!(5)), Some(json!({})));
}

#[test]
fn a_schema_with_many_ways_ends() {
    // Each level doubles the alternatives, and no alternative fits.
    let mut definitions = json!({ "D0": { "type": ["integer", "null"] } });
    for level in 1..30 {
        let below = json!({ "$ref": format!("#/$defs/D{}", level - 1) });
        definitions[format!("D{level}")] = json!({ "anyOf": [below, below] });
    }
    let schema = json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/D29" } }, "$defs": definitions });
    // A validator would try all of these alternatives.
    let left = fitted(json!({ "a": "x", "b": 1 }), &schema, 10);
    assert_eq!(left, Fitted::Partly(json!({ "b": 1 })));
    let own = json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/A" } }, "$defs": { "A": { "$ref": "#/$defs/A" } } });
    let left = fitted(json!({ "a": 1, "b": 2 }), &own, 10);
    assert_eq!(left, Fitted::Partly(json!({ "b": 2 })));
}
