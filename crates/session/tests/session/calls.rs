use std::time::Duration;

use shoal_ports::{
    AskId, CallEventKind, Delivered, Epoch, GatewayError, NodeLimits, SessionGateway,
    StreamSettings,
};
use shoal_protocol::{Method, Outcome};
use shoal_session::SessionConfig;

use crate::support::{Bench, call, post, read, read_all, within};

#[tokio::test]
async fn a_quick_repeatable_call_is_answered_as_json() {
    let bench = Bench::new(SessionConfig::default());
    let alice = bench.open("alice", "2025-11-25").await;
    let answer = bench.json(&alice, &call(1, "echo")).await;
    assert_eq!(
        answer,
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"n":1.0}}"#
    );
    let again = bench.json(&alice, &call(1, "echo")).await;
    assert_eq!(again, answer, "the id is free again");
}

#[tokio::test]
async fn a_journaled_call_is_primed_and_resumes_from_anywhere() {
    let bench = Bench::new(SessionConfig::default());
    let alice = bench.open("alice", "2025-11-25").await;
    let mut stream = bench.stream(&alice, 1, "stream").await;
    let tool = bench.script.call("stream").await;
    assert_eq!(
        bench
            .store
            .journal
            .running(&alice.session, Epoch(1))
            .await
            .unwrap()
            .len(),
        1
    );
    for n in 1..=5 {
        tool.progress(n).await;
    }
    let first = read(&mut stream, 2).await;
    let primed = first
        .primed
        .expect("an id to come back with, before anything else");
    drop(stream);

    tool.progress(6).await;
    tool.finish("{}").await;
    let mut resumed = bench
        .sessions
        .listen(&alice, Some(first.cursor()))
        .await
        .unwrap();
    let rest = read_all(&mut resumed).await;
    assert_eq!(
        rest.events.len(),
        5,
        "4 progress notifications and the answer: {rest:?}"
    );
    assert!(rest.events[0].1.contains(r#""progress":3"#) && rest.events[4].1.contains(r#""id":1"#));

    let mut whole = bench.sessions.listen(&alice, Some(primed)).await.unwrap();
    assert_eq!(read_all(&mut whole).await.events.len(), 7);
    let mut nothing = bench
        .sessions
        .listen(&alice, Some(rest.cursor()))
        .await
        .unwrap();
    assert!(
        read_all(&mut nothing).await.events.is_empty(),
        "the end resumes to nothing"
    );
    assert!(
        bench
            .store
            .journal
            .running(&alice.session, Epoch(1))
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn a_resume_while_the_call_runs_merges_history_and_live() {
    let bench = Bench::new(SessionConfig {
        streams: StreamSettings {
            tail_events: 4,
            ..StreamSettings::default()
        },
        ..SessionConfig::default()
    });
    let alice = bench.open("alice", "2025-11-25").await;
    let mut stream = bench.stream(&alice, 1, "stream").await;
    let tool = bench.script.call("stream").await;
    let mut seen = Vec::new();
    // The tail holds 4 events, so each resume after 10 reads the log.
    for round in 0..20u64 {
        for n in 0..10 {
            tool.progress(round * 10 + n).await;
        }
        let part = read(&mut stream, 3).await;
        let cursor = part.cursor();
        seen.extend(part.events);
        stream = bench.sessions.listen(&alice, Some(cursor)).await.unwrap();
    }
    tool.finish("{}").await;
    seen.extend(read_all(&mut stream).await.events);
    assert_eq!(seen.len(), 201);
    for (at, (id, text)) in seen.iter().enumerate() {
        assert_eq!(id.sequence, at as u64 + 1, "no gap, no repeat, in order");
        assert!(
            at == 200 || text.contains(&format!(r#""progress":{at}}}"#)),
            "{at}: {text}"
        );
    }
}

#[tokio::test]
async fn a_repeatable_call_becomes_a_stream_when_it_speaks_or_takes_long() {
    let config = SessionConfig {
        streams: StreamSettings {
            grace: Duration::from_millis(50).into(),
            ..StreamSettings::default()
        },
        ..SessionConfig::default()
    };
    let bench = Bench::new(config);
    let alice = bench.open("alice", "2025-11-25").await;
    let mut slow = bench.stream(&alice, 1, "slow").await;
    bench.script.call("slow").await.finish("{}").await;
    assert_eq!(read_all(&mut slow).await.events.len(), 1);

    let speaking = async { bench.call(&alice, 2, "speaks").await };
    let speak = async {
        let tool = bench.script.call("speaks").await;
        tool.progress(1).await;
        tool.finish("{}").await;
    };
    let (Delivered::Stream(mut stream), ()) = tokio::join!(speaking, speak) else {
        panic!()
    };
    assert_eq!(read_all(&mut stream).await.events.len(), 2);
}

#[tokio::test]
async fn older_revisions_get_no_empty_events() {
    let bench = Bench::new(SessionConfig::default());
    let alice = bench.open("alice", "2025-06-18").await;
    let mut stream = bench.stream(&alice, 1, "stream").await;
    bench.script.call("stream").await.finish("{}").await;
    let all = read_all(&mut stream).await;
    assert!(all.primed.is_none());
    assert_eq!(all.events.len(), 1);
}

#[tokio::test]
async fn a_client_answers_what_a_call_asks_and_only_once() {
    let bench = Bench::new(SessionConfig::default());
    let alice = bench.open("alice", "2025-11-25").await;
    let mut stream = bench.stream(&alice, 1, "stream").await;
    let tool = bench.script.call("stream").await;
    let ask = CallEventKind::Ask {
        ask: AskId(9),
        method: Method::RootsList,
        params: None,
    };
    tool.send(ask).await;
    let asked = read(&mut stream, 1).await.events.remove(0).1;
    let asked: serde_json::Value = serde_json::from_str(&asked).unwrap();
    assert_eq!(asked["method"], "roots/list");
    let id = &asked["id"];
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"roots":[],"x":1.0}}}}"#);
    let foreign = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    for text in [foreign, &answer, &answer] {
        let accepted = bench.post(&alice, text).await;
        assert!(matches!(accepted, Delivered::Accepted));
    }
    let answers = std::mem::take(&mut *tool.answers.lock());
    let [(AskId(9), Outcome::Result(result))] = answers.as_slice() else {
        panic!("{answers:?}")
    };
    assert_eq!(result.as_str(), r#"{"roots":[],"x":1.0}"#);
}

#[tokio::test]
async fn a_client_is_told_that_nobody_waits_for_its_answer() {
    let bench = Bench::new(SessionConfig::default());
    let alice = bench.open("alice", "2025-11-25").await;
    let mut stream = bench.stream(&alice, 1, "stream").await;
    let tool = bench.script.call("stream").await;
    let ask = AskId(9);
    tool.send(CallEventKind::Ask {
        ask,
        method: Method::RootsList,
        params: None,
    })
    .await;
    tool.send(CallEventKind::Withdrawn { ask }).await;
    tool.finish("{}").await;
    let events = read_all(&mut stream).await.events;
    let said: Vec<serde_json::Value> = (events.iter())
        .map(|(_, text)| serde_json::from_str(text).unwrap())
        .collect();
    assert_eq!(said[0]["method"], "roots/list");
    assert_eq!(said[1]["method"], "notifications/cancelled");
    assert_eq!(said[1]["params"]["requestId"], said[0]["id"]);
    assert_eq!(said[2]["id"], 1);
}

#[tokio::test]
async fn cancelling_reaches_the_tool_and_the_request_still_ends() {
    let bench = Bench::new(SessionConfig::default());
    let alice = bench.open("alice", "2025-11-25").await;
    let mut stream = bench.stream(&alice, 4, "stream").await;
    let tool = bench.script.call("stream").await;
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4,"reason":"enough"}}"#;
    bench.post(&alice, cancel).await;
    assert_eq!(tool.cancelled.borrow().as_deref(), Some("enough"));
    tool.finish("{}").await;
    assert_eq!(read_all(&mut stream).await.events.len(), 1);
}

#[tokio::test]
async fn a_lost_worker_is_told_honestly() {
    let bench = Bench::new(SessionConfig::default());
    let alice = bench.open("alice", "2025-11-25").await;
    let mut stream = bench.stream(&alice, 1, "stream").await;
    bench.script.call("stream").await.break_off();
    let all = read_all(&mut stream).await;
    assert!(
        all.events[0].1.contains("outcome of the call is unknown"),
        "{all:?}"
    );
}

#[tokio::test]
async fn a_tool_can_have_its_stream_polled() {
    let bench = Bench::new(SessionConfig::default());
    let alice = bench.open("alice", "2025-11-25").await;
    let mut stream = bench.stream(&alice, 1, "stream").await;
    let tool = bench.script.call("stream").await;
    tool.progress(1).await;
    tool.send(CallEventKind::CloseStream {
        retry: Duration::from_millis(7),
    })
    .await;
    let first = read_all(&mut stream).await;
    assert_eq!(
        (first.events.len(), first.retry),
        (1, Some(Duration::from_millis(7)))
    );
    tool.progress(2).await;
    let mut polled = bench
        .sessions
        .listen(&alice, Some(first.cursor()))
        .await
        .unwrap();
    tool.finish("{}").await;
    assert_eq!(read_all(&mut polled).await.events.len(), 2);
}

#[tokio::test]
async fn a_reader_that_does_not_read_is_cut_and_loses_nothing() {
    let bench = Bench::new(SessionConfig {
        streams: StreamSettings {
            buffer: 2,
            stall: Duration::from_millis(50).into(),
            ..StreamSettings::default()
        },
        ..SessionConfig::default()
    });
    let alice = bench.open("alice", "2025-11-25").await;
    let mut stuck = bench.stream(&alice, 1, "stream").await;
    let tool = bench.script.call("stream").await;
    for n in 0..100 {
        within(tool.progress(n)).await;
    }
    tool.finish("{}").await;
    within(async {
        while bench.sessions.status().cut == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let before = read_all(&mut stuck).await;
    assert!(before.events.len() < 100);
    let mut resumed = bench
        .sessions
        .listen(&alice, Some(before.cursor()))
        .await
        .unwrap();
    assert_eq!(
        before.events.len() + read_all(&mut resumed).await.events.len(),
        101
    );
}

#[tokio::test]
async fn limits_are_answered_at_once() {
    let bench = Bench::new(SessionConfig {
        limits: NodeLimits {
            calls_per_session: 2,
            ..NodeLimits::default()
        },
        ..SessionConfig::default()
    });
    let alice = bench.open("alice", "2025-11-25").await;
    let _one = bench.stream(&alice, 1, "stream-1").await;
    let _two = bench.stream(&alice, 2, "stream-2").await;
    let third = bench.sessions.deliver(&alice, post(&call(3, "echo"))).await;
    assert!(
        matches!(third, Err(GatewayError::Overloaded { .. })),
        "{third:?}"
    );
    bench.script.call("stream-1").await.finish("{}").await;
    let full = within(async {
        loop {
            match bench.sessions.deliver(&alice, post(&call(3, "full"))).await {
                Err(GatewayError::Overloaded { reason, .. }) if reason.contains("in flight") => {
                    tokio::task::yield_now().await;
                }
                other => break other,
            }
        }
    })
    .await;
    let Err(GatewayError::Overloaded { reason, .. }) = full else {
        panic!("{full:?}")
    };
    assert_eq!(reason, "the pool is full");
}

#[tokio::test]
async fn every_session_takes_batches() {
    let bench = Bench::new(SessionConfig::default());
    let ping = |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
    let two = format!("[{},{}]", ping(1), ping(2));
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let alice = bench.open("alice", revision).await;
        let answers = bench.json(&alice, &two).await;
        let begin = r#"[{"jsonrpc":"2.0","id":1"#;
        assert!(answers.starts_with(begin), "{revision} {answers}");
    }
    let alice = bench.open("alice", "2025-03-26").await;
    let note = r#"[{"jsonrpc":"2.0","method":"notifications/initialized"}]"#;
    assert!(matches!(
        bench.post(&alice, note).await,
        Delivered::Accepted
    ));

    let mixed = format!(
        "[{},7,{},{}]",
        ping(1),
        call(2, "stream-a"),
        call(3, "stream-b")
    );
    let Delivered::Stream(mut stream) = bench.post(&alice, &mixed).await else {
        panic!()
    };
    let first = read(&mut stream, 2).await;
    drop(stream);
    bench.script.call("stream-b").await.finish("{}").await;
    let mut stream = bench
        .sessions
        .listen(&alice, Some(first.cursor()))
        .await
        .unwrap();
    assert!(read(&mut stream, 1).await.events[0].1.contains(r#""id":3"#));
    bench.script.call("stream-a").await.finish("{}").await;
    assert!(
        read_all(&mut stream).await.events[0]
            .1
            .contains(r#""id":2"#),
        "ends with the last"
    );
}
