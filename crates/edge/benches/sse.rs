#![allow(missing_docs, reason = "the macros' functions are nobody's interface")]
#![allow(clippy::unwrap_used, reason = "a failed step is the report")]

#[path = "../tests/edge/dispatcher.rs"]
#[allow(dead_code, reason = "shared with the tests")]
mod dispatcher;
#[path = "../tests/edge/gateway.rs"]
#[allow(dead_code, reason = "shared with the tests")]
mod gateway;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use criterion::{Criterion, criterion_group, criterion_main};
use http_body_util::BodyExt as _;
use shoal_auth::NoAuthentication;
use shoal_edge::{Edge, EdgeConfig, Load, Recorder};
use shoal_ports::{LazySender, StreamItem};
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

use dispatcher::FakeDispatcher;
use gateway::{FakeGateway, LIVE, event};

const DATA: &str = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":3,"total":10}}"#;

async fn stream() -> (LazySender<StreamItem>, Body) {
    let address = SocketAddr::from(([127, 0, 0, 1], 8080));
    let gateway = FakeGateway::new();
    let edge = Edge {
        gateway: gateway.clone(),
        dispatcher: FakeDispatcher::new(),
        authenticator: Arc::new(NoAuthentication),
        config: EdgeConfig::for_address(address),
        drain: CancellationToken::new(),
        load: Load::default(),
        recorder: Recorder::default(),
    };
    let request = Request::get("/mcp")
        .header("host", address.to_string())
        .header("accept", "text/event-stream")
        .header("mcp-session-id", LIVE)
        .body(Body::empty())
        .unwrap();
    let response = edge.service().answer(request).await;
    assert_eq!(response.status(), 200);
    (gateway.stream().await, response.into_body())
}

fn sse(criterion: &mut Criterion) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let (events, mut body) = runtime.block_on(stream());
    let mut one = || {
        runtime.block_on(async {
            events.send(event(7, DATA)).await.unwrap();
            body.frame().await.unwrap().unwrap()
        })
    };
    assert!(
        one()
            .data_ref()
            .unwrap()
            .starts_with(b"event: message\nid: ")
    );
    criterion.bench_function("SSE event", |bencher| bencher.iter(&mut one));
}

criterion_group!(benches, sse);
criterion_main!(benches);
