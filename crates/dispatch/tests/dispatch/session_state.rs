use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use shoal_ports::{AskId, CallEventKind, StateRequest};
use shoal_protocol::{Outcome, RawJson};

use crate::fake_worker::FakeWorker;
use crate::setting::{CallExt as _, finish, legacy, modern, result, setting, tools};

fn keeping() -> FakeWorker {
    FakeWorker::new("w1", "a", tools(&["keep"])).on_call(|call, mut script| async move {
        let params: Value = call.params.as_ref().unwrap().read().unwrap();
        let again = params.get("requestState").is_some();
        let told = script.keep(1, StateRequest::Keys).await;
        let modern = params["arguments"]["modern"] == true;
        if again || modern {
            let said = json!({ "content": [], "structuredContent": { "told": told } });
            script.result(&said.to_string()).await;
        } else {
            script
                .result(r#"{"resultType":"input_required","requestState":"s"}"#)
                .await;
        }
    })
}

#[tokio::test]
async fn requests_of_every_round_reach_a_legacy_callers_session_under_names_of_their_own() {
    let setting = setting();
    setting.add(keeping());
    let mut running = setting.start(legacy("keep", json!({}))).await.unwrap();
    let mut names: Vec<AskId> = Vec::new();
    for _ in 0..2 {
        let event = running.events.next().await.unwrap();
        let CallEventKind::State { ask, request } = event.kind else {
            panic!("{event:?}")
        };
        assert_eq!(request, StateRequest::Keys);
        assert!(!names.contains(&ask));
        names.push(ask);
        let answer = Outcome::Result(RawJson::from_static(r#"{"keys":[]}"#));
        assert!(running.control.answer(ask, answer).await);
    }
    let (before, outcome) = finish(&mut running).await;
    assert!(before.is_empty(), "{before:?}");
    let told = &result(outcome)["structuredContent"]["told"];
    assert_eq!(told, r#"{"keys":[]}"#);
}

#[tokio::test]
async fn a_modern_callers_tool_is_told_at_once_that_there_is_no_session() {
    let setting = setting();
    setting.add(keeping());
    let call = modern("keep", json!({ "modern": true }));
    let mut running = setting.start(call).await.unwrap();
    let (before, outcome) = finish(&mut running).await;
    assert!(before.is_empty(), "{before:?}");
    let result = result(outcome);
    let told = result["structuredContent"]["told"].as_str().unwrap();
    assert!(told.contains("an explicit handle instead"), "{told}");
}

#[tokio::test]
async fn a_call_that_is_safe_to_repeat_runs_again_after_it_kept_something() {
    let setting = setting();
    let runs = Arc::new(AtomicUsize::new(0));
    for id in ["w1", "w2"] {
        let runs = runs.clone();
        let worker = FakeWorker::new(id, "a", tools(&["keep"]));
        setting.add(worker.on_call(move |_, mut script| {
            let first = runs.fetch_add(1, Ordering::SeqCst) == 0;
            async move {
                let value = Some(RawJson::from_static("1"));
                script.ask_session(1, StateRequest::set("k", value)).await;
                if !first {
                    script.answer().await;
                    script.result(r#"{"content":[]}"#).await;
                }
            }
        }));
    }
    let call = legacy("keep", json!({})).repeatable();
    let mut running = setting.start(call).await.unwrap();
    let mut writings = Vec::new();
    for _ in 0..2 {
        let event = running.events.next().await.unwrap();
        let CallEventKind::State { ask, request } = event.kind else {
            panic!("{event:?}")
        };
        let StateRequest::Set { writing, .. } = request else {
            panic!("{request:?}")
        };
        writings.push((ask, writing));
    }
    let (ask, _) = writings[1];
    let kept = Outcome::Result(RawJson::from_static("{}"));
    assert!(running.control.answer(ask, kept).await);
    finish(&mut running).await;
    let [(first, one), (second, other)] = writings[..] else {
        panic!("two runs")
    };
    assert_eq!(first, second, "each run counts from the beginning");
    assert_ne!(one, other, "and writes anew");
}
