use serde_json::{Map, Value, json};

use crate::OpenApiConfig;
use crate::openapi::api::Api;
use crate::openapi::choice::ToolChoice;
use crate::openapi::document::Document;
use crate::openapi::request::build;
use crate::openapi::source::DocumentSource;

fn target(path: &str, parameters: Value, arguments: Value) -> Result<String, String> {
    let document = json!({
        "openapi": "3.1.0",
        "servers": [{ "url": "https://a.example/base" }],
        "paths": { path: { "get": { "operationId": "it", "parameters": parameters } } },
    });
    let document = Document::parse(document.to_string().as_bytes()).unwrap();
    let config = OpenApiConfig::new("a.yaml");
    let source = DocumentSource::of("a.yaml").unwrap();
    let api = Api::compile(&document, &config, &ToolChoice::default(), &source, None)?;
    let arguments: Map<String, Value> = serde_json::from_value(arguments).unwrap();
    let request = build(&api.operations["it"], &api.base, &arguments, &[])?;
    let target = request.url.as_str().strip_prefix("https://a.example/base");
    Ok(target.expect("it is at the service").to_owned())
}

fn at(place: &str, name: &str) -> Value {
    json!({ "name": name, "in": place, "schema": { "type": "string" } })
}

#[test]
fn a_path_may_have_a_query_of_its_own() {
    let name = at("path", "name");
    for (path, parameters, arguments, expected) in [
        (
            "/a/{name}?api-version=2024-06-01",
            json!([name]),
            json!({ "name": "b" }),
            "/a/b?api-version=2024-06-01",
        ),
        (
            "/a?x=1&y",
            json!([at("query", "z")]),
            json!({ "z": "2" }),
            "/a?x=1&y&z=2",
        ),
        // The path fixes this pair, so it is no argument.
        (
            "/a?x=1",
            json!([at("query", "x")]),
            json!({ "x": "2" }),
            "/a?x=1",
        ),
        (
            "/a?x={y}",
            json!([at("query", "y")]),
            json!({ "y": "b&c" }),
            "/a?x=b%26c",
        ),
        (
            "/a?x={y}&z=1",
            json!([at("query", "y")]),
            json!({}),
            "/a?z=1",
        ),
        (
            "/a?x={y}",
            json!([at("path", "y")]),
            json!({ "y": "1" }),
            "/a?x=1",
        ),
        (
            "/a?ids={ids}",
            json!([at("query", "ids")]),
            json!({ "ids": ["1", "2"] }),
            "/a?ids=1&ids=2",
        ),
        ("/a?q={q}", json!([]), json!({ "q": "1" }), "/a?q=1"),
        (
            "/a{?q,r}",
            json!([at("query", "q")]),
            json!({ "q": "1", "r": "2" }),
            "/a?q=1&r=2",
        ),
        (
            "/a/{name}#b&c=2",
            json!([name]),
            json!({ "name": "x" }),
            "/a/x",
        ),
        ("a", json!([]), json!({}), "/a"),
    ] {
        let found = target(path, parameters, arguments);
        assert_eq!(found.as_deref(), Ok(expected), "{path}");
    }
    let missing = target("/a?x={y}", json!([at("path", "y")]), json!({}));
    assert!(missing.unwrap_err().contains("\"y\" is missing"));
    let elsewhere = target("https://b.example/a", json!([]), json!({}));
    assert!(elsewhere.unwrap_err().contains("must begin with one /"));
    assert!(target("//b.example/a", json!([]), json!({})).is_err());
}

#[test]
fn a_value_of_several_segments_keeps_its_slashes() {
    let name = json!([at("path", "name")]);
    let open = json!([{ "name": "name", "in": "path", "allowReserved": true, "schema": {} }]);
    for (path, parameters, value, expected) in [
        (
            "/v1/{name=projects/*/operations/*}",
            &name,
            "projects/a b/operations/c",
            "/v1/projects/a%20b/operations/c",
        ),
        (
            "/v1/{name=projects/*/**}:cancel",
            &name,
            "projects/a/b/c",
            "/v1/projects/a/b/c:cancel",
        ),
        ("/v1/{name}:cancel", &name, "a/b", "/v1/a%2Fb:cancel"),
        (
            "/v3/{+name}",
            &name,
            "a/b?c#d;e%2F",
            "/v3/a/b%3Fc%23d%3Be%252F",
        ),
        ("/files/{name}", &open, "a/b:c@d", "/files/a/b:c@d"),
        ("/files/{name*}", &name, "a/b", "/files/a/b"),
        ("/files/{name+}", &name, "a/b", "/files/a/b"),
        ("/files/{name:path}", &name, "a/b/", "/files/a/b/"),
        ("/files/{name:[0-9]{2}}/x", &name, "a/b", "/files/a%2Fb/x"),
        ("/files{/name}{.format}", &name, "a", "/files/a.json"),
    ] {
        let found = target(
            path,
            parameters.clone(),
            json!({ "name": value, "format": "json" }),
        );
        assert_eq!(found.as_deref(), Ok(expected), "{path}");
    }
}

#[test]
fn no_segment_leads_elsewhere() {
    let name = json!([{ "name": "name", "in": "path", "allowReserved": true, "schema": {} }]);
    let paths = [
        "/a/{name}",
        "/a/{+name}",
        "/a/{name*}",
        "/a/{name:path}",
        "/a/{name=**}",
        "/a/{name=b/**}",
    ];
    for path in paths {
        for value in [
            "../x",
            "b/../x",
            "b/..",
            "..",
            "b/./x",
            "/x",
            "b//x",
            "//evil.example/x",
            "/",
        ] {
            let found = target(path, name.clone(), json!({ "name": value }));
            assert!(found.is_err(), "{path} {value} {found:?}");
        }
        for (value, expected) in [
            ("b/%2e%2e/x", "/a/b/%252e%252e/x"),
            ("b/..;/x", "/a/b/..%3B/x"),
            ("b/..\\x", "/a/b/..%5Cx"),
            ("b/%2F", "/a/b/%252F"),
            ("b/x?y#z", "/a/b/x%3Fy%23z"),
        ] {
            let found = target(path, name.clone(), json!({ "name": value }));
            assert_eq!(found.as_deref(), Ok(expected), "{path} {value}");
        }
    }
    let told = target("/a/{name=b/*}", name, json!({ "name": "b/c/d" })).unwrap_err();
    assert!(told.contains("\"name\" must be of the form b/*"), "{told}");
}
