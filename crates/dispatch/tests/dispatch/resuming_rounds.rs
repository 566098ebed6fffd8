use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use shoal_ports::{
    AskId, Call, CallEvent, CallEventKind, CallFailure, CallId, Dispatcher as _, RunningCall,
};
use shoal_protocol::{Method, Outcome, RawJson};

use crate::fake_worker::{FakeWorker, Script};
use crate::setting::{CallExt as _, Setting, finish, legacy, result, setting, tools};

fn asks(round: u32) -> String {
    json!({"resultType":"input_required","requestState":format!("s{round}"),"inputRequests":{
        "who":{"method":"elicitation/create","params":{"message":"?"}},
        "where":{"method":"roots/list"}}})
    .to_string()
}

/// Runs one of three rounds from event `after` on. The first two end in questions, the last in its parameters.
async fn play(round: u32, after: u64, call: Option<Call>, mut script: Script) {
    if after == 0 {
        script.notify(Method::Progress, r#"{"progress":1}"#).await;
    }
    match round {
        0 | 1 => script.result(&asks(round)).await,
        _ => {
            let params: Value = call.unwrap().params.unwrap().read().unwrap();
            let said = json!({"content":[],"structuredContent":params});
            script.result(&said.to_string()).await;
        }
    }
}

fn worker() -> FakeWorker {
    let begun: Arc<Mutex<HashMap<CallId, (u32, Call)>>> = Arc::default();
    let known = begun.clone();
    FakeWorker::new("w1", "a", tools(&["ask"]))
        .on_call(move |call, script| {
            let params: Value = call.params.as_ref().unwrap().read().unwrap();
            let round = match params.get("requestState").and_then(Value::as_str) {
                None => 0,
                Some("s0") => 1,
                Some(_) => 2,
            };
            begun.lock().insert(call.id, (round, call.clone()));
            play(round, 0, Some(call), script)
        })
        .on_attach(move |call, after, script| {
            let found = known.lock().get(&call).cloned();
            async move {
                let (round, call) = found.expect("the worker knows the round");
                play(round, after, Some(call), script).await;
                true
            }
        })
}

fn call() -> Call {
    legacy("ask", json!({"x":1})).at("w1")
}

async fn questions(running: &mut RunningCall) -> ([AskId; 2], u64) {
    let mut asked = Vec::new();
    loop {
        let CallEvent { sequence, kind } = running.events.next().await.unwrap();
        if let CallEventKind::Ask { ask, .. } = kind {
            asked.push(ask);
        }
        if let [one, two] = asked[..] {
            return ([one, two], sequence);
        }
    }
}

async fn answer(running: &RunningCall, asks: [AskId; 2]) {
    for ask in asks {
        let answer = RawJson::of(&json!({"to":ask.0}));
        assert!(running.control.answer(ask, Outcome::Result(answer)).await);
    }
}

fn ids(worker: &FakeWorker) -> Vec<CallId> {
    worker.started.lock().iter().map(|call| call.id).collect()
}

fn with_worker() -> (Setting, Arc<FakeWorker>) {
    let setting = setting();
    let worker = setting.add(worker());
    setting.add(FakeWorker::new("w0", "a", tools(&["ask"])));
    worker.load.lock().queued = 100;
    (setting, worker)
}

#[tokio::test]
async fn rounds_stay_on_the_bound_worker_under_ids_that_follow_from_the_call() {
    let (setting, worker) = with_worker();
    let call = call();
    for _ in 0..2 {
        let mut running = setting.start(call.clone()).await.unwrap();
        for _ in 0..2 {
            let (asks, _) = questions(&mut running).await;
            answer(&running, asks).await;
        }
        let said = result(finish(&mut running).await.1);
        assert_eq!(said["structuredContent"]["requestState"], "s1");
        assert_eq!(said["structuredContent"]["arguments"], json!({"x":1}));
    }
    let ids = ids(&worker);
    assert_eq!(ids.len(), 6);
    assert_eq!(
        ids[..3],
        ids[3..],
        "the worker can tell that these are the same"
    );
    assert!(ids[0] == call.id && ids[1] != ids[0] && ids[2] != ids[1]);
}

#[tokio::test]
async fn a_new_owner_asks_the_same_questions_and_a_late_answer_fits() {
    let (setting, worker) = with_worker();
    let call = call();
    let mut first = setting.start(call.clone()).await.unwrap();
    let (asked, seen) = questions(&mut first).await;
    assert_eq!(
        seen, 1,
        "the questions carry the number of the event before theirs"
    );
    drop(first);

    let mut second = setting.dispatch.resume(call.clone(), seen).await.unwrap();
    let (again, seen_again) = questions(&mut second).await;
    assert_eq!((again, seen_again), (asked, seen));
    answer(&second, asked).await;
    let (asked, seen) = questions(&mut second).await;
    assert!(seen > seen_again);
    drop(second);

    let mut third = setting.dispatch.resume(call.clone(), seen).await.unwrap();
    let (again, _) = questions(&mut third).await;
    assert_eq!(again, asked);
    answer(&third, asked).await;
    let said = result(finish(&mut third).await.1);
    let answers = &said["structuredContent"]["inputResponses"];
    assert_eq!(answers["who"], json!({"to":asked[0].0}));
    let started = ids(&worker);
    assert_eq!(started.len(), 3, "every round was begun once");
    let attached: Vec<CallId> = worker
        .attachments
        .lock()
        .iter()
        .map(|(id, _)| *id)
        .collect();
    assert_eq!(attached, [started[0], started[1]]);
}

#[tokio::test]
async fn a_round_that_its_worker_has_forgotten_is_unknown() {
    let setting = setting();
    let worker = setting.add(FakeWorker::new("w1", "a", tools(&["ask"])));
    let lost = setting.dispatch.resume(call(), 1 << 32).await.err();
    assert!(matches!(lost, Some(CallFailure::OutcomeUnknown { .. })));
    assert_eq!(worker.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_round_waits_for_room_and_a_refusal_leaves_the_outcome_unknown() {
    let (setting, worker) = with_worker();
    let full = CallFailure::Overloaded {
        reason: "the queue is full".into(),
        retry_after: std::time::Duration::from_secs(1),
    };
    let mut running = setting.start(call()).await.unwrap();
    let (asks, _) = questions(&mut running).await;
    worker.refuse(full.clone());
    worker.refuse(full);
    answer(&running, asks).await;
    let (asks, _) = questions(&mut running).await;
    assert_eq!(worker.calls(), 4);
    worker.refuse(CallFailure::NotExecuted {
        reason: "shutting down".into(),
    });
    answer(&running, asks).await;
    let (_, outcome) = finish(&mut running).await;
    // Two rounds have run, so "not executed" would wrongly invite a repeat.
    assert!(matches!(
        outcome,
        shoal_ports::CallOutcome::Failed(CallFailure::OutcomeUnknown { .. })
    ));
}
