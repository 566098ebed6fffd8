use serde_json::{Value, json};
use shoal_ports::Secret;

use super::Api;
use crate::OpenApiConfig;
use crate::openapi::document::Document;
use crate::openapi::source::DocumentSource;

fn compiled(paths: Value, config: &OpenApiConfig) -> Result<Api, String> {
    let written = json!({ "openapi": "3.1.0", "servers": [{ "url": "https://a.example/v1" }], "paths": paths });
    let document = Document::parse(written.to_string().as_bytes()).unwrap();
    let source = DocumentSource::of(&config.document).unwrap();
    Api::compile(&document, config, &source, None)
}

fn tools(api: &Api) -> Vec<Value> {
    api.catalog
        .tools
        .iter()
        .map(|tool| tool.read().unwrap())
        .collect()
}

#[test]
fn what_cannot_be_a_tool_is_left_out_and_named() {
    let mut config = OpenApiConfig::new("a.yaml");
    config.schema_bytes = 1000;
    let long = "x".repeat(2000);
    let api = compiled(
        json!({
            "/good": { "get": { "responses": {} }, "trace": { "responses": {} } },
            "/bad": { "get": { "parameters": [{ "name": "x", "in": "nowhere" }], "responses": {} } },
            "/away": { "get": { "servers": [{ "url": "https://b.example" }], "responses": {} } },
            "/large": { "post": { "requestBody": { "content": { "application/json": { "schema": { "title": long } } } }, "responses": {} } },
        }),
        &config,
    );
    let api = api.unwrap();
    assert_eq!(tools(&api).len(), 1);
    let detail = api.detail.as_deref().unwrap();
    for part in [
        "GET /bad: ",
        "unknown variant `nowhere`",
        "GET /away: it has a server of its own",
        "raise schema_bytes",
    ] {
        assert!(detail.contains(part), "{detail}");
    }
}

#[test]
fn there_are_so_many_operations_at_most() {
    let mut config = OpenApiConfig::new("a.yaml");
    config.operations = 2;
    let operation = json!({ "get": { "responses": {} } });
    let paths = json!({ "/a": operation, "/b": operation, "/c": operation });
    let told = compiled(paths, &config).err().unwrap();
    assert!(
        told.contains("more than 2 operations; raise operations"),
        "{told}"
    );
    let nothing = compiled(json!({}), &config).err().unwrap();
    assert!(nothing.contains("no operations"));
}

#[test]
fn an_output_schema_promises_only_what_is_certain() {
    let config = OpenApiConfig::new("a.yaml");
    let object = json!({ "application/json": { "schema": { "type": "object" } } });
    let of = |responses: Value| {
        let api = compiled(
            json!({ "/a": { "get": { "responses": responses } } }),
            &config,
        )
        .unwrap();
        tools(&api)[0].get("outputSchema").is_some()
    };
    assert!(of(
        json!({ "200": { "content": object }, "404": {}, "default": {} })
    ));
    assert!(!of(json!({ "200": { "content": object }, "204": {} })));
    assert!(!of(
        json!({ "200": { "content": { "application/json": { "schema": { "type": "array" } } } } })
    ));
    assert!(!of(
        json!({ "200": { "content": { "text/plain": { "schema": { "type": "object" } } } } })
    ));
    let mut without = config.clone();
    without.output_schemas = false;
    let api = compiled(
        json!({ "/a": { "get": { "responses": { "200": { "content": object } } } } }),
        &without,
    );
    assert!(tools(&api.unwrap())[0].get("outputSchema").is_none());
}

#[test]
fn headers_that_others_set_are_no_arguments() {
    let mut config = OpenApiConfig::new("a.yaml");
    config.headers.insert("X-One".into(), Secret::new("1"));
    config.forward = vec!["x-two".to_owned()];
    let names = [
        "X-One",
        "x-own",
        "X-Two",
        "x-one",
        "Host",
        "Cookie",
        "Accept",
        "mcp-session-id",
    ];
    let header =
        |name: &str| json!({ "name": name, "in": "header", "schema": { "type": "string" } });
    let parameters: Vec<Value> = names.iter().map(|name| header(name)).collect();
    let api = compiled(
        json!({ "/a": { "get": { "parameters": parameters, "responses": {} } } }),
        &config,
    );
    let schema = &tools(&api.unwrap())[0]["inputSchema"];
    assert_eq!(
        schema["properties"],
        json!({ "x-own": { "type": "string" } })
    );
}

#[test]
fn an_operation_has_the_parameters_of_its_path_and_of_its_template() {
    let config = OpenApiConfig::new("a.yaml");
    let api = compiled(json!({ "/a/{x}/{y}": {
        "parameters": [
            { "name": "x", "in": "path", "schema": { "type": "integer" } },
            { "name": "q", "in": "query", "schema": { "type": "string" } },
            { "name": "gone", "in": "path", "schema": {} },
        ],
        "get": { "parameters": [{ "name": "q", "in": "query", "schema": { "type": "boolean" } }], "responses": {} },
    } }), &config).unwrap();
    let schema = &tools(&api)[0]["inputSchema"];
    assert_eq!(
        schema["properties"],
        json!({
        "x": { "type": "integer" }, "q": { "type": "boolean" }, "y": { "type": "string" } })
    );
    assert_eq!(schema["required"], json!(["x", "y"]));
}
