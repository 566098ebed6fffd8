use proptest::prelude::{Just, Strategy, any, prop_oneof};
use serde_json::{Value, json};
use shoal_ports::{CallOutcome, PoolCatalog};
use shoal_protocol::{Method, RawJson, Revision, RpcError};

use crate::fake_worker::FakeWorker;
use crate::script::Script;
use crate::setting::{
    CallExt as _, call, configured, finish, items, legacy, modern, setting, tools,
};

const INFO: &str = "io.modelcontextprotocol/serverInfo";

async fn returned(call: shoal_ports::Call, raw: String) -> RawJson {
    let setting = setting();
    let worker = FakeWorker::new("w1", "a", tools(&["t"])).on_call(move |_, mut script| {
        let raw = raw.clone();
        async move { script.result(&raw).await }
    });
    setting.add(worker);
    match setting.outcome(call).await {
        CallOutcome::Result(result) => result,
        other => panic!("no result: {other:?}"),
    }
}

#[tokio::test]
async fn a_legacy_result_is_the_backends_own_bytes() {
    let raw = r#"{ "content":[ ] , "x":1.0}"#;
    let result = returned(legacy("t", json!({})), raw.into()).await;
    assert_eq!(result.as_str(), raw);
    let typed = r#"{"resultType":"complete","content":[1.0]}"#;
    let result = returned(legacy("t", json!({})), typed.into()).await;
    assert_eq!(result.as_str(), r#"{"content":[1.0]}"#);
}

#[tokio::test]
async fn a_result_that_no_client_can_read_is_an_error_in_either_era() {
    for raw in [r#""done""#, "[1]", "7", "null", "{}", r#"{"content":"x"}"#] {
        for call in [legacy("t", json!({})), modern("t", json!({}))] {
            let setting = setting();
            let worker = FakeWorker::new("w1", "a", tools(&["t"]));
            setting
                .add(worker.on_call(move |_, mut script| async move { script.result(raw).await }));
            let error = setting.error(call).await;
            assert_eq!(error.code, shoal_protocol::code::INTERNAL_ERROR, "{raw}");
            let told = "the call has run, but the server's answer cannot be passed on";
            assert!(error.message.starts_with(told), "{raw}: {}", error.message);
        }
    }
}

#[tokio::test]
async fn a_resource_keeps_the_hints_that_its_backend_gave() {
    let catalog = || PoolCatalog {
        resources: items(json!([{"uri":"r://1","name":"r"}])),
        ..PoolCatalog::default()
    };
    for (raw, ttl, scope) in [
        (r#"{"contents":[]}"#, 0, "private"),
        (r#"{"contents":[],"ttlMs":5}"#, 5, "private"),
        (r#"{"contents":[],"cacheScope":"public"}"#, 0, "public"),
    ] {
        let setting = configured(Default::default());
        setting.add(
            FakeWorker::new("w1", "a", catalog())
                .on_call(move |_, mut script| async move { script.result(raw).await }),
        );
        let params = json!({"uri":"r://1"});
        let read = call(Revision::V2026_07_28, Method::ResourcesRead, params);
        let result = setting.result(read).await;
        assert_eq!(
            (&result["ttlMs"], &result["cacheScope"]),
            (&json!(ttl), &json!(scope))
        );
    }
}

#[tokio::test]
async fn an_error_code_of_the_other_era_is_translated_for_modern_callers() {
    for (revision, sent, expected) in [
        (Revision::V2026_07_28, -32002, -32602),
        (Revision::V2026_07_28, -32000, -32000),
        (Revision::V2025_11_25, -32002, -32002),
        (Revision::V2025_11_25, -32602, -32602),
    ] {
        let setting = setting();
        setting.add(FakeWorker::new("w1", "a", tools(&["t"])).on_call(
            move |_, mut script| async move {
                let error = RpcError::new(sent, "no such thing");
                script.outcome(CallOutcome::Error(error)).await;
            },
        ));
        let call = call(revision, Method::ToolsCall, json!({"name":"t"}));
        assert_eq!(setting.error(call).await.code, expected);
    }
}

#[tokio::test]
async fn a_code_that_is_not_the_backends_to_say_becomes_an_internal_error() {
    const MODERN: Revision = Revision::V2026_07_28;
    const LEGACY: Revision = Revision::V2025_11_25;
    for (revision, sent, expected) in [
        (MODERN, -32020, -32603),
        (MODERN, -32021, -32021),
        (MODERN, -32022, -32603),
        (MODERN, -32023, -32603),
        (MODERN, -32042, -32603),
        (MODERN, -32099, -32603),
        (MODERN, -32019, -32019),
        (MODERN, -32100, -32100),
        (LEGACY, -32020, -32603),
        (LEGACY, -32021, -32600),
        (LEGACY, -32022, -32603),
        (LEGACY, -32023, -32023),
        (LEGACY, -32042, -32042),
        (Revision::V2025_06_18, -32042, -32603),
        (Revision::V2024_11_05, -32042, -32603),
    ] {
        for here in [true, false] {
            let said = RpcError::new(sent, "as I say").with_data(RawJson::from_static("[1]"));
            let ended = said.clone();
            let worker =
                FakeWorker::new("w1", "a", tools(&["t"])).on_call(move |_, mut script: Script| {
                    let said = said.clone();
                    async move { script.outcome(CallOutcome::Error(said)).await }
                });
            let setting = setting();
            setting.add(match here {
                true => worker.here(move |_| Some(CallOutcome::Error(ended.clone()))),
                false => worker,
            });
            let call = call(revision, Method::ToolsCall, json!({"name":"t"})).repeatable();
            let outcome = match setting.start_now(&call) {
                Some(started) if here => finish(&mut started.unwrap()).await.1,
                _ => setting.outcome(call).await,
            };
            let CallOutcome::Error(error) = outcome else {
                panic!("no error: {outcome:?}");
            };
            assert_eq!(error.code, expected, "{revision} {sent}");
            assert_eq!(error.message, "as I say");
            let data: Value = error.data.unwrap().read().unwrap();
            match expected {
                -32603 => assert_eq!(data, json!({"backendError": {"code": sent, "data": [1]}})),
                _ => assert_eq!(data, json!([1])),
            }
        }
    }
}

#[tokio::test]
async fn no_backend_is_asked_for_a_task() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let setting = setting();
        let worker = setting.add(FakeWorker::new("w1", "a", tools(&["t"])));
        let params = json!({"name":"t","arguments":{"task":1},"task":{"ttl":60000}});
        setting
            .result(call(revision, Method::ToolsCall, params))
            .await;
        let passed = worker.last_params();
        assert_eq!(passed, json!({"name":"t","arguments":{"task":1}}));
    }
}

#[tokio::test]
async fn the_server_is_named_as_itself_whatever_the_backend_says() {
    for raw in [
        r#"{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"behind"},"k":1},"content":[]}"#,
        r#"{"_meta":{"k":1},"content":[]}"#,
        r#"{"content":[],"_meta": { "k":1 } }"#,
    ] {
        let result = returned(modern("t", json!({})), raw.into()).await;
        let result: Value = result.read().unwrap();
        assert_eq!(result["_meta"][INFO]["name"], "fake");
        assert_eq!(result["_meta"]["k"], 1);
    }
}

/// Spellings that serializers do not produce.
fn json_text() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just("1.0".to_owned()),
        Just("12345678901234567890123".to_owned()),
        Just("1e5".to_owned()),
        Just(r#""\u0061}{\"""#.to_owned()),
        any::<i32>().prop_map(|n| n.to_string()),
        "[a-z ]{0,6}".prop_map(|s| format!("\"{s}\"")),
    ];
    scalar.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4)
                .prop_map(|items| format!("[ {}]", items.join(" ,"))),
            object(inner),
        ]
    })
}

fn object(value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    proptest::collection::btree_map("[a-z]{1,4}", value, 0..4).prop_map(|members| {
        let members: Vec<_> = members
            .into_iter()
            .map(|(key, value)| format!("\"{key}\" : {value}"))
            .collect();
        let content = "\"content\" : [ ]".to_owned();
        let members: Vec<_> = members.into_iter().chain([content]).collect();
        format!("{{ {} }}", members.join(" , "))
    })
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    #[test]
    fn results_pass_byte_for_byte_apart_from_what_is_added(raw in object(json_text())) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let legacy = returned(legacy("t", json!({})), raw.clone()).await;
            assert_eq!(legacy.as_str(), raw);
            let modern = returned(modern("t", json!({})), raw.clone()).await;
            let added = format!(
                r#"{{"resultType":"complete","_meta":{{"{INFO}":{{"name":"fake","version":"1"}}}}"#
            );
            let rest = modern.as_str().strip_prefix(&added).expect("added in front");
            let rest = rest.strip_prefix(',').expect("there is more");
            assert_eq!(rest, &raw[1..]);
            RawJson::parse_text(modern.to_bytes()).expect("still JSON");
        });
    }
}
