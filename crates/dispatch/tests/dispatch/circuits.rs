use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::json;
use shoal_dispatch::CircuitState;
use shoal_ports::{Call, CallFailure, CallOutcome, Dispatcher as _, Principal, SessionId};
use shoal_protocol::RpcError;

use crate::fake_worker::{FakeWorker, Script};
use crate::setting::{CallExt as _, Setting, legacy, setting, tools};

fn worker(id: &str) -> FakeWorker {
    FakeWorker::new(id, "a", tools(&["t"]))
}

fn unknown() -> CallFailure {
    CallFailure::OutcomeUnknown { reason: "?".into() }
}

fn circuit(setting: &Setting) -> CircuitState {
    setting.dispatch.status().pools[0].workers[0].circuit
}

async fn fail(setting: &Setting, worker: &Arc<FakeWorker>, times: usize) {
    for _ in 0..times {
        worker.refuse(unknown());
        assert_eq!(setting.failure(legacy("t", json!({}))).await, unknown());
    }
}

#[tokio::test(start_paused = true)]
async fn failures_in_a_row_open_the_circuit_and_one_trial_closes_it() {
    let setting = setting();
    let first = setting.add(worker("w1"));
    fail(&setting, &first, 4).await;
    assert_eq!(circuit(&setting), CircuitState::Closed);
    fail(&setting, &first, 1).await;
    assert_eq!(circuit(&setting), CircuitState::Open);
    let refused = setting.failure(legacy("t", json!({}))).await;
    assert!(
        matches!(&refused, CallFailure::NotExecuted { reason } if reason.contains("failed too often")),
        "{refused}"
    );
    assert_eq!(first.calls(), 5);

    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(circuit(&setting), CircuitState::HalfOpen);
    first.refuse(unknown());
    setting.failure(legacy("t", json!({}))).await;
    assert_eq!(circuit(&setting), CircuitState::Open);
    tokio::time::sleep(Duration::from_secs(2)).await;
    setting.result(legacy("t", json!({}))).await;
    assert_eq!(circuit(&setting), CircuitState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_half_open_circuit_lets_one_call_through() {
    let setting = setting();
    let never = worker("w1").on_call(|_, mut script| async move {
        script.cancelled().await;
    });
    let first = setting.add(never);
    fail(&setting, &first, 5).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let trial = setting.start(legacy("t", json!({}))).await;
    assert!(trial.is_ok());
    let refused = setting.failure(legacy("t", json!({}))).await;
    assert!(matches!(refused, CallFailure::NotExecuted { .. }));
    assert_eq!(first.calls(), 6);
}

#[tokio::test]
async fn other_workers_take_the_calls_of_an_open_circuit() {
    let setting = setting();
    let breaking = setting.add(worker("w1").on_call(|_, _| async {}));
    let well = setting.add(worker("w2"));
    for _ in 0..40 {
        setting.result(legacy("t", json!({})).repeatable()).await;
    }
    assert_eq!((breaking.calls(), well.calls()), (5, 40));
}

#[tokio::test]
async fn errors_of_tools_and_full_queues_open_nothing() {
    let setting = setting();
    let first = setting.add(worker("w1").on_call(|_, mut script| async move {
        let error = CallOutcome::Error(RpcError::internal("the tool's own"));
        script.outcome(error).await;
    }));
    for _ in 0..20 {
        setting.error(legacy("t", json!({}))).await;
        let full = CallFailure::Overloaded {
            reason: "full".into(),
            retry_after: Duration::from_secs(3),
        };
        first.refuse(full.clone());
        assert_eq!(setting.failure(legacy("t", json!({}))).await, full);
    }
    assert_eq!(circuit(&setting), CircuitState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_says_of_every_call_that_it_may_have_run_is_left_alone() {
    let setting = setting();
    let first = setting.add(worker("w1"));
    for _ in 0..5 {
        first.refuse(unknown());
        setting.failure(legacy("t", json!({})).at("w1")).await;
    }
    assert_eq!(circuit(&setting), CircuitState::Open);
    let setting = crate::setting::setting();
    let first = setting.add(worker("w1"));
    for _ in 0..9 {
        first.refuse(unknown());
        let resumed = setting.dispatch.resume(legacy("t", json!({})).at("w1"), 0);
        assert!(resumed.await.is_err());
    }
    assert_eq!(circuit(&setting), CircuitState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_crash_that_takes_many_calls_with_it_is_one_failure() {
    let (crash, crashed) = tokio::sync::watch::channel(());
    let setting = setting();
    let first = setting.add(worker("w1").on_call(move |call, mut script| {
        let mut crashed = crashed.clone();
        async move {
            if call
                .params
                .is_some_and(|params| params.as_str().contains("crash"))
            {
                let _ = crashed.changed().await;
                script.outcome(CallOutcome::Failed(unknown())).await;
            } else {
                script.say("{}").await;
            }
        }
    }));
    let calls = (0..20).map(|_| setting.failure(legacy("t", json!({ "crash": true }))));
    let calls = futures::future::join_all(calls);
    let crashing = async {
        while first.calls() < 20 {
            tokio::task::yield_now().await;
        }
        crash.send(()).expect("they run");
    };
    let (failures, ()) = tokio::join!(calls, crashing);
    assert_eq!(failures, vec![unknown(); 20]);
    assert_eq!(circuit(&setting), CircuitState::Closed);
    setting.result(legacy("t", json!({}))).await;
}

fn broken_for(principal: &'static str) -> impl Fn(Call, Script) -> BoxFuture<'static, ()> {
    move |call, mut script| {
        Box::pin(async move {
            match call.caller.principal.as_str() == principal {
                true => script.outcome(CallOutcome::Failed(unknown())).await,
                false => script.result(r#"{"content":[]}"#).await,
            }
        })
    }
}

fn anonymous(session: Option<&str>) -> Call {
    let mut call = legacy("t", json!({}));
    let caller = Arc::make_mut(&mut call.caller);
    caller.principal = Principal::anonymous();
    caller.session = session.map(SessionId::new);
    call
}

#[tokio::test(start_paused = true)]
async fn one_callers_failures_refuse_no_call_of_another() {
    for workers in [1, 3] {
        let setting = setting();
        let workers: Vec<_> = (0..workers)
            .map(|at| setting.add(worker(&format!("w{at}")).on_call(broken_for("mallory"))))
            .collect();
        for round in 0..200 {
            let failed = setting
                .outcome(legacy("t", json!({})).from("mallory"))
                .await;
            assert!(matches!(failed, CallOutcome::Failed(_)), "{round}");
            setting.result(legacy("t", json!({}))).await;
        }
        let calls: usize = workers.iter().map(|worker| worker.calls()).sum();
        assert_eq!(calls, 200 + 5 * workers.len());
    }
}

#[tokio::test(start_paused = true)]
async fn without_authentication_sessions_are_told_apart_and_the_others_are_never_refused() {
    let setting = setting();
    let first = setting.add(worker("w1"));
    let session = || anonymous(Some("one"));
    for _ in 0..5 {
        first.refuse(unknown());
        setting.failure(session()).await;
    }
    assert!(
        setting
            .failure(session())
            .await
            .to_string()
            .contains("failed too often")
    );
    setting.result(anonymous(Some("another"))).await;
    for _ in 0..20 {
        first.refuse(unknown());
        assert_eq!(setting.failure(anonymous(None)).await, unknown());
    }
    assert_eq!(circuit(&setting), CircuitState::Open);
    setting.result(anonymous(None)).await;
}
