use serde_json::json;
use shoal_ports::{CallFailure, CallId, CallOutcome, CallState};
use shoal_protocol::{Method, Revision};

use crate::fake_worker::FakeWorker;
use crate::setting::{CallExt as _, Setting, call, finish, legacy, modern, setting, tools};

fn patient() -> Setting {
    let setting = setting();
    let worker = FakeWorker::new("a@n", "a", tools(&["t"]));
    setting.add(worker.on_call(|_, mut script| async move {
        let reason = script.cancelled().await;
        assert!(reason.contains("enough"), "{reason}");
        let cancelled = CallOutcome::Failed(CallFailure::Cancelled);
        script.outcome(cancelled).await;
    }));
    setting
}

#[tokio::test]
async fn calls_of_both_eras_are_listed_while_they_are_read() {
    let setting = patient();
    let dispatch = &setting.dispatch;
    let of_session = legacy("t", json!({}));
    let session = of_session.caller.session.clone().unwrap();
    let first = setting.start(of_session.clone()).await.unwrap();
    let second = setting
        .start(modern("t", json!({})).repeatable())
        .await
        .unwrap();
    let all = dispatch.calls(None, 10);
    assert_eq!(
        (all.items.len(), all.total, dispatch.in_flight()),
        (2, 2, 2)
    );
    let report = &all.items[0];
    assert_eq!(report.id, of_session.id.to_string(), "the oldest first");
    assert_eq!(report.target.as_deref(), Some("t"));
    assert_eq!(report.worker.as_deref(), Some("a@n"));
    assert_eq!(report.session.as_deref(), Some(session.as_str()));
    assert_eq!(report.principal, "2bd806c97f0e");
    assert_eq!(report.state, CallState::Running);
    assert!(report.journaled && !report.modern);
    assert!(!all.items[1].journaled && all.items[1].modern);
    assert_eq!(all.items[1].session, None);
    assert_eq!(
        (
            dispatch.calls(None, 1).items.len(),
            dispatch.calls(None, 1).total
        ),
        (1, 2)
    );
    let calls = dispatch.calls(Some(&session), 10).items;
    assert_eq!(calls, all.items[..1]);
    drop(second);
    assert_eq!(
        dispatch.calls(None, 10).total,
        1,
        "nobody reads it any more"
    );
    drop(first);
    assert_eq!(dispatch.in_flight(), 0);
}

#[tokio::test]
async fn a_call_is_stopped_by_its_id_alone() {
    let setting = patient();
    for begun in [legacy("t", json!({})), modern("t", json!({}))] {
        let id = begun.id;
        let mut running = setting.start(begun).await.unwrap();
        assert!(!setting.dispatch.cancel(CallId::generate(), "enough"));
        assert!(setting.dispatch.cancel(id, "enough"));
        let listed = setting.dispatch.calls(None, 10).items;
        assert_eq!(listed[0].state, CallState::Cancelling);
        let (_, outcome) = finish(&mut running).await;
        assert!(
            matches!(outcome, CallOutcome::Failed(CallFailure::Cancelled)),
            "{outcome:?}"
        );
        drop(running);
        assert!(!setting.dispatch.cancel(id, "enough"), "it has ended");
    }
}

#[tokio::test]
async fn what_ends_at_once_leaves_nothing_behind() {
    let setting = patient();
    setting.error(legacy("unknown", json!({}))).await;
    let list = call(Revision::V2025_11_25, Method::ToolsList, json!({}));
    setting.result(list).await;
    let nowhere = legacy("t", json!({})).at("gone");
    setting.failure(nowhere).await;
    assert_eq!(setting.dispatch.in_flight(), 0);
}

#[tokio::test]
async fn what_outlasts_its_edge_ends_at_once_and_says_whether_it_may_have_run() {
    let setting = setting();
    let worker = FakeWorker::new("a@n", "a", tools(&["t"]));
    let worker = setting.add(worker.on_call(|_, mut script| async move {
        script.cancelled().await;
        std::future::pending::<()>().await;
    }));
    let journaled = modern("t", json!({}));
    let of_session = setting.start(legacy("t", json!({}))).await.unwrap();
    let mut once = setting.start(journaled.clone()).await.unwrap();
    let again = modern("t", json!({})).repeatable();
    let mut again = setting.start(again).await.unwrap();
    assert_eq!(setting.dispatch.stop_without_session(), 2);
    let (_, outcome) = finish(&mut once).await;
    let CallOutcome::Failed(failure @ CallFailure::OutcomeUnknown { .. }) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(failure.to_string().contains("shut down"), "{failure}");
    let (_, outcome) = finish(&mut again).await;
    let CallOutcome::Failed(CallFailure::NotExecuted { .. }) = outcome else {
        panic!("{outcome:?}");
    };
    let failure = setting.failure(modern("t", json!({}))).await;
    assert!(
        matches!(failure, CallFailure::NotExecuted { .. }),
        "{failure:?}"
    );
    assert_eq!(worker.calls(), 3);
    drop((once, again));
    let left = setting.dispatch.calls(None, 10).items;
    assert_eq!((left.len(), left[0].state), (1, CallState::Running));
    drop(of_session);
}
