use serde_json::json;
use shoal_dispatch::Config;
use shoal_ports::{CatalogSettings, PoolCatalog};
use shoal_protocol::{Method, RawJson, Revision, code};

use crate::fake_worker::FakeWorker;
use crate::setting::{CallExt as _, call, configured, items, legacy, modern, setting, tools};

const LEGACY: Revision = Revision::V2025_11_25;
const MODERN: Revision = Revision::V2026_07_28;

fn adder() -> PoolCatalog {
    PoolCatalog {
        tools: items(json!([{"name":"add","inputSchema":{"type":"object",
            "properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}}])),
        ..PoolCatalog::default()
    }
}

fn resources(uris: &[&str], templates: &[&str]) -> PoolCatalog {
    let uris: Vec<_> = uris.iter().map(|u| json!({"uri":u,"name":u})).collect();
    let templates = templates.iter().map(|t| json!({"uriTemplate":t,"name":t}));
    PoolCatalog {
        resources: items(uris.into()),
        resource_templates: items(templates.collect::<Vec<_>>().into()),
        ..PoolCatalog::default()
    }
}

#[tokio::test]
async fn arguments_that_fail_the_schema_are_an_execution_error() {
    let setting = setting();
    let worker = setting.add(FakeWorker::new("w1", "a", adder()));
    let result = setting.result(legacy("add", json!({"a":"one"}))).await;
    assert_eq!(result["isError"], true);
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("/a") && text.contains("number") && text.contains("\"b\""),
        "{text}"
    );
    let result = setting.result(modern("add", json!({"a":1}))).await;
    assert_eq!(
        (&result["isError"], &result["resultType"]),
        (&json!(true), &json!("complete"))
    );
    assert_eq!(worker.calls(), 0);
    setting.result(legacy("add", json!({"a":1,"b":2}))).await;
    assert_eq!(worker.calls(), 1);
}

#[tokio::test]
async fn half_of_a_surrogate_pair_reaches_the_server_and_the_rest_is_checked() {
    let setting = setting();
    let worker = setting.add(FakeWorker::new("w1", "a", adder()));
    let mut sent = legacy("add", json!({}));
    sent.params = Some(RawJson::from_static(
        r#"{"name":"add","arguments":{"a":1,"b":2,"c":"\ud800"}}"#,
    ));
    setting.result(sent).await;
    assert_eq!(worker.calls(), 1);
    let mut wrong = legacy("add", json!({}));
    wrong.params = Some(RawJson::from_static(
        r#"{"name":"add","arguments":{"a":1,"c":"\ud800"}}"#,
    ));
    let result = setting.result(wrong).await;
    assert_eq!(result["isError"], true);
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("\"b\""), "{text}");
    assert_eq!(worker.calls(), 1);
}

#[tokio::test]
async fn absent_arguments_count_as_none_and_others_must_be_an_object() {
    let setting = setting();
    let worker = setting.add(FakeWorker::new("w1", "a", adder()));
    let result = setting
        .result(call(LEGACY, Method::ToolsCall, json!({"name":"add"})))
        .await;
    assert_eq!(result["isError"], true);
    let error = setting.error(legacy("add", json!([1, 2]))).await;
    assert_eq!(error.code, code::INVALID_PARAMS);
    assert_eq!(worker.calls(), 0);
}

#[tokio::test]
async fn validation_can_be_switched_off() {
    let setting = configured(Config {
        catalog: CatalogSettings {
            validate_arguments: false,
            ..Config::default().catalog
        },
        ..Config::default()
    });
    let worker = setting.add(FakeWorker::new("w1", "a", adder()));
    setting.result(legacy("add", json!({}))).await;
    assert_eq!(worker.calls(), 1);
}

#[tokio::test]
async fn unknown_and_missing_names_are_invalid_params() {
    let setting = setting();
    setting.add(FakeWorker::new("w1", "a", tools(&["one"])));
    // With several pools of prompts, an unlisted prompt goes to no pool.
    setting.add(FakeWorker::new("w2", "b", tools(&["two"])));
    for revision in [LEGACY, MODERN] {
        for (method, params, message) in [
            (Method::ToolsCall, json!({"name":"no"}), "unknown tool: no"),
            (
                Method::PromptsGet,
                json!({"name":"no"}),
                "unknown prompt: no",
            ),
            (Method::ToolsCall, json!({}), "params.name must be a string"),
            (
                Method::ToolsCall,
                json!({"name":1}),
                "params.name must be a string",
            ),
            (
                Method::ResourcesRead,
                json!({}),
                "params.uri must be a string",
            ),
            (Method::Complete, json!({}), "params.ref must be an object"),
            (
                Method::Complete,
                json!({"ref":{"type":"x"}}),
                "params.ref.type must be \"ref/prompt\" or \"ref/resource\"",
            ),
        ] {
            let error = setting.error(call(revision, method, params)).await;
            assert_eq!(
                (error.code, error.message.as_str()),
                (code::INVALID_PARAMS, message)
            );
        }
    }
}

#[tokio::test]
async fn a_method_that_no_pool_supports_is_not_found() {
    let setting = setting();
    setting.add(FakeWorker::new("w1", "a", adder()));
    let reference = json!({"ref":{"type":"ref/prompt","name":"x"}});
    for (method, params) in [
        (Method::Complete, reference),
        (Method::ResourcesRead, json!({"uri":"x://y"})),
        (Method::PromptsGet, json!({"name":"x"})),
        (Method::SetLevel, json!({})),
    ] {
        let error = setting.error(call(LEGACY, method, params)).await;
        assert_eq!(error.code, code::METHOD_NOT_FOUND);
    }
}

#[tokio::test]
async fn an_unknown_resource_has_the_code_of_its_era() {
    let setting = setting();
    setting.add(FakeWorker::new("w1", "a", resources(&["a://1"], &[])));
    setting.add(FakeWorker::new("w2", "b", resources(&["b://1"], &[])));
    for (revision, expected) in [(LEGACY, -32002), (MODERN, -32602)] {
        let params = json!({"uri":"c://\"1\""});
        let error = setting
            .error(call(revision, Method::ResourcesRead, params))
            .await;
        assert_eq!(error.code, expected);
        let data: serde_json::Value = error.data.unwrap().read().unwrap();
        assert_eq!(data, json!({"uri":"c://\"1\""}));
    }
}

#[tokio::test]
async fn a_resource_is_found_by_uri_then_template_then_the_only_pool() {
    let setting = setting();
    let a = setting.add(FakeWorker::new(
        "w1",
        "a",
        resources(&["x://1"], &["t://{id}/a"]),
    ));
    let read = |uri: &str| call(LEGACY, Method::ResourcesRead, json!({"uri":uri}));
    setting.result(read("unlisted://1")).await;
    assert_eq!(a.calls(), 1);
    let b = setting.add(FakeWorker::new(
        "w2",
        "b",
        resources(&["t://9/a"], &["t://{+rest}"]),
    ));
    for (uri, a_calls, b_calls) in [
        ("x://1", 2, 0),
        ("t://9/a", 2, 1),
        ("t://8/a", 3, 1),
        ("t://8/b", 3, 2),
    ] {
        setting.result(read(uri)).await;
        assert_eq!((a.calls(), b.calls()), (a_calls, b_calls), "{uri}");
    }
}

#[tokio::test]
async fn a_completion_goes_to_the_pool_of_its_reference() {
    let setting = setting();
    let completing = |mut catalog: PoolCatalog| {
        catalog.capabilities.0 = RawJson::from_static(r#"{"completions":{}}"#);
        catalog
    };
    let a = setting.add(FakeWorker::new(
        "w1",
        "a",
        completing(resources(&[], &["a://{x}"])),
    ));
    let mut catalog = completing(resources(&[], &["b://{x}"]));
    catalog.prompts = items(json!([{"name":"p"}]));
    let b = setting.add(FakeWorker::new("w2", "b", catalog));
    for (reference, counts) in [
        (json!({"type":"ref/resource","uri":"a://{x}"}), (1, 0)),
        (json!({"type":"ref/resource","uri":"b://7"}), (1, 1)),
        (json!({"type":"ref/prompt","name":"p"}), (1, 2)),
    ] {
        let params = json!({"ref":reference,"argument":{"name":"x","value":""}});
        setting.result(call(MODERN, Method::Complete, params)).await;
        assert_eq!((a.calls(), b.calls()), counts);
    }
}

#[tokio::test]
async fn a_request_state_of_a_legacy_client_reaches_no_backend() {
    let setting = setting();
    let worker = setting.add(FakeWorker::new("w1", "a", tools(&["one"])));
    let forged = legacy("one", json!({}))
        .with("requestState", json!("forged"))
        .with("inputResponses", json!({}));
    setting.result(forged).await;
    assert_eq!(worker.last_params(), json!({"name":"one","arguments":{}}));
}
