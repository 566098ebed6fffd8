use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use shoal_ports::{CallFailure, CallOutcome, Worker};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::script::{Script, call, done, is_done, outcome, small, until};
use crate::PoolConfig;

#[tokio::test]
async fn drain_finishes_what_was_accepted_and_refuses_the_rest() {
    let permits = Arc::new(Semaphore::new(0));
    let script = {
        let permits = Arc::clone(&permits);
        Script::new(move |_| {
            let permits = Arc::clone(&permits);
            async move {
                permits.acquire().await.expect("open").forget();
                done()
            }
        })
    };
    let worker = script
        .worker(PoolConfig {
            queue: 1,
            ..small()
        })
        .await;
    let mut first = worker.start(call(), None).await.unwrap();
    let mut second = worker.start(call(), None).await.unwrap();
    until(|| script.runs() == 1).await;

    let shutdown = {
        let worker = Arc::clone(&worker);
        let deadline = Instant::now() + Duration::from_secs(30);
        tokio::spawn(async move { worker.shutdown(deadline).await })
    };
    let mut announcement = worker.announcement();
    announcement
        .wait_for(|it| it.catalog.is_none())
        .await
        .unwrap();
    assert!(matches!(
        worker.start(call(), None).await.err(),
        Some(CallFailure::NotExecuted { .. })
    ));
    assert_eq!(script.shut_down.load(Ordering::SeqCst), 0);

    permits.add_permits(2);
    assert!(is_done(&outcome(&mut first).await));
    assert!(is_done(&outcome(&mut second).await));
    shutdown.await.unwrap();
    assert_eq!(script.shut_down.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn drain_stops_who_is_busy_at_the_deadline() {
    let script = Script::new(|_| std::future::pending());
    let worker = script
        .worker(PoolConfig {
            queue: 1,
            ..small()
        })
        .await;
    let mut running = worker.start(call(), None).await.unwrap();
    until(|| script.runs() == 1).await;
    let mut waiting = worker.start(call(), None).await.unwrap();

    let begun = Instant::now();
    worker.shutdown(begun + Duration::from_secs(3)).await;
    assert!(matches!(
        outcome(&mut running).await,
        CallOutcome::Failed(CallFailure::OutcomeUnknown { .. })
    ));
    assert!(matches!(
        outcome(&mut waiting).await,
        CallOutcome::Failed(CallFailure::NotExecuted { .. })
    ));
    assert!(begun.elapsed() < Duration::from_secs(3 + 5 + 2));
    assert_eq!(script.shut_down.load(Ordering::SeqCst), 1);
}
