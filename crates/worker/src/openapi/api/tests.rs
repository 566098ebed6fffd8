use serde_json::{Value, json};
use shoal_ports::Secret;

use super::Api;
use crate::openapi::choice::ToolChoice;
use crate::openapi::document::Document;
use crate::openapi::source::DocumentSource;
use crate::{CredentialConfig, OpenApiConfig};

fn compiled(paths: Value, config: &OpenApiConfig) -> Result<Api, String> {
    let written = json!({ "openapi": "3.1.0", "servers": [{ "url": "https://a.example/v1" }], "paths": paths });
    let document = Document::parse(written.to_string().as_bytes()).unwrap();
    let source = DocumentSource::of(&config.document).unwrap();
    Api::compile(&document, config, &ToolChoice::default(), &source, None)
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
    let many: Vec<Value> = (0..100)
        .map(|at| json!({ "name": format!("parameter_{at}"), "in": "query" }))
        .collect();
    let api = compiled(
        json!({
            "/good": { "get": { "responses": {} }, "trace": { "responses": {} } },
            "/bad": { "get": { "parameters": [{ "name": "x", "in": "nowhere" }], "responses": {} } },
            "/away": { "get": { "servers": [{ "url": "https://b.example" }], "responses": {} } },
            "/large": { "post": { "parameters": many, "responses": {} } },
        }),
        &config,
    );
    let api = api.unwrap();
    assert_eq!(tools(&api).len(), 1);
    let detail = api.catalog.left_out.join("\n");
    for part in [
        "TRACE /good: a tool must not use this method",
        "GET /bad: ",
        "unknown variant `nowhere`",
        "GET /away: it has a server of its own",
        "raise schema_bytes",
    ] {
        assert!(detail.contains(part), "{detail}");
    }
}

#[test]
fn the_tools_have_so_many_bytes_at_most() {
    let mut config = OpenApiConfig::new("a.yaml");
    let operation = json!({ "get": { "responses": {} } });
    let paths = json!({ "/a": operation, "/b": operation, "/c": operation });
    let one = tools_of(&compiled(json!({ "/a": operation }), &config).unwrap());
    config.tools_bytes = 2 * one;
    let api = compiled(paths, &config).unwrap();
    assert_eq!(tools(&api).len(), 2);
    let left_out = &api.catalog.left_out;
    assert!(left_out[0].starts_with("GET /c: ") && left_out[0].contains("raise tools_bytes"));
}

fn tools_of(api: &Api) -> usize {
    let tools = api.catalog.tools.iter();
    tools.map(|tool| tool.as_bytes().len()).sum()
}

#[test]
fn a_document_without_tools_says_why() {
    let config = OpenApiConfig::new("a.yaml");
    let why = |paths: Value, config: &OpenApiConfig| compiled(paths, config).err().unwrap();
    assert!(why(json!({}), &config).contains("no operations"));
    let bad = json!({ "/bad": { "get": { "parameters": [{ "name": "x", "in": "nowhere" }] } } });
    let told = why(bad, &config);
    assert!(
        told.contains("none of its operations can be a tool: GET /bad: "),
        "{told}"
    );
    let mut tagged = config.clone();
    tagged.tags = vec!["pets".to_owned()];
    let told = why(json!({ "/a": { "get": {} }, "/b": { "get": {} } }), &tagged);
    assert!(
        told.contains("none of its 2 operations is chosen; change"),
        "{told}"
    );
}

