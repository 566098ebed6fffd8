use serde_json::{Value, json};
use shoal_dispatch::Config;
use shoal_ports::{Call, CallEventKind, CallFailure, CallOutcome, CallSettings, RunningCall};
use shoal_protocol::{Method, Outcome, RawJson, Revision, RpcError, code};

use crate::fake_worker::{FakeWorker, Script};
use crate::setting::{
    CallExt as _, Setting, call, configured, finish, items, legacy, result, setting, tools,
};

const ASK: &str = r#"{"resultType":"input_required","requestState":"s1","inputRequests":{
    "who":{"method":"elicitation/create","params":{"message":"?"}},
    "where":{"method":"roots/list"}}}"#;

fn params(call: &Call) -> Value {
    call.params.as_ref().unwrap().read().unwrap()
}

async fn asks_once(call: Call, mut script: Script) {
    let params = params(&call);
    match params.get("requestState") {
        None => script.result(ASK).await,
        Some(_) => {
            let said = json!({"content":[],"structuredContent":params});
            script.result(&said.to_string()).await;
        }
    }
}

fn with(tool: FakeWorker) -> Setting {
    let setting = setting();
    setting.add(tool);
    setting
}

fn asking() -> FakeWorker {
    FakeWorker::new("w1", "a", tools(&["ask"])).on_call(asks_once)
}

async fn answer_all(running: &mut RunningCall) -> (usize, CallOutcome) {
    let mut asked = 0;
    loop {
        match running.events.next().await.expect("a call ends").kind {
            CallEventKind::Ask { ask, method, .. } => {
                asked += 1;
                let answer = RawJson::of(&json!({"answer":method.as_str()}));
                let answer = Outcome::Result(answer);
                assert!(running.control.answer(ask, answer.clone()).await);
                assert!(!running.control.answer(ask, answer).await);
            }
            CallEventKind::Finished(outcome) => return (asked, outcome),
            _ => {}
        }
    }
}

