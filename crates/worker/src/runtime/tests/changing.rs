use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use shoal_ports::{Announcement, Attach, CallFailure, CallOutcome, SessionId, Worker};
use shoal_protocol::RawJson;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::script::{Script, call, done, is_done, outcome, ready, repeatable, small, until};
use crate::{BackendState, PoolConfig};

const LONG: Duration = Duration::from_secs(3600);

fn named(name: &'static str, permits: &Arc<Semaphore>) -> Arc<Script> {
    let permits = Arc::clone(permits);
    Script::new(move |_| {
        let permits = Arc::clone(&permits);
        async move {
            permits.acquire().await.expect("open").forget();
            says(name)
        }
    })
}

fn says(name: &str) -> CallOutcome {
    CallOutcome::Result(RawJson::of(&name))
}

fn is_of(name: &str, outcome: &CallOutcome) -> bool {
    matches!(outcome, CallOutcome::Result(said) if said.string().as_deref() == Some(name))
}

fn of_session(session: &SessionId) -> shoal_ports::Call {
    let mut call = call();
    Arc::make_mut(&mut call.caller).session = Some(session.clone());
    call
}

fn shut_down(script: &Script) -> usize {
    script.shut_down.load(Ordering::SeqCst)
}

#[tokio::test]
async fn what_has_begun_ends_as_it_began_and_what_comes_runs_anew() {
    let (permits, free) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(100)));
    let (old, new) = (named("old", &permits), named("new", &free));
    let config = PoolConfig {
        queue: 1,
        ..small()
    };
    let worker = old.worker(config.clone()).await;
    let (running, waiting) = (call(), call());
    let (running_id, bound) = (running.id, worker.ledger());
    drop(worker.start(running, None).await.unwrap());
    let mut waiting = worker.start(waiting, None).await.unwrap();
    until(|| old.runs() == 1).await;

    worker.change(config, Some(new.clone()), LONG).await;
    let mut next = worker.start(call(), None).await.unwrap();
    assert!(is_of("new", &outcome(&mut next).await));
    assert_eq!(shut_down(&old), 0);
    assert_eq!(worker.load().running, 1);

    permits.add_permits(2);
    assert!(is_of("old", &outcome(&mut waiting).await));
    let attach = Attach {
        call: running_id,
        after: 0,
        reader: None,
        epoch: None,
        trace: None,
    };
    let mut running = worker.attach(attach).await.unwrap();
    assert!(is_of("old", &outcome(&mut running).await));
    assert_eq!(
        worker.ledger().map(|ledger| ledger.incarnation),
        bound.map(|ledger| ledger.incarnation)
    );
    until(|| shut_down(&old) == 1).await;
    assert_eq!((shut_down(&new), worker.load().running), (0, 0));
}

#[tokio::test]
async fn other_limits_restart_nothing() {
    let permits = Arc::new(Semaphore::new(0));
    let script = named("it", &permits);
    let worker = script.worker(small()).await;
    let mut first = worker.start(call(), None).await.unwrap();
    assert!(matches!(
        worker.start(call(), None).await.err(),
        Some(CallFailure::Overloaded { .. })
    ));
    let more = PoolConfig {
        concurrency: 2,
        ..small()
    };
    worker.change(more, None, LONG).await;
    assert_eq!(worker.load().capacity, 2);
    let mut others = [
        worker.start(call(), None).await.unwrap(),
        worker.start(call(), None).await.unwrap(),
    ];
    permits.add_permits(3);
    assert!(is_of("it", &outcome(&mut first).await));
    for other in &mut others {
        assert!(is_of("it", &outcome(other).await));
    }
    until(|| worker.forms.read().all().count() == 1).await;
    assert_eq!(shut_down(&script), 0);
}

#[tokio::test]
async fn no_call_is_refused_however_often_the_form_changes() {
    let config = PoolConfig {
        concurrency: 2,
        ..PoolConfig::new("pool")
    };
    let worker = Script::quick().worker(config.clone()).await;
    let (over, ended) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let callers = (0..4).map(|_| {
        let (worker, over, ended) = (Arc::clone(&worker), Arc::clone(&over), Arc::clone(&ended));
        tokio::spawn(async move {
            while !over.load(Ordering::SeqCst) {
                let mut running = worker.start(repeatable(), None).await.unwrap();
                assert!(is_done(&outcome(&mut running).await));
                ended.fetch_add(1, Ordering::SeqCst);
            }
        })
    });
    let callers: Vec<_> = callers.collect();
    let mut former = Vec::new();
    for _ in 0..20 {
        let next = Script::quick();
        former.push(Arc::clone(&next));
        worker.change(config.clone(), Some(next), LONG).await;
        let enough = ended.load(Ordering::SeqCst) + 5;
        until(|| {
            ended.load(Ordering::SeqCst) >= enough || callers.iter().any(|it| it.is_finished())
        })
        .await;
    }
    over.store(true, Ordering::SeqCst);
    for caller in callers {
        caller.await.unwrap();
    }
    let last = former.pop().unwrap();
    until(|| former.iter().all(|former| shut_down(former) == 1)).await;
    assert_eq!(shut_down(&last), 0);
}

