use std::sync::Arc;
use std::time::Duration;

use shoal_ports::{
    AskId, CallEventKind, Delivered, EventStream, GatewayError, NodeId, SessionGateway, SessionRef,
    SessionSettings, StateRequest, Store,
};
use shoal_protocol::{Outcome, RawJson};
use shoal_session::{SessionConfig, Sessions};
use tokio::time::Instant;

use crate::support::{Bench, Driven, Fate, call, post, read, read_all, within};

const LONG: Duration = Duration::from_secs(60);

async fn two_nodes() -> (Bench, Sessions, SessionRef) {
    let bench = Bench::new(SessionConfig::default());
    for node in ["test", "b"] {
        lease(&bench.store, node).await;
    }
    let second = bench.another_node("b");
    let alice = bench.open("alice", "2025-11-25").await;
    (bench, second, alice)
}

async fn lease(store: &Store, node: &str) {
    let renewed = store.directory.renew_lease(&NodeId::new(node), LONG).await;
    renewed.unwrap();
}

async fn lose_lease(store: &Store) {
    let ended = store.directory.end_lease(&NodeId::new("test")).await;
    ended.unwrap();
}

fn set(key: &str, value: &str) -> StateRequest {
    StateRequest::set(key, Some(RawJson::of(value)))
}

async fn ask(tool: &Driven, ask: u64, request: StateRequest) {
    let ask = AskId(ask);
    tool.send(CallEventKind::State { ask, request }).await;
}

async fn asked(tool: &Driven, number: u64, request: StateRequest) -> Outcome {
    ask(tool, number, request).await;
    tool.answer_to(AskId(number)).await
}

async fn read_value(tool: &Driven, number: u64, key: &str) -> String {
    let key = key.to_owned();
    text(asked(tool, number, StateRequest::Get { key }).await)
}

fn text(outcome: Outcome) -> String {
    match outcome {
        Outcome::Result(result) => result.as_str().to_owned(),
        Outcome::Error(error) => panic!("{error}"),
    }
}

async fn begin(
    bench: &Bench,
    sessions: &Sessions,
    to: &SessionRef,
    id: u64,
    tool: &str,
) -> (
    Arc<Driven>,
    tokio::task::JoinHandle<Result<Delivered, GatewayError>>,
) {
    let (sessions, to, text) = (sessions.clone(), to.clone(), call(id, tool));
    let delivering = tokio::spawn(async move { sessions.deliver(&to, post(&text)).await });
    (bench.script.call(tool).await, delivering)
}

fn stream_of(delivered: Delivered) -> EventStream {
    match delivered {
        Delivered::Stream(stream) => stream,
        other => panic!("expected a stream, got {other:?}"),
    }
}