#[tokio::test]
async fn questions_of_a_running_call_are_passed_on() {
    let setting = with(FakeWorker::new("w1", "a", tools(&["ask"])).on_call(
        |_, mut script| async move {
            script.notify(Method::Progress, r#"{"progress":1}"#).await;
            let answer = script.elicit(7).await;
            script.close_stream().await;
            script.say(&answer).await;
        },
    ));
    let mut running = setting.start(legacy("ask", json!({}))).await.unwrap();
    let progress = running.events.next().await.unwrap();
    assert!(matches!(progress.kind, CallEventKind::Notification { .. }));
    let CallEventKind::Ask { ask, .. } = running.events.next().await.unwrap().kind else {
        panic!("no question");
    };
    let answer = RawJson::from_static(r#"{"action":"accept"}"#);
    assert!(running.control.answer(ask, Outcome::Result(answer)).await);
    let (before, outcome) = finish(&mut running).await;
    assert!(matches!(
        before.as_slice(),
        [CallEventKind::CloseStream { .. }]
    ));
    assert_eq!(
        result(outcome)["structuredContent"],
        json!({"action":"accept"})
    );
}

#[tokio::test]
async fn required_input_is_asked_for_and_the_backend_called_again() {
    let setting = setting();
    let worker = setting.add(asking());
    let call = legacy("ask", json!({"x":1}));
    let first = call.id;
    let mut running = setting.start(call).await.unwrap();
    let (asked, outcome) = answer_all(&mut running).await;
    assert_eq!(asked, 2);
    assert_eq!(
        result(outcome)["structuredContent"],
        json!({"name":"ask","arguments":{"x":1},"requestState":"s1","inputResponses":{
            "who":{"answer":"elicitation/create"},"where":{"answer":"roots/list"}}})
    );
    let started = worker.started.lock();
    assert_eq!(started.len(), 2);
    assert!(started[0].id == first && started[1].id != first);
}

#[tokio::test]
async fn prompts_and_resources_may_require_input_too() {
    for (method, params) in [
        (Method::PromptsGet, json!({"name":"p"})),
        (Method::ResourcesRead, json!({"uri":"r://1"})),
    ] {
        let mut catalog = tools(&[]);
        catalog.prompts = items(json!([{"name":"p"}]));
        catalog.resources = items(json!([{"uri":"r://1","name":"r"}]));
        let setting = with(FakeWorker::new("w1", "a", catalog).on_call(asks_once));
        let call = call(Revision::V2025_06_18, method, params);
        let mut running = setting.start(call).await.unwrap();
        assert_eq!(answer_all(&mut running).await.0, 2);
    }
}

#[tokio::test]
async fn a_later_round_may_ask_mid_call() {
    let setting = with(FakeWorker::new("w1", "a", tools(&["ask"])).on_call(
        |call, mut script| async move {
            match params(&call).get("requestState") {
                None => script.result(ASK).await,
                Some(_) => {
                    let answer = script.elicit(1).await;
                    script.say(&answer).await;
                }
            }
        },
    ));
    let mut running = setting.start(legacy("ask", json!({}))).await.unwrap();
    let (asked, outcome) = answer_all(&mut running).await;
    assert_eq!(
        (asked, result(outcome)["structuredContent"].clone()),
        (3, json!({"answer":"elicitation/create"}))
    );
}

#[tokio::test]
async fn rounds_are_limited() {
    let worker = FakeWorker::new("w1", "a", tools(&["ask"]))
        .on_call(|_, mut script| async move { script.result(ASK).await });
    let setting = configured(Config {
        calls: CallSettings {
            input_rounds: 3,
            ..CallSettings::default()
        },
        ..Config::default()
    });
    let worker = setting.add(worker);
    let mut running = setting.start(legacy("ask", json!({}))).await.unwrap();
    let (asked, outcome) = answer_all(&mut running).await;
    let CallOutcome::Error(error) = outcome else {
        panic!("no error");
    };
    assert!(error.message.contains("more than 3 times"), "{error}");
    assert_eq!((asked, worker.calls()), (6, 4));
}

#[tokio::test]
async fn a_client_that_cannot_answer_is_not_asked() {
    let setting = with(asking());
    let call = legacy("ask", json!({})).able(r#"{"elicitation":{}}"#);
    let mut running = setting.start(call).await.unwrap();
    let (before, outcome) = finish(&mut running).await;
    assert!(before.is_empty());
    assert!(matches!(outcome, CallOutcome::Error(e) if e.message.contains("roots")));
}

#[tokio::test]
async fn an_error_for_an_answer_ends_the_call() {
    let setting = setting();
    let worker = setting.add(asking());
    let mut running = setting.start(legacy("ask", json!({}))).await.unwrap();
    for _ in 0..2 {
        let CallEventKind::Ask { ask, .. } = running.events.next().await.unwrap().kind else {
            panic!("no question");
        };
        let refusal = RpcError::new(-1, "the user is away");
        running.control.answer(ask, Outcome::Error(refusal)).await;
    }
    let (_, outcome) = finish(&mut running).await;
    assert!(matches!(outcome, CallOutcome::Error(e)
        if e.code == code::INTERNAL_ERROR && e.message.contains("the user is away")));
    assert_eq!(worker.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_or_the_deadline_ends_the_waiting_for_answers() {
    let setting = setting();
    let worker = setting.add(asking());
    let mut running = setting.start(legacy("ask", json!({}))).await.unwrap();
    running.events.next().await.unwrap();
    running.control.cancel("enough");
    let (_, outcome) = finish(&mut running).await;
    assert!(matches!(
        outcome,
        CallOutcome::Failed(CallFailure::Cancelled)
    ));
    let mut running = setting.start(legacy("ask", json!({}))).await.unwrap();
    let (_, outcome) = finish(&mut running).await;
    let timeout = CallFailure::DeadlineExceeded {
        limit: std::time::Duration::from_secs(60),
    };
    assert!(matches!(outcome, CallOutcome::Failed(failure) if failure == timeout));
    assert_eq!(worker.calls(), 2);
}
