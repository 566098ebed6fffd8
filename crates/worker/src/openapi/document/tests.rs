use serde_json::{Value, json};

use super::{Document, OpenApiVersion, PartLocation, Parts, text};

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
    assert!(wrong("swagger: '1.2'\n").contains("version \"1.2\" of Swagger"));
    assert!(wrong("{}").contains("no member `openapi`"));
    assert!(wrong("openapi: 4.0.0\n").contains("3.0, 3.1, 3.2 and Swagger 2.0 are supported"));
    assert!(wrong("{\"openapi\": ").contains("no JSON"));
    assert!(wrong("a: b: c\n").contains("no YAML"));
    // YAML whose aliases grow exponentially, and text that nests without limit.
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
    let resolve = |name: &str| document.resolve(&document.root[name]);
    assert_eq!(resolve("a").unwrap()["found"], 1);
    assert!(resolve("x").unwrap_err().contains("without end"));
    assert!(resolve("out").unwrap_err().contains("other.json"));
    assert!(resolve("none").unwrap_err().contains("leads nowhere"));
}

fn parsed(written: &str) -> Value {
    Document::parse(written.as_bytes()).unwrap().root
}

#[test]
fn members_that_are_null_are_not_there() {
    let document = parsed(
        "openapi: 3.0.3\ntags:\ninfo: {title: , version: 1.0}\npaths:\n  /a:\n    parameters:\n    get:\n      parameters:\n      - null\n      \
         - {name: id, in: query, required: , schema: {type: [string, null], enum: [null, a], default: , example: , properties: {p: }}}\n      \
         security: [{key: }]\n      responses: {200: }\n    post:\ncomponents: {examples: {e: {value: null}}}\n",
    );
    let get = &document["paths"]["/a"]["get"];
    assert!(document.get("tags").is_none() && document["info"].get("title").is_none());
    assert!(
        document["paths"]["/a"].get("parameters").is_none()
            && document["paths"]["/a"].get("post").is_none()
    );
    let schema = json!({ "type": ["string", "null"], "enum": [null, "a"], "default": null, "example": null, "properties": { "p": {} } });
    assert_eq!(
        get["parameters"],
        json!([{ "name": "id", "in": "query", "schema": schema }])
    );
    assert_eq!(get["security"], json!([{ "key": [] }]));
    assert_eq!(get["responses"], json!({ "200": {} }));
    assert!(document["components"]["examples"]["e"]["value"].is_null());
}

#[test]
fn yaml_is_read_as_people_write_it() {
    let document = parsed(
        "\u{feff}openapi: 3.0.3\nx-errors: &errors {401: {description: no}}\nx-more: &more {429: {description: later}}\n\
         a: {<<: *errors, 200: {description: ok}}\nb: {<<: [*errors, *more]}\nc:\n  <<: *errors\n  <<: *more\n\
         zero: 0123\ncodes: [NO, on, 1_000]\nlimits: [.inf, .nan, 1]\nday: 2024-01-01\ntwice: 1\ntwice: 2\n",
    );
    assert_eq!(
        document["a"],
        json!({ "401": { "description": "no" }, "200": { "description": "ok" } })
    );
    for merged in ["b", "c"] {
        assert_eq!(document[merged]["401"]["description"], "no");
        assert_eq!(document[merged]["429"]["description"], "later");
    }
    assert_eq!(document["zero"], "0123");
    assert_eq!(document["codes"], json!(["NO", "on", "1_000"]));
    assert_eq!(document["limits"], json!([1]));
    assert_eq!(document["day"], "2024-01-01");
    assert_eq!(document["twice"], 2);
    assert_eq!(parsed("{openapi: 3.1.0, a: 1}")["a"], 1);
    let wide: Vec<u8> = "\u{feff}openapi: 3.1.0\na: é\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert_eq!(Document::parse(&wide).unwrap().root["a"], "é");
}

