use super::{Document, OpenApiVersion, text};

fn wrong(written: &str) -> String {
    Document::parse(written.as_bytes())
        .err()
        .expect("it is refused")
}

#[test]
fn json_and_yaml_say_the_same() {
    let json =
        r#"{"openapi":"3.0.1","paths":{"/a":{"get":{"responses":{"200":{"description":"no"}}}}}}"#;
    let yaml = "openapi: 3.0.1\npaths:\n  /a:\n    get:\n      responses:\n        200:\n          description: no\n";
    let [json, yaml] = [json, yaml].map(|written| Document::parse(written.as_bytes()).unwrap());
    assert_eq!(json.root, yaml.root);
    assert_eq!(json.version(), OpenApiVersion::V3_0);
    let number = Document::parse(b"openapi: 3.1\n").unwrap();
    assert_eq!(number.version(), OpenApiVersion::V3_1);
    assert_eq!(text(number.member("openapi").unwrap()), "3.1");
}

#[test]
fn a_document_in_yaml_may_be_as_large_as_in_json() {
    let many = vec!["1"; 300_000].join(",");
    let yaml = format!("openapi: 3.1.0\nx-many: [{many}]\n");
    let document = Document::parse(yaml.as_bytes()).unwrap();
    assert_eq!(
        document.member("x-many").unwrap().as_array().unwrap().len(),
        300_000
    );
}

#[test]
fn what_is_no_document_is_told_so() {
    assert!(wrong("swagger: '2.0'\n").contains("Swagger 2.0 document, which is not supported"));
    assert!(wrong("{}").contains("no member `openapi`"));
    assert!(wrong("openapi: 4.0.0\n").contains("3.0, 3.1 and 3.2 are supported"));
    assert!(wrong("{\"openapi\": ").contains("no JSON"));
    assert!(wrong("a: b: c\n").contains("no YAML"));
    // Aliases that grow, and depth that has no end.
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let last = level - 1;
        let aliases = vec![format!("*a{last}"); 10].join(", ");
        laughs.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    assert!(wrong(&laughs).contains("no YAML"));
    assert!(wrong(&"[".repeat(100_000)).contains("no YAML"));
}

#[test]
fn references_are_followed_within_the_document_and_to_an_end() {
    let written = r##"{"openapi":"3.1.0","a":{"$ref":"#/b~1c/%7Bid%7D"},"b/c":{"{id}":{"found":1}},
        "x":{"$ref":"#/y"},"y":{"$ref":"#/x"},"out":{"$ref":"other.json#/a"},"none":{"$ref":"#/nowhere"}}"##;
    let document = Document::parse(written.as_bytes()).unwrap();
    let resolve = |name: &str| document.resolve(document.member(name).unwrap());
    assert_eq!(resolve("a").unwrap()["found"], 1);
    assert!(resolve("x").unwrap_err().contains("without end"));
    assert!(resolve("out").unwrap_err().contains("out of the document"));
    assert!(resolve("none").unwrap_err().contains("leads nowhere"));
}
