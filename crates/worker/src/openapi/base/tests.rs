use serde_json::{Value, json};
use shoal_ports::Secret;

use super::of_document;
use crate::OpenApiConfig;
use crate::openapi::document::Document;
use crate::openapi::source::DocumentSource;

fn base(servers: Value, from: &str, config: &OpenApiConfig) -> Result<String, String> {
    let written = json!({ "openapi": "3.1.0", "servers": servers });
    let document = Document::parse(written.to_string().as_bytes()).unwrap();
    of_document(&document, config, &DocumentSource::of(from).unwrap()).map(String::from)
}

#[test]
fn servers_are_read_as_written_or_from_where_the_document_is() {
    let config = OpenApiConfig::new("a.yaml");
    let here = "https://a.example/docs/openapi.json";
    for (servers, from, expected) in [
        (
            json!([{ "url": "https://b.example/v1" }]),
            "a.yaml",
            "https://b.example/v1",
        ),
        (json!([{ "url": "/v1" }]), here, "https://a.example/v1"),
        (
            json!([{ "url": "v1/" }]),
            here,
            "https://a.example/docs/v1/",
        ),
        (json!([]), here, "https://a.example/"),
        (
            json!([{ "url": "https://b.example" }]),
            here,
            "https://b.example/",
        ),
    ] {
        assert_eq!(base(servers, from, &config).unwrap(), expected);
    }
    let told = base(json!([{ "url": "/v1" }]), "a.yaml", &config).unwrap_err();
    assert!(told.contains("set base_url (--base-url)"), "{told}");
}

#[test]
fn variables_have_defaults_choices_and_the_operators_values() {
    let mut config = OpenApiConfig::new("a.yaml");
    let servers = json!([{ "url": "https://{region}.example/{version}", "variables": {
        "region": { "default": "eu", "enum": ["eu", "us"] }, "version": { "default": 2 } } }]);
    assert_eq!(
        base(servers.clone(), "a.yaml", &config).unwrap(),
        "https://eu.example/2"
    );
    config.server_variables.insert("region".into(), "us".into());
    assert_eq!(
        base(servers.clone(), "a.yaml", &config).unwrap(),
        "https://us.example/2"
    );
    config.server_variables.insert("region".into(), "x".into());
    assert!(
        base(servers, "a.yaml", &config)
            .unwrap_err()
            .contains("does not allow \"x\"")
    );
}

#[test]
fn a_document_from_elsewhere_sends_no_credentials_away() {
    let mut config = OpenApiConfig::new("https://a.example/openapi.json");
    config.headers.insert("x-key".into(), Secret::new("x"));
    let (from, elsewhere) = (
        config.document.clone(),
        json!([{ "url": "https://b.example" }]),
    );
    let told = base(elsewhere.clone(), &from, &config).unwrap_err();
    assert!(
        told.contains("https://b.example: set base_url (--base-url)"),
        "{told}"
    );
    assert!(base(elsewhere, "a.yaml", &config).is_ok());
    assert!(base(json!([{ "url": "/v1" }]), &from, &config).is_ok());
}
