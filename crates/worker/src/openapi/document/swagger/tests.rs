use serde_json::{Value, json};

use crate::openapi::document::Document;

fn converted(document: Value) -> Value {
    let mut whole = json!({ "swagger": "2.0", "info": { "title": "t", "version": "1" } });
    for (key, value) in document.as_object().unwrap() {
        whole[key] = value.clone();
    }
    Document::parse(whole.to_string().as_bytes()).unwrap().root
}

#[test]
fn where_the_service_is() {
    for (said, url) in [
        (
            json!({ "host": "a.example", "basePath": "/v1", "schemes": ["http", "https"] }),
            "https://a.example/v1",
        ),
        (
            json!({ "host": "a.example:81", "schemes": ["http"] }),
            "http://a.example:81/",
        ),
        (
            json!({ "host": "a.example", "basePath": "v1" }),
            "//a.example/v1",
        ),
        (json!({ "basePath": "/v1" }), "/v1"),
        (json!({}), "/"),
    ] {
        assert_eq!(
            converted(said.clone())["servers"],
            json!([{ "url": url }]),
            "{said}"
        );
    }
}

#[test]
fn parameters_become_parameters_and_bodies() {
    let document = converted(json!({
        "consumes": ["application/json", "text/json"],
        "parameters": { "Body": { "name": "pet", "in": "body", "required": true, "schema": { "$ref": "#/definitions/Pet" } } },
        "definitions": { "Pet": { "type": "object", "properties": { "name": { "type": "string", "x-nullable": true } } } },
        "paths": {
            "/a": {
                "parameters": [
                    { "name": "limit", "in": "query", "type": "integer", "maximum": 5 },
                    { "name": "all", "in": "query", "type": "boolean" },
                ],
                "post": { "parameters": [
                    { "name": "limit", "in": "query", "type": "array", "items": { "type": "string" }, "collectionFormat": "pipes" },
                    { "name": "h", "in": "header", "required": true, "type": "array", "items": { "type": "integer" } },
                    { "$ref": "#/parameters/Body" },
                ] },
            },
            "/form": { "post": { "consumes": ["application/x-www-form-urlencoded"], "parameters": [
                { "name": "x", "in": "formData", "required": true, "type": "string" },
                { "name": "ids", "in": "formData", "type": "array", "items": { "type": "string" }, "collectionFormat": "multi" },
            ] } },
            "/file": { "post": { "parameters": [{ "name": "f", "in": "formData", "type": "file", "description": "what" }] } },
        },
    }));
    let post = &document["paths"]["/a"]["post"];
    assert_eq!(
        post["parameters"],
        json!([
            { "name": "limit", "in": "query", "schema": { "type": "array", "items": { "type": "string" } }, "style": "pipes" },
            { "name": "all", "in": "query", "schema": { "type": "boolean" } },
            { "name": "h", "in": "header", "required": true, "schema": { "type": "array", "items": { "type": "integer" } }, "style": "csv" },
        ])
    );
    let schema = json!({ "schema": { "$ref": "#/definitions/Pet" } });
    let content = json!({ "application/json": schema, "text/json": schema });
    assert_eq!(
        post["requestBody"],
        json!({ "required": true, "content": content })
    );
    assert_eq!(
        document["definitions"]["Pet"]["properties"]["name"]["nullable"],
        true
    );
    let form = &document["paths"]["/form"]["post"]["requestBody"]["content"]["application/x-www-form-urlencoded"];
    assert_eq!(form["schema"]["required"], json!(["x"]));
    assert_eq!(form["encoding"], json!({ "ids": { "style": "multi" } }));
    let file = &document["paths"]["/file"]["post"]["requestBody"]["content"]["multipart/form-data"];
    assert_eq!(
        file["schema"]["properties"]["f"],
        json!({ "type": "string", "format": "binary", "description": "what" })
    );
}

#[test]
fn answers_and_schemes_keep_their_meaning() {
    let document = converted(json!({
        "produces": ["application/json"],
        "securityDefinitions": {
            "basic": { "type": "basic" }, "key": { "type": "apiKey", "in": "header", "name": "k" }, "o": { "type": "oauth2", "flow": "implicit" },
        },
        "responses": { "Pet": { "description": "d", "schema": { "type": "object" } } },
        "paths": { "/a": { "get": { "responses": {
            "200": { "$ref": "#/responses/Pet" }, "201": { "description": "d", "schema": { "type": "file" } },
        } } } },
    }));
    let schemes = &document["components"]["securitySchemes"];
    assert_eq!(
        schemes["basic"],
        json!({ "type": "http", "scheme": "basic" })
    );
    assert_eq!(schemes["key"]["name"], "k");
    assert_eq!(schemes["o"]["type"], "oauth2");
    let responses = &document["paths"]["/a"]["get"]["responses"];
    assert_eq!(
        responses["200"]["content"]["application/json"]["schema"],
        json!({ "type": "object" })
    );
    assert_eq!(
        responses["201"]["content"]["application/json"]["schema"]["format"],
        "binary"
    );
}
