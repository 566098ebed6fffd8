//! Measures argument validation, with and without a realistic schema.
#![allow(missing_docs, reason = "the macros' functions are nobody's interface")]
#![allow(clippy::unwrap_used, reason = "a failed step is the report")]

#[path = "../tests/dispatch/fake_worker.rs"]
#[allow(dead_code, reason = "shared with the tests")]
mod fake_worker;
#[path = "../tests/dispatch/script.rs"]
#[allow(dead_code, reason = "shared with the tests")]
mod script;
#[path = "../tests/dispatch/setting.rs"]
#[allow(dead_code, reason = "shared with the tests")]
mod setting;

use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::{Value, json};
use shoal_ports::{CallId, CallOutcome};
use tokio::runtime::Builder;

use fake_worker::FakeWorker;
use setting::{CallExt as _, items, legacy, tools};

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 80},
            "day": {"type": "string", "pattern": "^\\d{4}-\\d{2}-\\d{2}$"},
            "guests": {"type": "integer", "minimum": 1, "maximum": 20},
            "area": {"enum": ["inside", "outside", "bar"]},
            "wishes": {"type": "array", "maxItems": 5, "items": {"type": "string"}}
        },
        "required": ["name", "day", "guests"],
        "additionalProperties": false
    })
}

fn validation(criterion: &mut Criterion) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let setting = {
        let _entered = runtime.enter();
        setting::setting()
    };
    let mut catalog = tools(&["anything"]);
    let checked = json!([{"name": "checked", "inputSchema": schema()}]);
    catalog.tools.extend(items(checked));
    let worker = {
        let _entered = runtime.enter();
        setting.add(FakeWorker::new("w", "tools", catalog))
    };
    let arguments = json!({
        "name": "Ada Lovelace", "day": "2026-11-21", "guests": 4, "area": "bar", "wishes": ["a quiet corner"]
    });
    let mut group = criterion.benchmark_group("call of a tool");
    for tool in ["anything", "checked"] {
        let call = legacy(tool, arguments.clone()).repeatable();
        let one = || {
            let mut call = call.clone();
            call.id = CallId::generate();
            let outcome = runtime.block_on(setting.outcome(call));
            assert!(matches!(outcome, CallOutcome::Result(_)), "{outcome:?}");
            worker.started.lock().clear();
        };
        one();
        group.bench_function(tool, |bencher| bencher.iter(one));
    }
}

criterion_group!(benches, validation);
criterion_main!(benches);
