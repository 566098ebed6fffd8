//! A message through a session: found, applied, answered, and for a change, stored by its actor.
#![allow(missing_docs, reason = "the macros' functions are nobody's interface")]

#[path = "../tests/session/support/mod.rs"]
mod support;

use criterion::{Criterion, criterion_group, criterion_main};
use shoal_ports::{Delivered, Post, SessionGateway as _};
use shoal_session::SessionConfig;
use support::{Bench, post};
use tokio::runtime::Builder;

const PING: &str = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;
const LEVEL: &str =
    r#"{"jsonrpc":"2.0","id":7,"method":"logging/setLevel","params":{"level":"error"}}"#;

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
        let post = Post::new(body.clone());
        let answer = runtime.block_on(bench.sessions.deliver(&session, post));
        assert!(matches!(answer, Ok(Delivered::Json(_))), "{answer:?}");
    };
    ping();
    criterion.bench_function("request", |bencher| bencher.iter(ping));
    let level = || {
        let post = post(LEVEL);
        let answer = runtime.block_on(bench.sessions.deliver(&session, post));
        assert!(matches!(answer, Ok(Delivered::Json(_))), "{answer:?}");
    };
    level();
    criterion.bench_function("change", |bencher| bencher.iter(level));
}

criterion_group!(benches, actor);
criterion_main!(benches);
