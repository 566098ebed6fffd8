//! Broken connections to a worker that are restored or not.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use shoal_ports::{
    CallEventKind, CallFailure, CallOutcome, Dispatcher as _, RunningCall, WorkerId,
};
use shoal_protocol::{Method, Outcome, RawJson};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::fake_worker::FakeWorker;
use crate::setting::{CallExt as _, finish, legacy, modern, result, setting, start, tools};

fn worker(id: &str) -> FakeWorker {
    FakeWorker::new(id, "a", tools(&["t"]))
}

fn asking(id: &str) -> FakeWorker {
    worker(id)
        .still_open(1)
        .on_call(|_, mut script| async move {
            script.put(1, Method::Elicit, r#"{"message":"?"}"#).await;
        })
        .on_attach(|_, _, mut script| async move {
            let (_, answer) = script.answer().await;
            script.say(&answer).await;
            true
        })
}

async fn asked(running: &mut RunningCall) -> shoal_ports::AskId {
    match running.events.next().await.unwrap().kind {
        CallEventKind::Ask { ask, .. } => ask,
        other => panic!("unexpected {other:?}"),
    }
}

fn yes() -> Outcome {
    Outcome::Result(RawJson::from_static(r#"{"action":"accept"}"#))
}

#[tokio::test(start_paused = true)]
async fn an_answer_given_while_the_way_is_mended_arrives() {
    let setting = setting();
    let worker = setting.add(asking("w1"));
    let mut running = setting.start(legacy("t", json!({}))).await.unwrap();
    let ask = asked(&mut running).await;
    worker.connect(false);
    let control = running.control.clone();
    let reader = tokio::spawn(async move { finish(&mut running).await.1 });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let arrival = tokio::spawn(control.answer(ask, yes()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!arrival.is_finished(), "it is still on its way");
    worker.connect(true);
    assert!(arrival.await.unwrap());
    assert_eq!(
        result(reader.await.unwrap())["structuredContent"],
        json!({"action":"accept"})
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_lost_with_the_way_is_sent_again() {
    let setting = setting();
    setting.add(asking("w1"));
    let mut running = setting.start(legacy("t", json!({}))).await.unwrap();
    let ask = asked(&mut running).await;
    let arrival = tokio::spawn(running.control.answer(ask, yes()));
    tokio::time::sleep(Duration::from_millis(100)).await;
    let (_, outcome) = finish(&mut running).await;
    assert_eq!(
        result(outcome)["structuredContent"],
        json!({"action":"accept"})
    );
    assert!(arrival.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_a_call_that_is_lost_has_not_arrived() {
    let setting = setting();
    let worker = setting.add(worker("w1").on_call(|_, mut script| async move {
        script.put(1, Method::Elicit, r#"{"message":"?"}"#).await;
    }));
    let mut running = setting.start(legacy("t", json!({}))).await.unwrap();
    let ask = asked(&mut running).await;
    worker.connect(false);
    let control = running.control.clone();
    let begun = Instant::now();
    let reader = tokio::spawn(async move {
        let outcome = finish(&mut running).await.1;
        drop(running);
        outcome
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!control.answer(ask, yes()).await);
    let outcome = reader.await.unwrap();
    assert!(matches!(
        outcome,
        CallOutcome::Failed(CallFailure::OutcomeUnknown { .. })
    ));
    assert!(
        begun.elapsed() >= Duration::from_secs(5),
        "the worker was waited for"
    );
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_comes_back_under_its_name_goes_on_with_its_calls() {
    let setting = setting();
    let first = setting.add(asking("w1"));
    let mut running = setting.start(legacy("t", json!({}))).await.unwrap();
    let ask = asked(&mut running).await;
    first.connect(false);
    let arrival = running.control.answer(ask, yes());
    let reader = tokio::spawn(async move { finish(&mut running).await.1 });
    tokio::time::sleep(Duration::from_secs(3)).await;
    let second = setting.add(asking("w1"));
    assert!(arrival.await);
    assert_eq!(
        result(reader.await.unwrap())["structuredContent"],
        json!({"action":"accept"})
    );
    assert_eq!((second.calls(), second.attachments.lock()[0].1), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_was_replaced_does_not_take_the_call_back() {
    for repeatable in [true, false] {
        let setting = setting();
        let worker = setting.add(worker("w1").on_call(|_, _| async {}));
        setting.add(self::worker("w2").refusing(CallFailure::Cancelled));
        let mut call = legacy("t", json!({})).at("w1");
        if repeatable {
            call = call.repeatable();
        }
        worker.replaced.store(true, Ordering::SeqCst);
        let mut running = setting.start(call).await.unwrap();
        // The events end without an outcome, so that the session's owner finds out which node continues the call.
        assert!(running.events.next().await.is_none());
        assert!(running.control.is_replaced());
        assert_eq!(
            (worker.calls(), worker.attached.load(Ordering::SeqCst)),
            (1, 0)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_way_that_breaks_again_and_again_is_mended_as_long_as_something_comes() {
    let setting = setting();
    let worker = setting.add(
        worker("w1")
            .on_call(|_, mut script| async move {
                script.notify(Method::Progress, r#"{"progress":1}"#).await;
            })
            .on_attach(|_, after, mut script| async move {
                match after {
                    20 => script.say("{}").await,
                    _ => script.notify(Method::Progress, r#"{"progress":1}"#).await,
                }
                true
            }),
    );
    setting.result(legacy("t", json!({}))).await;
    assert_eq!(worker.attached.load(Ordering::SeqCst), 20);
    let silent = setting.add(
        self::worker("w2")
            .on_call(|_, _| async {})
            .on_attach(|_, _, _| async { true }),
    );
    let begun = Instant::now();
    let failure = setting.failure(legacy("t", json!({})).at("w2")).await;
    assert!(matches!(failure, CallFailure::OutcomeUnknown { .. }));
    // The worker accepts every attachment, so Shoal reattaches with pauses until the deadline.
    assert!(begun.elapsed() > Duration::from_secs(60));
    let attached = silent.attached.load(Ordering::SeqCst);
    assert!((60..=140).contains(&attached), "{attached}");
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_that_the_way_has_lost_is_told_again() {
    for call in [legacy("t", json!({})), modern("t", json!({}))] {
        let (told, mut reasons) = tokio::sync::mpsc::unbounded_channel();
        let told = Arc::new(told);
        let setting = setting();
        let worker = setting.add(worker("w1").on_call(|_, _| async {}).on_attach(
            move |_, _, mut script| {
                let told = told.clone();
                async move {
                    told.send(script.cancelled().await).unwrap();
                    let cancelled = CallOutcome::Failed(CallFailure::Cancelled);
                    script.outcome(cancelled).await;
                    true
                }
            },
        ));
        let mut running = setting.start(call).await.unwrap();
        running.control.cancel("enough");
        let (_, outcome) = finish(&mut running).await;
        assert!(matches!(
            outcome,
            CallOutcome::Failed(CallFailure::Cancelled)
        ));
        assert_eq!(reasons.recv().await.unwrap(), "enough");
        assert_eq!(worker.calls(), 1);
    }
}

/// A modern client cancels by leaving, after which nobody reads the call's events.
#[tokio::test(start_paused = true)]
async fn a_modern_caller_that_leaves_while_the_way_is_broken_cancels_all_the_same() {
    let (told, mut reasons) = tokio::sync::mpsc::unbounded_channel();
    let told = Arc::new(told);
    let setting = setting();
    let breaks = Arc::new(Notify::new());
    let worker = setting.add(breaking("w1", &breaks).on_attach(move |_, _, mut script| {
        let told = told.clone();
        async move {
            told.send(script.cancelled().await).unwrap();
            true
        }
    }));
    let mut call = modern("t", json!({}));
    call.progress_token = Some(RawJson::from_static("1"));
    let mut running = setting.start(call).await.unwrap();
    worker.connect(false);
    breaks.notify_one();
    let read = tokio::time::timeout(Duration::from_millis(100), finish(&mut running)).await;
    assert!(read.is_err(), "{read:?}");
    running.control.cancel("the client has left");
    drop(running);
    tokio::time::sleep(Duration::from_secs(1)).await;
    worker.connect(true);
    assert_eq!(reasons.recv().await.unwrap(), "the client has left");
    assert_eq!(worker.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_start_whose_fate_is_unknown_is_tried_again_at_the_same_worker() {
    let unknown = || CallFailure::OutcomeUnknown {
        reason: "the way broke".into(),
    };
    let setting = setting();
    let first = setting.add(worker("w1"));
    let other = setting.add(worker("w2"));
    let call = legacy("t", json!({})).at("w1");
    let id = call.id;
    first.lose();
    first.connect(false);
    let dispatch = setting.dispatch.clone();
    let started = tokio::spawn(async move { start(&dispatch, call).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    first.connect(true);
    finish(&mut started.await.unwrap().unwrap()).await;
    let ids: Vec<_> = first.started.lock().iter().map(|call| call.id).collect();
    assert_eq!((ids, other.calls()), (vec![id, id], 0));
    let full = CallFailure::Overloaded {
        reason: "full".into(),
        retry_after: Duration::from_secs(1),
    };
    for word in [full, unknown()] {
        first.lose();
        let reachable = first.clone();
        let said = word.clone();
        tokio::spawn(async move { reachable.refuse_later(said).await });
        let started = start(&setting.dispatch, legacy("t", json!({})).at("w1")).await;
        assert_eq!(started.err(), Some(word));
    }
    first.started.lock().truncate(2);
    first.load.lock().queued = 0;
    other.load.lock().queued = 100;
    first.refuse(unknown());
    setting.result(legacy("t", json!({})).repeatable()).await;
    assert_eq!((first.calls(), other.calls()), (3, 1));
    other.load.lock().queued = 100;
    first.lose();
    let away = first.clone();
    tokio::spawn(async move { away.connect(false) });
    setting.result(legacy("t", json!({})).repeatable()).await;
    assert_eq!((first.calls(), other.calls()), (4, 2));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_cancelled_while_its_worker_was_away_is_told_so_when_it_is_back() {
    for read in [true, false] {
        let (told, mut reasons) = tokio::sync::mpsc::unbounded_channel();
        let told = Arc::new(told);
        let setting = setting();
        let breaks = Arc::new(Notify::new());
        let worker = setting.add(breaking("w1", &breaks).on_attach(move |_, _, mut script| {
            let told = told.clone();
            async move {
                told.send(script.cancelled().await).unwrap();
                true
            }
        }));
        let mut running = setting.start(legacy("t", json!({}))).await.unwrap();
        running.events.next().await.unwrap();
        worker.connect(false);
        breaks.notify_one();
        tokio::task::yield_now().await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        running.control.cancel("enough");
        if read {
            let outcome = finish(&mut running).await.1;
            let CallOutcome::Failed(CallFailure::Cancelled) = outcome else {
                panic!("unexpected {outcome:?}");
            };
        }
        drop(running);
        tokio::time::sleep(Duration::from_secs(1)).await;
        worker.connect(true);
        assert_eq!(reasons.recv().await.unwrap(), "enough");
    }
}

fn breaking(id: &str, breaks: &Arc<Notify>) -> FakeWorker {
    let breaks = breaks.clone();
    worker(id).on_call(move |_, mut script| {
        let breaks = breaks.clone();
        async move {
            script.notify(Method::Progress, r#"{"progress":1}"#).await;
            breaks.notified().await;
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_worker_was_let_go_is_told_at_once() {
    let setting = setting();
    let breaks = Arc::new(Notify::new());
    let worker = setting.add(breaking("w1", &breaks));
    let mut running = setting.start(legacy("t", json!({}))).await.unwrap();
    running.events.next().await.unwrap();
    worker.connect(false);
    // The code that removes a worker has already waited for it, so Shoal must not wait again.
    setting.dispatch.remove_worker(&WorkerId::new("w1"));
    let begun = Instant::now();
    breaks.notify_one();
    let (_, outcome) = finish(&mut running).await;
    let CallOutcome::Failed(CallFailure::OutcomeUnknown { .. }) = outcome else {
        panic!("unexpected {outcome:?}");
    };
    let waited = begun.elapsed();
    assert!(waited < Duration::from_secs(1), "a second wait: {waited:?}");
    let call = legacy("t", json!({})).at("w1");
    let resumed = setting.dispatch.resume(call, 1).await;
    assert!(resumed.is_err());
    let waited = begun.elapsed();
    assert!(waited < Duration::from_secs(1), "a third wait: {waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_safe_to_repeat_goes_to_whoever_comes_first() {
    let setting = setting();
    let breaks = Arc::new(Notify::new());
    let first = setting.add(breaking("w1", &breaks));
    let call = legacy("t", json!({})).repeatable();
    let mut running = setting.start(call).await.unwrap();
    running.events.next().await.unwrap();
    first.connect(false);
    breaks.notify_one();
    let begun = Instant::now();
    let late = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        setting.add(worker("w2"))
    };
    let (outcome, second) = tokio::join!(finish(&mut running), late);
    result(outcome.1);
    assert_eq!((first.calls(), second.calls()), (1, 1));
    let waited = begun.elapsed();
    assert!(waited < Duration::from_secs(1), "it waited on: {waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_does_not_end_a_call_at_its_deadline_is_not_waited_for() {
    let setting = setting();
    let (told, mut tellings) = tokio::sync::mpsc::unbounded_channel();
    setting.add(
        FakeWorker::new("w1", "a", tools(&["t"])).on_call(move |_, mut script| {
            let told = told.clone();
            async move {
                let _ = told.send(script.cancelled().await);
                std::future::pending::<()>().await;
                drop(script);
            }
        }),
    );
    // A modern request that may be parked ends at its own deadline, before the worker's.
    for (call, after) in [(legacy as fn(_, _) -> _, 65), (modern, 60)] {
        let began = Instant::now();
        let failure = setting.failure(call("t", json!({}))).await;
        let limit = Duration::from_secs(60);
        assert_eq!(failure, CallFailure::DeadlineExceeded { limit });
        assert_eq!(began.elapsed(), Duration::from_secs(after));
        assert_eq!(tellings.recv().await.unwrap(), "its deadline passed");
    }
}
