use std::sync::Arc;
use std::time::Duration;

use futures::future::Either;
use serde_json::{Value, json};
use shoal_dispatch::CircuitState;
use shoal_ports::{
    Call, CallEventKind, CallFailure, CallOutcome, CallState, Dispatcher as _, PoolCatalog,
    RunningCall, WorkerId,
};
use shoal_protocol::{Method, Outcome, RawJson, Revision, RpcError, TraceContext};
use tokio::sync::Semaphore;

use crate::fake_worker::FakeWorker;
use crate::setting::{CallExt as _, Setting, call, finish, items, legacy, modern, setting, tools};

const LEGACY: Revision = Revision::V2025_11_25;
const MODERN: Revision = Revision::V2026_07_28;
const RESULT: &str = r#"{ "content":[ ] , "x":1.0}"#;
const ASK: &str = r#"{"resultType":"input_required","requestState":"s1","inputRequests":{
    "who":{"method":"elicitation/create","params":{"message":"?"}}}}"#;

fn worker(id: &str) -> FakeWorker {
    FakeWorker::new(id, "a", tools(&["t"]))
}

fn text(result: &'static str) -> CallOutcome {
    CallOutcome::Result(RawJson::from_static(result))
}

fn ending(id: &str, outcome: CallOutcome) -> FakeWorker {
    worker(id).here(move |_| Some(outcome.clone()))
}

fn running_only(id: &str) -> FakeWorker {
    worker(id).here(|_| None)
}

fn unknown() -> CallFailure {
    CallFailure::OutcomeUnknown { reason: "?".into() }
}

fn both() -> [Call; 2] {
    [legacy("t", json!({})), modern("t", json!({}))]
}

impl Setting {
    fn now(&self, call: &Call) -> RunningCall {
        let begun = self.start_now(call).expect("it need not wait");
        begun.unwrap()
    }

    fn ended(&self, call: &Call) -> CallOutcome {
        let running = self.now(call);
        running.events.ended().expect("it has ended").clone()
    }
}

fn shown(outcome: &CallOutcome) -> String {
    format!("{outcome:?}")
}

#[tokio::test]
async fn a_call_that_ends_at_once_is_answered_as_any_other() {
    let error = CallOutcome::Error(RpcError::new(-32002, "no such thing"));
    for outcome in [text(RESULT), error] {
        let (here, elsewhere) = (setting(), setting());
        let begun = here.add(ending("w1", outcome.clone()));
        elsewhere.add(worker("w1").on_call({
            let outcome = outcome.clone();
            move |_, mut script| {
                let outcome = outcome.clone();
                async move { script.outcome(outcome).await }
            }
        }));
        for call in both() {
            let mut running = here.now(&call);
            assert_eq!(running.worker, Some(WorkerId::new("w1")));
            let ended = running.events.ended().expect("it has ended").clone();
            let expected = elsewhere.outcome(call.clone()).await;
            assert_eq!(shown(&ended), shown(&expected));
            assert_eq!(here.dispatch.in_flight(), 0, "it leaves nothing behind");
            let (before, outcome) = finish(&mut running).await;
            assert!(before.is_empty());
            assert_eq!(shown(&outcome), shown(&expected));
        }
        assert_eq!(begun.calls(), 2);
    }
}

#[tokio::test]
async fn a_legacy_result_that_comes_at_once_is_the_backends_own_bytes() {
    let setting = setting();
    setting.add(ending("w1", text(RESULT)));
    let [legacy, modern] = both();
    let CallOutcome::Result(result) = setting.ended(&legacy) else {
        panic!("no result");
    };
    assert_eq!(result.as_str(), RESULT);
    let CallOutcome::Result(result) = setting.ended(&modern) else {
        panic!("no result");
    };
    let result: Value = result.read().unwrap();
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["x"], 1.0);
}

