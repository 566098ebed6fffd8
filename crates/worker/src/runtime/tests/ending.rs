use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use shoal_ports::{Call, CallFailure, CallOutcome, SessionId, Worker};
use shoal_protocol::code;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::script::{
    Script, call, done, event, is_done, outcome, progress, repeatable, small, until,
};
use crate::PoolConfig;

#[tokio::test(start_paused = true)]
async fn deadline_ends_the_call_and_tells_the_tool() {
    let told = Arc::new(AtomicBool::new(false));
    let script = {
        let told = Arc::clone(&told);
        Script::new(move |context| {
            let told = Arc::clone(&told);
            async move {
                context.cancelled().cancelled().await;
                told.store(true, Ordering::SeqCst);
                done()
            }
        })
    };
    let worker = script.worker(small()).await;
    let deadline = Instant::now() + Duration::from_secs(3);
    let mut running = worker
        .start(Call { deadline, ..call() }, None)
        .await
        .unwrap();
    let CallOutcome::Failed(CallFailure::DeadlineExceeded { limit }) = outcome(&mut running).await
    else {
        panic!("expected a passed deadline");
    };
    assert_eq!(limit, Duration::from_secs(3));
    assert!(deadline.elapsed() < Duration::from_millis(10));
    until(|| told.load(Ordering::SeqCst)).await;
}

