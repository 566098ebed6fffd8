//! Most tests pause the clock, so that a slow machine's long turns do not count against the tool.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use shoal_ports::{
    Attach, Call, CallEventKind, CallFailure, CallOutcome, Period, ResourceUpdated, RunningCall,
    Worker, WorkerHere, WorkerId,
};
use shoal_protocol::{RawJson, RpcError};
use tokio::sync::{Semaphore, broadcast, watch};
use tokio::task::yield_now;

use super::script::{
    Script, call, done, event, is_done, outcome, progress, ready, repeatable, small, until,
};
use crate::{Backend, BackendState, CallContext, PoolConfig, WorkerRuntime};

fn waiting() -> (Arc<Script>, Arc<Semaphore>) {
    let permits = Arc::new(Semaphore::new(0));
    let given = Arc::clone(&permits);
    let script = Script::new(move |_| {
        let given = Arc::clone(&given);
        async move {
            given.acquire().await.expect("open").forget();
            done()
        }
    });
    (script, permits)
}

fn load(worker: &WorkerRuntime) -> (usize, usize) {
    let load = worker.load();
    (load.running, load.queued)
}

fn has_ended(running: &RunningCall) -> bool {
    running.events.ended().is_some()
}

fn is_done_already(running: &RunningCall) -> bool {
    running.events.ended().is_some_and(is_done)
}