#[test]
fn an_anchor_may_be_used_often_but_not_grow_without_end() {
    let many = "  - *limit\n".repeat(20_000);
    let document = parsed(&format!(
        "openapi: 3.1.0\nx-limit: &limit {{name: limit, in: query}}\nx-all:\n{many}"
    ));
    assert_eq!(document["x-all"].as_array().unwrap().len(), 20_000);
    let long = "y".repeat(1_000_000);
    let often = "*long, ".repeat(100);
    assert!(wrong(&format!("openapi: 3.1.0\na: &long {long}\nb: [{often}]\n")).contains("no YAML"));
    // Nested aliases of short lists.
    let mut laughs = format!("a0: &a0 [{}]\n", "x, ".repeat(200));
    for level in 1..4 {
        let aliases = vec![format!("*a{}", level - 1); 200].join(", ");
        laughs.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    assert!(wrong(&laughs).contains("no YAML"));
}

#[test]
fn parts_become_one_document() {
    let location = |name: &str| PartLocation::File(name.into());
    let root = json!({
        "openapi": "3.1.0", "$self": "https://a.example/openapi",
        "paths": { "/a": { "$ref": "paths/a.yml#/item" }, "/b": { "get": { "$ref": "gone.yml" } } },
        "schemas": { "$ref": { "type": "string" } },
        "one": { "$ref": "https://a.example/openapi#/schemas/$ref" },
        "example": { "$ref": "no-reference.yml" },
        "up": { "$ref": "../secret.yml" }, "abs": { "$ref": "/etc/passwd" }, "kind": { "$ref": "file:///etc/passwd" },
    });
    let mut parts = Parts::new(root, location("openapi.yml"));
    assert_eq!(
        parts.take_wanted(),
        [location("paths/a.yml"), location("gone.yml")]
    );
    let item = json!({ "item": { "get": { "$ref": "#/op" }, "put": { "$ref": "../openapi.yml#/schemas/$ref" } }, "op": { "$ref": "./b%20c/a.json" } });
    parts.add(&location("paths/a.yml"), Ok(item));
    parts.add(&location("gone.yml"), Err("it is not there".to_owned()));
    assert_eq!(parts.take_wanted(), [location("paths/b c/a.json")]);
    let last = json!({ "x": 1, "back": { "$ref": "../a.yml#/item/get" } });
    parts.add(&location("paths/b c/a.json"), Ok(last));
    assert_eq!(parts.take_wanted(), []);
    let document = Document::of(parts).unwrap();
    let item = document.resolve(&document.root["paths"]["/a"]).unwrap();
    let get = document.resolve(&item["get"]).unwrap();
    assert_eq!(get["x"], 1);
    assert_eq!(document.resolve(&get["back"]).unwrap()["x"], 1);
    assert_eq!(document.resolve(&item["put"]).unwrap()["type"], "string");
    assert_eq!(
        document.resolve(&document.root["one"]).unwrap()["type"],
        "string"
    );
    let why = |value: &Value| document.resolve(value).unwrap_err();
    assert!(why(&document.root["paths"]["/b"]["get"]).contains("gone.yml: it is not there"));
    for member in ["up", "abs"] {
        let told = why(&document.root[member]);
        assert!(
            told.contains("not below the directory of the document"),
            "{told}"
        );
    }
    assert!(why(&document.root["kind"]).contains("file: are not followed"));
    assert_eq!(document.root["example"]["$ref"], "no-reference.yml");
}

#[test]
fn parts_of_a_url_are_urls() {
    let location = |url: &str| PartLocation::Url(url.parse().unwrap());
    let root = json!({ "openapi": "3.1.0", "a": { "$ref": "../b.json" }, "c": { "$ref": "//other.example/c" }, "e": { "$ref": "file:///etc/passwd" } });
    let mut parts = Parts::new(root, location("https://a.example/x/openapi.json"));
    assert_eq!(
        parts.take_wanted(),
        [
            location("https://a.example/b.json"),
            location("https://other.example/c")
        ]
    );
}
