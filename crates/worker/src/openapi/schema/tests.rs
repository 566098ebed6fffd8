use serde_json::{Value, json};

use super::{SchemaDirection, Schemas, TooLarge};
use crate::openapi::document::Document;

fn document(version: &str, schemas: Value) -> Document {
    let written = json!({ "openapi": version, "components": { "schemas": schemas } });
    Document::parse(written.to_string().as_bytes()).unwrap()
}

/// A schema, with its definitions as `$defs`.
fn converted(
    document: &Document,
    direction: SchemaDirection,
    schema: Value,
    limit: usize,
) -> Result<Value, TooLarge> {
    let mut schemas = Schemas::new(document, direction, limit);
    let mut converted = schemas.convert(&schema)?;
    let definitions = schemas.definitions()?;
    if !definitions.is_empty() {
        converted["$defs"] = Value::Object(definitions);
    }
    Ok(converted)
}

fn refer(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

#[test]
fn recursive_schemas_end() {
    let document = document(
        "3.1.0",
        json!({
            "Node": { "type": "object", "properties": { "next": refer("Node"), "other": refer("Leaf") } },
            "Leaf": { "anyOf": [refer("Node"), { "type": "null" }] },
        }),
    );
    let schema = converted(&document, SchemaDirection::Input, refer("Node"), 10_000).unwrap();
    assert_eq!(
        schema,
        json!({
            "$ref": "#/$defs/Node",
            "$defs": {
                "Node": { "type": "object", "properties": {
                    "next": { "$ref": "#/$defs/Node" }, "other": { "$ref": "#/$defs/Leaf" } } },
                "Leaf": { "anyOf": [{ "$ref": "#/$defs/Node" }, { "type": "null" }] },
            }
        })
    );
    assert!(
        jsonschema::validator_for(&schema)
            .unwrap()
            .is_valid(&json!({ "next": { "next": {} } }))
    );
}

#[test]
fn what_3_0_says_in_its_own_way_is_translated() {
    let document = document("3.0.3", json!({ "A": { "type": "string" } }));
    for (written, meant) in [
        (
            json!({ "type": "string", "nullable": true, "enum": ["a"] }),
            json!({ "type": ["string", "null"], "enum": ["a", null] }),
        ),
        (
            json!({ "nullable": true, "allOf": [refer("A")] }),
            json!({ "anyOf": [{ "allOf": [{ "$ref": "#/$defs/A" }] }, { "type": "null" }], "$defs": { "A": { "type": "string" } } }),
        ),
        (
            json!({ "type": "number", "minimum": 1, "exclusiveMinimum": true, "maximum": 2, "exclusiveMaximum": false }),
            json!({ "type": "number", "exclusiveMinimum": 1, "maximum": 2 }),
        ),
        (
            json!({ "type": "integer", "example": 3, "x-own": 1, "xml": {} }),
            json!({ "type": "integer", "examples": [3] }),
        ),
        (
            json!({ "$ref": "#/components/schemas/A", "description": "d", "minLength": 3 }),
            json!({ "$ref": "#/$defs/A", "description": "d", "$defs": { "A": { "type": "string" } } }),
        ),
    ] {
        assert_eq!(
            converted(&document, SchemaDirection::Input, written, 10_000).unwrap(),
            meant
        );
    }
}

#[test]
fn what_does_not_travel_this_way_is_left_out() {
    let document = document("3.1.0", json!({}));
    let schema = json!({
        "type": "object", "required": ["id", "name", "word"],
        "properties": { "id": { "readOnly": true }, "name": {}, "word": { "writeOnly": true } },
    });
    let input = converted(&document, SchemaDirection::Input, schema.clone(), 1000).unwrap();
    assert_eq!(input["required"], json!(["name", "word"]));
    assert!(input["properties"].get("id").is_none());
    assert_eq!(input["propertyNames"], json!({ "not": { "enum": ["id"] } }));
    let output = converted(&document, SchemaDirection::Output, schema, 1000).unwrap();
    assert_eq!(output["required"], json!(["id", "name"]));
}

#[test]
fn nothing_outside_of_the_document_is_referred_to() {
    let document = document("3.1.0", json!({}));
    let schema = json!({ "properties": {
        "a": { "$ref": "https://example.com/schema.json" }, "b": { "$ref": "file:///etc/passwd" }, "c": refer("None") } });
    let schema = converted(&document, SchemaDirection::Input, schema, 1000).unwrap();
    assert_eq!(
        schema,
        json!({ "properties": { "a": true, "b": true, "c": true } })
    );
}

#[test]
fn schemas_of_one_name_are_told_apart() {
    let written = json!({ "openapi": "3.1.0", "components": {
        "schemas": { "A": { "type": "string" } }, "x": { "A": { "type": "integer" } } } });
    let document = Document::parse(written.to_string().as_bytes()).unwrap();
    let schema = json!({ "items": refer("A"), "contains": { "$ref": "#/components/x/A" } });
    let schema = converted(&document, SchemaDirection::Input, schema, 1000).unwrap();
    assert_eq!(schema["contains"]["$ref"], "#/$defs/A_2");
    assert_eq!(
        schema["$defs"],
        json!({ "A_2": { "type": "integer" }, "A": { "type": "string" } })
    );
}

#[test]
fn a_schema_has_a_limit_in_bytes() {
    let wide: serde_json::Map<String, Value> =
        (0..100).map(|at| (format!("p{at}"), refer("A"))).collect();
    let document = document(
        "3.1.0",
        json!({ "A": { "type": "object", "properties": wide } }),
    );
    assert!(converted(&document, SchemaDirection::Input, refer("A"), 1000).is_err());
    let whole = converted(&document, SchemaDirection::Input, refer("A"), 10_000).unwrap();
    assert!(whole.to_string().len() <= 10_000);
}