#[tokio::test(start_paused = true)]
async fn repeatable_call_that_does_not_wait_ends_at_once_and_is_not_kept() {
    let script = Script::quick();
    let worker = script.worker(small()).await;
    for runs in 1..=3 {
        let call = repeatable();
        let id = call.id;
        let mut running = worker.start_now(call, None).unwrap();
        assert!(is_done_already(&running));
        assert_eq!(running.worker, Some(WorkerId::new("worker")));
        assert_eq!((load(&worker), script.runs()), ((0, 0), runs));
        let unknown = worker.attach(Attach::new(id, 0)).await.err();
        assert!(matches!(unknown, Some(CallFailure::OutcomeUnknown { .. })));
        assert!(is_done(&outcome(&mut running).await));
        assert!(running.events.next().await.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn journaled_call_that_does_not_wait_ends_at_once_and_is_kept() {
    let script = Script::quick();
    let config = small();
    let retention = config.result_retention.get();
    let worker = script.worker(config).await;
    let call = call();
    let running = worker.start_now(call.clone(), None).unwrap();
    assert!(is_done_already(&running));
    assert_eq!(load(&worker), (0, 0));
    for _ in 0..2 {
        let mut attached = worker.attach(Attach::new(call.id, 0)).await.unwrap();
        assert!(is_done(&outcome(&mut attached).await));
        let mut again = worker.start_now(call.clone(), None).unwrap();
        assert!(is_done(&outcome(&mut again).await));
        let mut again = worker.start(call.clone(), None).await.unwrap();
        assert!(is_done(&outcome(&mut again).await));
    }
    tokio::time::sleep(retention + Duration::from_secs(2)).await;
    let refused = worker.start_now(call, None).err();
    assert!(matches!(refused, Some(CallFailure::OutcomeUnknown { .. })));
    assert_eq!(script.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn call_that_waits_goes_on_in_the_pool() {
    let (script, permits) = waiting();
    let worker = script.worker(small()).await;
    for (call, runs) in [(call(), 1), (repeatable(), 2)] {
        let mut running = worker.start_now(call, None).unwrap();
        assert!(!has_ended(&running));
        assert_eq!((load(&worker), script.runs()), ((1, 0), runs));
        permits.add_permits(1);
        let ended = event(&mut running).await;
        assert_eq!(ended.sequence, 1);
        assert!(matches!(ended.kind, CallEventKind::Finished(outcome) if is_done(&outcome)));
        assert!(running.events.next().await.is_none());
        until(|| load(&worker) == (0, 0)).await;
        assert_eq!(script.runs(), runs);
    }
}

#[tokio::test(start_paused = true)]
async fn repeatable_call_that_waits_can_be_attached_to_until_it_is_delivered() {
    let (script, permits) = waiting();
    let worker = script.worker(small()).await;
    let call = repeatable();
    let mut first = worker.start_now(call.clone(), None).unwrap();
    let mut second = worker.attach(Attach::new(call.id, 0)).await.unwrap();
    assert!(
        first.events.next().await.is_none(),
        "the later reader takes over"
    );
    let mut third = worker.start_now(call.clone(), None).unwrap();
    assert!(second.events.next().await.is_none() && !has_ended(&third));
    permits.add_permits(1);
    assert!(is_done(&outcome(&mut third).await));
    assert!(worker.attach(Attach::new(call.id, 0)).await.is_err());
    assert_eq!(script.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn call_that_says_something_and_ends_is_read_and_kept() {
    let script = Script::new(|context| async move {
        progress(&context, 1).await;
        done()
    });
    let config = small();
    let retention = config.result_retention.get();
    let worker = script.worker(config).await;
    let call = repeatable();
    let mut running = worker.start_now(call.clone(), None).unwrap();
    assert!(!has_ended(&running));
    assert_eq!(load(&worker), (0, 0), "the tool has ended");
    let said = event(&mut running).await;
    assert!(matches!(said.kind, CallEventKind::Notification { .. }) && said.sequence == 1);
    let ended = event(&mut running).await;
    assert!(matches!(ended.kind, CallEventKind::Finished(_)) && ended.sequence == 2);
    assert!(running.events.next().await.is_none());

    let mut attached = worker.attach(Attach::new(call.id, 1)).await.unwrap();
    assert_eq!(event(&mut attached).await.sequence, 2);
    tokio::time::sleep(retention + Duration::from_secs(2)).await;
    assert!(worker.attach(Attach::new(call.id, 0)).await.is_err());
    assert_eq!(script.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn panic_in_the_first_turn_is_one_like_any_other() {
    let mut errors = Vec::new();
    for waits in [false, true] {
        let panicked = AtomicBool::new(false);
        let script = Script::new(move |_| {
            let panics = !panicked.swap(true, Ordering::SeqCst);
            async move {
                if waits {
                    yield_now().await;
                }
                assert!(!panics, "a bug in the tool");
                done()
            }
        });
        let worker = script.worker(small()).await;
        let mut running = worker.start_now(call(), None).unwrap();
        assert_eq!(has_ended(&running), !waits);
        let CallOutcome::Error(error) = outcome(&mut running).await else {
            panic!("expected an error");
        };
        errors.push(error);
        until(|| load(&worker) == (0, 0)).await;
        let mut next = worker.start_now(call(), None).unwrap();
        assert_eq!(has_ended(&next), !waits);
        assert!(is_done(&outcome(&mut next).await));
    }
    assert_eq!(errors[0], errors[1]);
}

#[tokio::test(start_paused = true)]
async fn call_has_its_first_turn_at_once_only_where_a_place_is_free() {
    let (script, permits) = waiting();
    let config = PoolConfig {
        queue: 1,
        queue_age: Period::seconds(60),
        ..small()
    };
    let worker = script.worker(config).await;
    let mut first = worker.start_now(repeatable(), None).unwrap();
    permits.add_permits(2);
    // The first call was woken but not polled, so it holds its place.
    let mut second = worker.start_now(repeatable(), None).unwrap();
    assert!(!has_ended(&first) && !has_ended(&second));
    assert_eq!((load(&worker), script.runs()), ((1, 1), 1));
    assert!(is_done(&outcome(&mut first).await));
    assert!(is_done(&outcome(&mut second).await));
    until(|| load(&worker) == (0, 0)).await;
    permits.add_permits(1);
    let third = worker.start_now(repeatable(), None).unwrap();
    assert!(is_done_already(&third));
    assert_eq!((load(&worker), script.runs()), ((0, 0), 3));
}

#[tokio::test(start_paused = true)]
async fn call_beyond_the_queue_is_refused() {
    let (script, permits) = waiting();
    let config = PoolConfig {
        queue: 1,
        ..small()
    };
    let worker = script.worker(config).await;
    let mut accepted = [(); 2].map(|()| worker.start_now(call(), None).unwrap());
    let refused = worker.start_now(call(), None).err().expect("no room");
    assert!(
        matches!(refused, CallFailure::Overloaded { .. }),
        "{refused}"
    );
    assert_eq!(Some(refused), worker.start(call(), None).await.err());
    permits.add_permits(3);
    for running in &mut accepted {
        assert!(is_done(&outcome(running).await));
    }
    until(|| load(&worker) == (0, 0)).await;
    assert!(is_done_already(&worker.start_now(call(), None).unwrap()));
    assert_eq!(script.runs(), 3);
}

struct Echo {
    script: Arc<Script>,
    runs: AtomicUsize,
}

#[async_trait]
impl Backend for Echo {
    fn state(&self) -> watch::Receiver<BackendState> {
        watch::Sender::new(ready()).subscribe()
    }

    fn resource_updates(&self) -> broadcast::Receiver<ResourceUpdated> {
        self.script.resource_updates()
    }

    async fn run(&self, call: &Call, _context: &CallContext) -> CallOutcome {
        self.runs.fetch_add(1, Ordering::SeqCst);
        let params = call.params.clone().expect("a number");
        if params.read::<u64>().expect("a number") % 2 == 1 {
            yield_now().await;
        }
        CallOutcome::Result(params)
    }

    async fn subscribe(&self, _uri: &str) -> Result<(), RpcError> {
        Ok(())
    }

    async fn unsubscribe(&self, _uri: &str) {}

    async fn shutdown(&self) {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_call_of_many_at_once_has_its_own_end() {
    const TASKS: u64 = 8;
    const CALLS: u64 = 200;
    let long = Duration::from_secs(60);
    let config = PoolConfig {
        concurrency: 2,
        queue: (TASKS * CALLS) as usize,
        queue_age: long.into(),
        ..PoolConfig::new("pool")
    };
    let backend = Arc::new(Echo {
        script: Script::quick(),
        runs: AtomicUsize::new(0),
    });
    let worker = WorkerRuntime::start(WorkerId::new("w"), config, backend.clone()).await;
    let tasks = (0..TASKS).map(|task| {
        let worker = Arc::clone(&worker);
        tokio::spawn(async move {
            let mut begun = Vec::new();
            for number in task * CALLS..(task + 1) * CALLS {
                let call = Call {
                    params: Some(RawJson::of(&number)),
                    ..if number % 4 < 2 { call() } else { repeatable() }
                };
                begun.push((number, worker.start_now(call, None).unwrap()));
                if task % 2 == 0 {
                    check(&mut begun).await;
                }
            }
            check(&mut begun).await;
        })
    });
    let all = async {
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
        until(|| load(&worker) == (0, 0)).await;
    };
    tokio::time::timeout(long, all).await.expect("all end");
    assert_eq!(
        backend.runs.load(Ordering::SeqCst) as u64,
        TASKS * CALLS,
        "each ran once"
    );
}

async fn check(begun: &mut Vec<(u64, RunningCall)>) {
    for (number, mut running) in begun.drain(..) {
        let CallEventKind::Finished(CallOutcome::Result(result)) = event(&mut running).await.kind
        else {
            panic!("expected a result");
        };
        assert_eq!(result.read::<u64>().unwrap(), number);
        assert!(running.events.next().await.is_none(), "one end only");
    }
}
