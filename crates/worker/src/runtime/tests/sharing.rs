use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::json;
use shoal_ports::{Call, CallFailure, CallOutcome, Period, Repeat, RunningCall, Worker};
use shoal_protocol::RawJson;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::script::{Script, call_of, done, is_done, outcome, small, tool, until};
use crate::{PoolConfig, WorkerRuntime};

struct Waiting {
    permits: Arc<Semaphore>,
    begun: Arc<Mutex<Vec<String>>>,
    worker: Arc<WorkerRuntime>,
}

impl Waiting {
    async fn in_pool(config: PoolConfig) -> Self {
        let (permits, begun) = (
            Arc::new(Semaphore::new(0)),
            Arc::new(Mutex::new(Vec::new())),
        );
        let (given, noted) = (Arc::clone(&permits), Arc::clone(&begun));
        let script = Script::by_call(move |call, _| {
            let given = Arc::clone(&given);
            noted.lock().push(tool(&call));
            async move {
                given.acquire().await.expect("open").forget();
                done()
            }
        });
        let worker = script.worker(config).await;
        Self {
            permits,
            begun,
            worker,
        }
    }

    async fn start(&self, principal: &str, tool: &str) -> Result<RunningCall, CallFailure> {
        self.worker.start(call_of(principal, tool), None).await
    }

    async fn begun(&self, names: &[&str]) {
        until(|| self.begun.lock().len() >= names.len()).await;
        let mut begun = self.begun.lock().clone();
        begun.sort();
        assert_eq!(begun, names);
    }
}

#[tokio::test]
async fn principals_that_wait_have_their_turns() {
    let pool = Waiting::in_pool(PoolConfig {
        queue: 16,
        ..small()
    })
    .await;
    let mut all = Vec::new();
    for name in ["a1", "a2", "a3", "a4"] {
        all.push(pool.start("alice", name).await.unwrap());
    }
    for (principal, name) in [("bob", "b1"), ("bob", "b2"), ("carol", "c1")] {
        all.push(pool.start(principal, name).await.unwrap());
    }
    pool.permits.add_permits(all.len());
    for running in &mut all {
        assert!(is_done(&outcome(running).await));
    }
    let begun = pool.begun.lock();
    assert_eq!(*begun, ["a1", "a2", "b1", "c1", "a3", "b2", "a4"]);
}

#[tokio::test]
async fn whoever_fills_the_queue_makes_room_for_others() {
    let pool = Waiting::in_pool(PoolConfig {
        queue: 4,
        ..small()
    })
    .await;
    let mut of_alice = Vec::new();
    for at in 0..5 {
        of_alice.push(pool.start("alice", &format!("a{at}")).await.unwrap());
    }
    let full = pool.start("alice", "a5").await.err().unwrap();
    assert!(matches!(full, CallFailure::Overloaded { .. }), "{full}");
    let mut of_bob = Vec::new();
    for at in 0..2 {
        of_bob.push(pool.start("bob", &format!("b{at}")).await.unwrap());
        let end = outcome(&mut of_alice.pop().unwrap()).await;
        let shed = matches!(end, CallOutcome::Failed(CallFailure::Overloaded { .. }));
        assert!(shed, "{end:?}");
    }
    assert!(pool.start("bob", "b2").await.is_err(), "both have as many");
    // A call that brings its client's answers displaces a call of the same principal and goes
    // first.
    let mut answered = call_of("bob", "again");
    answered.params = Some(RawJson::of(&json!({"name": "again", "inputResponses": {}})));
    let mut answered = pool.worker.start(answered, None).await.unwrap();
    pool.permits.add_permits(16);
    assert!(is_done(&outcome(&mut answered).await));
    until(|| pool.worker.load().running + pool.worker.load().queued == 0).await;
    let begun = pool.begun.lock();
    let at = |name: &str| begun.iter().position(|begun| begun == name);
    assert!(begun.len() == 5 && at("again").is_some(), "{begun:?}");
    assert!(at("b0").is_none_or(|at_b0| at("again").is_some_and(|again| again < at_b0)));
}

#[tokio::test]
async fn room_is_made_for_a_call_whose_refusal_would_be_final() {
    let pool = Waiting::in_pool(PoolConfig {
        queue: 2,
        ..small()
    })
    .await;
    let mut of_alice = Vec::new();
    for at in 0..3 {
        of_alice.push(pool.start("alice", &format!("a{at}")).await.unwrap());
    }
    let journaled = Call {
        repeat: Repeat::Never,
        ..call_of("bob", "b0")
    };
    let mut of_bob = pool
        .worker
        .start(journaled, pool.worker.ledger())
        .await
        .unwrap();
    let end = outcome(&mut of_alice.pop().unwrap()).await;
    let shed = matches!(end, CallOutcome::Failed(CallFailure::Overloaded { .. }));
    assert!(shed, "{end:?}");
    pool.permits.add_permits(3);
    assert!(is_done(&outcome(&mut of_bob).await));
}

#[tokio::test]
async fn a_principal_has_no_more_than_its_share_of_the_places() {
    let config = PoolConfig {
        concurrency: 3,
        concurrency_per_principal: 2,
        queue: 16,
        ..small()
    };
    let pool = Waiting::in_pool(config).await;
    let mut all = Vec::new();
    for name in ["a1", "a2", "a3", "a4"] {
        all.push(pool.start("alice", name).await.unwrap());
    }
    pool.begun(&["a1", "a2"]).await;
    assert_eq!(
        (pool.worker.load().running, pool.worker.load().queued),
        (2, 2)
    );
    all.push(pool.start("bob", "b1").await.unwrap());
    pool.begun(&["a1", "a2", "b1"]).await;
    all.push(pool.start("bob", "b2").await.unwrap());
    pool.permits.add_permits(all.len());
    for running in &mut all {
        assert!(is_done(&outcome(running).await));
    }
    until(|| pool.worker.load().running == 0).await;
    assert_eq!(pool.begun.lock().len(), 6);
    let mut again = pool.start("alice", "a5").await.unwrap();
    pool.permits.add_permits(1);
    assert!(is_done(&outcome(&mut again).await));
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_for_their_share_do_not_keep_others_from_idle_places() {
    let config = PoolConfig {
        concurrency: 3,
        concurrency_per_principal: 1,
        queue: 16,
        queue_age: Period::seconds(60),
        ..small()
    };
    let pool = Waiting::in_pool(config).await;
    let mut of_alice = Vec::new();
    for at in 0..4 {
        of_alice.push(pool.start("alice", &format!("a{at}")).await.unwrap());
    }
    // No call ends for so long that the estimated wait exceeds the deadline.
    tokio::time::sleep(Duration::from_secs(59)).await;
    let hurried = Call {
        deadline: Instant::now() + Duration::from_secs(1),
        ..call_of("bob", "b0")
    };
    let mut of_bob = pool.worker.start(hurried, None).await.unwrap();
    pool.begun(&["a0", "b0"]).await;
    pool.permits.add_permits(8);
    assert!(is_done(&outcome(&mut of_bob).await));
}
