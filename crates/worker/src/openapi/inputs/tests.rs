use serde_json::{Value, json};

use super::{Inputs, of};
use crate::openapi::document::{Document, Parameter, RequestBody};
use crate::openapi::schema::Patterns;

pub(super) fn inputs(parameters: Value, body: Value) -> Inputs {
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

pub(super) fn json_body(required: bool, schema: Value) -> Value {
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
            id.clone(),
            json_body(
                true,
                json!({ "type": "object", "properties": { "a": {} }, "required": ["id"] }),
            ),
        ),
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

#[test]
fn a_large_schema_is_told_in_less_detail() {
    let deep = |depth: usize| {
        (0..depth).fold(json!({ "type": "string" }), |inner, at| {
            let about = "What it is, in words that take their room. ".repeat(4);
            json!({ "type": "object", "description": about, "properties": { format!("a{at}"): inner, "b": { "type": "string" } } })
        })
    };
    let properties: serde_json::Map<String, Value> =
        (0..20).map(|at| (format!("p{at}"), deep(12))).collect();
    let body = json!({ "type": "object", "properties": properties });
    let inputs = inputs(json!([]), json_body(true, body));
    assert!(inputs.schema.to_string().len() <= 10_000);
    assert!(inputs.cut.is_some());
    let listed = inputs.schema["properties"].as_object().unwrap();
    assert_eq!(
        (listed.len(), &listed["p3"]["type"]),
        (20, &json!("object"))
    );
    assert!(listed["p3"].get("additionalProperties").is_none());
}

#[test]
fn a_list_of_itself_in_a_form_ends() {
    let document = json!({ "openapi": "3.0.3", "components": { "schemas": {
        "Tree": { "type": "array", "items": { "$ref": "#/components/schemas/Tree" } } } } });
    let document = Document::parse(document.to_string().as_bytes()).unwrap();
    let tree = json!({ "$ref": "#/components/schemas/Tree" });
    let body = json!({ "required": true, "content": { "multipart/form-data": { "schema": {
        "type": "object", "properties": { "tree": tree, "file": { "type": "string", "format": "binary" } } } } } });
    let body: RequestBody = serde_json::from_value(body).unwrap();
    let inputs = of(&document, &[], Some(&body), &Patterns::default(), 10_000).unwrap();
    assert_eq!(
        inputs.schema["properties"]["tree"],
        json!({ "$ref": "#/$defs/Tree" })
    );
    assert_eq!(
        inputs.schema["properties"]["file"]["contentEncoding"],
        "base64"
    );
}

#[test]
fn a_name_that_clients_take_stays_with_its_parameter() {
    let names = ["filter[]", "filter", "+filter", "名前"];
    let parameters: Vec<Value> = names
        .iter()
        .map(|name| json!({ "name": name, "in": "query", "schema": {} }))
        .collect();
    let inputs = inputs(json!(parameters), Value::Null);
    let listed: Vec<&str> = inputs
        .parameters
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    assert_eq!(
        listed[..3],
        ["filter_in_query", "filter", "filter_in_query_2"]
    );
    let wire: Vec<&str> = inputs
        .parameters
        .iter()
        .map(|it| it.writer.name.as_str())
        .collect();
    assert_eq!(wire, names);
    assert_eq!(
        inputs.schema["properties"][listed[3]]["description"],
        "名前"
    );
}
