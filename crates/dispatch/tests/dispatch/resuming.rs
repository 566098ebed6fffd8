use std::time::Duration;

use serde_json::json;
use shoal_ports::{Call, CallFailure, CallOutcome, Dispatcher as _, Epoch, MayStart, Repeat};
use shoal_protocol::Method;
use tokio::time::Instant;

use crate::fake_worker::FakeWorker;
use crate::setting::{CallExt as _, Setting, finish, legacy, result, setting, tools};

fn worker(id: &str) -> FakeWorker {
    FakeWorker::new(id, "a", tools(&["t"]))
}

fn knowing(id: &str) -> FakeWorker {
    worker(id).on_attach(|_, _, mut script| async move {
        script.notify(Method::Progress, r#"{"progress":4}"#).await;
        script
            .result(r#"{"resultType":"complete","content":[]}"#)
            .await;
        true
    })
}

fn at(worker: &str) -> Call {
    legacy("t", json!({})).at(worker)
}

async fn refused(setting: &Setting, call: Call, after: u64) -> String {
    match setting.dispatch.resume(call, after).await {
        Err(CallFailure::OutcomeUnknown { reason }) => reason,
        Err(other) => panic!("unexpected {other:?}"),
        Ok(_) => panic!("it goes on"),
    }
}

#[tokio::test]
async fn a_journaled_call_goes_on_after_what_was_seen() {
    let setting = setting();
    let worker = setting.add(knowing("w1"));
    let call = at("w1");
    let id = call.id;
    let mut running = setting.dispatch.resume(call, 3).await.unwrap();
    assert_eq!(running.events.next().await.unwrap().sequence, 4);
    assert_eq!(result(finish(&mut running).await.1), json!({"content":[]}));
    assert_eq!(*worker.attachments.lock(), [(id, 3)]);
    assert_eq!(worker.calls(), 0);
}

#[tokio::test]
async fn a_journaled_call_that_its_worker_has_never_seen_is_started_there() {
    let setting = setting();
    let bound = setting.add(worker("w1"));
    let other = setting.add(worker("w2"));
    let call = at("w1");
    let mut running = setting.dispatch.resume(call.clone(), 0).await.unwrap();
    result(finish(&mut running).await.1);
    assert_eq!((bound.calls(), other.calls()), (1, 0));
    assert_eq!(bound.started.lock()[0].id, call.id);
}

#[tokio::test]
async fn a_journaled_call_that_its_worker_has_forgotten_has_an_unknown_outcome() {
    let setting = setting();
    let bound = setting.add(worker("w1"));
    bound.refuse(CallFailure::OutcomeUnknown {
        reason: "it may have run before".into(),
    });
    let reason = refused(&setting, at("w1"), 0).await;
    assert!(reason.contains("may have run before"), "{reason}");
    let reason = refused(&setting, at("w1"), 1).await;
    assert!(reason.contains("does not know it any more"), "{reason}");
    assert_eq!(bound.calls(), 1);
    let unnamed = legacy("t", json!({}));
    assert!(
        refused(&setting, unnamed, 0)
            .await
            .contains("names no worker")
    );
}

#[tokio::test(start_paused = true)]
async fn a_full_worker_is_waited_for_and_a_refusal_is_no_promise() {
    let full = || CallFailure::Overloaded {
        reason: "the queue is full".into(),
        retry_after: Duration::from_secs(1),
    };
    let setting = setting();
    let bound = setting.add(worker("w1").refusing(full()).refusing(full()));
    setting.dispatch.resume(at("w1"), 0).await.unwrap();
    assert_eq!(bound.calls(), 3);
    bound.refuse(CallFailure::NotExecuted {
        reason: "shutting down".into(),
    });
    // The worker's refusal is final even if an earlier owner's start is still on its way.
    assert!(
        refused(&setting, at("w1"), 0)
            .await
            .contains("shutting down")
    );
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_is_away_is_waited_for() {
    let setting = setting();
    let begun = Instant::now();
    let reason = refused(&setting, at("w1"), 0).await;
    assert!(reason.contains("its worker w1 is gone"), "{reason}");
    assert_eq!(begun.elapsed(), Duration::from_secs(5));

    let dispatch = setting.dispatch.clone();
    let resumed = tokio::spawn(async move { dispatch.resume(at("w1"), 0).await });
    tokio::time::sleep(Duration::from_secs(4)).await;
    let away = knowing("w1");
    away.connect(false);
    let worker = setting.add(away);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!resumed.is_finished());
    worker.connect(true);
    let mut running = resumed.await.unwrap().unwrap();
    result(finish(&mut running).await.1);
}

#[tokio::test(start_paused = true)]
async fn a_repeatable_call_goes_on_at_its_worker_or_begins_anew() {
    let setting = setting();
    let first = setting.add(knowing("w1"));
    let call = || at("w1").repeatable();
    let mut running = setting.dispatch.resume(call(), 0).await.unwrap();
    result(finish(&mut running).await.1);
    assert_eq!(first.calls(), 0);

    let second = setting.add(worker("w2"));
    assert!(
        setting
            .dispatch
            .remove_worker(&shoal_ports::WorkerId::new("w1"))
    );
    let begun = Instant::now();
    let mut running = setting.dispatch.resume(call(), 0).await.unwrap();
    result(finish(&mut running).await.1);
    assert_eq!((second.calls(), begun.elapsed()), (1, Duration::ZERO));
    let mut running = setting
        .dispatch
        .resume(at("w2").repeatable(), 7)
        .await
        .unwrap();
    result(finish(&mut running).await.1);
    assert_eq!(second.calls(), 2);
}

#[tokio::test]
async fn a_call_whose_tool_has_left_the_catalog_is_read_to_its_end() {
    let setting = setting();
    setting.add(knowing("w1"));
    let call = legacy("gone", json!({})).at("w1");
    let mut running = setting.dispatch.resume(call, 1).await.unwrap();
    result(finish(&mut running).await.1);
}

/// The worker must know of the refusal, because an earlier owner's start may still arrive.
#[tokio::test]
async fn a_call_that_has_no_route_is_refused_by_its_worker_first() {
    let setting = setting();
    let bound = setting.add(worker("w1").refusing(CallFailure::Cancelled));
    let gone = legacy("gone", json!({})).at("w1");
    let mut running = setting.dispatch.resume(gone, 0).await.unwrap();
    let outcome = finish(&mut running).await.1;
    assert!(matches!(outcome, CallOutcome::Refused(_)), "{outcome:?}");
    let started = bound.started.lock();
    assert!(started.len() == 1 && started[0].may_start == MayStart::No);
}

/// The previous owner's start arrives late and has the call's events, so the worker answers this start with an
/// unknown outcome.
#[tokio::test]
async fn a_start_that_an_earlier_owner_overtakes_is_found_again() {
    let setting = setting();
    let bound = knowing("w1")
        .forgetful()
        .refusing(CallFailure::OutcomeUnknown {
            reason: "another reader has taken the call over".to_owned(),
        });
    let bound = setting.add(bound);
    let mut running = setting.dispatch.resume(at("w1"), 0).await.unwrap();
    assert_eq!(result(finish(&mut running).await.1), json!({"content":[]}));
    assert_eq!(bound.calls(), 1, "it was begun once from here");
}

#[tokio::test]
async fn that_a_later_owner_has_spoken_is_no_outcome() {
    let setting = setting();
    let worker = setting.add(worker("w1"));
    let superseded = CallFailure::Superseded { epoch: Epoch(7) };
    worker.refuse(superseded.clone());
    let started = setting.failure(at("w1")).await;
    assert_eq!(started, superseded);
    worker.refuse(superseded.clone());
    let resumed = setting.dispatch.resume(at("w1"), 0).await.err();
    assert_eq!(resumed, Some(superseded.clone()));
    let other = setting.add(self::worker("w2"));
    worker.refuse(superseded.clone());
    other.refuse(superseded.clone());
    let repeatable = Call {
        repeat: Repeat::Safe,
        binding: None,
        ..at("w1")
    };
    let started = setting.failure(repeatable).await;
    assert_eq!(started, superseded);
    assert_eq!(worker.calls() + other.calls(), 3);
}
