use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use shoal_ports::{
    AskId, CallEventKind, CallFailure, CallId, CallOutcome, Delivered, Epoch, EventStream,
    GatewayError, JournaledCall, NodeId, NodeLimits, Post, SessionGateway as _, SessionRef,
    StateRequest, StoreError, StreamSettings, WorkerId,
};
use shoal_protocol::{Outcome, RawJson};
use shoal_session::{SessionConfig, Sessions};
use tokio::task::JoinHandle;

use crate::support::flaky::{away, flaky};
use crate::support::{Bench, again, bound, call, post, read_all, unknown_tool, within};

const LONG: Duration = Duration::from_secs(600);

fn held_for(hold: Duration) -> SessionConfig {
    SessionConfig {
        streams: StreamSettings {
            hold: hold.into(),
            ..StreamSettings::default()
        },
        ..SessionConfig::default()
    }
}

fn deliver(
    sessions: &Sessions,
    to: &SessionRef,
    post: Post,
) -> JoinHandle<Result<Delivered, GatewayError>> {
    let (sessions, to) = (sessions.clone(), to.clone());
    tokio::spawn(async move { sessions.deliver(&to, post).await })
}

async fn journaled(bench: &Bench, to: &SessionRef, epoch: u64) -> Vec<JournaledCall> {
    let running = bench.store.journal.running(&to.session, Epoch(epoch));
    let running = running.await.unwrap();
    running
        .into_iter()
        .flat_map(|stream| stream.calls)
        .collect()
}

fn text(delivered: Result<Delivered, GatewayError>) -> String {
    match delivered {
        Ok(Delivered::Json(text)) => String::from_utf8(text.to_vec()).unwrap(),
        other => panic!("expected JSON, got {other:?}"),
    }
}

fn starts(bench: &Bench, tool: &str) -> usize {
    bench.script.starts.get(tool).map_or(0, |starts| *starts)
}