#[tokio::test]
async fn calls_of_one_session_see_what_the_others_keep_and_their_clients_see_nothing() {
    let (bench, _, alice) = two_nodes().await;
    let mut stream = bench.stream(&alice, 1, "stream-a").await;
    let (writer, reader) = {
        bench.stream(&alice, 2, "stream-b").await;
        let script = &bench.script;
        (script.call("stream-a").await, script.call("stream-b").await)
    };
    assert_eq!(text(asked(&writer, 1, set("k", "v")).await), "{}");
    assert_eq!(read_value(&reader, 1, "k").await, r#"{"value":"v"}"#);
    writer.finish("{}").await;
    let seen = read_all(&mut stream).await;
    assert_eq!(seen.events.len(), 1, "only the answer: {seen:?}");
    let bob = bench.open("bob", "2025-11-25").await;
    bench.stream(&bob, 1, "stream-c").await;
    let other = bench.script.call("stream-c").await;
    assert_eq!(read_value(&other, 1, "k").await, "{}");
}

#[tokio::test]
async fn a_call_that_is_safe_to_repeat_keeps_state_without_a_journal() {
    let (bench, second, alice) = two_nodes().await;
    let (tool, answering) = begin(&bench, &bench.sessions, &alice, 1, "keeps").await;
    assert_eq!(text(asked(&tool, 1, set("k", "v")).await), "{}");
    assert_eq!(read_value(&tool, 2, "k").await, r#"{"value":"v"}"#);
    tool.finish(r#"{"content":[]}"#).await;
    let answer = answering.await.unwrap().unwrap();
    assert!(matches!(answer, Delivered::Json(_)), "{answer:?}");

    lose_lease(&bench.store).await;
    let (tool, _answering) = begin(&bench, &second, &alice, 2, "reads").await;
    assert_eq!(read_value(&tool, 1, "k").await, r#"{"value":"v"}"#);
}

#[tokio::test]
async fn a_call_that_keeps_state_and_then_speaks_becomes_a_stream() {
    let (bench, _, alice) = two_nodes().await;
    let (tool, answering) = begin(&bench, &bench.sessions, &alice, 1, "speaks").await;
    asked(&tool, 1, set("k", "v")).await;
    tool.progress(1).await;
    let mut stream = stream_of(answering.await.unwrap().unwrap());
    assert_eq!(read(&mut stream, 1).await.events.len(), 1);
    assert_eq!(read_value(&tool, 2, "k").await, r#"{"value":"v"}"#);
    tool.finish("{}").await;
    assert_eq!(read_all(&mut stream).await.events.len(), 1);
}

#[tokio::test]
async fn a_call_whose_connection_is_gone_is_answered_all_the_same() {
    let (bench, _, alice) = two_nodes().await;
    let (tool, answering) = begin(&bench, &bench.sessions, &alice, 1, "keeps").await;
    asked(&tool, 1, set("k", "v")).await;
    answering.abort();
    assert!(answering.await.unwrap_err().is_cancelled());
    assert_eq!(read_value(&tool, 2, "k").await, r#"{"value":"v"}"#);
}

#[tokio::test]
async fn a_writing_that_a_new_owner_reads_again_overwrites_nothing() {
    let (bench, second, alice) = two_nodes().await;
    let before = bench.stream(&alice, 1, "stream-first").await;
    let first = bench.script.call("stream-first").await;
    let writing = set("k", "first");
    assert_eq!(text(asked(&first, 1, writing).await), "{}");
    bench.stream(&alice, 2, "stream-second").await;
    let other = bench.script.call("stream-second").await;
    assert_eq!(text(asked(&other, 1, set("k", "second")).await), "{}");
    first.answers.lock().clear();
    lose_lease(&bench.store).await;

    second.listen(&alice, Some(before.cursor)).await.unwrap();
    assert_eq!(text(first.answer_to(AskId(1)).await), "{}", "asked again");
    let value = read_value(&first, 2, "k").await;
    assert_eq!(value, r#"{"value":"second"}"#);
    assert_eq!(text(asked(&first, 3, set("k", "third")).await), "{}");
    assert_eq!(read_value(&first, 4, "k").await, r#"{"value":"third"}"#);
}

#[tokio::test]
async fn a_stale_owner_keeps_nothing_and_answers_nothing() {
    let (bench, second, alice) = two_nodes().await;
    let (tool, answering) = begin(&bench, &bench.sessions, &alice, 1, "keeps").await;
    lose_lease(&bench.store).await;
    second
        .deliver(&alice, post(&call(2, "echo")))
        .await
        .unwrap();
    ask(&tool, 1, set("k", "stale")).await;
    let moved = answering.await.unwrap().unwrap_err();
    assert!(matches!(moved, GatewayError::Unreachable { .. }), "{moved}");
    assert!(tool.answers.lock().is_empty());
    assert!(tool.cancelled.borrow().is_some(), "the first run is over");
    let (reader, _answering) = begin(&bench, &second, &alice, 3, "reads").await;
    assert_eq!(read_value(&reader, 1, "k").await, "{}");
}

#[tokio::test]
async fn a_store_that_is_away_keeps_nothing_and_says_so() {
    let config = SessionConfig {
        begin_patience: Duration::ZERO,
        ..SessionConfig::default()
    };
    let (bench, saves) = Bench::with_fate(config);
    let alice = bench.open("alice", "2025-11-25").await;
    bench.stream(&alice, 1, "stream").await;
    let tool = bench.script.call("stream").await;
    assert_eq!(text(asked(&tool, 1, set("k", "old")).await), "{}");
    for (number, fate, expected) in [
        (2, Fate::Away, r#"{"kept":false}"#),
        (4, Fate::Unconfirmed, r#"{"kept":null}"#),
        (6, Fate::Full, r#"{"kept":false}"#),
    ] {
        *saves.lock() = fate;
        let Outcome::Error(error) = asked(&tool, number, set("k", "new")).await else {
            panic!("{fate:?} was not told")
        };
        let data = error.data.as_ref().map(RawJson::as_str);
        assert_eq!(data, Some(expected), "{error}");
        let value = read_value(&tool, number + 1, "k").await;
        assert_eq!(value, r#"{"value":"old"}"#);
    }
    *saves.lock() = Fate::Works;
    assert_eq!(text(asked(&tool, 8, set("k", "new")).await), "{}");
    assert_eq!(read_value(&tool, 9, "k").await, r#"{"value":"new"}"#);
}

#[tokio::test]
async fn a_store_that_is_away_for_a_moment_is_waited_for() {
    let config = SessionConfig {
        begin_patience: LONG,
        ..SessionConfig::default()
    };
    let (bench, saves) = Bench::with_fate(config);
    let alice = bench.open("alice", "2025-11-25").await;
    bench.stream(&alice, 1, "stream").await;
    let tool = bench.script.call("stream").await;
    *saves.lock() = Fate::Unconfirmed;
    ask(&tool, 1, set("k", "v")).await;
    while *saves.lock() != Fate::Seen {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(tool.answers.lock().is_empty());
    *saves.lock() = Fate::Works;
    assert_eq!(text(tool.answer_to(AskId(1)).await), "{}");
}

#[tokio::test]
async fn sleeping_sessions_and_those_handed_over_keep_it() {
    let config = SessionConfig {
        session: SessionSettings {
            passivate_after: Duration::ZERO.into(),
            sweep_every: Duration::from_millis(5).into(),
            ..SessionSettings::default()
        },
        ..SessionConfig::default()
    };
    let bench = Bench::new(config);
    for node in ["test", "b"] {
        lease(&bench.store, node).await;
    }
    let second = bench.another_node("b");
    let alice = bench.open("alice", "2025-11-25").await;
    let (tool, answering) = begin(&bench, &bench.sessions, &alice, 1, "keeps").await;
    asked(&tool, 1, set("k", "v")).await;
    tool.finish("{}").await;
    answering.await.unwrap().unwrap();
    let asleep = async {
        while bench.sessions.status().passive == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    within(asleep).await;
    let (tool, answering) = begin(&bench, &bench.sessions, &alice, 2, "reads").await;
    assert_eq!(read_value(&tool, 1, "k").await, r#"{"value":"v"}"#);
    asked(&tool, 2, set("k", "w")).await;
    tool.finish("{}").await;
    answering.await.unwrap().unwrap();

    bench.sessions.hand_over().await;
    let asked_for = bench.sessions.deliver(&alice, post(&call(3, "echo"))).await;
    assert!(asked_for.is_err());
    let (tool, _answering) = begin(&bench, &second, &alice, 4, "reads-again").await;
    assert_eq!(read_value(&tool, 1, "k").await, r#"{"value":"w"}"#);
}

#[tokio::test]
async fn the_next_write_of_the_record_holds_what_the_store_has_lost() {
    let (bench, saves) = Bench::with_fate(SessionConfig::default());
    for node in ["test", "b"] {
        lease(&bench.store, node).await;
    }
    let second = bench.another_node("b");
    let alice = bench.open("alice", "2025-11-25").await;
    for (id, key, fate) in [(1, "lost", Fate::Lost), (2, "next", Fate::Works)] {
        *saves.lock() = fate;
        let (tool, answering) = begin(&bench, &bench.sessions, &alice, id, key).await;
        assert_eq!(text(asked(&tool, 1, set(key, "v")).await), "{}");
        tool.finish("{}").await;
        answering.await.unwrap().unwrap();
    }
    lose_lease(&bench.store).await;
    let (reader, _answering) = begin(&bench, &second, &alice, 3, "reads").await;
    assert_eq!(read_value(&reader, 1, "lost").await, r#"{"value":"v"}"#);
}

#[tokio::test]
async fn a_session_is_handed_over_to_a_store_that_was_away_for_a_moment() {
    let config = SessionConfig {
        begin_patience: LONG,
        ..SessionConfig::default()
    };
    let (bench, saves) = Bench::with_fate(config);
    for node in ["test", "b"] {
        lease(&bench.store, node).await;
    }
    let second = bench.another_node("b");
    let alice = bench.open("alice", "2025-11-25").await;
    *saves.lock() = Fate::Lost;
    let (tool, answering) = begin(&bench, &bench.sessions, &alice, 1, "keeps").await;
    assert_eq!(text(asked(&tool, 1, set("k", "v")).await), "{}");
    tool.finish("{}").await;
    answering.await.unwrap().unwrap();

    *saves.lock() = Fate::Unconfirmed;
    let back = async {
        while *saves.lock() != Fate::Seen {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        *saves.lock() = Fate::Works;
    };
    within(async { tokio::join!(bench.sessions.hand_over(), back) }).await;
    lose_lease(&bench.store).await;
    let (reader, _answering) = begin(&bench, &second, &alice, 2, "reads").await;
    assert_eq!(read_value(&reader, 1, "k").await, r#"{"value":"v"}"#);
}

#[tokio::test(start_paused = true)]
async fn sessions_that_leave_together_wait_for_the_store_once() {
    let config = SessionConfig {
        begin_patience: LONG,
        ..SessionConfig::default()
    };
    let (bench, saves) = Bench::with_fate(config);
    for _ in 0..200 {
        bench.open("alice", "2025-11-25").await;
    }
    *saves.lock() = Fate::Away;
    let began = Instant::now();
    let handed_over = bench.sessions.hand_over().await;
    assert_eq!(handed_over.sessions, 200);
    let took = began.elapsed();
    assert!((LONG..2 * LONG).contains(&took), "{took:?}");
}

#[tokio::test]
async fn an_owner_that_is_gone_writes_nothing_again() {
    let (bench, saves) = Bench::with_fate(SessionConfig::default());
    for node in ["test", "b"] {
        lease(&bench.store, node).await;
    }
    let second = bench.another_node("b");
    let alice = bench.open("alice", "2025-11-25").await;
    let (tool, answering) = begin(&bench, &bench.sessions, &alice, 1, "keeps").await;
    assert_eq!(text(asked(&tool, 1, set("k", "old")).await), "{}");
    *saves.lock() = Fate::Lost;
    assert_eq!(text(asked(&tool, 2, set("k", "new")).await), "{}");
    tool.finish("{}").await;
    answering.await.unwrap().unwrap();
    *saves.lock() = Fate::Works;
    lose_lease(&bench.store).await;
    let (reader, _answering) = begin(&bench, &second, &alice, 2, "reads").await;
    assert_eq!(read_value(&reader, 1, "k").await, r#"{"value":"old"}"#);
}

#[tokio::test]
async fn writings_of_calls_at_the_same_time_are_all_kept() {
    let (bench, second, alice) = two_nodes().await;
    let mut tools = Vec::new();
    let mut cursor = None;
    for id in 1..=8 {
        let name = format!("stream-{id}");
        cursor = Some(bench.stream(&alice, id, &name).await.cursor);
        tools.push(bench.script.call(&name).await);
    }
    let writing = tools.iter().enumerate().map(|(at, tool)| async move {
        for number in 1..=5 {
            let key = format!("{at}-{number}");
            assert_eq!(text(asked(tool, number, set(&key, "v")).await), "{}");
        }
    });
    futures::future::join_all(writing).await;
    lose_lease(&bench.store).await;
    second.listen(&alice, cursor).await.unwrap();
    let keys = text(asked(&tools[0], 6, StateRequest::Keys).await);
    let keys: serde_json::Value = serde_json::from_str(&keys).unwrap();
    assert_eq!(keys["keys"].as_array().unwrap().len(), 40);
}
