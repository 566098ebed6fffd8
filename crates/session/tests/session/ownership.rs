use std::sync::atomic::Ordering;
use std::time::Duration;

use shoal_ports::{
    AskId, CallEventKind, Delivered, Epoch, EventStream, GatewayError, NodeId, SessionGateway,
    SessionId, SessionRef, SessionSettings, Store,
};
use shoal_protocol::{Method, Outcome, RawJson};
use shoal_session::{SessionConfig, Sessions};

use crate::support::{Bench, bound, call, post, read, read_all, within};

const LONG: Duration = Duration::from_secs(60);

async fn two_nodes() -> (Bench, Sessions) {
    let bench = Bench::new(SessionConfig::default());
    lease(&bench.store, "test").await;
    lease(&bench.store, "b").await;
    let second = bench.another_node("b");
    (bench, second)
}

async fn lease(store: &Store, node: &str) {
    let renewed = store.directory.renew_lease(&NodeId::new(node), LONG).await;
    renewed.unwrap();
}

async fn lose_lease(store: &Store) {
    store
        .directory
        .end_lease(&NodeId::new("test"))
        .await
        .unwrap();
}

fn stream_of(delivered: Delivered) -> EventStream {
    match delivered {
        Delivered::Stream(stream) => stream,
        other => panic!("expected a stream, got {other:?}"),
    }
}

async fn initialized(bench: &Bench) -> SessionRef {
    bench.open("alice", "2025-11-25").await
}

#[tokio::test]
async fn a_session_of_a_live_owner_is_not_taken() {
    let (bench, second) = two_nodes().await;
    let alice = initialized(&bench).await;
    let refused = second.deliver(&alice, post(&call(1, "echo"))).await;
    let owner = Some(NodeId::new("test"));
    assert_eq!(refused.unwrap_err(), GatewayError::Moved { owner });
}

#[tokio::test]
async fn who_is_asked_by_a_hint_alone_claims_nothing() {
    let (bench, second) = two_nodes().await;
    let alice = initialized(&bench).await;
    assert_eq!(alice.session.hint(), Some(NodeId::new("test").tag()));
    lose_lease(&bench.store).await;
    let unknown = SessionRef::new(SessionId::random(), alice.principal.clone());
    for to in [alice.by_hint(), unknown.by_hint()] {
        let delivered = second.deliver(&to, post(&call(1, "echo"))).await;
        let listened = second.listen(&to, None).await;
        let closed = second.close(&to).await;
        let refused = [delivered.err(), listened.err(), closed.err()];
        assert_eq!(
            refused,
            [const { Some(GatewayError::Moved { owner: None }) }; 3]
        );
    }
    assert_eq!(second.status().taken_over, 0);
    let here = &bench.sessions;
    let delivered = here.deliver(&alice.by_hint(), post(&call(1, "echo"))).await;
    assert!(delivered.is_ok(), "who holds it answers: {delivered:?}");
}

