#![allow(missing_docs, reason = "the macros' functions are nobody's interface")]

use std::hint::black_box;
use std::str::FromStr as _;

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use shoal_protocol::{Body, EventId, RawJson, RequestId, StreamId, response};

/// Bytes of a small call's text, and of one that mostly costs scanning and copying.
const SIZES: [usize; 2] = [32, 64 * 1024];
const DEPTH: usize = 64;

fn envelope(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("envelope");
    for size in SIZES {
        let text = "x".repeat(size);
        let call = Bytes::from(format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{text}"}}}}}}"#
        ));
        let result =
            format!(r#"{{"content":[{{"type":"text","text":"{text}"}}],"isError":false}}"#);
        let result = RawJson::from_valid(result.into());
        let id = RequestId::from_json(&RawJson::from_static("7")).expect("a number is an id");
        group.throughput(Throughput::Bytes(call.len() as u64));
        group.bench_function(format!("parse {size}"), |bencher| {
            bencher.iter(|| Body::parse(black_box(&call), DEPTH));
        });
        group.bench_function(format!("splice {size}"), |bencher| {
            bencher.iter(|| response(black_box(&id), black_box(&result)));
        });
    }
}

fn event_id(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("event id");
    let id = EventId {
        epoch: 0x6761_0b2f,
        stream: StreamId(41),
        sequence: 1234,
    };
    let text = id.to_string();
    group.bench_function("write", |bencher| {
        bencher.iter(|| black_box(id).to_string())
    });
    group.bench_function("read", |bencher| {
        bencher.iter(|| EventId::from_str(black_box(&text)));
    });
}

criterion_group!(benches, envelope, event_id);
criterion_main!(benches);