#[test]
fn operations_are_chosen_before_anything_is_made_of_them() {
    let document = json!({ "openapi": "3.1.0", "servers": [{ "url": "https://a.example" }], "paths": {
        "/a": { "get": { "operationId": "x.y", "tags": ["one"] }, "put": { "operationId": "x/y", "tags": ["two"] } },
        "/b": { "get": { "operationId": "b", "tags": ["one", "three"] }, "put": { "parameters": [{ "in": "nowhere" }] } },
    } });
    let document = Document::parse(document.to_string().as_bytes()).unwrap();
    let chosen = |tags: &[&str], paths: &[&str], allow: &[&str], deny: &[&str]| {
        let owned = |all: &[&str]| all.iter().map(|&one| one.to_owned()).collect::<Vec<_>>();
        let mut config = OpenApiConfig::new("a.yaml");
        (config.tags, config.paths) = (owned(tags), owned(paths));
        let choice = ToolChoice {
            allow: owned(allow),
            deny: owned(deny),
        };
        let source = DocumentSource::of("a.yaml").unwrap();
        let api = Api::compile(&document, &config, &choice, &source, None).unwrap();
        let mut names: Vec<String> = api.operations.keys().cloned().collect();
        names.sort();
        (names, api.catalog.left_out.len())
    };
    let all = ["b", "x_y", "x_y_2"].map(str::to_owned).to_vec();
    assert_eq!(chosen(&[], &[], &[], &[]), (all, 1));
    assert_eq!(
        chosen(&["two"], &[], &[], &[]),
        (vec!["x_y_2".to_owned()], 0)
    );
    assert_eq!(
        chosen(&["t*"], &["/b"], &[], &[]),
        (vec!["b".to_owned()], 0)
    );
    assert_eq!(
        chosen(&[], &["/a*"], &["x_*"], &["x_y"]),
        (vec!["x_y_2".to_owned()], 0)
    );
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
fn a_large_output_schema_is_listed_in_less_detail_and_never_costs_the_tool() {
    let mut config = OpenApiConfig::new("a.yaml");
    config.schema_bytes = 3000;
    let api = |members: usize| {
        let about = "What it is, in words that take their room.".repeat(3);
        let member = json!({ "type": "object", "properties": { "a": { "type": "string", "description": about } } });
        let members: serde_json::Map<String, Value> = (0..members)
            .map(|at| (format!("member_{at}"), member.clone()))
            .collect();
        let schema = json!({ "type": "object", "properties": members });
        let content = json!({ "application/json": { "schema": schema } });
        let responses = json!({ "200": { "content": content } });
        compiled(
            json!({ "/a": { "get": { "responses": responses } } }),
            &config,
        )
        .unwrap()
    };
    for (members, is_listed, told) in [
        (3, true, None),
        (
            30,
            true,
            Some("get_a: its outputSchema is listed down to 3 levels, without descriptions"),
        ),
        (
            500,
            false,
            Some("get_a: its outputSchema is listed not at all"),
        ),
    ] {
        let api = api(members);
        let tool = &tools(&api)[0];
        assert_eq!(tool.get("outputSchema").is_some(), is_listed);
        assert_eq!(api.operations["get_a"].output.is_some(), is_listed);
        assert!(tool["outputSchema"].to_string().len() <= config.schema_bytes);
        assert_eq!(api.catalog.cut.first().map(String::as_str), told);
        assert_eq!(api.detail, None);
    }
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

fn guarded(paths: Value, config: &OpenApiConfig) -> Api {
    let written = json!({
        "openapi": "3.1.0",
        "servers": [{ "url": "https://a.example/v1" }],
        "components": { "securitySchemes": {
            "basic": { "type": "http", "scheme": "basic" },
            "bearer": { "type": "http", "scheme": "bearer" },
            "header": { "type": "apiKey", "in": "header", "name": "Authorization" },
            "key": { "type": "apiKey", "in": "query", "name": "key" },
        } },
        "paths": paths,
    });
    let document = Document::parse(written.to_string().as_bytes()).unwrap();
    let source = DocumentSource::of(&config.document).unwrap();
    Api::compile(&document, config, &ToolChoice::default(), &source, None).unwrap()
}

fn secured() -> OpenApiConfig {
    let mut config = OpenApiConfig::new("a.yaml");
    config.base_url = "https://a.example/v1".to_owned();
    for (name, username) in [("basic", "me"), ("bearer", ""), ("header", "")] {
        let credential = CredentialConfig {
            username: username.to_owned(),
            secret: Some(Secret::new("s")),
            ..CredentialConfig::default()
        };
        config.security.insert(name.to_owned(), credential);
    }
    config
}

#[test]
fn two_credentials_in_one_place_are_no_operation() {
    let api = guarded(
        json!({
            "/two": { "get": { "security": [{ "basic": [], "bearer": [] }], "responses": {} } },
            "/key": { "get": { "security": [{ "bearer": [], "header": [] }], "responses": {} } },
            "/other": { "get": { "security": [{ "basic": [], "bearer": [] }, { "bearer": [] }], "responses": {} } },
            "/none": { "get": { "security": [{ "basic": [], "bearer": [] }, {}], "responses": {} } },
            "/one": { "get": { "security": [{ "basic": [] }], "responses": {} } },
        }),
        &secured(),
    );
    let detail = api.detail.as_deref().unwrap();
    for operation in [
        "GET /two: its security asks for basic and bearer at once, and two of them go to the same header authorization",
        "GET /key: its security asks for bearer and header at once",
    ] {
        assert!(detail.contains(operation), "{detail}");
    }
    let mut served: Vec<&str> = api.operations.keys().map(String::as_str).collect();
    served.sort_unstable();
    assert_eq!(served, ["get_none", "get_one", "get_other"]);
    let sent = |name: &str| api.operations[name].credentials.len();
    assert_eq!(
        [sent("get_none"), sent("get_one"), sent("get_other")],
        [0, 1, 1]
    );
}

#[test]
fn a_key_is_no_argument_whether_configured_or_not() {
    let key = json!([{ "name": "key", "in": "query", "required": true }]);
    let paths = json!({
        "/asked": { "get": { "parameters": key, "security": [{ "key": [] }], "responses": {} } },
        "/perhaps": { "get": { "parameters": key, "security": [{ "key": [] }, { "basic": [] }], "responses": {} } },
        "/other": { "get": { "parameters": key, "responses": {} } },
    });
    let mut configured = secured();
    let credential = configured.security["bearer"].clone();
    configured.security.insert("key".to_owned(), credential);
    for config in [secured(), configured] {
        let api = guarded(paths.clone(), &config);
        let has = |name: &str| {
            let tools = tools(&api);
            let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
            tool["inputSchema"]["properties"].get("key").is_some()
        };
        assert_eq!(
            [has("get_asked"), has("get_perhaps"), has("get_other")],
            [false, false, true]
        );
    }
}
