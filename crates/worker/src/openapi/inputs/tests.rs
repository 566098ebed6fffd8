use serde_json::{Value, json};

use super::{Inputs, of};
use crate::openapi::document::{Document, Parameter, RequestBody};
use crate::openapi::schema::Patterns;

fn inputs(parameters: Value, body: Value) -> Inputs {
    let document = Document::parse(br#"{"openapi":"3.1.0"}"#).unwrap();
    let parameters: Vec<Parameter> = serde_json::from_value(parameters).unwrap();
    let body: Option<RequestBody> = serde_json::from_value(body).unwrap();
    of(
        &document,
        &parameters,
        body.as_ref(),
        &Patterns::default(),
        10_000,
    )
    .unwrap()
}

fn json_body(required: bool, schema: Value) -> Value {
    json!({ "required": required, "content": { "application/json": { "schema": schema } } })
}

#[test]
fn parameters_and_a_plain_body_stand_side_by_side() {
    let body = json!({ "type": "object", "required": ["name"], "properties": { "name": { "type": "string" } } });
    let inputs = inputs(
        json!([{ "name": "id", "in": "path", "description": "whose", "schema": { "type": "string" } }]),
        json_body(true, body),
    );
    assert_eq!(
        inputs.schema,
        json!({
            "type": "object",
            "properties": { "id": { "type": "string", "description": "whose" }, "name": { "type": "string" } },
            "required": ["id", "name"],
        })
    );
    assert_eq!(inputs.body.unwrap().argument, None);
}

#[test]
fn a_body_that_would_collide_or_is_no_plain_object_is_an_argument() {
    let id = json!([{ "name": "id", "in": "query", "schema": {} }]);
    let object = |properties: Value| json!({ "type": "object", "properties": properties });
    for (parameters, body) in [
        (id.clone(), json_body(true, object(json!({ "id": {} })))),
        (
            json!([]),
            json_body(true, json!({ "type": "array", "items": {} })),
        ),
        (
            json!([]),
            json_body(true, json!({ "oneOf": [object(json!({ "a": {} }))] })),
        ),
        (
            id,
            json_body(
                true,
                json!({ "type": "object", "properties": { "a": {} }, "additionalProperties": true }),
            ),
        ),
        (
            json!([]),
            json_body(
                false,
                json!({ "type": "object", "properties": { "a": {} }, "required": ["a"] }),
            ),
        ),
        (json!([]), json!({ "content": { "text/plain": {} } })),
    ] {
        let inputs = inputs(parameters, body);
        assert_eq!(inputs.body.unwrap().argument.as_deref(), Some("body"));
        assert_eq!(inputs.schema["additionalProperties"], false);
        assert!(inputs.schema["properties"]["body"].is_object());
    }
}

#[test]
fn parameters_of_one_name_are_told_apart() {
    let twice = json!([
        { "name": "body", "in": "path", "schema": {} },
        { "name": "body", "in": "query", "schema": {} },
    ]);
    let inputs = inputs(twice, json_body(true, json!({ "type": "string" })));
    let names: Vec<&String> = inputs.schema["properties"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(names, ["body", "body_in_query", "body_in_request"]);
    assert_eq!(
        inputs.body.unwrap().argument.as_deref(),
        Some("body_in_request")
    );
}
