use serde_json::json;
use shoal_ports::{Dispatcher as _, SessionId, WorkerId};

use crate::fake_worker::FakeWorker;
use crate::setting::{legacy, setting, tools};

#[tokio::test]
async fn the_less_busy_of_two_gets_the_call() {
    let setting = setting();
    let workers = ["w1", "w2"].map(|id| setting.add(FakeWorker::new(id, "a", tools(&["t"]))));
    workers[0].load.lock().queued = 5;
    for _ in 0..20 {
        setting.result(legacy("t", json!({}))).await;
    }
    assert_eq!((workers[0].calls(), workers[1].calls()), (0, 20));
}

#[tokio::test]
async fn equal_workers_share_the_calls() {
    let setting = setting();
    let workers = ["w1", "w2", "w3"].map(|id| setting.add(FakeWorker::new(id, "a", tools(&["t"]))));
    for _ in 0..90 {
        setting.result(legacy("t", json!({}))).await;
    }
    assert!(workers.iter().all(|worker| worker.calls() > 5));
}

#[tokio::test]
async fn a_worker_that_is_not_ready_or_has_left_gets_none() {
    let setting = setting();
    let workers = ["w1", "w2", "w3"].map(|id| setting.add(FakeWorker::new(id, "a", tools(&["t"]))));
    workers[0].announce(None, Some("restarting"));
    setting
        .until(|d| !d.status().pools[0].workers[2].ready)
        .await;
    assert!(setting.dispatch.remove_worker(&WorkerId::new("w2")));
    assert!(!setting.dispatch.remove_worker(&WorkerId::new("w2")));
    for _ in 0..10 {
        setting.result(legacy("t", json!({}))).await;
    }
    assert_eq!((workers[0].calls(), workers[1].calls()), (0, 0));
    let status = serde_json::to_value(setting.dispatch.status()).unwrap();
    let pool = &status["pools"][0];
    assert_eq!((&pool["name"], &pool["tools"]), (&json!("a"), &json!(1)));
    assert_eq!(pool["workers"][1]["detail"], "restarting");
}

#[tokio::test]
async fn the_end_of_a_session_is_told_to_every_worker() {
    let setting = setting();
    let workers = [("w1", "a"), ("w2", "a"), ("w3", "b")]
        .map(|(id, pool)| setting.add(FakeWorker::new(id, pool, tools(&[]))));
    let session = SessionId::random();
    setting.dispatch.end_session(&session).await;
    for worker in workers {
        assert_eq!(*worker.ended.lock(), std::slice::from_ref(&session));
    }
}

#[tokio::test]
async fn a_worker_that_cannot_be_reached_gets_none() {
    let setting = setting();
    let workers =
        ["p@n1", "p@n2", "p@n3"].map(|id| setting.add(FakeWorker::new(id, "p", tools(&["t"]))));
    workers[0].connect(false);
    workers[2].connect(false);
    for _ in 0..10 {
        setting.result(legacy("t", json!({}))).await;
    }
    assert_eq!(workers.each_ref().map(|worker| worker.calls()), [0, 10, 0]);
    let pool = &setting.dispatch.status().pools[0];
    let reachable: Vec<bool> = pool.workers.iter().map(|worker| worker.reachable).collect();
    assert_eq!(reachable, [false, true, false]);
    assert_eq!(pool.workers[1].node.as_deref(), Some("n2"));
    assert_eq!(
        (pool.workers[1].pool.as_str(), pool.workers[1].capacity),
        ("p", 8)
    );
    workers[1].connect(false);
    let failure = setting.failure(legacy("t", json!({}))).await.to_string();
    assert!(failure.contains("p@n1: it cannot be reached"), "{failure}");
    assert!(!setting.dispatch.status().pools[0].ready);
}
