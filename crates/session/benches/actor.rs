//! A message through a session: found, applied, answered. Nothing is dispatched or stored.
#![allow(missing_docs, reason = "the macros' functions are nobody's interface")]

#[path = "../tests/support/mod.rs"]
mod support;

use criterion::{Criterion, criterion_group, criterion_main};
use shoal_ports::{Delivered, Post, SessionGateway as _};
use shoal_session::SessionConfig;
use support::{Bench, post};
use tokio::runtime::Builder;

const PING: &str = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;

fn actor(criterion: &mut Criterion) {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime needs nothing that is not there");
    let (bench, session) = runtime.block_on(async {
        let bench = Bench::new(SessionConfig::default());
        let session = bench.open("alice", "2025-11-25").await;
        (bench, session)
    });
    let body = post(PING).body;
    let ping = || {
        // Each is a delivery of its own: a repeated one is only looked up.
        let post = Post::new(body.clone());
        let answer = runtime.block_on(bench.sessions.deliver(&session, post));
        assert!(matches!(answer, Ok(Delivered::Json(_))), "{answer:?}");
    };
    ping();
    criterion.bench_function("request by itself", |bencher| bencher.iter(ping));
    // Beside a call that runs, a request goes through an actor.
    let _running = runtime.block_on(bench.stream(&session, 1, "stream"));
    ping();
    criterion.bench_function("actor hop", |bencher| bencher.iter(ping));
}

criterion_group!(benches, actor);
criterion_main!(benches);
