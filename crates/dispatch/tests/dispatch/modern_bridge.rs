use std::time::Duration;

use serde_json::{Value, json};
use shoal_dispatch::Config;
use shoal_ports::{Call, CallSettings};
use shoal_protocol::{Method, Revision, code};

use crate::fake_worker::{FakeWorker, Script};
use crate::setting::{CallExt as _, Setting, call, configured, modern, setting, tools};

fn params(call: &Call) -> Value {
    call.params.as_ref().unwrap().read().unwrap()
}

async fn asks(call: Call, mut script: Script) {
    let params = params(&call);
    if params
        .get("inputResponses")
        .is_some_and(|r| r.get("who").is_some())
    {
        let said = json!({"content":[],"structuredContent":params});
        return script.result(&said.to_string()).await;
    }
    let mut ask = json!({"resultType":"input_required","inputRequests":{
        "who":{"method":"elicitation/create","params":{"message":"?"}}}});
    if params["arguments"]["stateful"] == true {
        ask["requestState"] = json!("the backend's own");
    }
    script.result(&ask.to_string()).await;
}

fn asking(config: Config) -> Setting {
    let setting = configured(config);
    let catalog = tools(&["ask", "other"]);
    setting.add(FakeWorker::new("w1", "a", catalog).on_call(asks));
    setting
}

async fn first_round(setting: &Setting, arguments: Value) -> (Value, Call) {
    let first = setting.result(modern("ask", arguments.clone())).await;
    let retry = modern("ask", arguments)
        .with("requestState", first["requestState"].clone())
        .with(
            "inputResponses",
            json!({"who":{"action":"accept"},"extra":{}}),
        );
    (first, retry)
}

#[tokio::test]
async fn a_backends_state_travels_sealed() {
    let setting = asking(Config::default());
    let (first, retry) = first_round(&setting, json!({"stateful":true})).await;
    assert_eq!(first["resultType"], "input_required");
    assert_eq!(
        first["inputRequests"]["who"]["method"],
        "elicitation/create"
    );
    assert!(first.get("ttlMs").is_none());
    assert!(!first["requestState"].as_str().unwrap().contains("backend"));
    let second = setting.result(retry).await;
    assert_eq!(second["resultType"], "complete");
    let seen = &second["structuredContent"];
    assert_eq!(seen["requestState"], "the backend's own");
    assert_eq!(seen["inputResponses"]["who"], json!({"action":"accept"}));
}

#[tokio::test]
async fn a_backend_without_state_sees_none() {
    let setting = asking(Config::default());
    let (_, retry) = first_round(&setting, json!({})).await;
    let second = setting.result(retry).await;
    assert!(second["structuredContent"].get("requestState").is_none());
    let unasked = modern("ask", json!({})).with("inputResponses", json!({"who":{}}));
    assert_eq!(setting.result(unasked).await["resultType"], "complete");
}

#[tokio::test]
async fn a_state_is_good_only_for_its_principal_and_its_request() {
    let setting = asking(Config::default());
    let (first, retry) = first_round(&setting, json!({"stateful":true})).await;
    let tampered = format!("{}-TAMPERED", first["requestState"].as_str().unwrap());
    let other_tool = modern("other", json!({"stateful":true}));
    for wrong in [
        retry.clone().with("requestState", json!(tampered)),
        retry.clone().with("requestState", json!("")),
        retry.clone().with("requestState", json!(7)),
        retry
            .clone()
            .with("requestState", json!("the backend's own")),
        retry
            .clone()
            .with("arguments", json!({"stateful":true,"more":1})),
        retry.clone().from("mallory"),
        other_tool.with("requestState", first["requestState"].clone()),
    ] {
        let error = setting.error(wrong).await;
        assert_eq!(error.code, code::INVALID_PARAMS);
        assert_eq!(
            error.message,
            "requestState is not valid for this request; all edges need the same state_keys"
        );
    }
    setting.result(retry).await;
}

#[tokio::test]
async fn a_state_expires() {
    let setting = asking(Config {
        calls: CallSettings {
            clock_skew: Duration::ZERO.into(),
            input_timeout: Duration::ZERO.into(),
            ..CallSettings::default()
        },
        ..Config::default()
    });
    let (_, retry) = first_round(&setting, json!({})).await;
    let error = setting.error(retry).await;
    assert!(error.message.contains("has expired"), "{error}");
    // The state has expired, but another node's clock may be behind.
    let setting = asking(Config {
        calls: CallSettings {
            input_timeout: Duration::ZERO.into(),
            ..CallSettings::default()
        },
        ..Config::default()
    });
    let (_, retry) = first_round(&setting, json!({})).await;
    setting.result(retry).await;
}

#[tokio::test]
async fn missing_answers_are_asked_for_again_and_malformed_ones_refused() {
    let setting = asking(Config::default());
    let (_, retry) = first_round(&setting, json!({"stateful":true})).await;
    let none = retry
        .clone()
        .with("inputResponses", json!({"unrelated":{}}));
    assert_eq!(setting.result(none).await["resultType"], "input_required");
    let unset = modern("ask", json!({})).with("inputResponses", json!(null));
    let unset = unset.with("requestState", json!(null));
    assert_eq!(setting.result(unset).await["resultType"], "input_required");
    for malformed in [json!(1), json!([1]), json!("x")] {
        let call = modern("ask", json!({})).with("inputResponses", malformed);
        assert_eq!(setting.error(call).await.code, code::INVALID_PARAMS);
    }
}

#[tokio::test]
async fn a_capability_that_was_not_declared_is_named() {
    let setting = asking(Config::default());
    let call = modern("ask", json!({})).able(r#"{"sampling":{}}"#);
    let error = setting.error(call).await;
    assert_eq!(error.code, code::MISSING_CLIENT_CAPABILITY);
    let data: Value = error.data.unwrap().read().unwrap();
    assert_eq!(data["requiredCapabilities"], json!({"elicitation":{}}));
}

#[tokio::test]
async fn a_backend_that_breaks_the_rules_is_an_internal_error() {
    for broken in [
        r#"{"resultType":"input_required"}"#,
        r#"{"resultType":"input_required","inputRequests":{}}"#,
        r#"{"resultType":"input_required","inputRequests":{"a":{"params":{}}}}"#,
        r#"{"resultType":"input_required","requestState":7}"#,
        r#"{"resultType":"input_required","inputRequests":{"a":{"method":"tools/call"}}}"#,
    ] {
        let setting = setting();
        setting.add(
            FakeWorker::new("w1", "a", tools(&["ask"]))
                .on_call(move |_, mut script| async move { script.result(broken).await }),
        );
        let error = setting.error(modern("ask", json!({}))).await;
        assert_eq!(error.code, code::INTERNAL_ERROR, "{broken}");
    }
    let setting = setting();
    let mut catalog = tools(&[]);
    catalog.prompts = crate::setting::items(json!([{"name":"p"}]));
    setting.add(FakeWorker::new("w1", "a", catalog).on_call(asks));
    let params = json!({"ref":{"type":"ref/prompt","name":"p"}});
    let complete = call(Revision::V2026_07_28, Method::Complete, params);
    assert_eq!(setting.error(complete).await.code, code::INTERNAL_ERROR);
}
