use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use shoal_ports::{
    AskId, Call, CallEventKind, CallFailure, CallOutcome, Dispatcher as _, NodeId, RunningCall,
    SessionId,
};
use shoal_protocol::{Method, Outcome, RawJson, code};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};

use crate::fake_worker::{FakeWorker, Script};
use crate::setting::{CallExt as _, Setting, finish, legacy, setting, tools};

const TIME: Duration = Duration::from_secs(60);
const ANSWER_WITHIN: Duration = Duration::from_secs(600);
const SECOND: Duration = Duration::from_secs(1);

fn of_task() -> Call {
    let mut call = legacy("t", json!({})).at("w1");
    let session = SessionId::of_task_opened_by(&NodeId::new("n"));
    Arc::make_mut(&mut call.caller).session = Some(session);
    call
}

fn with<F>(tool: impl Fn(Script) -> F + Send + Sync + 'static) -> (Setting, Arc<FakeWorker>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let setting = setting();
    let worker = FakeWorker::new("w1", "a", tools(&["t"])).on_call(move |_, script| tool(script));
    let worker = setting.add(worker);
    (setting, worker)
}

async fn asks_once(mut script: Script) {
    sleep(TIME / 2).await;
    script.elicit(1).await;
    std::future::pending().await
}

async fn question(running: &mut RunningCall) -> AskId {
    match running.events.next().await.unwrap().kind {
        CallEventKind::Ask { ask, .. } => ask,
        other => panic!("no question: {other:?}"),
    }
}

fn yes() -> Outcome {
    Outcome::Result(RawJson::from_static(r#"{"action":"accept"}"#))
}

#[track_caller]
fn took(since: Instant, time: Duration) {
    let took = since.elapsed();
    assert!(took >= time && took < time + SECOND, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_asks_nothing_has_the_time_of_any_call() {
    let stopped = watch::Sender::new(None);
    let (setting, worker) = with({
        let stopped = stopped.clone();
        move |mut script| {
            let stopped = stopped.clone();
            async move {
                stopped.send_replace(Some(script.cancelled().await));
            }
        }
    });
    let begun = Instant::now();
    let mut running = setting.dispatch.resume(of_task(), 0).await.unwrap();
    let (_, outcome) = finish(&mut running).await;
    took(begun, TIME);
    assert!(
        matches!(outcome, CallOutcome::Failed(CallFailure::DeadlineExceeded { limit }) if limit == TIME),
        "{outcome:?}"
    );
    let mut stopped = stopped.subscribe();
    stopped.wait_for(Option::is_some).await.unwrap();
    let given = worker.started.lock()[0].deadline - begun;
    assert_eq!(given, TIME + ANSWER_WITHIN);
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_task_stops_while_a_question_is_open() {
    let (setting, _worker) = with(asks_once);
    let begun = Instant::now();
    let mut running = setting.dispatch.resume(of_task(), 0).await.unwrap();
    let ask = question(&mut running).await;
    sleep(ANSWER_WITHIN / 2).await;
    assert!(running.control.answer(ask, yes()).await);
    let (_, outcome) = finish(&mut running).await;
    took(begun, TIME + ANSWER_WITHIN / 2);
    assert!(
        matches!(
            outcome,
            CallOutcome::Failed(CallFailure::DeadlineExceeded { .. })
        ),
        "{outcome:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_taken_back_stops_no_time() {
    let (setting, _worker) = with(|mut script| async move {
        script.put(1, Method::Elicit, r#"{"message":"?"}"#).await;
        sleep(TIME / 2).await;
        script.withdraw(1).await;
        std::future::pending().await
    });
    let begun = Instant::now();
    let mut running = setting.dispatch.resume(of_task(), 0).await.unwrap();
    let ask = question(&mut running).await;
    let (seen, outcome) = finish(&mut running).await;
    took(begun, TIME + TIME / 2);
    assert!(
        matches!(seen[..], [CallEventKind::Withdrawn { ask: it }] if it == ask),
        "{seen:?}"
    );
    assert!(
        matches!(
            outcome,
            CallOutcome::Failed(CallFailure::DeadlineExceeded { .. })
        ),
        "{outcome:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_question_of_a_task_is_open_for_as_long_as_any() {
    let (reasons, mut cancelled) = mpsc::unbounded_channel();
    let (setting, _worker) = with(move |mut script| {
        let reasons = reasons.clone();
        async move {
            sleep(TIME / 2).await;
            script.put(1, Method::Elicit, r#"{"message":"?"}"#).await;
            reasons.send(script.cancelled().await).unwrap();
        }
    });
    let begun = Instant::now();
    let mut running = setting.dispatch.resume(of_task(), 0).await.unwrap();
    let ask = question(&mut running).await;
    let (_, outcome) = finish(&mut running).await;
    took(begun, TIME / 2 + ANSWER_WITHIN);
    let CallOutcome::Error(error) = outcome else {
        panic!("unexpected {outcome:?}");
    };
    assert_eq!(error.code, code::DEADLINE_EXCEEDED);
    assert!(error.message.contains("within 600 s"), "{error:?}");
    let reason = cancelled.recv().await.unwrap();
    assert_eq!(reason, "its client did not answer its question in time");
    drop(running.control.answer(ask, yes()));
}

#[tokio::test(start_paused = true)]
async fn a_question_that_a_task_returns_is_open_for_as_long_as_any() {
    const ASK: &str = r#"{"resultType":"input_required","requestState":"s1","inputRequests":{
        "who":{"method":"elicitation/create","params":{"message":"?"}}}}"#;
    let (setting, _worker) = with(|mut script| async move { script.result(ASK).await });
    let begun = Instant::now();
    let mut running = setting.dispatch.resume(of_task(), 0).await.unwrap();
    let ask = question(&mut running).await;
    sleep(ANSWER_WITHIN - SECOND).await;
    assert!(running.control.answer(ask, yes()).await);
    question(&mut running).await;
    let (_, outcome) = finish(&mut running).await;
    // In total, the call may take its own time, plus once the time to answer a question.
    took(begun, TIME + ANSWER_WITHIN);
    assert!(
        matches!(
            outcome,
            CallOutcome::Failed(CallFailure::DeadlineExceeded { .. })
        ),
        "{outcome:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_cannot_ask_gets_no_time_for_answers() {
    let (setting, worker) =
        with(|mut script| async move { script.result("{\"content\":[]}").await });
    for call in [of_task().able("{}"), legacy("t", json!({})).at("w1")] {
        let begun = Instant::now();
        let mut running = setting.dispatch.resume(call, 0).await.unwrap();
        finish(&mut running).await;
        let given = worker.started.lock().last().unwrap().deadline - begun;
        assert!(given <= TIME, "{given:?}");
    }
}
