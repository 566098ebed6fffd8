use std::time::Duration;

use futures::FutureExt as _;
use serde_json::{Value, json};
use shoal_dispatch::Config;
use shoal_ports::{Call, CallEventKind, CallFailure, CallOutcome, CallSettings};
use shoal_protocol::{LogLevel, Method, code};
use tokio::sync::mpsc;

use crate::fake_worker::{FakeWorker, Script};
use crate::setting::{CallExt as _, Setting, configured, finish, modern, result, setting, tools};

fn ask() -> Call {
    modern("ask", json!({}))
}

fn retry(of: &Value, responses: Value) -> Call {
    ask()
        .with("requestState", of["requestState"].clone())
        .with("inputResponses", responses)
}

async fn asks_twice(_: Call, mut script: Script) {
    let first = script.elicit(1).await;
    script
        .notify(Method::Progress, r#"{"progressToken":"t1","progress":1}"#)
        .await;
    let second = script.elicit(2).await;
    let said = format!(r#"{{"content":[],"structuredContent":[{first},{second}]}}"#);
    script.result(&said).await;
}

fn with(worker: FakeWorker) -> Setting {
    let setting = setting();
    setting.add(worker);
    setting
}

fn asking_twice() -> FakeWorker {
    FakeWorker::new("w1", "a", tools(&["ask", "other"])).on_call(asks_twice)
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_taken_back_is_not_put_or_needs_no_answer() {
    let setting = with(FakeWorker::new("w1", "a", tools(&["ask"])).on_call(
        |_, mut script| async move {
            script.put(1, Method::Elicit, r#"{"message":"?"}"#).await;
            script.withdraw(1).await;
            script.put(2, Method::Elicit, r#"{"message":"?"}"#).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            script.withdraw(2).await;
            script.say("{}").await;
        },
    ));
    let asked = setting.result(ask()).await;
    let questions = asked["inputRequests"].as_object().unwrap();
    assert_eq!(questions.len(), 1, "{asked}");
    let (key, _) = questions.iter().next().unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let answer = json!({ key: { "action": "accept", "content": {} } });
    let ended = setting.result(retry(&asked, answer)).await;
    assert_eq!(ended["resultType"], "complete", "{ended}");
}

fn waiting(reasons: mpsc::UnboundedSender<String>) -> FakeWorker {
    FakeWorker::new("w1", "a", tools(&["ask"])).on_call(move |_, mut script| {
        let reasons = reasons.clone();
        async move {
            script.put(1, Method::Elicit, r#"{"message":"?"}"#).await;
            reasons.send(script.cancelled().await).unwrap();
            script
                .outcome(CallOutcome::Failed(CallFailure::Cancelled))
                .await;
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_question_parks_the_call_and_the_retry_wakes_it() {
    let setting = setting();
    let worker = setting.add(asking_twice());
    let first = setting.result(ask()).await;
    assert_eq!(first["resultType"], "input_required");
    assert_eq!(
        first["inputRequests"]["ask-1"]["method"],
        "elicitation/create"
    );
    assert!(first["_meta"]["io.modelcontextprotocol/serverInfo"].is_object());
    assert_eq!(setting.dispatch.status().parked, 1);
    let second = setting
        .result(retry(&first, json!({"ask-1":{"n":1},"junk":{}})))
        .await;
    assert_eq!(second["inputRequests"].as_object().unwrap().len(), 1);
    let done = setting
        .result(retry(&second, json!({"ask-2":{"n":2}})))
        .await;
    assert_eq!(done["structuredContent"], json!([{"n":1},{"n":2}]));
    assert_eq!(done["resultType"], "complete");
    assert_eq!((worker.calls(), setting.dispatch.status().parked), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn questions_put_together_are_asked_together_and_again_until_answered() {
    let setting = with(FakeWorker::new("w1", "a", tools(&["ask"])).on_call(
        |_, mut script| async move {
            script.put(1, Method::Elicit, r#"{"message":"?"}"#).await;
            script
                .put(2, Method::CreateMessage, r#"{"messages":[]}"#)
                .await;
            let (one, two) = (script.answer().await, script.answer().await);
            let said = format!(
                r#"{{"content":[],"structuredContent":[{},{}]}}"#,
                one.1, two.1
            );
            script.result(&said).await;
        },
    ));
    let first = setting.result(ask()).await;
    let keys = |result: &Value| {
        let requests = result["inputRequests"].as_object().unwrap();
        requests.keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(keys(&first), ["ask-1", "ask-2"]);
    let second = setting
        .result(retry(
            &first,
            json!({"ask-2":{"m":1},"ask-1":"not an object"}),
        ))
        .await;
    assert_eq!(keys(&second), ["ask-1"]);
    let done = setting
        .result(retry(&second, json!({"ask-1":{"n":1}})))
        .await;
    assert_eq!(done["structuredContent"], json!([{"m":1},{"n":1}]));
}

#[tokio::test(start_paused = true)]
async fn a_woken_call_reports_under_the_retrys_own_token_and_level() {
    let setting = with(FakeWorker::new("w1", "a", tools(&["ask"])).on_call(
        |_, mut script| async move {
            script
                .notify(Method::Progress, r#"{"progressToken":"t1","progress":1}"#)
                .await;
            script.elicit(1).await;
            script.close_stream().await;
            script
                .notify(Method::Progress, r#"{"progressToken":"t1","progress":2}"#)
                .await;
            script
                .notify(Method::LogMessage, r#"{"level":"debug","data":1}"#)
                .await;
            script
                .notify(Method::LogMessage, r#"{"level":"error","data":2}"#)
                .await;
            script.result(r#"{"content":[]}"#).await;
        },
    ));
    let token = |token: &str| json!({"progressToken":token});
    let mut running = setting
        .start(ask().with("_meta", token("t1")))
        .await
        .unwrap();
    let (before, outcome) = finish(&mut running).await;
    assert_eq!(before.len(), 1);
    let mut again = retry(&result(outcome), json!({"ask-1":{}})).with("_meta", token("t2"));
    again.log = shoal_ports::LogFilter::AtLeast(LogLevel::Warning);
    let mut running = setting.start(again).await.unwrap();
    let (before, _) = finish(&mut running).await;
    let sent: Vec<String> = before
        .into_iter()
        .map(|kind| match kind {
            CallEventKind::Notification { params, .. } => params.unwrap().as_str().to_owned(),
            other => panic!("unexpected {other:?}"),
        })
        .collect();
    assert_eq!(
        sent,
        [
            r#"{"progressToken":"t2","progress":2}"#,
            r#"{"level":"error","data":2}"#
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_parked_call_is_its_callers_own_and_can_be_woken_once() {
    let setting = with(asking_twice());
    let first = setting.result(ask()).await;
    let good = retry(&first, json!({"ask-1":{}}));
    let forged = format!("{}A", first["requestState"].as_str().unwrap());
    for wrong in [
        good.clone().from("mallory"),
        good.clone().with("requestState", json!(forged)),
        good.clone().with("arguments", json!({"changed":1})),
        good.clone().with("name", json!("other")),
    ] {
        assert_eq!(
            setting.error(wrong).await.message,
            "requestState is not valid for this request; all edges need the same state_keys"
        );
    }
    let mut woken = setting.start(good.clone()).await.unwrap();
    let failure = setting.failure(good).await;
    assert!(
        matches!(&failure, CallFailure::OutcomeUnknown { reason } if reason.contains("not waiting any more")),
        "{failure}"
    );
    finish(&mut woken).await;
}

#[tokio::test(start_paused = true)]
async fn a_parked_call_outlives_a_break_of_the_way_to_its_worker() {
    let setting = setting();
    let worker = setting.add(
        FakeWorker::new("w1", "a", tools(&["ask"]))
            .still_open(1)
            .on_call(|_, mut script| async move {
                script.put(1, Method::Elicit, r#"{"message":"?"}"#).await;
                tokio::time::sleep(Duration::from_secs(10)).await;
            })
            .on_attach(|_, after, mut script| async move {
                assert_eq!(after, 1);
                let (_, answer) = script.answer().await;
                let said = format!(r#"{{"content":[],"structuredContent":{answer}}}"#);
                script.result(&said).await;
                true
            }),
    );
    let first = setting.result(ask()).await;
    worker.connect(false);
    tokio::time::sleep(Duration::from_secs(12)).await;
    worker.connect(true);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(setting.dispatch.status().parked, 1);
    let done = setting
        .result(retry(&first, json!({"ask-1":{"n":1}})))
        .await;
    assert_eq!(done["structuredContent"], json!({"n":1}));
    assert_eq!((worker.calls(), worker.attachments.lock().len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_parked_call_that_nobody_wakes_is_cancelled() {
    let (reasons, mut cancelled) = mpsc::unbounded_channel();
    let setting = with(waiting(reasons));
    let call = ask();
    let deadline = call.deadline;
    let mut running = setting.start(call).await.unwrap();
    let first = result(finish(&mut running).await.1);
    running.control.cancel("disconnected");
    tokio::time::sleep_until(deadline + Duration::from_secs(500)).await;
    assert!(cancelled.try_recv().is_err());
    assert_eq!(cancelled.recv().await.unwrap(), "no answer came in time");
    assert_eq!(setting.dispatch.status().parked, 0);
    let failure = setting.failure(retry(&first, json!({"ask-1":{}}))).await;
    assert!(
        matches!(failure, CallFailure::OutcomeUnknown { .. }),
        "{failure}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_may_be_parked_longer_than_its_request_may_take() {
    let setting = setting();
    let worker = setting.add(asking_twice());
    let call = ask();
    let deadline = call.deadline;
    let first = setting.result(call).await;
    assert!(worker.started.lock()[0].deadline >= deadline + Duration::from_secs(600));
    tokio::time::sleep(Duration::from_secs(300)).await;
    let second = setting.result(retry(&first, json!({"ask-1":{}}))).await;
    assert_eq!(second["resultType"], "input_required");
    let plain = ask().able("{}");
    let deadline = plain.deadline;
    drop(setting.start(plain).await.unwrap());
    assert_eq!(worker.started.lock()[1].deadline, deadline);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_takes_too_long_is_cancelled_at_its_own_deadline() {
    let (reasons, mut cancelled) = mpsc::unbounded_channel();
    let setting = with(FakeWorker::new("w1", "a", tools(&["ask"])).on_call(
        move |_, mut script| {
            let reasons = reasons.clone();
            async move { reasons.send(script.cancelled().await).unwrap() }
        },
    ));
    let limit = Duration::from_secs(60);
    let failure = setting.failure(ask()).await;
    assert_eq!(failure, CallFailure::DeadlineExceeded { limit });
    assert_eq!(cancelled.recv().await.unwrap(), "its deadline passed");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_cannot_answer_ends_the_call() {
    let (reasons, mut cancelled) = mpsc::unbounded_channel();
    let setting = with(waiting(reasons));
    let error = setting.error(ask().able(r#"{"roots":{}}"#)).await;
    assert_eq!(error.code, code::MISSING_CLIENT_CAPABILITY);
    assert_eq!(cancelled.recv().await.unwrap(), "the client cannot answer");
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_leaves_cancels_a_running_call() {
    let (reasons, mut cancelled) = mpsc::unbounded_channel();
    let setting = with(waiting(reasons));
    let mut running = setting.start(ask()).await.unwrap();
    running.control.cancel("disconnected");
    let (_, outcome) = finish(&mut running).await;
    assert!(matches!(
        outcome,
        CallOutcome::Failed(CallFailure::Cancelled)
    ));
    assert_eq!(cancelled.recv().await.unwrap(), "disconnected");
    assert_eq!(setting.dispatch.status().parked, 0);
}

#[tokio::test(start_paused = true)]
async fn the_parking_lot_is_bounded() {
    let (reasons, mut cancelled) = mpsc::unbounded_channel();
    let setting = configured(Config {
        calls: CallSettings {
            waiting: 2,
            waiting_per_principal: 1,
            ..CallSettings::default()
        },
        ..Config::default()
    });
    setting.add(waiting(reasons));
    setting.result(ask()).await;
    let failure = setting.failure(ask().repeatable()).await;
    assert!(
        matches!(failure, CallFailure::Overloaded { reason, .. } if reason.contains("principal"))
    );
    // The call is unsafe to repeat and has begun, so "not executed" would be wrong.
    let failure = setting.failure(ask()).await;
    assert!(matches!(failure, CallFailure::OutcomeUnknown { .. }));
    setting.result(ask().from("bob")).await;
    let failure = setting.failure(ask().from("carol").repeatable()).await;
    assert!(matches!(failure, CallFailure::Overloaded { reason, .. } if reason.contains("node")));
    for _ in 0..3 {
        cancelled.recv().await.unwrap();
    }
    assert_eq!(setting.dispatch.status().parked, 2);
}

#[tokio::test(start_paused = true)]
async fn where_a_woken_call_runs_is_told_once_its_answer_has_arrived() {
    let setting = setting();
    let worker = setting.add(asking_twice());
    let first = setting.result(ask()).await;
    worker.acknowledges.send_replace(false);
    let again = retry(&first, json!({"ask-1":{"n":1}}));
    let running = setting.start(again).await.unwrap();
    let mut bound = running.control.bound();
    assert!((&mut bound).now_or_never().is_none());
    let mut bound = running.control.bound();
    assert!((&mut bound).now_or_never().is_none());
    worker.acknowledges.send_replace(true);
    let bound = bound.await.expect("it runs");
    assert_eq!(bound.worker.worker.as_str(), "w1");
    assert!(running.control.bound().now_or_never().is_some());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_sent_again_is_waited_for() {
    let setting = setting();
    let worker = FakeWorker::new("w1", "a", tools(&["ask"]))
        .still_open(1)
        .on_call(|_, mut script| async move {
            script.put(1, Method::Elicit, r#"{"message":"?"}"#).await;
            script.answer().await;
        })
        .on_attach(|_, _, mut script| async move {
            script.answer().await;
            script.cancelled().await;
            true
        });
    let worker = setting.add(worker);
    let first = setting.result(ask()).await;
    worker.acknowledges.send_replace(false);
    let again = retry(&first, json!({"ask-1":{"n":1}}));
    let mut running = setting.start(again).await.unwrap();
    let bound = running.control.bound();
    let attached = async {
        while worker.attachments.lock().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        worker.acknowledges.send_replace(true);
    };
    tokio::select! {
        (bound, ()) = async { tokio::join!(bound, attached) } => assert!(bound.is_some()),
        event = running.events.next() => panic!("unexpected {event:?}"),
    }
}
