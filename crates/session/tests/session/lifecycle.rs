use std::time::Duration;

use shoal_ports::{
    Delivered, EventStream, GatewayError, NodeLimits, OpenSession, Principal, ResourceUpdated,
    SessionGateway, SessionRef, SessionSettings, SessionTransport,
};
use shoal_protocol::RawJson;
use shoal_session::SessionConfig;

use crate::support::counted::Counted;
use crate::support::{Bench, Fate, call, post, read, read_all, within};

fn quick() -> SessionConfig {
    SessionConfig {
        session: SessionSettings {
            passivate_after: Duration::from_millis(40).into(),
            sweep_every: Duration::from_millis(10).into(),
            ..SessionSettings::default()
        },
        ..SessionConfig::default()
    }
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting)
        .await
        .unwrap_or_else(|_| panic!("{what}"));
}

#[tokio::test]
async fn a_session_in_other_hands_does_not_exist() {
    let bench = Bench::new(SessionConfig::default());
    let alice = bench.open("alice", "2025-11-25").await;
    let mut stream = bench.stream(&alice, 1, "stream").await;
    bench.script.call("stream").await.progress(1).await;
    let cursor = read(&mut stream, 1).await.cursor();
    let mallory = SessionRef {
        principal: Principal::new("mallory"),
        ..alice.clone()
    };
    let sessions = &bench.sessions;
    let not_found = |result: Option<GatewayError>| assert_eq!(result, Some(GatewayError::NotFound));
    not_found(
        sessions
            .deliver(&mallory, post(&call(2, "echo")))
            .await
            .err(),
    );
    not_found(sessions.listen(&mallory, None).await.err());
    not_found(sessions.listen(&mallory, Some(cursor)).await.err());
    not_found(sessions.close(&mallory).await.err());
    assert!(
        bench
            .json(&alice, &call(2, "echo"))
            .await
            .contains("result")
    );
}

#[tokio::test(start_paused = true)]
async fn an_idle_session_sleeps_and_wakes_with_all_it_knew() {
    let bench = Bench::new(quick());
    let alice = bench.open("alice", "2025-11-25").await;
    bench
        .json(
            &alice,
            r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"r://a"}}"#,
        )
        .await;
    until("it falls asleep", || bench.sessions.status().passive == 1).await;
    assert_eq!(bench.sessions.status().live, 0);

    let update = ResourceUpdated {
        uri: "r://a".into(),
        params: RawJson::from_static("{}"),
    };
    bench.script.updates.send(update).unwrap();
    bench.script.change_lists();
    tokio::time::sleep(Duration::from_millis(30)).await;
    assert_eq!(bench.sessions.status().live, 0, "news wake nobody");

    let mallory = SessionRef {
        principal: Principal::new("mallory"),
        ..alice.clone()
    };
    assert!(bench.sessions.listen(&mallory, None).await.is_err());
    assert_eq!(bench.sessions.status().live, 0, "nor does somebody else");

    let mut stream = bench.sessions.listen(&alice, None).await.unwrap();
    let news = read(&mut stream, 2).await;
    assert!(news.events[0].1.contains("tools/list_changed"), "{news:?}");
    assert!(news.events[1].1.contains("resources/updated"), "{news:?}");
    assert!(
        bench
            .json(&alice, &call(2, "echo"))
            .await
            .contains("result")
    );
}

#[tokio::test]
async fn a_finished_stream_can_be_resumed_after_the_session_slept() {
    let bench = Bench::new(quick());
    let alice = bench.open("alice", "2025-11-25").await;
    let mut stream = bench.stream(&alice, 1, "stream").await;
    let primed = within(stream.items.recv()).await;
    let Some(shoal_ports::StreamItem::Prime { id, .. }) = primed else {
        panic!()
    };
    drop(stream);
    bench.script.call("stream").await.finish("{}").await;
    until("it falls asleep", || bench.sessions.status().passive == 1).await;
    let mut resumed = bench.sessions.listen(&alice, Some(id)).await.unwrap();
    assert_eq!(read_all(&mut resumed).await.events.len(), 1);
}

