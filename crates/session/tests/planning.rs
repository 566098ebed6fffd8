//! A call is planned once, before anything is journaled: what is refused touches no store.
#![allow(clippy::unwrap_used, reason = "a failed step is the report")]

mod support;

use std::sync::atomic::Ordering::SeqCst;

use shoal_ports::{
    Delivered, Epoch, GatewayError, OpenSession, SessionGateway as _, SessionRef, SessionTransport,
    WorkerId,
};
use shoal_protocol::{EventId, StreamId};
use shoal_session::SessionConfig;
use support::{Bench, call, post, read, read_all, within};
use tokio::task::yield_now;

/// The workers that the journal names for the calls of a session.
async fn journaled(bench: &Bench, to: &SessionRef) -> Vec<Option<WorkerId>> {
    let running = bench.store.journal.running(&to.session, Epoch(1));
    let running = running.await.unwrap();
    let calls = running.iter().flat_map(|stream| &stream.calls);
    calls.map(|call| call.entry.worker.clone()).collect()
}

/// Whether the log has a stream of calls.
async fn has_stream(bench: &Bench, to: &SessionRef) -> bool {
    let first = EventId {
        stream: StreamId(1),
        sequence: 0,
        ..bench
            .store
            .log
            .last(&to.session, StreamId::STANDALONE)
            .await
            .unwrap()
    };
    bench.store.log.read(&to.session, first, 1).await.is_ok()
}

#[tokio::test]
async fn what_is_refused_is_told_at_once_and_written_nowhere() {
    let bench = Bench::new(SessionConfig::default());
    let alice = bench.open("alice", "2025-11-25").await;
    let unknown = bench.json(&alice, &call(1, "stream-unknown")).await;
    assert!(unknown.contains("-32602"), "{unknown}");
    let full = bench
        .sessions
        .deliver(&alice, post(&call(2, "stream-full")));
    let full = full.await;
    assert!(
        matches!(full, Err(GatewayError::Overloaded { .. })),
        "{full:?}"
    );
    assert!(!has_stream(&bench, &alice).await);
    assert_eq!(bench.script.planned.load(SeqCst), 2);
    // Both ids are free again.
    for id in [1, 2] {
        assert!(
            bench
                .json(&alice, &call(id, "echo"))
                .await
                .contains("result")
        );
    }
    let mut stream = bench.stream(&alice, 3, "stream").await;
    assert!(has_stream(&bench, &alice).await, "the check sees streams");
    assert_eq!(journaled(&bench, &alice).await, [Some(WorkerId::new("w"))]);
    bench.script.call("stream").await.finish("{}").await;
    read_all(&mut stream).await;
    assert_eq!(bench.script.planned.load(SeqCst), 5, "once for each");
}

