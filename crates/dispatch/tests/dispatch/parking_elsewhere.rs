use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use parking_lot::Mutex;
use serde_json::{Value, json};
use shoal_ports::{Call, CallEventKind, CallFailure, Repeat};
use shoal_protocol::Method;
use tokio::sync::{Notify, mpsc};

use crate::fake_worker::FakeWorker;
use crate::setting::{CallExt as _, Setting, finish, items, modern, result, setting, tools};

fn ask() -> Call {
    modern("ask", json!({})).with("_meta", json!({"progressToken":"t"}))
}

fn retry(of: &Value, responses: Value) -> Call {
    ask()
        .with("requestState", of["requestState"].clone())
        .with("inputResponses", responses)
}

#[derive(Default)]
struct Story {
    replaced: Notify,
    cancelled: Mutex<Vec<String>>,
}

fn worker(story: &Arc<Story>) -> FakeWorker {
    let (first, second) = (story.clone(), story.clone());
    FakeWorker::new("w1", "a", tools(&["ask"]))
        .on_call(move |_, mut script| {
            let story = first.clone();
            async move {
                script.notify(Method::Progress, r#"{"progress":1}"#).await;
                script.put(1, Method::Elicit, r#"{"message":"?"}"#).await;
                script.notify(Method::Progress, r#"{"progress":2}"#).await;
                script
                    .put(2, Method::CreateMessage, r#"{"messages":[]}"#)
                    .await;
                tokio::select! {
                    () = story.replaced.notified() => {}
                    reason = script.cancelled() => story.cancelled.lock().push(reason),
                }
            }
        })
        .on_attach(move |_, after, mut script| {
            let story = second.clone();
            async move {
                assert_eq!(after, 1);
                story.replaced.notify_one();
                script.put(1, Method::Elicit, r#"{"message":"?"}"#).await;
                script.notify(Method::Progress, r#"{"progress":2}"#).await;
                script
                    .put(2, Method::CreateMessage, r#"{"messages":[]}"#)
                    .await;
                let (one, two) = (script.answer().await, script.answer().await);
                script.notify(Method::Progress, r#"{"progress":3}"#).await;
                let said = format!(
                    r#"{{"content":[],"structuredContent":[{},{}]}}"#,
                    one.1, two.1
                );
                script.result(&said).await;
                true
            }
        })
}

fn nodes(worker: FakeWorker) -> ([Setting; 2], Arc<FakeWorker>) {
    let nodes = [setting(), setting()];
    let worker = nodes[0].add(worker);
    nodes[1].dispatch.add_worker(worker.clone());
    (nodes, worker)
}

#[tokio::test(start_paused = true)]
async fn a_retry_on_another_node_wakes_the_call_at_its_worker() {
    let story = Arc::new(Story::default());
    let ([here, there], worker) = nodes(worker(&story));
    let first = here.result(ask()).await;
    assert_eq!(here.dispatch.status().parked, 1);

    let again = retry(&first, json!({"ask-1":{"n":1},"ask-2":{"n":2}}));
    let mut running = there.start(again).await.unwrap();
    let (before, outcome) = finish(&mut running).await;
    assert_eq!(
        result(outcome)["structuredContent"],
        json!([{"n":1},{"n":2}])
    );
    let sent: Vec<_> = before
        .iter()
        .map(|kind| match kind {
            CallEventKind::Notification { params, .. } => params.as_ref().unwrap().as_str(),
            other => panic!("unexpected {other:?}"),
        })
        .collect();
    assert_eq!(sent, [r#"{"progress":3,"progressToken":"t"}"#]);
    assert_eq!(worker.calls(), 1);

    here.until(|d| d.status().parked == 0).await;
    tokio::time::sleep(Duration::from_secs(1000)).await;
    assert!(story.cancelled.lock().is_empty());
}

/// The call may become a task before it repeats its questions, so the answers must not wait for them.
#[tokio::test(start_paused = true)]
async fn the_answers_are_on_their_way_to_the_worker_before_the_questions_come_again() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let worker = FakeWorker::new("w1", "a", tools(&["ask"]))
        .still_open(1)
        .on_call(|_, mut script| async move {
            script.put(1, Method::Elicit, r#"{"message":"?"}"#).await;
            script.cancelled().await;
        })
        .on_attach(move |_, _, mut script| {
            let tell = tell.clone();
            async move {
                let (ask, answer) = script.answer().await;
                tell.send((ask.0, answer)).unwrap();
                script.cancelled().await;
                true
            }
        });
    let ([here, there], worker) = nodes(worker);
    let first = here.result(ask()).await;
    worker.acknowledges.send_replace(false);
    let again = retry(&first, json!({"ask-1":{"n":1},"ask-2":{"n":2}}));
    let running = there.start(again).await.unwrap();
    assert!(running.control.bound().now_or_never().is_none());
    worker.acknowledges.send_replace(true);
    assert!(running.control.bound().await.is_some());
    assert_eq!(told.recv().await.unwrap(), (1, r#"{"n":1}"#.to_owned()));
}

/// The first node has the answer before it learns that another node continues the call.
#[tokio::test(start_paused = true)]
async fn a_call_that_another_node_has_taken_unheard_is_gone_on_with_by_who_comes_last() {
    let replaced = Arc::new(Notify::new());
    let (first, second) = (replaced.clone(), replaced);
    let worker = FakeWorker::new("w1", "a", tools(&["ask"]))
        .on_call(move |_, mut script| {
            let replaced = first.clone();
            async move {
                script.put(1, Method::Elicit, r#"{"message":"?"}"#).await;
                replaced.notified().await;
            }
        })
        .on_attach(move |_, after, mut script| {
            let replaced = second.clone();
            async move {
                replaced.notify_one();
                match after {
                    0 => std::future::pending().await,
                    _ => script.result(r#"{"content":[]}"#).await,
                }
                true
            }
        });
    let ([here, there], worker) = nodes(worker);
    let again = retry(&here.result(ask()).await, json!({"ask-1":{"n":1}}));
    let mut last = here.start(again.clone()).await.unwrap();
    let _elsewhere = there.start(again).await.unwrap();
    let (_, outcome) = finish(&mut last).await;
    assert_eq!(result(outcome)["content"], json!([]));
    assert_eq!(worker.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_not_answered_is_asked_again_there() {
    let story = Arc::new(Story::default());
    let ([here, there], _) = nodes(worker(&story));
    let first = here.result(ask()).await;
    let second = there.result(retry(&first, json!({"ask-2":{"n":2}}))).await;
    let asked: Vec<_> = second["inputRequests"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(asked, ["ask-1"]);
    assert_eq!(there.dispatch.status().parked, 1);
    let done = there.result(retry(&second, json!({"ask-1":{"n":1}}))).await;
    assert_eq!(done["structuredContent"], json!([{"n":2},{"n":1}]));
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_worker_is_gone_or_has_forgotten_it_waits_no_more() {
    let story = Arc::new(Story::default());
    let ([here, there], _) = nodes(worker(&story));
    let first = here.result(ask()).await;
    assert!(
        there
            .dispatch
            .remove_worker(&shoal_ports::WorkerId::new("w1"))
    );
    there.add(FakeWorker::new("w2", "a", tools(&["ask"])));
    let gone = there.failure(retry(&first, json!({"ask-1":{}}))).await;
    there.add(FakeWorker::new("w1", "a", tools(&["ask"])));
    let forgotten = there.failure(retry(&first, json!({"ask-1":{}}))).await;
    for failure in [gone, forgotten] {
        // The call has run up to its question, so the failure must not invite a repeat.
        let CallFailure::OutcomeUnknown { reason } = &failure else {
            panic!("unexpected {failure:?}");
        };
        assert!(reason.contains("not waiting any more"), "{reason}");
    }
    let stolen = retry(&first, json!({"ask-1":{}})).from("mallory");
    assert_eq!(
        there.error(stolen).await.message,
        "requestState is not valid for this request; all edges need the same state_keys"
    );
}

#[tokio::test(start_paused = true)]
async fn a_parked_call_that_ends_gives_its_result_to_the_retry() {
    let setting = setting();
    setting.add(
        FakeWorker::new("w1", "a", tools(&["ask"])).on_call(|_, mut script| async move {
            script.put(1, Method::Elicit, r#"{"message":"?"}"#).await;
            tokio::time::sleep(Duration::from_secs(30)).await;
            script.notify(Method::Progress, r#"{"progress":9}"#).await;
            script.result(r#"{"content":[]}"#).await;
        }),
    );
    let first = setting.result(ask()).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(setting.dispatch.status().parked, 1);
    let mut running = setting
        .start(retry(&first, json!({"ask-1":{}})))
        .await
        .unwrap();
    let (before, outcome) = finish(&mut running).await;
    assert_eq!(
        (before.len(), result(outcome)["content"].clone()),
        (1, json!([]))
    );
}

fn asking_once(id: &str, question: &'static str) -> FakeWorker {
    let mut catalog = tools(&[]);
    catalog.tools = items(json!([{ "name": "ask", "annotations": { "idempotentHint": true } }]));
    FakeWorker::new(id, "a", catalog).on_call(move |_, mut script| async move {
        script.put(1, Method::Elicit, question).await;
        let (_, answer) = script.answer().await;
        let said = format!(r#"{{"content":[],"structuredContent":{answer}}}"#);
        script.result(&said).await;
    })
}

#[tokio::test(start_paused = true)]
async fn an_answer_runs_nothing_again_while_its_tool_is_not_known() {
    let here = setting();
    here.add(asking_once("w1", r#"{"message":"?"}"#));
    let first = here.result(ask()).await;
    let answer = retry(&first, json!({"ask-1":{}}));
    let plan = setting().plan(answer.clone()).await;
    assert_eq!(plan.call.repeat, Repeat::Never);
    // The hints may have changed after the plan.
    let there = setting();
    let worker = there.add(FakeWorker::new("w2", "a", tools(&["ask"])));
    let failure = there.failure(answer.repeatable()).await;
    assert!(
        matches!(failure, CallFailure::OutcomeUnknown { .. }),
        "{failure}"
    );
    assert_eq!(worker.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_safe_to_repeat_runs_again_with_the_answers() {
    let [here, there] = [setting(), setting()];
    here.add(asking_once("w1", r#"{"message":"?"}"#));
    let again = there.add(asking_once("w2", r#"{"message":"?"}"#));
    let first = here.result(ask().repeatable()).await;
    let answer = || retry(&first, json!({"ask-1":{"n":1}})).repeatable();
    let mut running = there.start(answer()).await.unwrap();
    // The call does not tell where it runs, because only this node has the answers until the call asks.
    assert!(running.control.bound().await.is_none());
    let done = result(finish(&mut running).await.1);
    assert_eq!(done["structuredContent"], json!({"n":1}));
    assert_eq!(again.calls(), 1);
    assert!(again.last_params().get("requestState").is_none());
    let elsewhere = setting();
    elsewhere.add(asking_once("w3", r#"{"message":"delete it?"}"#));
    let asked = elsewhere.result(answer()).await;
    assert_eq!(asked["resultType"], "input_required");
    let nobody = setting().failure(answer()).await;
    assert!(matches!(nobody, CallFailure::NotReady { .. }), "{nobody}");
}