#[tokio::test]
async fn a_session_that_nobody_uses_ends() {
    let bench = Bench::new(SessionConfig {
        session: SessionSettings {
            idle: Duration::from_millis(120).into(),
            ..quick().session
        },
        ..quick()
    });
    let alice = bench.open("alice", "2025-11-25").await;
    until("it ends", || {
        let status = bench.sessions.status();
        status.live + status.passive == 0
    })
    .await;
    let gone = bench.sessions.deliver(&alice, post(&call(1, "echo"))).await;
    assert_eq!(gone.err(), Some(GatewayError::NotFound));
    assert_eq!(
        bench.store.directory.lookup(&alice.session).await.unwrap(),
        None
    );
}

#[tokio::test]
async fn closing_ends_calls_and_streams_for_good() {
    let bench = Bench::new(SessionConfig::default());
    let alice = bench.open("alice", "2025-11-25").await;
    let mut call_stream = bench.stream(&alice, 1, "stream").await;
    let mut standalone = bench.sessions.listen(&alice, None).await.unwrap();
    let tool = bench.script.call("stream").await;
    tool.progress(1).await;
    bench.sessions.close(&alice).await.unwrap();
    assert!(tool.cancelled.borrow().is_some());
    let told = read_all(&mut call_stream).await;
    let [progress, answer] = &told.texts[..] else {
        panic!("one answer: {told:?}");
    };
    assert!(progress.contains(r#""progress":1"#), "{told:?}");
    assert!(
        answer.contains(r#""id":1,"#) && answer.contains("50410"),
        "{told:?}"
    );
    assert!(read_all(&mut standalone).await.texts.is_empty());
    assert_eq!(
        bench.sessions.close(&alice).await,
        Err(GatewayError::NotFound)
    );
    assert_eq!(
        bench.sessions.listen(&alice, None).await.err(),
        Some(GatewayError::NotFound)
    );
}

#[tokio::test]
async fn every_call_of_a_session_that_ends_is_answered() {
    let bench = Bench::new(SessionConfig::default());
    let alice = bench.open("alice", "2025-03-26").await;
    let (sessions, to) = (bench.sessions.clone(), alice.clone());
    let quick = tokio::spawn(async move { sessions.deliver(&to, post(&call(1, "quick"))).await });
    let quick_tool = bench.script.call("quick").await;
    let batch = format!("[{},{}]", call(2, "stream-2"), call(3, "stream-3"));
    let Delivered::Stream(mut together) = bench.post(&alice, &batch).await else {
        panic!("a stream")
    };
    let mut tools = Vec::new();
    for name in ["stream-2", "stream-3"] {
        tools.push(bench.script.call(name).await);
    }
    let (sessions, to) = (bench.sessions.clone(), alice.clone());
    let closing = tokio::spawn(async move { sessions.close(&to).await });
    within(quick_tool.cancelled.subscribe().changed())
        .await
        .unwrap();
    let cancelled = shoal_ports::CallOutcome::Failed(shoal_ports::CallFailure::Cancelled);
    let finished = shoal_ports::CallEventKind::Finished(cancelled);
    quick_tool.send(finished).await;
    within(closing).await.unwrap().unwrap();
    let Ok(Delivered::Json(answer)) = within(quick).await.unwrap() else {
        panic!("JSON")
    };
    assert!(String::from_utf8_lossy(&answer).contains("50410"));
    let told = read_all(&mut together).await;
    assert_eq!(told.texts.len(), 2, "{told:?}");
    for id in [r#""id":2,"#, r#""id":3,"#] {
        let answers = told.texts.iter().filter(|text| text.contains(id));
        assert_eq!(answers.filter(|text| text.contains("50410")).count(), 1);
    }
    for tool in tools {
        assert!(tool.cancelled.borrow().is_some(), "it was told to stop");
    }
}

#[tokio::test]
async fn a_client_of_one_stream_is_answered_when_its_session_ends() {
    let bench = Bench::new(SessionConfig::default());
    let open = OpenSession {
        transport: SessionTransport::SingleStream,
        ..crate::support::initialize("alice", "2024-11-05")
    };
    let principal = open.principal.clone();
    let session = bench.sessions.open(open).await.unwrap().session;
    let to = SessionRef::new(session, principal);
    let mut stream = bench.sessions.listen(&to, None).await.unwrap();
    bench.post(&to, &call(1, "stream")).await;
    bench.script.call("stream").await;
    bench.sessions.close(&to).await.unwrap();
    let told = read_all(&mut stream).await;
    assert_eq!(told.texts.len(), 1, "{told:?}");
    assert!(told.texts[0].contains("50410"), "{told:?}");
}

/// An event id does not name its session, and all sessions number their streams alike.
#[tokio::test]
async fn an_event_id_of_another_session_is_refused() {
    let bench = Bench::new(SessionConfig::default());
    let alice = bench.open("alice", "2025-11-25").await;
    let bob = bench.open("bob", "2025-11-25").await;
    let mut cursors = Vec::new();
    for (to, name) in [(&alice, "stream-a"), (&bob, "stream-b")] {
        let mut stream = bench.stream(to, 1, name).await;
        let tool = bench.script.call(name).await;
        tool.progress(1).await;
        let cursor = read(&mut stream, 1).await.cursor();
        cursors.extend([
            cursor,
            bench.sessions.listen(to, None).await.unwrap().cursor,
        ]);
    }
    for cursor in &cursors[..2] {
        let foreign = bench.sessions.listen(&bob, Some(*cursor)).await.err();
        let gone = matches!(foreign, Some(GatewayError::HistoryGone(_)));
        assert!(gone, "{cursor}: {foreign:?}");
    }
    for cursor in &cursors[2..] {
        bench.sessions.listen(&bob, Some(*cursor)).await.unwrap();
    }
}

#[tokio::test]
async fn caps_are_kept_and_given_back() {
    let bench = Bench::new(SessionConfig {
        limits: NodeLimits {
            sessions_per_node: 3,
            sessions_per_principal: 2,
            ..NodeLimits::default()
        },
        ..SessionConfig::default()
    });
    let open = |principal: &str| OpenSession {
        principal: Principal::new(principal),
        transport: SessionTransport::SingleStream,
        initialize: None,
        trace: None,
    };
    let one = bench.sessions.open(open("alice")).await.unwrap().session;
    bench.sessions.open(open("alice")).await.unwrap();
    let third = bench.sessions.open(open("alice")).await.err().unwrap();
    assert!(
        matches!(
            third,
            GatewayError::TooManySessionsOfPrincipal { limit: 2, .. }
        ),
        "{third:?}"
    );
    bench.sessions.open(open("bob")).await.unwrap();
    let full = bench.sessions.open(open("carol")).await.err().unwrap();
    assert!(
        matches!(full, GatewayError::TooManySessions { limit: 3, .. }),
        "{full:?}"
    );
    let to = SessionRef::new(one, Principal::new("alice"));
    bench.sessions.close(&to).await.unwrap();
    bench.sessions.open(open("alice")).await.unwrap();
}

#[tokio::test]
async fn everybody_together_is_no_principal_with_a_cap() {
    let bench = Bench::new(SessionConfig {
        limits: NodeLimits {
            sessions_per_node: 3,
            sessions_per_principal: 1,
            ..NodeLimits::default()
        },
        ..SessionConfig::default()
    });
    let open = || OpenSession {
        principal: Principal::anonymous(),
        transport: SessionTransport::SingleStream,
        initialize: None,
        trace: None,
    };
    for _ in 0..3 {
        bench.sessions.open(open()).await.unwrap();
    }
    let full = bench.sessions.open(open()).await.err().unwrap();
    assert!(
        matches!(full, GatewayError::TooManySessions { limit: 3, .. }),
        "{full:?}"
    );
}

#[tokio::test]
async fn a_second_get_takes_over_from_the_first() {
    let bench = Bench::new(SessionConfig::default());
    let alice = bench.open("alice", "2025-11-25").await;
    let mut first = bench.sessions.listen(&alice, None).await.unwrap();
    let mut second = bench.sessions.listen(&alice, None).await.unwrap();
    assert!(
        read_all(&mut first).await.events.is_empty(),
        "the first connection ends"
    );
    bench.script.change_lists();
    let news = read(&mut second, 1).await;
    assert_eq!(news.passing.len(), 1, "the second gets what there is");
    let cursor = second.cursor;
    drop(second);
    let mut third = bench.sessions.listen(&alice, Some(cursor)).await.unwrap();
    assert_eq!(
        read(&mut third, 1).await.events[0].0.sequence,
        cursor.sequence + 1
    );
}

#[tokio::test]
async fn everything_of_a_single_stream_session_goes_over_its_stream() {
    let bench = Bench::new(SessionConfig::default());
    let principal = Principal::anonymous();
    let open = OpenSession {
        principal: principal.clone(),
        transport: SessionTransport::SingleStream,
        initialize: None,
        trace: None,
    };
    let session = bench.sessions.open(open).await.unwrap().session;
    let to = SessionRef::new(session, principal);
    let mut stream = bench.sessions.listen(&to, None).await.unwrap();
    let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    for message in [initialize, &call(1, "echo"), &call(2, "stream")] {
        assert!(matches!(
            bench.post(&to, message).await,
            Delivered::Accepted
        ));
    }
    let tool = bench.script.call("stream").await;
    tool.progress(1).await;
    tool.finish("{}").await;
    let all = read(&mut stream, 4).await;
    assert!(all.events[0].1.contains("2024-11-05"), "{all:?}");
    for part in [r#""id":1,"#, r#""id":2,"#, "progress"] {
        assert!(
            all.events.iter().any(|(_, text)| text.contains(part)),
            "{part}: {all:?}"
        );
    }
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;

async fn uninitialized(bench: &Bench) -> SessionRef {
    let principal = Principal::anonymous();
    let open = OpenSession {
        principal: principal.clone(),
        transport: SessionTransport::SingleStream,
        initialize: None,
        trace: None,
    };
    let opened = bench.sessions.open(open).await;
    SessionRef::new(opened.expect("there is room").session, principal)
}

async fn told(bench: &Bench, to: &SessionRef, stream: &mut EventStream) -> Vec<String> {
    let ping = r#"{"jsonrpc":"2.0","id":"last","method":"ping"}"#;
    bench.post(to, ping).await;
    let mut told = Vec::new();
    loop {
        let next = read(stream, 1).await.texts.remove(0);
        if next.contains(r#""last""#) {
            return told;
        }
        told.push(next);
    }
}

#[tokio::test]
async fn an_initialize_that_is_delivered_again_is_answered_once() {
    let bench = Bench::new(SessionConfig::default());
    let to = uninitialized(&bench).await;
    let mut stream = bench.sessions.listen(&to, None).await.unwrap();
    let first = post(INITIALIZE);
    let mut again = first.clone();
    again.repeated = true;
    bench.sessions.deliver(&to, first).await.unwrap();
    let delivered = bench.sessions.deliver(&to, again).await.unwrap();
    assert!(matches!(delivered, Delivered::Accepted));
    let told = told(&bench, &to, &mut stream).await;
    assert_eq!(told.len(), 1, "{told:?}");
    bench.post(&to, INITIALIZE).await;
    let refused = read(&mut stream, 1).await.texts;
    assert!(refused[0].contains("initialized already"), "{refused:?}");
}

#[tokio::test]
async fn an_initialize_that_was_not_answered_can_be_sent_again() {
    let (bench, saves) = Bench::with_fate(SessionConfig::default());
    let to = uninitialized(&bench).await;
    let mut stream = bench.sessions.listen(&to, None).await.unwrap();
    *saves.lock() = Fate::Away;
    let failed = bench.sessions.deliver(&to, post(INITIALIZE));
    assert!(failed.await.is_err());
    *saves.lock() = Fate::Works;
    bench.post(&to, INITIALIZE).await;
    let told = told(&bench, &to, &mut stream).await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("2024-11-05"), "{told:?}");
}

#[tokio::test]
async fn draining_tells_streams_when_to_come_back_and_loses_nothing() {
    let bench = Bench::new(SessionConfig::default());
    let alice = bench.open("alice", "2025-11-25").await;
    let mut stream = bench.stream(&alice, 1, "stream").await;
    let mut standalone = bench.sessions.listen(&alice, None).await.unwrap();
    let tool = bench.script.call("stream").await;
    tool.progress(1).await;
    bench.sessions.drain_streams();
    let end = read_all(&mut standalone).await;
    assert!(
        end.retry
            .is_some_and(|retry| retry >= SessionConfig::default().streams.retry.get()),
        "{end:?}"
    );
    assert_eq!(bench.sessions.status().in_flight, 1);
    tool.finish("{}").await;
    assert_eq!(
        read_all(&mut stream).await.events.len(),
        2,
        "the call ends on its connection"
    );
    within(async {
        while bench.sessions.status().in_flight > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    within(bench.sessions.stop()).await;
    let placed = bench
        .store
        .directory
        .lookup(&alice.session)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(placed.owner, None, "given up for others to claim");
}

#[tokio::test]
async fn a_refused_subscription_leaves_nothing_behind() {
    let bench = Bench::new(SessionConfig::default());
    let alice = bench.open("alice", "2025-11-25").await;
    let subscribe =
        r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"bad://x"}}"#;
    for _ in 0..2 {
        assert!(
            bench
                .json(&alice, subscribe)
                .await
                .contains("no such resource")
        );
    }
}

/// A call frees its request id before its answer is logged, so the session looks unused.
#[tokio::test(start_paused = true)]
async fn a_session_stays_while_an_answer_waits_for_the_store() {
    let counted = Counted::new();
    let config = SessionConfig {
        session: SessionSettings {
            passivate_after: Duration::from_secs(1).into(),
            ..SessionSettings::default()
        },
        ..SessionConfig::default()
    };
    let bench = Bench::on(counted.store(), config);
    let alice = bench.open("alice", "2025-11-25").await;
    let mut stream = bench.stream(&alice, 1, "stream").await;
    let tool = bench.script.call("stream").await;
    counted.refuse(true);
    tool.finish("{}").await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let status = bench.sessions.status();
    assert_eq!((status.live, status.passive), (1, 0));
    counted.refuse(false);
    assert_eq!(read_all(&mut stream).await.events.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_session_is_not_ended_while_the_store_is_away() {
    let counted = Counted::new();
    let bench = Bench::on(counted.store(), SessionConfig::default());
    let alice = bench.open("alice", "2025-11-25").await;
    let mut stream = bench.stream(&alice, 1, "stream").await;
    let tool = bench.script.call("stream").await;
    counted.mute(true);
    let told = bench.sessions.close(&alice).await;
    assert!(
        matches!(told, Err(GatewayError::Unavailable { .. })),
        "{told:?}"
    );
    tool.finish("{}").await;
    assert!(read_all(&mut stream).await.events[0].1.contains("result"));
    counted.mute(false);
    bench.sessions.close(&alice).await.unwrap();
    let gone = bench.sessions.close(&alice).await;
    assert_eq!(gone, Err(GatewayError::NotFound));
}
