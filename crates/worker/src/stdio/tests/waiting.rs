use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use shoal_ports::{
    Call, CallEventKind, CallFailure, CallOutcome, Period, RunningCall, Worker, WorkerId,
};
use shoal_protocol::code;

use super::harness::{Client, TestBackend, eventually, failure, fixture, scratch, text};
use crate::{Isolation, PoolConfig, WorkerRuntime};

const PATIENCE: Duration = Duration::from_secs(20);

async fn worker(processes: usize, config: PoolConfig) -> Arc<WorkerRuntime> {
    let mut fixture = fixture("legacy.py", &[]);
    fixture.processes = Some(processes);
    let running = TestBackend::start(fixture).await;
    let worker = WorkerRuntime::start(WorkerId::new("worker"), config, running.0.clone()).await;
    assert!(worker.announcement().borrow().catalog.is_some());
    worker
}

fn call(client: &Client, tool: &str, arguments: Value) -> Call {
    let mut call = client.call(json!({ "name": tool, "arguments": arguments }));
    call.deadline += 3 * PATIENCE;
    call
}

async fn comes_to(running: &mut RunningCall) -> Option<CallOutcome> {
    let event = async {
        loop {
            match running.events.next().await.expect("the call goes on").kind {
                CallEventKind::Finished(outcome) => return Some(outcome),
                CallEventKind::Ask { .. } => return None,
                _ => {}
            }
        }
    };
    tokio::time::timeout(PATIENCE, event)
        .await
        .expect("the call hangs")
}

fn load(worker: &WorkerRuntime) -> (usize, usize) {
    let load = worker.load();
    (load.running, load.queued)
}

#[tokio::test]
async fn a_call_waits_for_a_process_until_its_deadline() {
    let config = PoolConfig {
        queue_age: Period::millis(500),
        ..PoolConfig::new("pool")
    };
    let worker = worker(1, config).await;
    let file = scratch("busy");
    let busy = call(
        &Client::askable("busy"),
        "hang",
        json!({ "file": file.to_str() }),
    );
    let busy = worker.start(busy, None).await.unwrap();
    eventually("it runs alone", || load(&worker) == (1, 0)).await;
    let mut waiting = Vec::new();
    for (at, deadline) in [PATIENCE, Duration::from_secs(1)].into_iter().enumerate() {
        let mut call = call(&Client::askable("a"), "pid", json!({}));
        call.deadline = tokio::time::Instant::now() + deadline;
        waiting.push(worker.start(call, None).await.unwrap());
        eventually("it waits", || load(&worker) == (1, at + 1)).await;
    }
    let failure = failure(comes_to(&mut waiting[1]).await.unwrap());
    let CallFailure::Overloaded { reason, .. } = &failure else {
        panic!("it was never begun: {failure:?}");
    };
    assert!(
        reason.contains("waited") && reason.contains("deadline"),
        "{reason}"
    );
    // The other call still waits, although it has exceeded `queue_age`.
    eventually("one waits no more", || load(&worker) == (1, 1)).await;
    busy.control.cancel("enough");
    text(&comes_to(&mut waiting[0]).await.unwrap());
    eventually("all have ended", || load(&worker) == (0, 0)).await;
}

#[tokio::test]
async fn one_principal_waits_for_processes_in_half_of_the_places() {
    let config = PoolConfig {
        concurrency: 2,
        queue: 4,
        ..PoolConfig::new("pool")
    };
    let worker = worker(1, config).await;
    let file = scratch("half");
    let (evil, honest) = (Client::askable("evil"), Client::askable("honest"));
    let busy = call(&evil, "hang", json!({ "file": file.to_str() }));
    let busy = worker.start(busy, None).await.unwrap();
    eventually("it runs alone", || load(&worker) == (1, 0)).await;
    let mut waiting = Vec::new();
    for at in 1..=3 {
        let call = call(&evil, "pid", json!({}));
        waiting.push(worker.start(call, None).await.unwrap());
        eventually("it waits", || load(&worker) == (1, at)).await;
    }
    let mut beyond = worker
        .start(call(&evil, "pid", json!({})), None)
        .await
        .unwrap();
    let refused = failure(comes_to(&mut beyond).await.unwrap());
    assert!(
        matches!(&refused, CallFailure::Overloaded { reason, .. } if reason.contains("principal")),
        "{refused:?}"
    );
    eventually("it is gone", || load(&worker) == (1, 3)).await;
    let mut other = worker
        .start(call(&honest, "pid", json!({})), None)
        .await
        .unwrap();
    eventually("it waits", || load(&worker) == (1, 4)).await;
    busy.control.cancel("enough");
    text(&comes_to(&mut other).await.unwrap());
    for mut waiting in waiting {
        text(&comes_to(&mut waiting).await.unwrap());
    }
    eventually("all have ended", || load(&worker) == (0, 0)).await;
}