#[tokio::test]
async fn what_is_refused_is_answered_without_a_worker() {
    let catalog = PoolCatalog {
        tools: items(json!([{"name":"add","inputSchema":{"type":"object",
            "properties":{"a":{"type":"number"}},"required":["a"]}}])),
        ..PoolCatalog::default()
    };
    let setting = setting();
    let worker = FakeWorker::new("w1", "a", catalog).here(|_| Some(text(RESULT)));
    let worker = setting.add(worker);
    for (refused, said) in [
        (legacy("no", json!({})), "unknown tool: no"),
        (modern("no", json!({})), "unknown tool: no"),
        (legacy("add", json!({"a":true})), "number"),
        (modern("add", json!({"a":true})), "number"),
    ] {
        let running = setting.now(&refused);
        assert_eq!(running.worker, None);
        let ended = shown(running.events.ended().expect("it has ended"));
        assert!(ended.contains(said), "{ended}");
        assert_eq!(ended, shown(&setting.outcome(refused).await));
    }
    assert_eq!((worker.calls(), setting.dispatch.in_flight()), (0, 0));
    setting.ended(&legacy("add", json!({"a":1})));
    assert_eq!(worker.calls(), 1);
}

#[tokio::test]
async fn a_list_is_answered_wherever_the_workers_are() {
    let setting = setting();
    setting.add(worker("w1"));
    for revision in [LEGACY, MODERN] {
        let list = call(revision, Method::ToolsList, json!({}));
        let ended = shown(&setting.ended(&list));
        assert!(ended.contains(r#""name":"t""#), "{ended}");
        assert_eq!(ended, shown(&setting.outcome(list).await));
    }
}

#[tokio::test]
async fn a_worker_elsewhere_has_to_be_waited_for_and_one_here_has_not() {
    let setting = setting();
    let elsewhere = setting.add(worker("w1"));
    let alone = both().map(|call| setting.start_now(&call).is_none());
    let here = setting.add(ending("w2", text(RESULT)));
    let beside = both().map(|call| setting.start_now(&call.at("w1")).is_none());
    assert_eq!((alone, beside), ([true; 2], [true; 2]));
    assert_eq!((elsewhere.calls(), here.calls()), (0, 0));
    assert_eq!(setting.dispatch.in_flight(), 0);
    for call in both() {
        setting.ended(&call.at("w2"));
    }
    assert_eq!((elsewhere.calls(), here.calls()), (0, 2));
}

#[tokio::test]
async fn where_nobody_is_known_to_take_a_call_it_is_refused_at_once() {
    let setting = setting();
    for call in both() {
        let refused = setting.start_now(&call).expect("nobody is waited for");
        let refused = refused.err();
        assert!(
            matches!(refused, Some(CallFailure::NotReady { .. })),
            "{refused:?}"
        );
    }
    let worker = setting.add(ending("w1", text(RESULT)));
    worker.connect(false);
    let [legacy, modern] = both().map(|call| setting.start_now(&call));
    assert!(legacy.is_none());
    let refused = modern.expect("nobody is waited for").err();
    assert!(
        matches!(refused, Some(CallFailure::NotExecuted { .. })),
        "{refused:?}"
    );
    assert_eq!((worker.calls(), setting.dispatch.in_flight()), (0, 0));
}

#[tokio::test]
async fn a_call_that_its_worker_refuses_is_started_as_usual() {
    for call in both() {
        let overloaded = CallFailure::Overloaded {
            reason: "the queue is full".into(),
            retry_after: Duration::from_secs(1),
        };
        let setting = setting();
        let worker = setting.add(ending("w1", text(RESULT)).refusing(overloaded));
        assert!(setting.start_now(&call).is_none());
        assert_eq!((worker.calls(), setting.dispatch.in_flight()), (1, 0));
        assert_eq!(setting.result(call).await["content"], json!([]));
        assert_eq!(worker.calls(), 2);
    }
}

#[tokio::test]
async fn a_bound_call_is_begun_at_its_worker_only() {
    let setting = setting();
    let workers = ["w1", "w2", "w3"].map(|id| setting.add(ending(id, text(RESULT))));
    workers[1].load.lock().queued = 1000;
    for call in both().into_iter().chain(both()) {
        setting.ended(&call.at("w2"));
    }
    for call in both() {
        let gone = setting.start_now(&call.at("gone"));
        let away = matches!(gone, Some(Err(CallFailure::WorkerAway { .. })));
        assert!(away, "no other worker may run it");
    }
    assert_eq!(workers.map(|worker| worker.calls()), [0, 4, 0]);
}

#[tokio::test]
async fn a_repeatable_call_that_was_lost_at_once_runs_again_elsewhere() {
    for call in both() {
        let setting = setting();
        let workers = ["w1", "w2"].map(|id| {
            let lost = ending(id, CallOutcome::Failed(unknown()));
            setting.add(lost.on_call(|_, mut script| async move { script.result(RESULT).await }))
        });
        let id = call.id;
        let mut running = setting.now(&call.repeatable());
        assert!(running.events.ended().is_none());
        let (before, outcome) = finish(&mut running).await;
        assert!(before.is_empty());
        assert_eq!(crate::setting::result(outcome)["x"], 1.0);
        for worker in workers {
            let ids: Vec<_> = worker.started.lock().iter().map(|call| call.id).collect();
            assert_eq!(ids, [id]);
        }
    }
}

#[tokio::test]
async fn a_journaled_call_that_was_lost_at_once_is_not_run_again() {
    for call in both() {
        let setting = setting();
        let workers =
            ["w1", "w2"].map(|id| setting.add(ending(id, CallOutcome::Failed(unknown()))));
        let (_, outcome) = finish(&mut setting.now(&call)).await;
        assert!(matches!(outcome, CallOutcome::Failed(failure) if failure == unknown()));
        assert_eq!(
            workers.map(|worker| worker.calls()).iter().sum::<usize>(),
            1
        );
    }
}

#[tokio::test]
async fn a_call_that_waits_goes_on_and_is_listed_meanwhile() {
    for call in both() {
        let permits = Arc::new(Semaphore::new(0));
        let given = permits.clone();
        let setting = setting();
        let worker = setting.add(running_only("w1").on_call(move |_, mut script| {
            let given = given.clone();
            async move {
                script.notify(Method::Progress, r#"{"progress":1}"#).await;
                given.acquire().await.unwrap().forget();
                script.result(RESULT).await;
            }
        }));
        let mut running = setting.now(&call);
        assert!(running.events.ended().is_none());
        let said = running.events.next().await.unwrap().kind;
        assert!(matches!(said, CallEventKind::Notification { .. }));
        let listed = setting.dispatch.calls(None, 10);
        assert_eq!((listed.total, listed.items.len()), (1, 1));
        assert_eq!(listed.items[0].id, call.id.to_string());
        assert_eq!(listed.items[0].worker.as_deref(), Some("w1"));
        assert_eq!(listed.items[0].target.as_deref(), Some("t"));
        assert_eq!(listed.items[0].state, CallState::Running);
        permits.add_permits(1);
        let (before, outcome) = finish(&mut running).await;
        assert!(before.is_empty());
        assert_eq!(crate::setting::result(outcome)["x"], 1.0);
        drop(running);
        assert_eq!(setting.dispatch.calls(None, 10).total, 0);
        assert_eq!(worker.calls(), 1);
    }
}

#[tokio::test]
async fn a_call_that_goes_on_can_be_stopped() {
    for call in both() {
        let setting = setting();
        setting.add(running_only("w1").on_call(|_, mut script| async move {
            assert!(script.cancelled().await.contains("enough"));
            let cancelled = CallOutcome::Failed(CallFailure::Cancelled);
            script.outcome(cancelled).await;
        }));
        let mut running = setting.now(&call);
        assert!(setting.dispatch.cancel(call.id, "enough"));
        let (_, outcome) = finish(&mut running).await;
        assert!(
            matches!(outcome, CallOutcome::Failed(CallFailure::Cancelled)),
            "{outcome:?}"
        );
    }
}

fn asking() -> FakeWorker {
    worker("w1")
        .here(|call| {
            let state = call.params.as_ref()?.member("requestState");
            state.is_none().then(|| text(ASK))
        })
        .on_call(|call, mut script| async move {
            let params: Value = call.params.as_ref().unwrap().read().unwrap();
            let said = json!({"content":[],"structuredContent":params});
            script.result(&said.to_string()).await;
        })
}

#[tokio::test]
async fn input_required_at_once_is_asked_of_a_legacy_caller() {
    let setting = setting();
    let worker = setting.add(asking());
    let call = legacy("t", json!({"x":1}));
    let mut running = setting.now(&call);
    assert!(running.events.ended().is_none());
    let CallEventKind::Ask { ask, method, .. } = running.events.next().await.unwrap().kind else {
        panic!("no question");
    };
    assert_eq!(method, Method::Elicit);
    assert_eq!(setting.dispatch.in_flight(), 1);
    let answer = RawJson::from_static(r#"{"action":"accept"}"#);
    assert!(running.control.answer(ask, Outcome::Result(answer)).await);
    let (before, outcome) = finish(&mut running).await;
    assert!(before.is_empty());
    assert_eq!(
        crate::setting::result(outcome)["structuredContent"],
        json!({"name":"t","arguments":{"x":1},"requestState":"s1",
            "inputResponses":{"who":{"action":"accept"}}})
    );
    let started = worker.started.lock();
    assert_eq!(started.len(), 2);
    assert!(started[0].id == call.id && started[1].id != call.id);
}

#[tokio::test]
async fn input_required_at_once_is_sealed_for_a_modern_caller() {
    let setting = setting();
    let worker = setting.add(asking());
    let call = modern("t", json!({"x":1}));
    let mut running = setting.now(&call);
    assert!(running.events.ended().is_none());
    let first = crate::setting::result(finish(&mut running).await.1);
    assert_eq!(first["resultType"], "input_required");
    let state = &first["requestState"];
    assert!(state.is_string() && state != "s1", "{state}");
    let retry = modern("t", json!({"x":1}))
        .with("requestState", state.clone())
        .with("inputResponses", json!({"who":{"action":"accept"}}));
    assert!(setting.start_now(&retry).is_none());
    assert_eq!(worker.calls(), 1);
    let second = setting.result(retry).await;
    assert_eq!(second["structuredContent"]["requestState"], "s1");
}

#[tokio::test]
async fn a_modern_call_that_may_go_on_with_something_is_not_begun_now() {
    let setting = setting();
    let worker = setting.add(ending("w1", text(RESULT)));
    for (name, value) in [("requestState", json!("s")), ("inputResponses", json!({}))] {
        let call = modern("t", json!({})).with(name, value.clone());
        assert!(setting.start_now(&call).is_none(), "{name}");
        assert_eq!((worker.calls(), setting.dispatch.in_flight()), (0, 0));
    }
    let forged = legacy("t", json!({})).with("requestState", json!("forged"));
    setting.ended(&forged);
    assert_eq!(worker.last_params(), json!({"name":"t","arguments":{}}));
}

#[tokio::test]
async fn a_call_goes_the_same_way_whether_it_is_traced_or_not() {
    let setting = setting();
    let worker = setting.add(ending("w1", text(RESULT)));
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331";
    for flags in ["01", "00"] {
        let call = Call {
            trace: TraceContext::parse(&format!("{trace}-{flags}"), None),
            ..legacy("t", json!({}))
        };
        assert!(call.trace.is_some());
        setting.ended(&call);
    }
    assert_eq!(worker.calls(), 2);
}

async fn half_open(outcome: CallOutcome) -> Setting {
    let setting = setting();
    let worker = setting.add(ending("w1", outcome));
    for _ in 0..5 {
        worker.refuse(unknown());
        worker.refuse(unknown());
        setting.failure(legacy("t", json!({}))).await;
    }
    assert_eq!(circuit(&setting), CircuitState::Open);
    let refused = setting.start_now(&legacy("t", json!({})));
    assert!(refused.expect("at once").is_err());
    assert_eq!(worker.calls(), 10);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(circuit(&setting), CircuitState::HalfOpen);
    setting
}

fn circuit(setting: &Setting) -> CircuitState {
    setting.dispatch.status().pools[0].workers[0].circuit
}

#[tokio::test(start_paused = true)]
async fn a_worker_on_trial_has_to_be_waited_for() {
    let setting = half_open(text(RESULT)).await;
    let plan = setting.plan(legacy("t", json!({}))).await;
    let Either::Right(trial) = setting.dispatch.start(&plan) else {
        panic!("it is not waited for");
    };
    let (_, outcome) = finish(&mut trial.await.unwrap()).await;
    assert_eq!(crate::setting::result(outcome)["content"], json!([]));
    assert_eq!(circuit(&setting), CircuitState::Closed);
}