#[tokio::test]
async fn the_current_form_alone_says_what_there_is() {
    let old = Script::quick();
    let worker = old.worker(small()).await;
    let said = worker.announcement();
    let new = Script::quick();
    new.state.send_replace(BackendState {
        catalog: None,
        detail: Some("starting".to_owned()),
    });
    worker.change(small(), Some(new.clone()), LONG).await;
    assert_eq!(said.borrow().detail.as_deref(), Some("starting"));
    old.state.send_replace(ready());
    let mut announced = worker.announcement();
    new.state.send_replace(BackendState {
        detail: Some("here".to_owned()),
        ..ready()
    });
    announced
        .wait_for(|said| said.detail.as_deref() == Some("here"))
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_session_keeps_what_it_has_until_it_ends_or_the_time_is_over() {
    let free = Arc::new(Semaphore::new(100));
    let (old, new) = (named("old", &free), named("new", &free));
    let [ends, stays, comes] = ["ends", "stays", "comes"].map(SessionId::new);
    *old.own.lock() = vec![ends.clone(), stays.clone()];
    let worker = old.worker(PoolConfig::new("pool")).await;
    let config = PoolConfig::new("pool");
    worker.change(config, Some(new.clone()), LONG).await;
    let runs_at = async |session: &SessionId| {
        let mut running = worker.start(of_session(session), None).await.unwrap();
        outcome(&mut running).await
    };
    assert!(is_of("old", &runs_at(&ends).await));
    assert!(is_of("new", &runs_at(&comes).await));
    worker.end_session(&ends).await;
    assert_eq!(*old.own.lock(), std::slice::from_ref(&stays));
    tokio::time::sleep(LONG / 2).await;
    assert!(is_of("old", &runs_at(&stays).await));
    assert_eq!(shut_down(&old), 0);
    tokio::time::sleep(LONG / 2 + Duration::from_secs(1)).await;
    assert!(is_of("new", &runs_at(&stays).await));
    assert_eq!(shut_down(&old), 1);
}

#[tokio::test]
async fn what_is_watched_is_watched_at_the_new_form_and_may_have_changed() {
    let (old, new) = (Script::quick(), Script::quick());
    let worker = old.worker(small()).await;
    for uri in ["test://a", "test://b"] {
        worker.subscribe(uri).await.unwrap();
    }
    worker.unsubscribe("test://b").await;
    let mut updates = worker.resource_updates();
    worker.change(small(), Some(new.clone()), LONG).await;
    let told = updates.recv().await.unwrap();
    assert_eq!(told.uri, "test://a");
    assert_eq!(*new.subscribed.lock(), ["test://a"]);
}

#[tokio::test]
async fn who_leaves_takes_no_other_form() {
    let permits = Arc::new(Semaphore::new(0));
    let old = named("old", &permits);
    let worker = old.worker(small()).await;
    let mut running = worker.start(call(), None).await.unwrap();
    let leaving = {
        let worker = Arc::clone(&worker);
        tokio::spawn(async move { worker.leave(Announcement::REMOVED).await })
    };
    let mut announced = worker.announcement();
    let said = announced.wait_for(Announcement::is_removed).await.unwrap();
    assert!(said.is_leaving());
    drop(said);
    let new = Script::new(|_| async { done() });
    worker.change(small(), Some(new.clone()), LONG).await;
    assert_eq!(shut_down(&new), 1);
    permits.add_permits(1);
    assert!(is_of("old", &outcome(&mut running).await));
    leaving.await.unwrap();
    worker.shutdown(Instant::now()).await;
    assert_eq!(shut_down(&old), 1);
    assert!(worker.announcement().borrow().is_removed());
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_worker_is_that_of_its_former_forms() {
    let old = Script::new(|_| std::future::pending());
    let worker = old.worker(small()).await;
    let mut running = worker.start(call(), None).await.unwrap();
    until(|| old.runs() == 1).await;
    let new = Script::quick();
    worker.change(small(), Some(new.clone()), LONG).await;
    worker
        .shutdown(Instant::now() + Duration::from_secs(3))
        .await;
    assert!(matches!(
        outcome(&mut running).await,
        CallOutcome::Failed(CallFailure::OutcomeUnknown { .. })
    ));
    assert!(shut_down(&old) >= 1 && shut_down(&new) == 1);
}
