use shoal_ports::{
    Delivered, GatewayError, NodeLimits, OpenSession, Principal, SessionGateway as _, SessionRef,
    SessionTransport,
};
use shoal_session::SessionConfig;

use crate::support::{Bench, post, read_all};

const BUDGET: u64 = 32 * 1024;

fn bench() -> Bench {
    Bench::new(SessionConfig {
        limits: NodeLimits {
            stored_bytes_per_principal: BUDGET,
            ..NodeLimits::default()
        },
        ..SessionConfig::default()
    })
}

fn open(principal: &str) -> OpenSession {
    OpenSession {
        principal: Principal::new(principal),
        transport: SessionTransport::SingleStream,
        initialize: None,
        trace: None,
    }
}

fn subscribe(at: usize, bytes: usize) -> String {
    let uri = format!("r://{at}/{}", "x".repeat(bytes));
    format!(
        r#"{{"jsonrpc":"2.0","id":{at},"method":"resources/subscribe","params":{{"uri":"{uri}"}}}}"#
    )
}

fn is_over(refused: &GatewayError) -> bool {
    matches!(refused, GatewayError::TooManyBytesOfPrincipal { .. })
}

async fn fill(bench: &Bench, to: &SessionRef) -> GatewayError {
    for at in 1..100 {
        let subscribed = bench.sessions.deliver(to, post(&subscribe(at, 4000)));
        match subscribed.await {
            Ok(_) => {}
            Err(refused) => return refused,
        }
    }
    panic!("a principal stores what it likes");
}

#[tokio::test]
async fn beyond_its_budget_a_principal_begins_nothing_new() {
    let bench = bench();
    let alice = bench.open("alice", "2025-11-25").await;
    let running =
        r#"{"jsonrpc":"2.0","id":"r","method":"tools/call","params":{"name":"stream-1"}}"#;
    let Delivered::Stream(mut stream) = bench.post(&alice, running).await else {
        panic!("a journaled call is a stream");
    };
    let refused = fill(&bench, &alice).await;
    assert!(is_over(&refused), "{refused:?}");
    let refused = bench.sessions.open(open("alice")).await.err().unwrap();
    assert!(is_over(&refused), "{refused:?}");
    let call = r#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"stream-2"}}"#;
    let refused = bench.sessions.deliver(&alice, post(call)).await;
    assert!(is_over(&refused.err().unwrap()));

    let echo = r#"{"jsonrpc":"2.0","id":"e","method":"tools/call","params":{"name":"echo"}}"#;
    assert!(matches!(bench.post(&alice, echo).await, Delivered::Json(_)));
    bench.script.call("stream-1").await.finish("{}").await;
    assert_eq!(read_all(&mut stream).await.texts.len(), 1);

    let bob = bench.open("bob", "2025-11-25").await;
    bench.post(&bob, &subscribe(1, 10)).await;

    bench.sessions.close(&alice).await.unwrap();
    bench.sessions.open(open("alice")).await.unwrap();
}

#[tokio::test]
async fn large_calls_count_while_they_are_in_the_journal() {
    let bench = bench();
    let alice = bench.open("alice", "2025-11-25").await;
    let large = |at: usize| {
        let pad = "x".repeat(20 << 10);
        format!(
            r#"{{"jsonrpc":"2.0","id":{at},"method":"tools/call","params":{{"name":"stream-{at}","arguments":{{"pad":"{pad}"}}}}}}"#
        )
    };
    let Delivered::Stream(mut first) = bench.post(&alice, &large(1)).await else {
        panic!("a journaled call is a stream");
    };
    let Delivered::Stream(_second) = bench.post(&alice, &large(2)).await else {
        panic!("a journaled call is a stream");
    };
    let refused = bench.sessions.deliver(&alice, post(&large(3))).await;
    assert!(is_over(&refused.err().unwrap()));
    bench.script.call("stream-1").await.finish("{}").await;
    read_all(&mut first).await;
    assert!(matches!(
        bench.post(&alice, &large(4)).await,
        Delivered::Stream(_)
    ));
}

#[tokio::test]
async fn the_uris_of_a_session_are_bounded_in_bytes() {
    let bench = Bench::new(SessionConfig {
        limits: NodeLimits {
            subscription_bytes_per_session: 10_000,
            ..NodeLimits::default()
        },
        ..SessionConfig::default()
    });
    let alice = bench.open("alice", "2025-11-25").await;
    let mut refused = 0;
    for at in 1..=4 {
        let answer = bench.json(&alice, &subscribe(at, 3000)).await;
        refused += usize::from(answer.contains("error"));
    }
    assert_eq!(refused, 1, "three of them fit");
}