#[tokio::test(start_paused = true)]
async fn tool_that_does_not_stop_is_dropped_after_the_grace() {
    struct Dropped(Arc<AtomicBool>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let dropped = Arc::new(AtomicBool::new(false));
    let script = {
        let dropped = Arc::clone(&dropped);
        Script::new(move |_| {
            let guard = Dropped(Arc::clone(&dropped));
            async move {
                let _guard = guard;
                std::future::pending().await
            }
        })
    };
    let worker = script.worker(small()).await;
    let mut running = worker.start(call(), None).await.unwrap();
    until(|| script.runs() == 1).await;
    running.control.cancel("no longer needed");
    let cancelled = Instant::now();
    assert!(matches!(
        outcome(&mut running).await,
        CallOutcome::Failed(CallFailure::Cancelled)
    ));
    assert_eq!(worker.load().running, 1, "the tool has its grace");
    until(|| dropped.load(Ordering::SeqCst)).await;
    assert!(cancelled.elapsed() >= PoolConfig::new("pool").cancel_grace.get());
    until(|| worker.load().running == 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_is_over_when_its_tool_has_stopped() {
    let may_stop = Arc::new(Notify::new());
    let script = {
        let may_stop = Arc::clone(&may_stop);
        Script::new(move |_| {
            let may_stop = Arc::clone(&may_stop);
            async move {
                may_stop.notified().await;
                done()
            }
        })
    };
    let worker = script.worker(small()).await;
    let mut running = worker.start(call(), None).await.unwrap();
    until(|| script.runs() == 1).await;
    running.control.cancel("no longer needed");
    assert!(!is_done(&outcome(&mut running).await));
    let mut over = running.control.over().expect("its tool has not stopped");
    assert_eq!((&mut over).now_or_never(), None);
    may_stop.notify_one();
    over.await;
    assert_eq!(worker.load().running, 0);
    assert!(running.control.over().is_none());
}

#[tokio::test]
async fn cancelled_call_has_one_end_whatever_its_tool_says() {
    let script = Script::obedient();
    let worker = script.worker(small()).await;
    let mut running = worker.start(call(), None).await.unwrap();
    until(|| script.runs() == 1).await;
    running.control.cancel("once");
    running.control.cancel("twice");
    assert!(matches!(
        outcome(&mut running).await,
        CallOutcome::Failed(CallFailure::Cancelled)
    ));
    assert!(running.events.next().await.is_none());
}

#[tokio::test]
async fn call_cancelled_while_it_waits_is_never_run() {
    let script = Script::obedient();
    let worker = script
        .worker(PoolConfig {
            queue: 1,
            ..small()
        })
        .await;
    let mut first = worker.start(call(), None).await.unwrap();
    until(|| script.runs() == 1).await;
    let mut second = worker.start(call(), None).await.unwrap();
    second.control.cancel("gave up");
    assert!(matches!(
        outcome(&mut second).await,
        CallOutcome::Failed(CallFailure::Cancelled)
    ));
    first.control.cancel("make room");
    outcome(&mut first).await;
    until(|| worker.load().queued == 0 && worker.load().running == 0).await;
    assert_eq!(script.runs(), 1);
}

#[tokio::test]
async fn panic_ends_one_call_and_nothing_else() {
    let script = Script::new(|context| async move {
        if !context.cancelled().is_cancelled() {
            panic!("a bug in the tool");
        }
        done()
    });
    let worker = script.worker(small()).await;
    for _ in 0..3 {
        let mut running = worker.start(call(), None).await.unwrap();
        let CallOutcome::Error(error) = outcome(&mut running).await else {
            panic!("expected the tool's own error");
        };
        assert_eq!(error.code, code::INTERNAL_ERROR);
        assert!(!error.message.contains("a bug in the tool"), "{error}");
        until(|| worker.load().running == 0).await;
    }
}

#[tokio::test]
async fn result_that_comes_before_the_deadline_is_the_end() {
    let script = Script::quick();
    let worker = script.worker(small()).await;
    let mut running = worker.start(call(), None).await.unwrap();
    assert!(is_done(&outcome(&mut running).await));
    assert!(running.events.next().await.is_none());
}

#[tokio::test]
async fn a_session_that_ends_takes_its_calls_along_and_begins_none() {
    let script = Script::obedient();
    let worker = script.worker(PoolConfig::new("pool")).await;
    let of = |session: &str| {
        let mut call = call();
        Arc::make_mut(&mut call.caller).session = Some(SessionId::new(session));
        call
    };
    let mut ended = worker.start(of("ended"), worker.ledger()).await.unwrap();
    let mut other = worker.start(of("other"), worker.ledger()).await.unwrap();
    until(|| script.runs() == 2).await;
    worker.end_session(&SessionId::new("ended")).await;
    let told = outcome(&mut ended).await;
    assert!(
        matches!(told, CallOutcome::Failed(CallFailure::Cancelled)),
        "{told:?}"
    );
    let late = of("ended");
    for _ in 0..2 {
        let refused = worker.start(late.clone(), None).await.err();
        assert!(matches!(refused, Some(CallFailure::Cancelled)));
    }
    assert_eq!(script.runs(), 2);
    other.control.cancel("enough");
    outcome(&mut other).await;
}

#[tokio::test]
async fn a_withdrawn_call_that_is_safe_to_repeat_runs_anew_when_it_is_sent_again() {
    let script = Script::new(|context| async move {
        progress(&context, 1).await;
        context.cancelled().cancelled().await;
        done()
    });
    let worker = script.worker(small()).await;
    let call = repeatable();
    let mut first = worker.start(call.clone(), None).await.unwrap();
    event(&mut first).await;
    // A session cancels its call like this if it can open no stream for the call's events. Its
    // client learns that the call did not run, and may send the call again.
    first
        .control
        .cancel("no stream could be opened for its events");
    drop(first);
    let mut second = loop {
        match worker.start(call.clone(), None).await {
            Ok(second) => break second,
            Err(CallFailure::NotExecuted { .. } | CallFailure::Overloaded { .. }) => {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            Err(other) => panic!("{other:?}"),
        }
    };
    until(|| script.runs() == 2).await;
    assert_eq!(event(&mut second).await.sequence, 1);
    second.control.cancel("enough");
    assert!(matches!(
        outcome(&mut second).await,
        CallOutcome::Failed(CallFailure::Cancelled)
    ));
}
