use std::time::Duration;

use shoal_ports::{GatewayError, OpenSession, SessionGateway as _, SessionTransport};
use shoal_session::SessionConfig;

use crate::support::{Bench, initialize, just_started, read};

const RELIANT: [(&str, &str); 3] = [
    ("logging/setLevel", r#"{"level":"info"}"#),
    ("resources/subscribe", r#"{"uri":"file:///a"}"#),
    ("resources/unsubscribe", r#"{"uri":"file:///a"}"#),
];

fn asked(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":9,"method":"{method}","params":{params}}}"#)
}

#[tokio::test]
async fn a_session_is_not_opened_by_a_node_that_knows_nothing() {
    let bench = Bench::new(SessionConfig::default());
    *bench.script.not_ready.lock() = Some(just_started());
    let refused = bench.sessions.open(initialize("alice", "2025-11-25")).await;
    let Err(GatewayError::Unavailable { retry_after, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(retry_after, Duration::from_millis(2500));
    assert_eq!(bench.sessions.status().live, 0);
    *bench.script.not_ready.lock() = None;
    bench.open("alice", "2025-11-25").await;
}

#[tokio::test]
async fn what_may_come_yet_is_not_refused_for_good() {
    let bench = Bench::new(SessionConfig::default());
    let alice = bench.open("alice", "2025-11-25").await;
    bench.script.forget_capabilities();
    for (method, params) in RELIANT {
        let answer = bench.json(&alice, &asked(method, params)).await;
        assert!(answer.contains("50301"), "{method}: {answer}");
    }
    *bench.script.lacks.lock() = None;
    for (method, params) in RELIANT {
        let answer = bench.json(&alice, &asked(method, params)).await;
        assert!(answer.contains("-32601"), "{method}: {answer}");
    }
}

#[tokio::test]
async fn members_of_batches_are_refused_likewise() {
    let bench = Bench::new(SessionConfig::default());
    let alice = bench.open("alice", "2025-03-26").await;
    bench.script.forget_capabilities();
    let (method, params) = RELIANT[0];
    let batch = format!("[{}]", asked(method, params));
    let answer = bench.json(&alice, &batch).await;
    assert!(answer.contains("50301"), "{answer}");
}

#[tokio::test]
async fn an_initialize_that_comes_later_is_refused_likewise() {
    let bench = Bench::new(SessionConfig::default());
    let mut open: OpenSession = initialize("alice", "2024-11-05");
    open.transport = SessionTransport::SingleStream;
    let request = open.initialize.take().unwrap();
    let opened = bench.sessions.open(open).await.unwrap();
    let alice = shoal_ports::SessionRef::new(opened.session, shoal_ports::Principal::new("alice"));
    let mut stream = bench.sessions.listen(&alice, None).await.unwrap();
    let text = asked("initialize", request.params.as_ref().unwrap().as_str());
    *bench.script.not_ready.lock() = Some(just_started());
    bench.post(&alice, &text).await;
    let refused = read(&mut stream, 1).await;
    assert!(refused.events[0].1.contains("50301"), "{refused:?}");
    *bench.script.not_ready.lock() = None;
    bench.post(&alice, &text).await;
    let greeted = read(&mut stream, 1).await;
    assert!(
        greeted.events[0].1.contains("protocolVersion"),
        "{greeted:?}"
    );
}
