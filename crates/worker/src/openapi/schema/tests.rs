use serde_json::{Value, json};

use super::{Detail, INPUT, Patterns, SchemaDirection, Schemas, TooLarge};
use crate::openapi::document::Document;

fn document(version: &str, schemas: Value) -> Document {
    let written = json!({ "openapi": version, "components": { "schemas": schemas } });
    Document::parse(written.to_string().as_bytes()).unwrap()
}

fn converted(
    document: &Document,
    direction: SchemaDirection,
    schema: Value,
    limit: usize,
) -> Result<Value, TooLarge> {
    let patterns = Patterns::default();
    let mut schemas = Schemas::new(document, direction, &INPUT[0], &patterns, limit);
    let mut converted = schemas.convert(&schema)?;
    let (definitions, _) = schemas.definitions()?;
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
    let told: Vec<&String> = output["properties"].as_object().unwrap().keys().collect();
    assert_eq!(told, ["id", "name"]);
}

#[test]
fn nothing_outside_of_the_document_is_referred_to() {
    let document = document("3.1.0", json!({}));
    let schema = json!({ "properties": {
        "a": { "$ref": "https://example.com/schema.json" }, "b": { "$ref": "file:///etc/passwd" }, "c": refer("None") } });
    let schema = converted(&document, SchemaDirection::Input, schema, 1000).unwrap();
    assert_eq!(
        schema,
        json!({ "properties": { "a": {}, "b": {}, "c": {} } })
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

fn input(version: &str, schema: Value) -> Value {
    let document = document(version, json!({ "A": { "type": "string" } }));
    let schema = converted(&document, SchemaDirection::Input, schema, 10_000).unwrap();
    jsonschema::draft202012::meta::validate(&schema).unwrap();
    jsonschema::draft202012::new(&schema).unwrap();
    schema
}

#[test]
fn a_keyword_that_clients_do_not_know_is_mended_or_lost_alone() {
    for (written, meant) in [
        (json!({ "type": "file" }), json!({ "type": "string" })),
        (
            json!({ "type": "Integer", "format": 5 }),
            json!({ "type": "integer" }),
        ),
        (
            json!({ "type": "any", "title": "t" }),
            json!({ "title": "t" }),
        ),
        (
            json!({ "type": ["string", "string"] }),
            json!({ "type": "string" }),
        ),
        (json!({ "type": null }), json!({ "type": "null" })),
        (
            json!({ "type": "string", "minLength": "2", "maxLength": -1, "pattern": "\\A\\d+\\Z" }),
            json!({ "type": "string", "minLength": 2, "pattern": "^\\d+$" }),
        ),
        (
            json!({ "pattern": "(?i)x", "maxItems": 5.0 }),
            json!({ "maxItems": 5 }),
        ),
        (
            json!({ "type": "string", "enum": [true, 1, "a", "a"] }),
            json!({ "type": "string", "enum": ["true", "1", "a"] }),
        ),
        (
            json!({ "type": "integer", "enum": ["1", 2] }),
            json!({ "type": "integer", "enum": [1, 2] }),
        ),
        (
            json!({ "enum": [], "multipleOf": 0, "default": null }),
            json!({}),
        ),
        (
            json!({ "allOf": [], "oneOf": {}, "properties": [] }),
            json!({}),
        ),
        (
            json!({ "type": "array" }),
            json!({ "type": "array", "items": {} }),
        ),
        (
            json!({ "type": "array", "items": [{ "type": "string" }], "additionalItems": false }),
            json!({ "type": "array", "prefixItems": [{ "type": "string" }], "items": false }),
        ),
        (
            json!({ "type": "object", "required": ["b", "b", 5], "properties": {
                "a": { "type": "string", "required": true }, "b": { "required": false }, "c": { "required": ["x"] } } }),
            json!({ "type": "object", "required": ["b", "a"], "properties": {
                "a": { "type": "string" }, "b": {}, "c": { "required": ["x"] } } }),
        ),
        (
            json!({ "type": "object", "properties": { "a": { "type": "object", "required": true, "properties": {
                "b": { "required": true }, "c": {}, "@d": { "required": true } } } } }),
            json!({ "type": "object", "required": ["a"], "properties": { "a": { "type": "object", "required": ["b", "d"],
                "properties": { "b": {}, "c": {}, "d": { "x-shoal-name": "@d" } } } } }),
        ),
        (
            json!({ "items": { "required": true } }),
            json!({ "items": {} }),
        ),
        (
            json!({ "$recursiveAnchor": true, "$id": "https://a.example/", "$anchor": "a", "uniqueItems": "yes" }),
            json!({}),
        ),
        (
            json!({ "patternProperties": { "\\Aa": {}, "(": {} } }),
            json!({ "patternProperties": { "^a": {} } }),
        ),
        (
            json!({ "description": "<p>One</p>", "deprecated": true }),
            json!({ "description": "One", "deprecated": true }),
        ),
    ] {
        for version in ["3.0.3", "3.1.0"] {
            assert_eq!(input(version, written.clone()), meant, "{written}");
        }
    }
}

#[test]
fn null_is_allowed_wherever_a_document_says_so() {
    let reference = json!({ "$ref": "#/components/schemas/A", "nullable": true });
    for version in ["3.0.3", "3.1.0"] {
        assert_eq!(
            input(version, reference.clone())["anyOf"],
            json!([{ "$ref": "#/$defs/A" }, { "type": "null" }])
        );
        assert_eq!(
            input(version, json!({ "enum": ["a"], "nullable": true })),
            json!({ "enum": ["a", null] })
        );
    }
}

#[test]
fn a_schema_that_is_made_of_itself_is_open() {
    let document = document(
        "3.1.0",
        json!({
            "A": { "allOf": [refer("B"), { "type": "object" }] },
            "B": { "anyOf": [refer("A"), refer("C")] },
            "C": { "$ref": "#/components/schemas/C", "type": "object" },
        }),
    );
    let schema = converted(&document, SchemaDirection::Input, refer("A"), 10_000).unwrap();
    assert_eq!(schema["$defs"]["C"], json!({ "type": "object" }));
    assert_eq!(schema["$defs"]["B"]["anyOf"][0], json!({}));
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(validator.is_valid(&json!({})) && !validator.is_valid(&json!(5)));
}

#[test]
fn properties_have_names_that_every_client_takes() {
    let document = document("3.1.0", json!({}));
    let schema = json!({
        "type": "object", "required": ["@type", "type"],
        "properties": { "@type": { "type": "string" }, "type": {}, "filter[x]": { "readOnly": true } },
    });
    let schema = converted(&document, SchemaDirection::Input, schema, 1000).unwrap();
    assert_eq!(schema["required"], json!(["type_2", "type"]));
    assert_eq!(
        schema["properties"],
        json!({ "type_2": { "type": "string", "x-shoal-name": "@type" }, "type": {} })
    );
}

#[test]
fn what_a_service_answers_is_described_so_that_its_answers_fit() {
    let document = document(
        "3.0.3",
        json!({ "Kind": { "type": "string", "enum": ["a", "b"] } }),
    );
    let schema = json!({
        "type": "object", "required": ["id"], "additionalProperties": false, "description": "<b>A pet</b>",
        "properties": {
            "id": { "type": "integer", "minimum": 1, "format": "int64" },
            "kind": refer("Kind"),
            "list": { "type": "array", "items": { "type": "string", "pattern": "^a" }, "minItems": 1 },
            "one": { "oneOf": [{ "type": "string" }, { "type": "number" }] },
            "map": { "type": "object", "additionalProperties": { "type": "boolean" } },
            "@odd": { "not": {} },
        },
    });
    let schema = converted(&document, SchemaDirection::Output, schema, 10_000).unwrap();
    assert_eq!(
        schema,
        json!({
            "type": ["object", "null"], "description": "A pet",
            "properties": {
                "id": { "type": ["integer", "null"] },
                "kind": { "$ref": "#/$defs/Kind" },
                "list": { "type": ["array", "null"], "items": { "type": ["string", "null"] } },
                "one": { "anyOf": [{ "type": ["string", "null"] }, { "type": ["number", "null"] }] },
                "map": { "type": ["object", "null"], "additionalProperties": { "type": ["boolean", "null"] } },
                "@odd": {},
            },
            "$defs": { "Kind": { "type": ["string", "null"], "examples": ["a", "b"] } },
        })
    );
}

fn wide() -> Document {
    let mut schemas = serde_json::Map::new();
    for at in 0..100 {
        let next = refer(&format!("S{}", at + 1));
        let about = "What this is for, at some length. ".repeat(5);
        schemas.insert(
            format!("S{at}"),
            json!({ "type": "object", "description": about, "properties": { "next": next, "name": { "type": "string" } } }),
        );
    }
    let all: serde_json::Map<String, Value> = (0..100)
        .map(|at| (format!("p{at}"), refer(&format!("S{at}"))))
        .collect();
    schemas.insert("S100".into(), json!({ "type": "string" }));
    schemas.insert("All".into(), json!({ "type": "object", "properties": all }));
    document("3.1.0", Value::Object(schemas))
}

fn in_detail(document: &Document, limit: usize) -> Option<(Value, bool, &'static Detail)> {
    let patterns = Patterns::default();
    INPUT.iter().find_map(|detail| {
        let direction = SchemaDirection::Input;
        let mut schemas = Schemas::new(document, direction, detail, &patterns, limit);
        let mut converted = schemas.convert(&refer("All")).ok()?;
        let (definitions, is_cut) = schemas.definitions().ok()?;
        converted["$defs"] = Value::Object(definitions);
        Some((converted, is_cut, detail))
    })
}

#[test]
fn a_schema_is_closed_wherever_its_room_ends() {
    let document = wide();
    for limit in (8_000..20_000).step_by(61) {
        if let Some((schema, ..)) = in_detail(&document, limit) {
            assert!(schema.to_string().len() <= limit);
            jsonschema::draft202012::new(&schema).unwrap();
        }
    }
}

#[test]
fn a_schema_that_is_too_large_is_told_in_less_detail() {
    let document = wide();
    let mut before = usize::MAX;
    for (limit, whole) in [(100_000, true), (20_000, false), (12_000, false)] {
        let (schema, is_cut, detail) = in_detail(&document, limit).unwrap();
        let bytes = schema.to_string().len();
        assert!(bytes <= limit && bytes < before, "{bytes} of {limit}");
        before = bytes;
        assert_eq!(!is_cut && std::ptr::eq(detail, &INPUT[0]), whole);
        assert_eq!(
            schema["$defs"]["All"]["properties"]
                .as_object()
                .unwrap()
                .len(),
            100
        );
        jsonschema::draft202012::new(&schema).unwrap();
        jsonschema::draft202012::meta::validate(&schema).unwrap();
    }
}
