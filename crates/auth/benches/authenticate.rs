//! Measures the digest and lookup of a static token.
#![allow(missing_docs, reason = "the macros' functions are nobody's interface")]
#![allow(clippy::unwrap_used, reason = "a failed step is the report")]

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use shoal_auth::{StaticTokens, TokenHash};
use shoal_ports::{Authenticator as _, Credentials, Principal};
use tokio::runtime::Builder;

fn token(number: usize) -> String {
    format!("{number:064x}")
}

fn authenticate(criterion: &mut Criterion) {
    let runtime = Builder::new_current_thread().build().unwrap();
    let mut group = criterion.benchmark_group("bearer token");
    for known in [1, 1000] {
        let entries = (0..known).map(|number| {
            let principal = Principal::new(format!("caller {number}"));
            (TokenHash::of(token(number)), principal)
        });
        let tokens = StaticTokens::new(entries);
        let shown = token(known / 2);
        let one = || runtime.block_on(tokens.authenticate(Credentials::bearer(&shown)));
        assert_eq!(
            one().unwrap().principal.as_str(),
            format!("caller {}", known / 2)
        );
        group.bench_function(BenchmarkId::new("of", known), |bencher| bencher.iter(one));
    }
}

criterion_group!(benches, authenticate);
criterion_main!(benches);