#[tokio::test]
async fn unanswered_questions_leave_the_processes_to_others() {
    for processes in [1, 2] {
        let worker = worker(processes, PoolConfig::new("pool")).await;
        let (evil, honest) = (Client::askable("evil"), Client::askable("honest"));
        let mut asking = Vec::new();
        let mut refused = 0;
        for _ in 0..processes + 2 {
            let ask = call(&evil, "ask", json!({ "question": "?" }));
            let mut ask = worker.start(ask, None).await.unwrap();
            match comes_to(&mut ask).await {
                None => asking.push(ask),
                Some(outcome) => {
                    assert_eq!(text(&outcome), json!({ "error": code::OVERLOADED }));
                    refused += 1;
                }
            }
        }
        assert_eq!((asking.len(), refused), (processes, 2), "its share");
        eventually("they have no place", || load(&worker) == (0, 0)).await;
        for client in [&Client::named("plain"), &honest] {
            let mut running = worker
                .start(call(client, "pid", json!({})), None)
                .await
                .unwrap();
            text(&comes_to(&mut running).await.unwrap());
        }
        let ask = call(&honest, "ask", json!({ "question": "?" }));
        let mut ask = worker.start(ask, None).await.unwrap();
        assert!(comes_to(&mut ask).await.is_none());
        for ask in asking.iter().chain([&ask]) {
            ask.control.cancel("enough");
        }
        eventually("all have ended", || load(&worker) == (0, 0)).await;
    }
}

#[tokio::test]
async fn an_idle_process_is_given_up_for_a_session_of_who_has_fewer() {
    let mut config = fixture("legacy.py", &[]);
    config.isolation = Isolation::Session;
    config.processes = Some(3);
    config.session_idle = Duration::from_secs(600).into();
    let running = TestBackend::start(config).await;
    let pid = async |client: &Client| text(&running.call(client, "pid", json!({})).await);
    let evil: Vec<_> = (0..3)
        .map(|at| Client::askable(&format!("e{at}")).of("evil").hesitant())
        .collect();
    let mut before = Vec::new();
    for session in &evil {
        before.push(pid(session).await);
    }
    let asking = running.spawn(&evil[0], "ask", json!({ "question": "?" }));
    eventually("it asks", || evil[0].asked().len() == 1).await;
    let honest: Vec<_> = (0..2)
        .map(|at| Client::named(&format!("h{at}")).of("honest"))
        .collect();
    let own = pid(&honest[0]).await;
    // The process used last and the one in use stay.
    assert_eq!(pid(&evil[2]).await, before[2]);
    // Both principals have their share, so one that wants more gives up a process of its own.
    assert_ne!(pid(&evil[1]).await, before[1]);
    assert_eq!(pid(&honest[0]).await, own);
    assert_ne!(pid(&honest[1]).await, own);
    evil[0].answer_one();
    text(&asking.await.unwrap());
}

#[tokio::test]
async fn one_principal_starts_half_of_the_processes_at_once() {
    let held = scratch("held");
    let mut config = fixture("legacy.py", &["--hold-starts", held.to_str().unwrap()]);
    config.isolation = Isolation::Session;
    config.processes = Some(4);
    config.session_idle = Duration::from_secs(600).into();
    let running = TestBackend::start(config).await;
    std::fs::create_dir(&*held).unwrap();
    let starting = || -> Vec<u32> {
        let files = std::fs::read_dir(&*held).unwrap();
        let names = files.map(|file| file.unwrap().file_name());
        names
            .filter_map(|name| name.to_str()?.parse().ok())
            .collect()
    };
    let call = |session: &str, principal| {
        let client = Client::named(session).of(principal);
        running.spawn(&client, "pid", json!({}))
    };
    let mut evil: Vec<_> = ["e0", "e1"].map(|session| call(session, "evil")).into();
    eventually("two start", || starting().len() == 2).await;
    let its_share = starting();
    evil.extend(["e2", "e3"].map(|session| call(session, "evil")));
    let honest = call("h0", "honest");
    eventually("another one starts", || starting().len() > 2).await;
    let mut next = starting();
    next.retain(|pid| !its_share.contains(pid));
    std::fs::write(held.join("go"), "").unwrap();
    assert_eq!(json!(next), json!([text(&honest.await.unwrap())]));
    for call in evil {
        text(&call.await.unwrap());
    }
}
