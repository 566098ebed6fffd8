use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use shoal_ports::{CallFailure, CallOutcome};
use shoal_protocol::Method;

use crate::fake_worker::FakeWorker;
use crate::setting::{CallExt as _, Setting, finish, legacy, result, setting, tools};

fn overloaded() -> CallFailure {
    CallFailure::Overloaded {
        reason: "the queue is full".into(),
        retry_after: Duration::from_secs(1),
    }
}

fn worker(id: &str) -> FakeWorker {
    FakeWorker::new(id, "a", tools(&["t"]))
}

fn breaking(id: &str) -> FakeWorker {
    worker(id).on_call(|_, _| async {})
}

fn pair(one: FakeWorker, two: FakeWorker) -> (Setting, [Arc<FakeWorker>; 2]) {
    let setting = setting();
    let workers = [setting.add(one), setting.add(two)];
    (setting, workers)
}

fn calls(workers: &[Arc<FakeWorker>]) -> usize {
    workers.iter().map(|worker| worker.calls()).sum()
}

#[tokio::test]
async fn a_refused_call_is_offered_to_another_worker() {
    for _ in 0..10 {
        let (setting, workers) = pair(worker("w1").refusing(overloaded()), worker("w2"));
        setting.result(legacy("t", json!({}))).await;
        assert!(calls(&workers) <= 2 && workers[1].calls() == 1);
    }
}

#[tokio::test]
async fn the_last_refusal_is_the_answer_when_all_refuse() {
    let (setting, workers) = pair(
        worker("w1").refusing(overloaded()),
        worker("w2").refusing(overloaded()),
    );
    assert_eq!(setting.failure(legacy("t", json!({}))).await, overloaded());
    assert_eq!(calls(&workers), 2);
}

#[tokio::test]
async fn a_failure_that_is_not_safe_is_not_retried() {
    let unknown = CallFailure::OutcomeUnknown { reason: "?".into() };
    let (setting, workers) = pair(
        worker("w1").refusing(unknown.clone()),
        worker("w2").refusing(unknown.clone()),
    );
    assert_eq!(setting.failure(legacy("t", json!({}))).await, unknown);
    assert_eq!(calls(&workers), 1);
}

#[tokio::test]
async fn attempts_are_bounded() {
    let setting = setting();
    let workers: Vec<_> = (0..6)
        .map(|n| setting.add(breaking(&format!("w{n}"))))
        .collect();
    let failure = setting.failure(legacy("t", json!({})).repeatable()).await;
    assert!(matches!(failure, CallFailure::NotExecuted { .. }));
    assert_eq!(calls(&workers), 3);
}

#[tokio::test]
async fn a_repeatable_call_whose_worker_breaks_runs_elsewhere() {
    for _ in 0..10 {
        let (setting, workers) = pair(breaking("w1"), worker("w2"));
        let call = legacy("t", json!({})).repeatable();
        let id = call.id;
        assert_eq!(setting.result(call).await["content"], json!([]));
        assert_eq!(workers[1].started.lock()[0].id, id);
    }
}

#[tokio::test]
async fn a_journaled_call_is_never_run_twice() {
    for _ in 0..10 {
        let (setting, workers) = pair(breaking("w1"), breaking("w2"));
        let failure = setting.failure(legacy("t", json!({}))).await;
        assert!(matches!(failure, CallFailure::OutcomeUnknown { .. }));
        assert_eq!(calls(&workers), 1);
        let attached: usize = workers
            .iter()
            .map(|w| w.attached.load(Ordering::SeqCst))
            .sum();
        assert_eq!(attached, 1);
    }
}

#[tokio::test]
async fn a_journaled_call_is_attached_to_once_and_goes_on() {
    let setting = setting();
    let worker = setting.add(
        worker("w1")
            .on_call(|_, mut script| async move {
                script.notify(Method::Progress, r#"{"progress":1}"#).await;
            })
            .on_attach(|_, after, mut script| async move {
                script.say(&format!(r#"{{"after":{after}}}"#)).await;
                true
            }),
    );
    let mut running = setting.start(legacy("t", json!({}))).await.unwrap();
    let (before, outcome) = finish(&mut running).await;
    assert_eq!(before.len(), 1);
    assert_eq!(result(outcome)["structuredContent"], json!({"after":1}));
    assert_eq!(
        (worker.calls(), worker.attached.load(Ordering::SeqCst)),
        (1, 1)
    );
}

#[tokio::test]
async fn a_cancelled_call_is_not_run_again() {
    let setting = setting();
    let (first, second) = (setting.add(breaking("w1")), setting.add(breaking("w2")));
    let call = legacy("t", json!({})).repeatable();
    let mut running = setting.start(call).await.unwrap();
    running.control.cancel("enough");
    let (_, outcome) = finish(&mut running).await;
    assert!(matches!(
        outcome,
        CallOutcome::Failed(CallFailure::Cancelled)
    ));
    assert_eq!(first.calls() + second.calls(), 1);
}

#[tokio::test]
async fn cancellation_follows_a_call_to_its_new_worker() {
    let cancellable = |id: &str| {
        worker(id).on_call(|_, mut script| async move {
            script.cancelled().await;
            script
                .outcome(CallOutcome::Failed(CallFailure::Cancelled))
                .await;
        })
    };
    let setting = setting();
    setting.add(breaking("w1"));
    let second = setting.add(cancellable("w2"));
    let call = legacy("t", json!({})).repeatable();
    let mut running = setting.start(call).await.unwrap();
    let control = running.control.clone();
    let reader = tokio::spawn(async move { finish(&mut running).await.1 });
    while second.calls() == 0 {
        tokio::task::yield_now().await;
    }
    control.cancel("enough");
    let outcome = reader.await.unwrap();
    assert!(matches!(
        outcome,
        CallOutcome::Failed(CallFailure::Cancelled)
    ));
}
