use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use futures::future::join_all;
use shoal_ports::{GatewayError, SessionGateway as _, SessionRef, SessionSettings};
use shoal_session::SessionConfig;
use tokio::time::sleep;

use crate::support::unsteady::unsteady;
use crate::support::{Bench, call, initialize, post, read, read_all, within};

const IDLE: Duration = Duration::from_millis(400);

fn quick() -> SessionConfig {
    SessionConfig {
        session: SessionSettings {
            passivate_after: Duration::from_millis(20).into(),
            sweep_every: Duration::from_millis(10).into(),
            ..SessionSettings::default()
        },
        ..SessionConfig::default()
    }
}

async fn until(bench: &Bench, what: &str, condition: impl Fn() -> bool) {
    let waiting = async {
        while !condition() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting)
        .await
        .unwrap_or_else(|_| panic!("{what}: {:?}", bench.sessions.status()));
}

async fn until_asleep(bench: &Bench, count: usize) {
    let asleep = || bench.sessions.status().passive == count;
    until(bench, "they fall asleep", asleep).await;
}

fn places(bench: &Bench) -> (usize, usize) {
    let status = bench.sessions.status();
    (status.reserved, status.live + status.passive)
}

async fn come_back(bench: &Bench, mut to: SessionRef, number: u64) {
    for round in 0..8 {
        let spread = Duration::from_millis((number * 7 + round * 13) % 60);
        sleep(IDLE - Duration::from_millis(20) + spread).await;
        let at_once = (0..10).map(|turn| {
            let bench = &bench;
            let to = &to;
            async move {
                sleep(Duration::from_millis(turn * 20)).await;
                bench.sessions.deliver(to, post(&call(turn, "echo"))).await
            }
        });
        join_all(at_once).await;
        for _ in 0..4 {
            let used = Instant::now();
            match bench.sessions.deliver(&to, post(&call(1, "echo"))).await {
                Ok(_) => expect_kept(bench, &to, used).await,
                Err(GatewayError::NotFound) => to = open_surely(bench).await,
                Err(GatewayError::Unavailable { .. } | GatewayError::Moved { .. }) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
    }
}

async fn open_surely(bench: &Bench) -> SessionRef {
    loop {
        let open = initialize("alice", "2025-11-25");
        let principal = open.principal.clone();
        match bench.sessions.open(open).await {
            Ok(opened) => return SessionRef::new(opened.session, principal),
            Err(GatewayError::Unavailable { .. }) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
}

async fn expect_kept(bench: &Bench, to: &SessionRef, used: Instant) {
    sleep(Duration::from_millis(30)).await;
    let found = bench.sessions.deliver(to, post(&call(2, "echo"))).await;
    let kept = found.err() != Some(GatewayError::NotFound) || used.elapsed() >= IDLE;
    assert!(kept, "a session that was just used has ended");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_place_is_counted_once_however_clients_come_back() {
    let (bench, store) = unsteady(SessionConfig {
        session: SessionSettings {
            idle: IDLE.into(),
            ..quick().session
        },
        ..quick()
    });
    let bench = Arc::new(bench);
    let mut clients = Vec::new();
    for number in 0..150 {
        let (bench, to) = (bench.clone(), bench.open("alice", "2025-11-25").await);
        clients.push(tokio::spawn(
            async move { come_back(&bench, to, number).await },
        ));
    }
    assert_eq!(bench.sessions.status().reserved, clients.len());
    store.fail(true);
    for client in clients {
        client.await.unwrap();
    }
    store.fail(false);
    let all_gone = || places(&bench) == (0, 0);
    until(&bench, "every place is free again", all_gone).await;
    let opened = bench.open("alice", "2025-11-25").await;
    assert_eq!(bench.sessions.status().reserved, 1, "{opened:?}");
}

#[tokio::test]
async fn a_session_that_wakes_while_the_node_lets_go_of_it_has_one_place() {
    let (bench, store) = unsteady(quick());
    let alice = bench.open("alice", "2025-11-25").await;
    until_asleep(&bench, 1).await;
    store.hold(&alice.session);
    let (sessions, to) = (bench.sessions.clone(), alice.clone());
    let waking = tokio::spawn(async move { sessions.deliver(&to, post(&call(1, "echo"))).await });
    store.until_held().await;
    store.disowns.store(true, SeqCst);
    let sessions = bench.sessions.clone();
    let revalidating = tokio::spawn(async move { sessions.revalidate().await });
    sleep(Duration::from_millis(100)).await;
    store.release();
    let _ = within(waking).await.unwrap();
    within(revalidating).await.unwrap().unwrap();
    store.disowns.store(false, SeqCst);
    let (taken, held) = places(&bench);
    assert_eq!(taken, held);
}

#[tokio::test]
async fn the_sweep_looks_again_before_it_ends_a_session() {
    let (bench, store) = unsteady(SessionConfig {
        session: SessionSettings {
            idle: IDLE.into(),
            ..quick().session
        },
        ..quick()
    });
    let alice = bench.open("alice", "2025-11-25").await;
    until_asleep(&bench, 1).await;
    store.hold(&alice.session);
    let (sessions, to) = (bench.sessions.clone(), alice.clone());
    let call = post(&call(1, "stream"));
    let waking = tokio::spawn(async move { sessions.deliver(&to, call).await });
    store.until_held().await;
    sleep(IDLE + Duration::from_millis(100)).await;
    store.release();
    let shoal_ports::Delivered::Stream(mut stream) = within(waking).await.unwrap().unwrap() else {
        panic!("a stream")
    };
    let tool = bench.script.call("stream").await;
    sleep(Duration::from_millis(100)).await;
    assert_eq!(*tool.cancelled.borrow(), None, "the sweep ended the call");
    tool.finish("{}").await;
    let texts = read_all(&mut stream).await.texts;
    assert!(texts[0].contains(r#""result":{}"#), "{texts:?}");
}

#[tokio::test]
async fn no_session_waits_for_another() {
    let (bench, store) = unsteady(quick());
    let first = bench.open("alice", "2025-11-25").await;
    let mut others = Vec::new();
    for _ in 0..500 {
        others.push(bench.open("alice", "2025-11-25").await);
    }
    until_asleep(&bench, 501).await;
    store.hold(&first.session);
    let (sessions, to) = (bench.sessions.clone(), first.clone());
    let waking = tokio::spawn(async move { sessions.deliver(&to, post(&call(1, "echo"))).await });
    store.until_held().await;
    let all = others.into_iter().map(|to| {
        let sessions = bench.sessions.clone();
        tokio::spawn(async move { sessions.deliver(&to, post(&call(1, "echo"))).await })
    });
    for answered in within(join_all(all)).await {
        answered.unwrap().unwrap();
    }
    assert!(!waking.is_finished());
    store.release();
    within(waking).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_session_that_falls_asleep_wakes_for_who_listens() {
    let (bench, store) = unsteady(quick());
    let alice = bench.open("alice", "2025-11-25").await;
    store.hold(&alice.session);
    store.until_held().await;
    let mut listening = bench.sessions.listen(&alice, None);
    assert!(futures::poll!(&mut listening).is_pending());
    store.release();
    let mut stream = within(listening).await.unwrap();
    bench.script.change_lists();
    let told = read(&mut stream, 1).await;
    assert!(told.passing[0].contains("list_changed"), "{told:?}");
}