#[tokio::test]
async fn a_running_call_outlives_the_node_it_came_in_on() {
    let (bench, second) = two_nodes().await;
    let alice = initialized(&bench).await;
    let mut before = bench.stream(&alice, 1, "stream-long").await;
    let tool = bench.script.call("stream-long").await;
    tool.progress(1).await;
    let seen = read(&mut before, 1).await;
    lose_lease(&bench.store).await;

    let mut after = second.listen(&alice, Some(seen.cursor())).await.unwrap();
    tool.progress(2).await;
    tool.finish(r#"{"content":[]}"#).await;
    let rest = read_all(&mut after).await;
    let texts: Vec<_> = rest.events.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(texts[0].contains(r#""progress":2"#), "{texts:?}");
    assert!(texts[1].contains(r#""id":1"#), "{texts:?}");
    assert_eq!(second.status().taken_over, 1);
    assert_eq!(second.status().resumed_calls, 1);
    assert_eq!(bench.script.started.load(Ordering::SeqCst), 1, "once");
    assert!(tool.cancelled.borrow().is_none());
}

#[tokio::test]
async fn a_former_owner_that_comes_back_tells_its_readers_to_go_on_elsewhere() {
    let (bench, second) = two_nodes().await;
    let alice = initialized(&bench).await;
    let mut before = bench.stream(&alice, 1, "stream-long").await;
    let tool = bench.script.call("stream-long").await;
    lose_lease(&bench.store).await;
    let mut after = second.listen(&alice, Some(before.cursor)).await.unwrap();
    lease(&bench.store, "test").await;
    bench.sessions.revalidate().await.unwrap();

    assert!(read_all(&mut before).await.moved);
    assert_eq!(bench.sessions.status().lost, 1);
    let refused = bench.sessions.deliver(&alice, post(&call(2, "echo"))).await;
    let owner = Some(NodeId::new("b"));
    assert_eq!(refused.unwrap_err(), GatewayError::Moved { owner });
    tool.finish("{}").await;
    assert_eq!(read_all(&mut after).await.events.len(), 1);
}

#[tokio::test]
async fn a_stale_owner_finds_out_by_writing() {
    let (bench, second) = two_nodes().await;
    let alice = initialized(&bench).await;
    lose_lease(&bench.store).await;
    second
        .deliver(&alice, post(&call(1, "echo")))
        .await
        .unwrap();
    lease(&bench.store, "test").await;
    let refused = bench
        .sessions
        .deliver(&alice, post(&call(2, "stream")))
        .await;
    assert!(
        matches!(refused, Err(GatewayError::Moved { .. })),
        "{refused:?}"
    );
    assert_eq!(
        bench.script.started.load(Ordering::SeqCst),
        0,
        "nothing ran"
    );
}

#[tokio::test]
async fn a_question_put_by_one_owner_is_answered_through_the_next() {
    let (bench, second) = two_nodes().await;
    let alice = initialized(&bench).await;
    let mut before = bench.stream(&alice, 1, "stream-asks").await;
    let tool = bench.script.call("stream-asks").await;
    tool.send(CallEventKind::Ask {
        ask: AskId(7),
        method: Method::RootsList,
        params: None,
    })
    .await;
    let (_, question) = read(&mut before, 1).await.events.remove(0);
    let question: serde_json::Value = serde_json::from_str(&question).unwrap();
    lose_lease(&bench.store).await;

    let answer = serde_json::json!({"jsonrpc":"2.0","id":question["id"],"result":{"roots":[]}});
    let accepted = second.deliver(&alice, post(&answer.to_string())).await;
    assert!(matches!(accepted, Ok(Delivered::Accepted)), "{accepted:?}");
    let answers = tool.answers.lock();
    let [(AskId(7), Outcome::Result(result))] = &answers[..] else {
        panic!("{answers:?}")
    };
    assert_eq!(result.as_str(), r#"{"roots":[]}"#);
}

#[tokio::test]
async fn a_call_is_cancelled_through_the_next_owner() {
    let (bench, second) = two_nodes().await;
    let alice = initialized(&bench).await;
    bench.stream(&alice, 1, "stream-long").await;
    let tool = bench.script.call("stream-long").await;
    lose_lease(&bench.store).await;
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"enough"}}"#;
    second.deliver(&alice, post(cancel)).await.unwrap();
    let mut cancelled = tool.cancelled.subscribe();
    within(cancelled.wait_for(|reason| reason.as_deref() == Some("enough")))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_repeated_delivery_finds_what_the_first_began() {
    let (bench, second) = two_nodes().await;
    let alice = initialized(&bench).await;
    let first = post(&call(1, "stream-once"));
    let mut again = first.clone();
    again.repeated = true;
    bench.sessions.deliver(&alice, first).await.unwrap();
    let tool = bench.script.call("stream-once").await;
    lose_lease(&bench.store).await;

    let mut running = stream_of(second.deliver(&alice, again.clone()).await.unwrap());
    tool.finish("{}").await;
    assert_eq!(read_all(&mut running).await.events.len(), 1);
    let mut finished = stream_of(second.deliver(&alice, again).await.unwrap());
    assert_eq!(read_all(&mut finished).await.events.len(), 1);
    assert_eq!(bench.script.started.load(Ordering::SeqCst), 1, "once");
}

#[tokio::test]
async fn a_repeated_delivery_that_never_arrived_is_the_first() {
    let (bench, second) = two_nodes().await;
    let alice = initialized(&bench).await;
    lose_lease(&bench.store).await;
    for tool in ["echo", "stream-x"] {
        let mut repeated = post(&call(1, tool));
        repeated.repeated = true;
        second.deliver(&alice, repeated).await.unwrap();
    }
    bench.script.call("stream-x").await;
}

fn subscription(id: u64, method: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"resources/{method}","params":{{"uri":"r://1"}}}}"#
    )
}

/// A node takes over a session whose subscription its backend refuses `refusals` times.
async fn refused(refusals: usize) -> (Bench, Sessions, SessionRef) {
    let (bench, second) = two_nodes().await;
    let alice = initialized(&bench).await;
    bench.post(&alice, &subscription(1, "subscribe")).await;
    assert_eq!(*bench.script.subscribed.get("r://1").unwrap(), 1);
    bench.script.refusals.send_replace((refusals, 0));
    lose_lease(&bench.store).await;
    second
        .deliver(&alice, post(&call(2, "echo")))
        .await
        .unwrap();
    let mut seen = bench.script.refusals.subscribe();
    within(seen.wait_for(|(_, refused)| *refused > 0))
        .await
        .unwrap();
    (bench, second, alice)
}

#[tokio::test]
async fn a_subscription_that_the_new_owners_backend_refuses_is_renewed_later() {
    let (bench, second, alice) = refused(2).await;
    let mut stream = second.listen(&alice, None).await.unwrap();
    for _ in 0..2 {
        let told = read(&mut stream, 1).await.texts.remove(0);
        assert!(told.contains("resources/updated"), "{told}");
        assert!(told.contains("r://1"), "{told}");
    }
    assert_eq!(*bench.script.subscribed.get("r://1").unwrap(), 2);
    second
        .deliver(&alice, post(&subscription(3, "unsubscribe")))
        .await
        .unwrap();
    assert_eq!(*bench.script.subscribed.get("r://1").unwrap(), 1);
}

#[tokio::test]
async fn a_subscription_that_is_not_wanted_any_more_is_not_renewed() {
    let (bench, second, alice) = refused(1).await;
    let ended = second.deliver(&alice, post(&subscription(3, "unsubscribe")));
    ended.await.unwrap();
    tokio::time::pause();
    tokio::time::sleep(LONG).await;
    assert_eq!(*bench.script.subscribed.get("r://1").unwrap(), 1);
    assert_eq!(second.status().subscriptions, 0);
}

#[tokio::test]
async fn a_repeatable_call_that_became_a_stream_goes_on_elsewhere() {
    let (bench, second) = two_nodes().await;
    let alice = initialized(&bench).await;
    let posting = tokio::spawn({
        let (sessions, alice) = (bench.sessions.clone(), alice.clone());
        async move { sessions.deliver(&alice, post(&call(1, "speaks"))).await }
    });
    let tool = bench.script.call("speaks").await;
    tool.progress(1).await;
    let mut before = stream_of(posting.await.unwrap().unwrap());
    let seen = read(&mut before, 1).await;
    lose_lease(&bench.store).await;
    let mut after = second.listen(&alice, Some(seen.cursor())).await.unwrap();
    tool.finish("{}").await;
    assert_eq!(read_all(&mut after).await.events.len(), 1);
}

#[tokio::test]
async fn handing_over_moves_everything_without_waiting_for_a_lease() {
    let (bench, second) = two_nodes().await;
    let alice = initialized(&bench).await;
    let mut standalone = bench.sessions.listen(&alice, None).await.unwrap();
    let mut before = bench.stream(&alice, 1, "stream-long").await;
    let tool = bench.script.call("stream-long").await;
    tool.progress(1).await;
    let seen = read(&mut before, 1).await;

    assert_eq!(bench.sessions.hand_over().await.sessions, 1);
    assert!(read_all(&mut before).await.moved);
    assert!(read_all(&mut standalone).await.moved);
    let refused = bench.sessions.deliver(&alice, post(&call(2, "echo"))).await;
    assert!(
        matches!(refused, Err(GatewayError::Moved { .. })),
        "{refused:?}"
    );
    assert!(tool.cancelled.borrow().is_none(), "calls run on");

    let mut after = second.listen(&alice, Some(seen.cursor())).await.unwrap();
    second
        .listen(&alice, Some(standalone.cursor))
        .await
        .unwrap();
    tool.finish("{}").await;
    assert_eq!(read_all(&mut after).await.events.len(), 1);
    assert_eq!(bench.sessions.status().handed_over, 1);
}

#[tokio::test]
async fn a_sleeping_session_stays_with_its_node_until_that_is_gone() {
    let config = SessionConfig {
        session: SessionSettings {
            passivate_after: Duration::ZERO.into(),
            sweep_every: Duration::from_millis(5).into(),
            ..SessionSettings::default()
        },
        ..SessionConfig::default()
    };
    let bench = Bench::new(config);
    lease(&bench.store, "test").await;
    let second = bench.another_node("b");
    let alice = initialized(&bench).await;
    let asleep = async {
        while bench.sessions.status().passive == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    within(asleep).await;
    let refused = second.deliver(&alice, post(&call(1, "echo"))).await;
    assert!(
        matches!(refused, Err(GatewayError::Moved { .. })),
        "{refused:?}"
    );
    bench
        .sessions
        .deliver(&alice, post(&call(2, "echo")))
        .await
        .unwrap();
    lose_lease(&bench.store).await;
    second
        .deliver(&alice, post(&call(3, "echo")))
        .await
        .unwrap();
    bench.sessions.revalidate().await.unwrap();
    let held = bench.sessions.status();
    assert_eq!((held.live, held.passive), (0, 0), "nothing is left behind");
}

#[tokio::test]
async fn a_stranger_cannot_make_a_session_move() {
    let (bench, second) = two_nodes().await;
    let alice = initialized(&bench).await;
    lose_lease(&bench.store).await;
    let mallory = SessionRef {
        principal: shoal_ports::Principal::new("mallory"),
        ..alice.clone()
    };
    let refused = second.deliver(&mallory, post(&call(1, "echo"))).await;
    assert_eq!(refused.unwrap_err(), GatewayError::NotFound);
    assert_eq!(second.status().taken_over, 0);
    second
        .deliver(&alice, post(&call(1, "echo")))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_sleeping_session_is_handed_over_when_it_is_asked_for() {
    let config = SessionConfig {
        session: SessionSettings {
            passivate_after: Duration::ZERO.into(),
            sweep_every: Duration::from_millis(5).into(),
            ..SessionSettings::default()
        },
        ..SessionConfig::default()
    };
    let bench = Bench::new(config);
    lease(&bench.store, "test").await;
    lease(&bench.store, "b").await;
    let second = bench.another_node("b");
    let alice = initialized(&bench).await;
    let asleep = async {
        while bench.sessions.status().passive == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    within(asleep).await;
    bench.sessions.hand_over().await;
    let asked = bench.sessions.deliver(&alice, post(&call(1, "echo"))).await;
    assert!(
        matches!(asked, Err(GatewayError::Moved { .. })),
        "{asked:?}"
    );
    second
        .deliver(&alice, post(&call(1, "echo")))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_stale_owner_swallows_no_answer_and_no_cancellation() {
    let (bench, second) = two_nodes().await;
    let alice = initialized(&bench).await;
    lose_lease(&bench.store).await;
    let asking = second.deliver(&alice, post(&call(1, "stream-asks"))).await;
    let mut stream = stream_of(asking.unwrap());
    let tool = bench.script.call("stream-asks").await;
    tool.send(CallEventKind::Ask {
        ask: AskId(1),
        method: Method::RootsList,
        params: None,
    })
    .await;
    let (_, question) = read(&mut stream, 1).await.events.remove(0);
    let question: serde_json::Value = serde_json::from_str(&question).unwrap();
    lease(&bench.store, "test").await;

    let answer = serde_json::json!({"jsonrpc":"2.0","id":question["id"],"result":{}});
    let refused = bench
        .sessions
        .deliver(&alice, post(&answer.to_string()))
        .await;
    assert_eq!(refused.unwrap_err(), GatewayError::Moved { owner: None });
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let refused = bench.sessions.deliver(&alice, post(cancel)).await;
    assert!(
        matches!(refused, Err(GatewayError::Moved { .. })),
        "{refused:?}"
    );
    assert!(tool.answers.lock().is_empty());
}

#[tokio::test]
async fn an_answer_that_nobody_waits_for_is_taken_by_the_owner() {
    let (bench, _) = two_nodes().await;
    let alice = initialized(&bench).await;
    let late = r#"{"jsonrpc":"2.0","id":"0123.1","result":{}}"#;
    let accepted = bench.sessions.deliver(&alice, post(late)).await;
    assert!(matches!(accepted, Ok(Delivered::Accepted)), "{accepted:?}");
}

#[tokio::test]
async fn a_reader_that_was_replaced_asks_whose_the_call_is() {
    let (bench, second) = two_nodes().await;
    let alice = initialized(&bench).await;
    let before = bench.stream(&alice, 1, "stream-long").await;
    let tool = bench.script.call("stream-long").await;
    lose_lease(&bench.store).await;
    let mut after = second.listen(&alice, Some(before.cursor)).await.unwrap();
    for n in 1..=3 {
        tool.progress(n).await;
        assert_eq!(read(&mut after, 1).await.events.len(), 1);
        drop(tool.attach(n).await);
    }
    tool.finish(r#"{"content":[]}"#).await;
    let rest = read_all(&mut after).await.events;
    assert_eq!(rest.len(), 1);
    assert!(rest[0].1.contains(r#""result""#), "{}", rest[0].1);
}

#[tokio::test]
async fn progress_of_a_call_that_was_run_again_by_the_next_owner_never_falls() {
    let (bench, second) = two_nodes().await;
    let alice = initialized(&bench).await;
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"speaks","_meta":{"progressToken":"t"}}}"#;
    let posting = tokio::spawn({
        let (sessions, alice) = (bench.sessions.clone(), alice.clone());
        async move { sessions.deliver(&alice, post(body)).await }
    });
    let steps = async |steps: std::ops::RangeInclusive<u64>| {
        let tool = bench.script.call("speaks").await;
        for step in steps {
            let params = format!(r#"{{"progressToken":"t","progress":{step}}}"#);
            tool.send(CallEventKind::Notification {
                method: Method::Progress,
                params: Some(RawJson::from_valid(params.into())),
            })
            .await;
        }
        tool
    };
    steps(1..=3).await;
    let mut before = stream_of(posting.await.unwrap().unwrap());
    let seen = read(&mut before, 3).await;
    bench.script.begins_anew.store(true, Ordering::SeqCst);
    bench.script.calls.clear();
    lose_lease(&bench.store).await;
    let mut after = second.listen(&alice, Some(seen.cursor())).await.unwrap();
    steps(1..=5).await.finish("{}").await;
    let rest = read_all(&mut after).await.events;
    let said: Vec<_> = rest.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(
        said[0].contains(r#""progress":4"#) && said[1].contains(r#""progress":5"#),
        "{said:?}"
    );
}

/// The first node has lost the session to the second without noticing.
async fn superseded() -> (Bench, Sessions, SessionRef) {
    let (bench, second) = two_nodes().await;
    let alice = initialized(&bench).await;
    lose_lease(&bench.store).await;
    bench.script.heard.lock().replace(Epoch(0));
    let echo = second.deliver(&alice, post(&call(1, "echo"))).await;
    assert!(matches!(echo, Ok(Delivered::Json(_))), "{echo:?}");
    lease(&bench.store, "test").await;
    (bench, second, alice)
}

#[tokio::test]
async fn a_former_owner_whose_worker_knows_better_answers_nothing() {
    for asks in [bound(2, "once"), post(&call(2, "repeatable"))] {
        let (bench, second, alice) = superseded().await;
        let answer = bench.sessions.deliver(&alice, asks).await;
        let repeats = matches!(answer, Err(GatewayError::Unreachable { .. }));
        assert!(repeats, "{answer:?}");
        assert_eq!(bench.script.started.load(Ordering::SeqCst), 0);
        let echo = second.deliver(&alice, post(&call(3, "echo"))).await;
        assert!(matches!(echo, Ok(Delivered::Json(_))), "{echo:?}");
    }
}

#[tokio::test]
async fn a_session_is_not_locked_out_by_a_claim_that_the_store_has_lost() {
    let (bench, _) = two_nodes().await;
    let alice = initialized(&bench).await;
    for (n, tool) in (1..).zip(["echo", "stream-echo"]) {
        let lost = Epoch(1_000 * n);
        bench.script.heard.lock().replace(lost);
        let answer = bench.sessions.deliver(&alice, bound(n, tool)).await;
        match (tool, answer) {
            ("echo", Ok(Delivered::Json(_))) => {}
            (_, Ok(Delivered::Stream(mut stream))) => {
                let call = bench.script.call(tool).await;
                call.finish(r#"{"content":[]}"#).await;
                let all = read_all(&mut stream).await.events;
                assert!(all.iter().any(|(_, text)| text.contains(r#""result""#)));
            }
            (_, other) => panic!("{tool}: {other:?}"),
        }
        assert_eq!(*bench.script.heard.lock(), Some(Epoch(lost.0 + 1)));
    }
}
