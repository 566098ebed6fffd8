use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use shoal_ports::{CallEventKind, CallFailure, CallOutcome, Dispatcher as _};
use shoal_protocol::Method;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::fake_worker::{FakeWorker, Script};
use crate::setting::{CallExt as _, Setting, finish, legacy, setting, tools};

fn once_lost<F>(
    before: impl Fn(Script) -> F + Send + Sync + Clone + 'static,
    after: impl Fn(Script) -> F + Send + Sync + Clone + 'static,
) -> (Setting, [Arc<FakeWorker>; 2])
where
    F: Future<Output = ()> + Send + 'static,
{
    let setting = setting();
    let runs = Arc::new(AtomicUsize::new(0));
    let workers = ["w1", "w2"].map(|id| {
        let (runs, before, after) = (runs.clone(), before.clone(), after.clone());
        let worker = FakeWorker::new(id, "a", tools(&["t"]));
        setting.add(
            worker.on_call(move |_, script| match runs.fetch_add(1, Ordering::SeqCst) {
                0 => before(script),
                _ => after(script),
            }),
        )
    });
    (setting, workers)
}

async fn progress(script: &mut Script, at: &'static str) {
    script.notify(Method::Progress, at).await;
}

const STEPS: [&str; 4] = [
    r#"{"progress":1}"#,
    r#"{"progress":2}"#,
    r#"{"progress":2.5}"#,
    r#"{"progress":3}"#,
];

fn texts(events: Vec<CallEventKind>) -> Vec<String> {
    let text = |kind| match kind {
        CallEventKind::Notification { params, .. } => params.unwrap().as_str().to_owned(),
        other => panic!("unexpected {other:?}"),
    };
    events.into_iter().map(text).collect()
}

