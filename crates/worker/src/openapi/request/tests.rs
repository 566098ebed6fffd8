use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use proptest::prelude::{any, proptest};
use serde_json::{Map, Value, json};

use super::{OperationRequest, build};
use crate::OpenApiConfig;
use crate::openapi::api::Api;
use crate::openapi::choice::ToolChoice;
use crate::openapi::document::Document;
use crate::openapi::source::DocumentSource;

fn api() -> Api {
    let parameter = |name: &str, place: &str| json!({ "name": name, "in": place, "schema": {} });
    let written = json!({
        "openapi": "3.1.0",
        "servers": [{ "url": "https://a.example/v1" }],
        "paths": { "/a/{x}/b": { "get": {
            "operationId": "get",
            "parameters": [
                parameter("x", "path"), parameter("q", "query"), parameter("all", "query"), parameter("h", "header"),
            ],
            "responses": {},
        } } },
    });
    let document = Document::parse(written.to_string().as_bytes()).unwrap();
    let config = OpenApiConfig::new("a.yaml");
    let source = DocumentSource::of(&config.document).unwrap();
    Api::compile(&document, &config, &ToolChoice::default(), &source, None).unwrap()
}

fn request(api: &Api, arguments: Value) -> Result<OperationRequest, String> {
    let arguments: Map<String, Value> = serde_json::from_value(arguments).unwrap();
    build(&api.operations["get"], &api.base, &arguments, &[])
}

proptest! {
    #[test]
    fn no_argument_leaves_its_place(x in any::<String>(), q in any::<String>(), h in any::<String>()) {
        let api = api();
        let Ok(request) = request(&api, json!({ "x": x, "q": q })) else {
            assert!(["", ".", ".."].contains(&&*x), "{x:?} is refused");
            return Ok(());
        };
        let url = &request.url;
        assert_eq!(url.origin(), api.base.origin());
        let segments: Vec<Cow<'_, str>> = url
            .path_segments()
            .unwrap()
            .map(|segment| percent_decode_str(segment).decode_utf8().unwrap())
            .collect();
        assert_eq!(segments, ["v1", "a", &x, "b"]);
        let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        assert_eq!(pairs, [("q".to_owned(), q)]);
        if let Ok(request) = self::request(&api, json!({ "x": "1", "h": h })) {
            assert_eq!(request.headers["h"].as_bytes(), h.as_bytes());
            assert_eq!(request.headers.len(), 2);
        }
    }
}

#[test]
fn the_members_of_an_object_do_not_take_the_place_of_other_parameters() {
    let api = api();
    let told = request(&api, json!({ "x": "1", "all": { "q": "mine" } })).unwrap_err();
    assert!(told.contains("must not have the member \"q\""), "{told}");
    let fine = request(&api, json!({ "x": "1", "all": { "r": 1 } })).unwrap();
    assert_eq!(fine.url.query(), Some("r=1"));
}