#[tokio::test]
async fn what_is_refused_in_a_batch_is_answered_beside_what_runs() {
    let bench = Bench::new(SessionConfig::default());
    let alice = bench.open("alice", "2025-03-26").await;
    let refused = format!("[{},{}]", call(1, "stream-unknown"), call(2, "stream-full"));
    let answer = bench.json(&alice, &refused).await;
    assert!(
        answer.contains("-32602") && answer.contains("50300"),
        "{answer}"
    );
    assert!(!has_stream(&bench, &alice).await);
    let mixed = format!("[{},{}]", call(3, "stream-unknown"), call(4, "stream"));
    let Delivered::Stream(mut stream) = bench.post(&alice, &mixed).await else {
        panic!("a stream");
    };
    assert_eq!(journaled(&bench, &alice).await, [Some(WorkerId::new("w"))]);
    let told = read(&mut stream, 1).await;
    assert!(told.texts[0].contains(r#""id":3"#), "{told:?}");
    bench.script.call("stream").await.finish("{}").await;
    let told = read_all(&mut stream).await;
    assert!(told.texts[0].contains(r#""id":4"#), "{told:?}");
}

/// Begins a call for which no worker is there yet, and returns once it waits.
async fn waiting(
    bench: &Bench,
    to: &SessionRef,
    id: u64,
) -> tokio::task::JoinHandle<Result<Delivered, GatewayError>> {
    let before = bench.script.planned.load(SeqCst);
    let (sessions, to) = (bench.sessions.clone(), to.clone());
    let delivery =
        tokio::spawn(async move { sessions.deliver(&to, post(&call(id, "stream-late"))).await });
    within(async {
        while bench.script.planned.load(SeqCst) == before {
            yield_now().await;
        }
    })
    .await;
    delivery
}

#[tokio::test]
async fn a_call_without_a_worker_waits_before_it_is_journaled_and_then_names_it() {
    let bench = Bench::new(SessionConfig::default());
    let alice = bench.open("alice", "2025-11-25").await;
    let delivery = waiting(&bench, &alice, 1).await;
    assert_eq!(journaled(&bench, &alice).await, []);
    assert!(!has_stream(&bench, &alice).await);
    bench.script.workers.send_replace(true);
    let Ok(Delivered::Stream(mut stream)) = within(delivery).await.unwrap() else {
        panic!("a stream");
    };
    assert_eq!(journaled(&bench, &alice).await, [Some(WorkerId::new("w"))]);
    bench.script.call("stream-late").await.finish("{}").await;
    assert_eq!(read_all(&mut stream).await.texts.len(), 1);
}

#[tokio::test]
async fn whoever_gives_up_while_it_waits_leaves_nothing_behind() {
    let bench = Bench::new(SessionConfig::default());
    let alice = bench.open("alice", "2025-11-25").await;
    for _ in 0..3 {
        let delivery = waiting(&bench, &alice, 1).await;
        delivery.abort();
        assert!(within(delivery).await.unwrap_err().is_cancelled());
        assert_eq!(bench.sessions.status().in_flight, 0);
    }
    bench.script.workers.send_replace(true);
    assert!(
        bench
            .json(&alice, &call(1, "echo"))
            .await
            .contains("result")
    );
    assert!(!has_stream(&bench, &alice).await);
    assert_eq!(bench.script.started.load(SeqCst), 0);
}

#[tokio::test]
async fn a_call_that_waits_can_be_cancelled() {
    let bench = Bench::new(SessionConfig::default());
    let alice = bench.open("alice", "2025-11-25").await;
    let delivery = waiting(&bench, &alice, 7).await;
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
    bench.post(&alice, cancel).await;
    let Ok(Delivered::Json(answer)) = within(delivery).await.unwrap() else {
        panic!("JSON");
    };
    assert!(String::from_utf8_lossy(&answer).contains("-32800"));
    assert_eq!(bench.script.started.load(SeqCst), 0);
    assert!(!has_stream(&bench, &alice).await);
}

#[tokio::test]
async fn a_call_that_waits_is_answered_when_its_session_ends() {
    let bench = Bench::new(SessionConfig::default());
    let alice = bench.open("alice", "2025-11-25").await;
    let delivery = waiting(&bench, &alice, 7).await;
    within(bench.sessions.close(&alice)).await.unwrap();
    let Ok(Delivered::Json(answer)) = within(delivery).await.unwrap() else {
        panic!("JSON");
    };
    let answer = String::from_utf8_lossy(&answer);
    assert!(
        answer.contains("50410") || answer.contains("-32800"),
        "{answer}"
    );
    assert_eq!(bench.script.started.load(SeqCst), 0);
}

#[tokio::test]
async fn a_worker_that_left_between_plan_and_start_is_replaced_in_the_journal_first() {
    let bench = Bench::new(SessionConfig::default());
    bench.script.replans.store(true, SeqCst);
    *bench.script.left.lock() = Some(WorkerId::new("w"));
    let alice = bench.open("alice", "2025-11-25").await;
    let mut stream = bench.stream(&alice, 1, "stream").await;
    let tool = bench.script.call("stream").await;
    let (first, second) = (WorkerId::new("w"), WorkerId::new("w2"));
    assert_eq!(
        *bench.script.offered.lock(),
        [Some(first), Some(second.clone())]
    );
    assert_eq!(journaled(&bench, &alice).await, [Some(second)]);
    assert_eq!(
        bench.script.planned.load(SeqCst),
        1,
        "nothing is checked twice"
    );
    tool.finish("{}").await;
    assert_eq!(read_all(&mut stream).await.texts.len(), 1);
}

#[tokio::test]
async fn a_worker_that_left_and_has_no_other_leaves_the_call_not_executed() {
    let bench = Bench::new(SessionConfig::default());
    *bench.script.left.lock() = Some(WorkerId::new("w"));
    let alice = bench.open("alice", "2025-11-25").await;
    let mut stream = bench.stream(&alice, 1, "stream").await;
    let told = read_all(&mut stream).await;
    assert!(told.texts[0].contains("50301"), "{told:?}");
    assert_eq!(journaled(&bench, &alice).await, []);
}

/// Over HTTP+SSE nobody can tell what an earlier delivery did: only a first one may be started.
#[tokio::test]
async fn a_repetition_over_one_stream_is_never_started_blindly() {
    let bench = Bench::new(SessionConfig::default());
    let open = OpenSession {
        transport: SessionTransport::SingleStream,
        ..support::initialize("alice", "2024-11-05")
    };
    let principal = open.principal.clone();
    let session = bench.sessions.open(open).await.unwrap().session;
    let to = SessionRef {
        session,
        principal,
        trace: None,
        hinted: false,
    };
    let mut stream = bench.sessions.listen(&to, None).await.unwrap();
    for (id, tool, code) in [
        (1, "stream-once", "50002"),
        (2, "stream-unknown", "-32602"),
        (3, "echo", "result"),
    ] {
        let mut repeated = post(&call(id, tool));
        repeated.repeated = true;
        let delivered = bench.sessions.deliver(&to, repeated).await;
        assert!(
            matches!(delivered, Ok(Delivered::Accepted)),
            "{delivered:?}"
        );
        let told = within(read(&mut stream, 1)).await;
        assert!(told.texts[0].contains(code), "{tool}: {told:?}");
    }
    assert_eq!(bench.script.started.load(SeqCst), 0);
}