#[tokio::test]
async fn progress_goes_on_where_it_was_and_messages_pass() {
    let script = |steps: usize, ends: bool| {
        move |mut script: Script| {
            let run = async move {
                for step in &STEPS[..steps] {
                    progress(&mut script, step).await;
                }
                script
                    .notify(Method::LogMessage, r#"{"level":"info","data":1}"#)
                    .await;
                if ends {
                    script.result(r#"{"content":[]}"#).await;
                }
            };
            Box::pin(run) as std::pin::Pin<Box<dyn Future<Output = ()> + Send>>
        }
    };
    let (setting, workers) = once_lost(script(2, false), script(4, true));
    let call = legacy("t", json!({})).repeatable();
    let mut running = setting.start(call).await.unwrap();
    let mut seen = Vec::new();
    let outcome = loop {
        match running.events.next().await.unwrap().kind {
            CallEventKind::Finished(outcome) => break outcome,
            other => seen.push(other),
        }
    };
    let message = r#"{"level":"info","data":1}"#;
    let steps = [STEPS[0], STEPS[1], message, STEPS[2], STEPS[3], message];
    assert_eq!(texts(seen), steps);
    assert!(matches!(outcome, CallOutcome::Result(_)));
    assert_eq!(workers.map(|worker| worker.calls()), [1, 1]);
}

#[tokio::test]
async fn a_call_that_has_asked_or_closed_its_stream_is_not_run_again() {
    for asks in [true, false] {
        let script = move |mut script: Script| {
            let run = async move {
                match asks {
                    true => script.put(1, Method::Elicit, r#"{"message":"?"}"#).await,
                    false => script.close_stream().await,
                }
            };
            Box::pin(run) as std::pin::Pin<Box<dyn Future<Output = ()> + Send>>
        };
        let (setting, workers) = once_lost(script, script);
        let call = legacy("t", json!({})).repeatable();
        let mut running = setting.start(call).await.unwrap();
        let (before, outcome) = finish(&mut running).await;
        assert_eq!(before.len(), 1);
        assert!(matches!(
            outcome,
            CallOutcome::Failed(CallFailure::OutcomeUnknown { .. })
        ));
        assert_eq!(
            workers.iter().map(|worker| worker.calls()).sum::<usize>(),
            1
        );
    }
}

fn failing_once(id: &str, falls: &Arc<Notify>) -> FakeWorker {
    let (falls, runs) = (falls.clone(), Arc::new(AtomicUsize::new(0)));
    FakeWorker::new(id, "a", tools(&["t"])).on_call(move |_, mut script| {
        let (falls, run) = (falls.clone(), runs.fetch_add(1, Ordering::SeqCst));
        async move {
            if run > 0 {
                return script.result(r#"{"content":[]}"#).await;
            }
            falls.notified().await;
            let lost = CallFailure::OutcomeUnknown {
                reason: "its process has ended".into(),
            };
            script.outcome(CallOutcome::Failed(lost)).await;
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_only_worker_fails_it_runs_again_where_somebody_comes_back() {
    for other in [false, true] {
        let (setting, falls) = (setting(), Arc::new(Notify::new()));
        let worker = setting.add(failing_once("w1", &falls));
        let call = legacy("t", json!({})).repeatable();
        let mut running = setting.start(call).await.unwrap();
        worker.announce(None, Some("its process has ended"));
        setting
            .until(|d| d.status().pools[0].workers[0].detail.is_some())
            .await;
        falls.notify_one();
        let ended = tokio::spawn(async move { finish(&mut running).await.1 });
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(!ended.is_finished(), "somebody may come back");
        let next = match other {
            true => setting.add(FakeWorker::new("w2", "a", tools(&["t"]))),
            false => {
                worker.announce(Some(tools(&["t"])), None);
                worker.clone()
            }
        };
        let outcome = ended.await.unwrap();
        assert!(matches!(outcome, CallOutcome::Result(_)), "{outcome:?}");
        assert_eq!(
            (worker.calls(), next.calls()),
            if other { (1, 1) } else { (2, 2) }
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_is_left_to_run_again_says_that_it_may_be_sent_again() {
    let (setting, falls) = (setting(), Arc::new(Notify::new()));
    let worker = setting.add(failing_once("w1", &falls));
    let call = legacy("t", json!({})).repeatable();
    let mut running = setting.start(call).await.unwrap();
    worker.announce(None, Some("its process has ended"));
    setting
        .until(|d| d.status().pools[0].workers[0].detail.is_some())
        .await;
    let begun = Instant::now();
    falls.notify_one();
    let (_, outcome) = finish(&mut running).await;
    let CallOutcome::Failed(CallFailure::NotExecuted { .. }) = outcome else {
        panic!("unexpected {outcome:?}");
    };
    assert_eq!(worker.calls(), 1);
    assert!(
        begun.elapsed() >= Duration::from_secs(5),
        "it was waited for"
    );
    let breaking = FakeWorker::new("w1", "a", tools(&["t"])).on_call(|_, mut script| async move {
        let reason = "its process has ended".to_owned();
        let lost = CallOutcome::Failed(CallFailure::OutcomeUnknown { reason });
        script.outcome(lost).await;
    });
    let setting = crate::setting::setting();
    let worker = setting.add(breaking);
    let failure = setting.failure(legacy("t", json!({})).repeatable()).await;
    assert!(
        matches!(failure, CallFailure::NotExecuted { .. }),
        "{failure}"
    );
    assert_eq!(worker.calls(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_taken_over_runs_again_where_its_worker_is_lost_too() {
    let setting = setting();
    let first =
        setting.add(FakeWorker::new("w1", "a", tools(&["t"])).on_attach(|_, _, _| async { true }));
    let second = setting.add(FakeWorker::new("w2", "a", tools(&["t"])));
    let call = legacy("t", json!({})).at("w1").repeatable();
    let mut running = setting.dispatch.resume(call, 3).await.unwrap();
    first.connect(false);
    let (_, outcome) = finish(&mut running).await;
    assert!(matches!(outcome, CallOutcome::Result(_)), "{outcome:?}");
    assert_eq!((first.calls(), second.calls()), (0, 1));
}
