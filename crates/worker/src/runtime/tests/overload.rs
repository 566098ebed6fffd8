use std::time::Duration;

use shoal_ports::{Call, CallFailure, CallOutcome, Period, Retry, Worker};
use tokio::time::Instant;

use super::script::{Script, call, done, is_done, outcome, small, until};
use crate::PoolConfig;

#[tokio::test]
async fn full_queue_refuses_and_runs_nothing() {
    let script = Script::obedient();
    let config = PoolConfig {
        concurrency: 2,
        queue: 1,
        ..small()
    };
    let worker = script.worker(config).await;
    let mut accepted = Vec::new();
    for _ in 0..3 {
        accepted.push(worker.start(call(), None).await.unwrap());
    }
    until(|| script.runs() == 2).await;
    let load = worker.load();
    assert_eq!((load.running, load.queued, load.capacity), (2, 1, 2));

    let refused = worker.start(call(), None).await.err().expect("no room");
    assert!(
        matches!(refused, CallFailure::Overloaded { .. }),
        "{refused}"
    );
    assert_eq!(refused.retry(), Retry::Always);

    for running in &mut accepted {
        running.control.cancel("end");
        outcome(running).await;
    }
    until(|| worker.load().queued == 0 && worker.load().running == 0).await;
    assert_eq!(script.runs(), 2, "the third was cancelled while it waited");
    assert!(worker.start(call(), None).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn call_that_waits_too_long_is_shed() {
    let script = Script::obedient();
    let config = PoolConfig {
        queue: 1,
        queue_age: Period::seconds(2),
        ..small()
    };
    let worker = script.worker(config).await;
    let first = worker.start(call(), None).await.unwrap();
    until(|| script.runs() == 1).await;
    let waiting_since = Instant::now();
    let mut second = worker.start(call(), None).await.unwrap();
    assert!(matches!(
        outcome(&mut second).await,
        CallOutcome::Failed(CallFailure::Overloaded { .. })
    ));
    let waited = waiting_since.elapsed();
    assert!(
        waited >= Duration::from_secs(2) && waited < Duration::from_secs(3),
        "{waited:?}"
    );
    assert_eq!(script.runs(), 1);
    first.control.cancel("end");
}

#[tokio::test(start_paused = true)]
async fn call_that_would_wait_too_long_is_refused_at_once() {
    let second = Duration::from_secs(1);
    let script = Script::new(move |_| async move {
        tokio::time::sleep(second).await;
        done()
    });
    let config = PoolConfig {
        concurrency: 2,
        queue: 1000,
        queue_age: (4 * second).into(),
        ..small()
    };
    let worker = script.worker(config).await;
    let (mut taken, mut refused) = (Vec::new(), 0);
    let start = Instant::now();
    while start.elapsed() < 30 * second {
        match worker.start(call(), None).await {
            Ok(call) => taken.push(call),
            Err(CallFailure::Overloaded { .. }) => refused += 1,
            Err(other) => panic!("{other}"),
        }
        tokio::time::sleep(second / 20).await;
    }
    let (mut done, mut shed) = (0, 0);
    for call in &mut taken {
        match is_done(&outcome(call).await) {
            true => done += 1,
            false => shed += 1,
        }
    }
    // The pool can run 2 calls a second and gets 20. Some early calls wait in vain, because the pace is
    // unknown at first.
    assert!(done >= 60, "{done} done, {shed} shed, {refused} refused");
    assert!(shed <= 12, "{done} done, {shed} shed, {refused} refused");
    assert_eq!(done + shed + refused, 600);
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_deadline_comes_before_its_turn_is_refused_at_once() {
    let script = Script::obedient();
    let worker = script
        .worker(PoolConfig {
            queue: 100,
            ..small()
        })
        .await;
    let _running = worker.start(call(), None).await.unwrap();
    until(|| script.runs() == 1).await;
    let _waits = worker.start(call(), None).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    // The only place has ended no call for 1 s, and one call waits, so a third waits at least 2 s.
    let within = |seconds| Call {
        deadline: Instant::now() + Duration::from_secs(seconds),
        ..call()
    };
    let refused = worker.start(within(2), None).await.err().expect("refused");
    assert!(
        matches!(refused, CallFailure::Overloaded { .. }),
        "{refused}"
    );
    assert!(worker.start(within(3), None).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn call_does_not_wait_past_its_deadline() {
    let script = Script::obedient();
    let worker = script
        .worker(PoolConfig {
            queue: 1,
            ..small()
        })
        .await;
    let _first = worker.start(call(), None).await.unwrap();
    until(|| script.runs() == 1).await;
    let deadline = Instant::now() + Duration::from_secs(1);
    let mut second = worker
        .start(Call { deadline, ..call() }, None)
        .await
        .unwrap();
    let CallOutcome::Failed(failure) = outcome(&mut second).await else {
        panic!("expected a failure");
    };
    assert_eq!(
        failure.retry(),
        Retry::Always,
        "nothing was executed: {failure}"
    );
    assert!(deadline.elapsed() < Duration::from_secs(1));
    assert_eq!(script.runs(), 1);
}

#[tokio::test]
async fn worker_without_a_catalog_takes_no_calls() {
    let script = Script::quick();
    script.state.send_modify(|state| {
        state.catalog = None;
        state.detail = Some("starting".to_owned());
    });
    let worker = script.worker(small()).await;
    let mut announcement = worker.announcement();
    assert!(announcement.borrow_and_update().catalog.is_none());
    let refused = worker.start(call(), None).await.err().expect("not ready");
    assert_eq!(
        refused,
        CallFailure::NotExecuted {
            reason: "starting".to_owned()
        }
    );
    script.state.send_replace(super::script::ready());
    announcement.changed().await.unwrap();
    assert!(announcement.borrow().catalog.is_some());
    assert!(worker.start(call(), None).await.is_ok());
}
