#![allow(missing_docs, reason = "the macros' functions are nobody's interface")]

mod pair;

use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use shoal_ports::CallId;
use tokio::runtime::Builder;

fn link(criterion: &mut Criterion) {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime needs nothing that is not there");
    let pair = runtime.block_on(pair::pair()).expect("loopback works");
    let template = pair::call();
    let hop = || {
        runtime.block_on(async {
            let mut call = template.clone();
            call.id = CallId::generate();
            call.deadline = tokio::time::Instant::now() + Duration::from_secs(60);
            let mut running = pair
                .worker
                .start(call, None)
                .await
                .expect("it refuses nothing");
            running.events.next().await.expect("it answers")
        })
    };
    hop();
    criterion.bench_function("link hop", |bencher| bencher.iter(hop));
}

criterion_group!(benches, link);
criterion_main!(benches);
