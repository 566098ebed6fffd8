//! Calls that are safe to repeat run again after their worker was lost.

use std::sync::Arc;

use serde_json::json;
use shoal_ports::{CallEventKind, CallFailure, CallOutcome, Dispatcher as _};
use shoal_protocol::Method;

use crate::fake_worker::{FakeWorker, Script};
use crate::setting::{CallExt as _, Setting, finish, legacy, setting, tools};

/// A worker that is lost after what `before` does, for the call that comes first.
fn once_lost<F>(
    before: impl Fn(Script) -> F + Send + Sync + Clone + 'static,
    after: impl Fn(Script) -> F + Send + Sync + Clone + 'static,
) -> (Setting, [Arc<FakeWorker>; 2])
where
    F: Future<Output = ()> + Send + 'static,
{
    let setting = setting();
    let runs = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let workers = ["w1", "w2"].map(|id| {
        let (runs, before, after) = (runs.clone(), before.clone(), after.clone());
        let worker = FakeWorker::new(id, "a", tools(&["t"]));
        setting.add(worker.on_call(move |_, script| {
            match runs.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
                0 => before(script),
                _ => after(script),
            }
        }))
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
    let mut running = setting.dispatch.start(call).await.unwrap();
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
        let mut running = setting.dispatch.start(call).await.unwrap();
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