async fn until(condition: impl Fn() -> bool) {
    within(async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_call_that_ends_soon_is_stored_nowhere() {
    let bench = Bench::new(held_for(LONG));
    let alice = bench.open("alice", "2025-11-25").await;
    let at_once = bench.sessions.deliver(&alice, bound(1, "echo")).await;
    assert!(text(at_once).contains("result"));
    let delivering = deliver(&bench.sessions, &alice, bound(2, "soon"));
    let tool = bench.script.call("soon").await;
    assert!(journaled(&bench, &alice, 1).await.is_empty());
    tool.finish("{}").await;
    assert!(text(within(delivering).await.unwrap()).contains(r#""id":2"#));
    assert!(journaled(&bench, &alice, 1).await.is_empty());
    assert_eq!(bench.script.planned.load(SeqCst), 2, "once for each");
    let status = bench.sessions.status();
    assert_eq!((status.in_flight, status.journaled), (0, 0));
}

#[tokio::test]
async fn a_call_that_outlasts_the_hold_is_journaled_under_its_deliverys_id() {
    let bench = Bench::new(held_for(Duration::from_millis(20)));
    let alice = bench.open("alice", "2025-11-25").await;
    let post = bound(1, "long");
    let delivery = post.delivery;
    let delivered = bench.sessions.deliver(&alice, post).await;
    let Ok(Delivered::Stream(mut stream)) = delivered else {
        panic!("{delivered:?}");
    };
    let entries = journaled(&bench, &alice, 1).await;
    assert_eq!(entries[0].entry.call, CallId::from(delivery));
    assert_eq!(entries[0].entry.worker, Some(WorkerId::new("w")));
    bench.script.call("long").await.finish("{}").await;
    let told = read_all(&mut stream).await;
    assert!(told.primed.is_some() && told.events.len() == 1, "{told:?}");
}

#[tokio::test]
async fn without_a_hold_a_call_is_journaled_before_it_starts() {
    let bench = Bench::new(held_for(Duration::ZERO));
    let alice = bench.open("alice", "2025-11-25").await;
    let delivered = bench.sessions.deliver(&alice, bound(1, "echo")).await;
    let Ok(Delivered::Stream(mut stream)) = delivered else {
        panic!("{delivered:?}");
    };
    assert_eq!(read_all(&mut stream).await.events.len(), 1);
}

#[tokio::test]
async fn a_large_result_is_a_stream() {
    let bench = Bench::new(held_for(LONG));
    let alice = bench.open("alice", "2025-11-25").await;
    for (id, bytes) in [(1, 16 * 1024), (2, 16 * 1024 + 1)] {
        let tool = format!("large-{id}");
        let delivering = deliver(&bench.sessions, &alice, bound(id, &tool));
        let filler = "x".repeat(bytes - r#"{"a":""}"#.len());
        let result: &'static str = Box::leak(format!(r#"{{"a":"{filler}"}}"#).into_boxed_str());
        bench.script.call(&tool).await.finish(result).await;
        match within(delivering).await.unwrap() {
            Ok(Delivered::Json(_)) => assert_eq!(id, 1),
            Ok(Delivered::Stream(mut stream)) => {
                assert_eq!(id, 2);
                let told = read_all(&mut stream).await;
                assert!(told.events[0].1.contains(&filler));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn what_speaks_before_it_ends_is_a_stream_with_all_that_it_said() {
    let bench = Bench::new(held_for(LONG));
    let alice = bench.open("alice", "2025-11-25").await;
    let delivering = deliver(&bench.sessions, &alice, bound(1, "speaks"));
    let tool = bench.script.call("speaks").await;
    tool.progress(1).await;
    tool.finish("{}").await;
    let Ok(Delivered::Stream(mut stream)) = within(delivering).await.unwrap() else {
        panic!("a stream");
    };
    assert_eq!(read_all(&mut stream).await.events.len(), 2);
}

#[tokio::test]
async fn what_a_call_writes_in_its_session_is_written_after_its_entry_and_what_it_reads_is_not() {
    let bench = Bench::new(held_for(LONG));
    let alice = bench.open("alice", "2025-11-25").await;
    let ask = |n, request| CallEventKind::State {
        ask: AskId(n),
        request,
    };
    let get = || StateRequest::Get { key: "k".into() };
    let delivering = deliver(&bench.sessions, &alice, bound(1, "reads"));
    let tool = bench.script.call("reads").await;
    tool.send(ask(1, get())).await;
    assert!(matches!(tool.answer_to(AskId(1)).await, Outcome::Result(_)));
    tool.finish("{}").await;
    assert!(text(within(delivering).await.unwrap()).contains("result"));

    let delivering = deliver(&bench.sessions, &alice, bound(2, "writes"));
    let tool = bench.script.call("writes").await;
    let set = StateRequest::Set {
        key: "k".into(),
        value: Some(RawJson::from_static("1")),
        writing: 1,
    };
    tool.send(ask(1, set)).await;
    assert!(matches!(tool.answer_to(AskId(1)).await, Outcome::Result(_)));
    assert_eq!(journaled(&bench, &alice, 1).await.len(), 1);
    tool.finish("{}").await;
    let Ok(Delivered::Stream(mut stream)) = within(delivering).await.unwrap() else {
        panic!("a stream");
    };
    assert_eq!(read_all(&mut stream).await.events.len(), 1);
}

#[tokio::test]
async fn a_store_that_is_away_keeps_no_result_from_its_client() {
    let (bench, journal) = flaky(held_for(Duration::from_millis(5)));
    let alice = bench.open("alice", "2025-11-25").await;
    journal.says(Some(away()));
    let short = bench.sessions.deliver(&alice, bound(1, "echo")).await;
    assert!(text(short).contains("result"));
    let delivering = deliver(&bench.sessions, &alice, bound(2, "long"));
    let tool = bench.script.call("long").await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!delivering.is_finished());
    tool.finish("{}").await;
    assert!(text(within(delivering).await.unwrap()).contains(r#""id":2"#));
    journal.says(None);
    until(|| bench.sessions.status().in_flight == 0).await;
    assert!(journaled(&bench, &alice, 1).await.is_empty());
}

async fn hang_up(bench: &Bench, to: &SessionRef, post: Post, tool: &str) {
    let delivering = deliver(&bench.sessions, to, post);
    bench.script.call(tool).await;
    delivering.abort();
    assert!(within(delivering).await.unwrap_err().is_cancelled());
}

#[tokio::test]
async fn a_call_whose_client_hung_up_can_still_be_cancelled() {
    let bench = Bench::new(held_for(LONG));
    let alice = bench.open("alice", "2025-11-25").await;
    hang_up(&bench, &alice, bound(7, "slow"), "slow").await;
    assert_eq!(bench.sessions.status().in_flight, 1);
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
    bench.post(&alice, cancel).await;
    let tool = bench.script.call("slow").await;
    assert!(tool.cancelled.borrow().is_some());
    tool.finish("{}").await;
    until(|| bench.sessions.status().in_flight == 0).await;
    assert!(journaled(&bench, &alice, 1).await.is_empty());
}

#[tokio::test]
async fn a_hundred_that_hang_up_leak_nothing() {
    let bench = Bench::new(SessionConfig {
        limits: NodeLimits {
            calls_per_session: 200,
            ..NodeLimits::default()
        },
        ..held_for(LONG)
    });
    let alice = bench.open("alice", "2025-11-25").await;
    for id in 1..=100 {
        let tool = format!("slow-{id}");
        hang_up(&bench, &alice, bound(id, &tool), &tool).await;
    }
    assert_eq!(bench.sessions.status().in_flight, 100);
    for id in 1..=50 {
        bench
            .script
            .call(&format!("slow-{id}"))
            .await
            .finish("{}")
            .await;
    }
    until(|| bench.sessions.status().in_flight == 50).await;
    within(bench.sessions.close(&alice)).await.unwrap();
    for id in 51..=100 {
        let tool = bench.script.call(&format!("slow-{id}")).await;
        assert!(tool.cancelled.borrow().is_some(), "{id}");
    }
    until(|| bench.sessions.status().in_flight == 0).await;
}

#[tokio::test]
async fn a_repetition_takes_over_what_nobody_waits_for() {
    let bench = Bench::new(held_for(LONG));
    let alice = bench.open("alice", "2025-11-25").await;
    let post = bound(1, "slow");
    hang_up(&bench, &alice, post.clone(), "slow").await;
    let repeated = deliver(&bench.sessions, &alice, again(&post));
    let tool = bench.script.call("slow").await;
    until(|| tool.reads() == 2).await;
    tool.finish("{}").await;
    assert!(text(within(repeated).await.unwrap()).contains("result"));
    assert_eq!(starts(&bench, "slow"), 1);
}

async fn two_nodes(bench: &Bench) -> Sessions {
    for node in ["test", "next"] {
        let node = NodeId::new(node);
        let renewed = bench.store.directory.renew_lease(&node, LONG);
        renewed.await.unwrap();
    }
    bench.another_node("next")
}

#[tokio::test]
async fn a_held_call_of_a_lost_owner_is_found_at_its_worker() {
    let bench = Bench::new(held_for(LONG));
    let next = two_nodes(&bench).await;
    let alice = bench.open("alice", "2025-11-25").await;
    let post = bound(1, "slow");
    let first = deliver(&bench.sessions, &alice, post.clone());
    let tool = bench.script.call("slow").await;
    let lost = NodeId::new("test");
    bench.store.directory.end_lease(&lost).await.unwrap();
    let repeated = deliver(&next, &alice, again(&post));
    until(|| tool.reads() == 2).await;
    tool.finish("{}").await;
    let mut answer = within(repeated).await.unwrap();
    if let Ok(Delivered::Stream(stream)) = &mut answer {
        assert_eq!(read_all(stream).await.events.len(), 1);
    } else {
        assert!(text(answer).contains("result"));
    }
    assert_eq!(starts(&bench, "slow"), 1);
    first.abort();
}

#[tokio::test]
async fn a_repetition_of_what_never_began_is_started_once() {
    let bench = Bench::new(held_for(LONG));
    bench.script.starts_unknown.store(true, SeqCst);
    let alice = bench.open("alice", "2025-11-25").await;
    let post = bound(1, "echo");
    let answer = bench.sessions.deliver(&alice, again(&post)).await;
    assert!(text(answer).contains("result"));
    assert_eq!(starts(&bench, "echo"), 1);
}

#[tokio::test]
async fn whatever_else_refuses_a_repetition_the_outcome_is_unknown() {
    let bench = Bench::new(held_for(LONG));
    let alice = bench.open("alice", "2025-11-25").await;
    let delivering = deliver(&bench.sessions, &alice, bound(1, "slow"));
    let tool = bench.script.call("slow").await;
    let in_use = bench
        .sessions
        .deliver(&alice, again(&bound(1, "other")))
        .await;
    let in_use = text(in_use);
    assert!(
        in_use.contains("50002") && in_use.contains(r#""id":1"#),
        "{in_use}"
    );
    let gone = bench
        .sessions
        .deliver(&alice, again(&bound(2, "other")))
        .await;
    let gone = text(gone);
    assert!(gone.contains("50002"), "{gone}");
    tool.finish("{}").await;
    assert!(text(within(delivering).await.unwrap()).contains("result"));
    let refused = bench.sessions.deliver(&alice, post(&call(3, "full"))).await;
    assert!(
        matches!(refused, Err(GatewayError::Overloaded { .. })),
        "{refused:?}"
    );
}

async fn refused_by_the_first(bench: &Bench, alice: &SessionRef, post: Post) -> EventStream {
    bench.script.replans.store(true, SeqCst);
    *bench.script.refuses.lock() = Some(WorkerId::new("w"));
    let delivered = bench.sessions.deliver(alice, post).await;
    let Ok(Delivered::Stream(stream)) = delivered else {
        panic!("{delivered:?}");
    };
    stream
}

#[tokio::test]
async fn a_worker_that_refuses_is_replaced_in_the_journal_before_the_next_start() {
    let bench = Bench::new(held_for(LONG));
    let alice = bench.open("alice", "2025-11-25").await;
    let mut stream = refused_by_the_first(&bench, &alice, bound(1, "slow")).await;
    let (first, second) = (WorkerId::new("w"), WorkerId::new("w2"));
    let tool = bench.script.call("slow").await;
    assert_eq!(
        *bench.script.offered.lock(),
        [Some(first), Some(second.clone())]
    );
    assert_eq!(
        journaled(&bench, &alice, 1).await[0].entry.worker,
        Some(second)
    );
    tool.finish("{}").await;
    assert_eq!(read_all(&mut stream).await.events.len(), 1);
}

/// The first owner's plan allowed the call, and the second's refuses it.
#[tokio::test]
async fn a_plan_that_refuses_a_repetition_hides_no_call_that_runs() {
    let bench = Bench::new(held_for(LONG));
    let next = two_nodes(&bench).await;
    let alice = bench.open("alice", "2025-11-25").await;
    let post = bound(1, "slow");
    let first = deliver(&bench.sessions, &alice, post.clone());
    let tool = bench.script.call("slow").await;
    let lost = NodeId::new("test");
    bench.store.directory.end_lease(&lost).await.unwrap();
    *bench.script.denies.lock() = Some(unknown_tool());
    let repeated = deliver(&next, &alice, again(&post));
    until(|| tool.reads() == 2).await;
    tool.finish("{}").await;
    let answer = text(within(repeated).await.unwrap());
    assert!(answer.contains("result"), "{answer}");
    assert_eq!(starts(&bench, "slow"), 1);
    first.abort();
}

/// The worker refuses the call by itself (`refused`), or because the owner only attaches to it.
#[tokio::test]
async fn a_plan_that_refuses_a_repetition_counts_once_the_worker_has_refused_the_call() {
    for hold in [LONG, Duration::ZERO] {
        for refused in [false, true] {
            let bench = Bench::new(held_for(hold));
            bench.script.starts_unknown.store(true, SeqCst);
            bench.script.replans.store(true, SeqCst);
            *bench.script.refuses.lock() = refused.then(|| WorkerId::new("w"));
            *bench.script.denies.lock() = Some(unknown_tool());
            let alice = bench.open("alice", "2025-11-25").await;
            let repeated = again(&bound(1, "echo"));
            let told = match bench.sessions.deliver(&alice, repeated).await {
                Ok(Delivered::Stream(mut stream)) => read_all(&mut stream).await.texts.remove(0),
                answer => text(answer),
            };
            assert!(told.contains("-32602"), "{told}");
            assert_eq!(starts(&bench, "echo"), 0);
        }
    }
}

#[tokio::test]
async fn a_plan_that_refuses_a_repetition_does_not_say_what_a_lost_worker_did() {
    let bench = Bench::new(held_for(LONG));
    *bench.script.denies.lock() = Some(unknown_tool());
    let alice = bench.open("alice", "2025-11-25").await;
    let repeated = again(&bound(1, "echo"));
    bench.script.forgotten.lock().push(repeated.delivery.into());
    let told = text(bench.sessions.deliver(&alice, repeated).await);
    assert!(told.contains("50002"), "{told}");
}

/// The owner leaves the decision to the edge, because only the edge knows whether it sent another delivery.
#[tokio::test]
async fn an_owner_whose_plan_disagrees_with_the_binding_starts_nothing() {
    let bench = Bench::new(held_for(LONG));
    bench.script.starts_unknown.store(true, SeqCst);
    let reason = "its worker is in another pool".to_owned();
    let elsewhere = CallFailure::WorkerAway { reason };
    *bench.script.denies.lock() = Some(CallOutcome::Failed(elsewhere));
    let alice = bench.open("alice", "2025-11-25").await;
    let post = bound(1, "echo");
    let told = bench.sessions.deliver(&alice, post.clone()).await;
    assert!(
        matches!(told, Err(GatewayError::WorkerAway { .. })),
        "{told:?}"
    );
    let told = text(bench.sessions.deliver(&alice, again(&post)).await);
    assert!(told.contains("50301"), "{told}");
    assert_eq!(starts(&bench, "echo"), 0);
    assert_eq!(bench.sessions.status().in_flight, 0);
}

/// The worker may have the call from another delivery, so no other worker may get it.
#[tokio::test]
async fn an_owner_that_cannot_reach_the_worker_binds_nothing_anew() {
    for starts in [true, false] {
        let bench = Bench::new(held_for(LONG));
        bench.script.replans.store(true, SeqCst);
        let away = Some(WorkerId::new("w"));
        match starts {
            true => (*bench.script.left.lock()).clone_from(&away),
            false => (*bench.script.alone.lock()).clone_from(&away),
        }
        let alice = bench.open("alice", "2025-11-25").await;
        let told = bench.sessions.deliver(&alice, bound(1, "slow")).await;
        assert!(
            matches!(told, Err(GatewayError::WorkerAway { .. })),
            "{told:?}"
        );
        let offered = std::mem::take(&mut *bench.script.offered.lock());
        assert_eq!(offered.len(), usize::from(starts), "{offered:?}");
        assert!(journaled(&bench, &alice, 1).await.is_empty());
        assert_eq!(bench.sessions.status().in_flight, 0);
    }
}

#[tokio::test]
async fn a_first_delivery_that_comes_late_does_not_run_again() {
    let bench = Bench::new(held_for(LONG));
    bench.script.replans.store(true, SeqCst);
    bench.script.starts_unknown.store(true, SeqCst);
    let alice = bench.open("alice", "2025-11-25").await;
    let late = bound(1, "echo");
    let repeated = bench.sessions.deliver(&alice, again(&late)).await;
    assert!(text(repeated).contains("result"));
    *bench.script.left.lock() = Some(WorkerId::new("w"));
    let told = bench.sessions.deliver(&alice, late).await;
    assert!(
        matches!(told, Err(GatewayError::WorkerAway { .. })),
        "{told:?}"
    );
    assert_eq!(starts(&bench, "echo"), 1);
}

#[tokio::test]
async fn a_call_that_was_journaled_first_is_bound_anew_by_its_owner() {
    let bench = Bench::new(held_for(Duration::ZERO));
    bench.script.replans.store(true, SeqCst);
    *bench.script.left.lock() = Some(WorkerId::new("w"));
    let alice = bench.open("alice", "2025-11-25").await;
    let delivered = bench.sessions.deliver(&alice, bound(1, "echo")).await;
    let Ok(Delivered::Stream(mut stream)) = delivered else {
        panic!("{delivered:?}");
    };
    let told = read_all(&mut stream).await;
    assert!(told.events[0].1.contains("result"), "{told:?}");
    assert_eq!(starts(&bench, "echo"), 1);
}

#[tokio::test]
async fn what_a_worker_refuses_or_has_forgotten_is_looked_for_in_the_log() {
    for refused in [true, false] {
        let bench = Bench::new(held_for(LONG));
        let alice = bench.open("alice", "2025-11-25").await;
        let late = bound(1, "speaks");
        let mut stream = match refused {
            true => refused_by_the_first(&bench, &alice, late.clone()).await,
            false => {
                let delivering = deliver(&bench.sessions, &alice, late.clone());
                bench.script.call("speaks").await.progress(1).await;
                let Ok(Delivered::Stream(stream)) = within(delivering).await.unwrap() else {
                    panic!("a stream");
                };
                bench.script.forgotten.lock().push(late.delivery.into());
                stream
            }
        };
        let tool = bench.script.call("speaks").await;
        tool.finish(r#"{"once":1}"#).await;
        let told = read_all(&mut stream).await;
        bench.script.replans.store(false, SeqCst);
        for post in [again(&late), late] {
            let found = within(bench.sessions.deliver(&alice, post)).await;
            let Ok(Delivered::Stream(mut found)) = found else {
                panic!("{found:?}");
            };
            assert_eq!(read_all(&mut found).await.texts, told.texts);
        }
        assert_eq!(starts(&bench, "speaks"), 1);
    }
}

#[tokio::test]
async fn a_repetition_costs_the_store_nothing() {
    let (bench, journal) = flaky(held_for(LONG));
    bench.script.starts_unknown.store(true, SeqCst);
    let alice = bench.open("alice", "2025-11-25").await;
    let again = again(&bound(1, "echo"));
    let answer = bench.sessions.deliver(&alice, again).await;
    assert!(text(answer).contains("result"));
    assert_eq!(journal.looks.load(SeqCst), 0);
}

#[tokio::test]
async fn a_call_that_spoke_while_the_store_was_away_is_answered_when_it_ends() {
    let (bench, journal) = flaky(SessionConfig {
        begin_patience: Duration::from_millis(20),
        ..held_for(LONG)
    });
    let alice = bench.open("alice", "2025-11-25").await;
    journal.says(Some(away()));
    let delivering = deliver(&bench.sessions, &alice, bound(1, "speaks"));
    let tool = bench.script.call("speaks").await;
    tool.progress(1).await;
    tool.progress(2).await;
    tool.finish("{}").await;
    assert!(text(within(delivering).await.unwrap()).contains(r#""id":1"#));
}

#[tokio::test]
async fn a_held_call_ends_with_a_session_that_the_store_has_lost() {
    let bench = Bench::new(held_for(LONG));
    let alice = bench.open("alice", "2025-11-25").await;
    let delivering = deliver(&bench.sessions, &alice, bound(1, "speaks"));
    let tool = bench.script.call("speaks").await;
    let removed = bench.store.directory.remove(&alice.session, Epoch(1)).await;
    assert_eq!(removed, Ok(()));
    tool.progress(1).await;
    let told = text(within(delivering).await.unwrap());
    assert!(told.contains("50410"), "{told}");
    until(|| tool.cancelled.borrow().is_some()).await;
    assert_eq!(bench.sessions.status().in_flight, 0);
}

#[tokio::test]
async fn a_cancellation_that_overtakes_its_redelivery_stops_the_call() {
    let bench = Bench::new(held_for(LONG));
    let next = two_nodes(&bench).await;
    let alice = bench.open("alice", "2025-11-25").await;
    let post = bound(7, "slow");
    hang_up(&bench, &alice, post.clone(), "slow").await;
    let tool = bench.script.call("slow").await;
    let lost = NodeId::new("test");
    bench.store.directory.end_lease(&lost).await.unwrap();
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
    let cancelled = next.deliver(&alice, crate::support::post(cancel)).await;
    assert!(
        matches!(cancelled, Ok(Delivered::Accepted)),
        "{cancelled:?}"
    );
    assert!(tool.cancelled.borrow().is_none());
    let repeated = deliver(&next, &alice, again(&post));
    until(|| tool.cancelled.borrow().is_some()).await;
    tool.finish("{}").await;
    within(repeated).await.unwrap().unwrap();
    let mut fresh = deliver(&next, &alice, bound(7, "other"));
    let other = bench.script.call("other").await;
    assert!(other.cancelled.borrow().is_none());
    other.finish("{}").await;
    within(&mut fresh).await.unwrap().unwrap();
}

/// The worker does not know the call, so the delivery must neither start it nor bind it to another worker.
#[tokio::test]
async fn a_redelivery_that_was_cancelled_before_is_never_started() {
    for refused in [false, true] {
        let bench = Bench::new(held_for(LONG));
        bench.script.starts_unknown.store(true, SeqCst);
        bench.script.replans.store(true, SeqCst);
        *bench.script.refuses.lock() = refused.then(|| WorkerId::new("w"));
        let alice = bench.open("alice", "2025-11-25").await;
        let cancel =
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
        bench.post(&alice, cancel).await;
        let repeated = bench
            .sessions
            .deliver(&alice, again(&bound(7, "echo")))
            .await;
        let told = text(repeated);
        assert!(told.contains("-32800"), "{told}");
        assert_eq!(starts(&bench, "echo"), 0);
    }
}

#[tokio::test]
async fn a_result_is_acknowledged_once_it_is_in_the_log() {
    let bench = Bench::new(held_for(LONG));
    let alice = bench.open("alice", "2025-11-25").await;
    let short = bench.sessions.deliver(&alice, bound(1, "echo")).await;
    assert!(text(short).contains("result"));
    let post = bound(2, "speaks");
    let delivering = deliver(&bench.sessions, &alice, post.clone());
    let tool = bench.script.call("speaks").await;
    tool.progress(1).await;
    let Ok(Delivered::Stream(mut stream)) = within(delivering).await.unwrap() else {
        panic!("a stream");
    };
    assert!(bench.script.acknowledged.lock().is_empty());
    tool.finish("{}").await;
    assert_eq!(read_all(&mut stream).await.events.len(), 2);
    until(|| !bench.script.acknowledged.lock().is_empty()).await;
    assert_eq!(
        *bench.script.acknowledged.lock(),
        [(WorkerId::new("w"), post.delivery.into())]
    );
}

#[tokio::test]
async fn a_repetition_meets_no_limit_of_new_calls() {
    let bench = Bench::new(SessionConfig {
        limits: NodeLimits {
            calls_per_session: 1,
            ..NodeLimits::default()
        },
        ..held_for(LONG)
    });
    bench.script.starts_unknown.store(true, SeqCst);
    let alice = bench.open("alice", "2025-11-25").await;
    let running = deliver(&bench.sessions, &alice, bound(1, "slow"));
    let tool = bench.script.call("slow").await;
    let new = bench.sessions.deliver(&alice, bound(2, "echo")).await;
    assert!(
        matches!(new, Err(GatewayError::Overloaded { .. })),
        "{new:?}"
    );
    let repeated = bench
        .sessions
        .deliver(&alice, again(&bound(3, "echo")))
        .await;
    assert!(text(repeated).contains("result"));
    tool.finish("{}").await;
    within(running).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_call_whose_start_outlasts_the_hold_does_not_wait_for_the_store() {
    let (bench, journal) = flaky(held_for(Duration::from_millis(1)));
    let alice = bench.open("alice", "2025-11-25").await;
    journal.says(Some(away()));
    bench.script.late.send_replace(true);
    let delivering = deliver(&bench.sessions, &alice, bound(1, "long"));
    let tool = bench.script.call("long").await;
    until(|| journal.begins.load(SeqCst) > 0).await;
    bench.script.late.send_replace(false);
    tool.finish("{}").await;
    assert!(text(within(delivering).await.unwrap()).contains(r#""id":1"#));
}

#[tokio::test]
async fn a_full_store_takes_what_a_call_that_runs_has_said_and_admits_nothing() {
    let (bench, journal) = flaky(held_for(LONG));
    let alice = bench.open("alice", "2025-11-25").await;
    journal.full.store(true, SeqCst);
    let delivering = deliver(&bench.sessions, &alice, bound(1, "speaks"));
    let tool = bench.script.call("speaks").await;
    tool.progress(1).await;
    tool.progress(2).await;
    tool.finish("{}").await;
    let mut stream = match within(delivering).await.unwrap() {
        Ok(Delivered::Stream(stream)) => stream,
        instead => panic!("what it said is dropped: {instead:?}"),
    };
    assert_eq!(read_all(&mut stream).await.events.len(), 3);

    let refused = bench.sessions.deliver(&alice, bound(2, "echo")).await;
    let told = matches!(refused, Err(GatewayError::Overloaded { .. }));
    assert!(told, "{refused:?}");
    assert_eq!(starts(&bench, "echo"), 0);

    journal.full.store(false, SeqCst);
    let admitted = bench.sessions.deliver(&alice, bound(3, "echo")).await;
    assert!(matches!(admitted, Ok(Delivered::Stream(_))), "{admitted:?}");
    let begins = journal.begins.load(SeqCst);
    let held = bench.sessions.deliver(&alice, bound(4, "echo")).await;
    assert!(text(held).contains("result"));
    assert_eq!(
        journal.begins.load(SeqCst),
        begins,
        "nothing is asked any more"
    );
}

#[tokio::test]
async fn a_full_store_takes_nothing_of_a_call_that_may_be_repeated() {
    let (bench, journal) = flaky(held_for(LONG));
    let alice = bench.open("alice", "2025-11-25").await;
    journal.full.store(true, SeqCst);
    let delivering = deliver(&bench.sessions, &alice, post(&call(1, "speaks")));
    let tool = bench.script.call("speaks").await;
    tool.progress(1).await;
    let refused = within(delivering).await.unwrap();
    let told = matches!(refused, Err(GatewayError::Overloaded { .. }));
    assert!(told, "{refused:?}");
}

/// Such an error comes from a former master, one that loads its data, or one without enough replicas.
#[tokio::test]
async fn a_store_that_refuses_for_a_while_is_waited_for_with_all_that_was_said() {
    let (bench, journal) = flaky(held_for(LONG));
    let alice = bench.open("alice", "2025-11-25").await;
    let reason = "READONLY You can't write against a read only replica.";
    journal.says(Some(StoreError::Unavailable(reason.to_owned())));
    let delivering = deliver(&bench.sessions, &alice, bound(1, "speaks"));
    let tool = bench.script.call("speaks").await;
    tool.progress(1).await;
    tool.progress(2).await;
    tool.finish("{}").await;
    until(|| journal.begins.load(SeqCst) > 2).await;
    journal.says(None);
    let mut stream = match within(delivering).await.unwrap() {
        Ok(Delivered::Stream(stream)) => stream,
        instead => panic!("what it said is dropped: {instead:?}"),
    };
    assert_eq!(read_all(&mut stream).await.events.len(), 3);
}
