use shoal_protocol::TraceContext;
use shoal_telemetry::config::{ParentSampling, Protocol, Telemetry, ToolRatio};
use shoal_telemetry::trace;

use crate::collector::Collector;
use crate::process::{LONG, alone, json, telemetry};

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7";

fn run(change: impl FnOnce(&mut Telemetry), spans: impl FnOnce()) -> Vec<String> {
    let collector = Collector::start(Protocol::Grpc);
    let mut telemetry = telemetry(collector.endpoint.clone(), Protocol::Grpc);
    change(&mut telemetry);
    let guard = shoal_telemetry::init(&telemetry, &json()).expect("telemetry starts");
    spans();
    guard.shutdown(LONG);
    collector.spans().into_iter().map(|it| it.name).collect()
}

fn parent(flags: &str) -> TraceContext {
    TraceContext::parse(&format!("{TRACE}-{flags}"), None).expect("a good parent")
}

fn family(parent: Option<&TraceContext>, tool: &str, names: [&'static str; 2]) -> String {
    let span = trace::server(names[0])
        .parent(parent)
        .sampling_target(tool)
        .start();
    let child = trace::internal(names[1]).parent(span.context()).start();
    assert_eq!(span.is_recording(), child.is_recording());
    let context = child.context().expect("a context to pass on");
    assert_eq!(context.is_sampled(), child.is_recording());
    context.to_traceparent()
}

#[test]
fn follow_the_client() {
    alone("sampling::follow_the_client", || {
        let names = run(
            |telemetry| {
                telemetry.traces.ratio = 0.0;
                telemetry.traces.tools = vec![all("kept*")];
            },
            || {
                family(Some(&parent("01")), "any", ["yes-1", "yes-2"]);
                let passed_on = family(Some(&parent("00")), "kept", ["no-1", "no-2"]);
                assert_eq!(passed_on, format!("{TRACE}-00"));
                family(None, "kept_1", ["tool-1", "tool-2"]);
                family(None, "other", ["no-3", "no-4"]);
                family(None, "", ["no-5", "no-6"]);
            },
        );
        assert_eq!(names, ["tool-1", "tool-2", "yes-1", "yes-2"]);
    });
}

#[test]
fn ignore_the_client() {
    alone("sampling::ignore_the_client", || {
        let names = run(
            |telemetry| {
                telemetry.traces.ratio = 0.0;
                telemetry.traces.parent = ParentSampling::Ignore;
                telemetry.traces.tools = vec![all("kept")];
            },
            || {
                family(Some(&parent("01")), "any", ["no-1", "no-2"]);
                let passed_on = family(Some(&parent("00")), "kept", ["yes-1", "yes-2"]);
                assert!(passed_on.starts_with(&TRACE[..35]) && passed_on.ends_with("-01"));
                // Shoal's own decision applies at every hop, even if a process does not know the tool.
                let own = TraceContext::parse_trusted(&format!("{TRACE}-01"), None);
                family(own.as_ref(), "", ["hop-1", "hop-2"]);
            },
        );
        assert_eq!(names, ["hop-1", "hop-2", "yes-1", "yes-2"]);
    });
}

#[test]
fn a_share_of_all() {
    alone("sampling::a_share_of_all", || {
        let mut recorded = 0;
        let names = run(
            |telemetry| telemetry.traces.ratio = 0.5,
            || {
                for _ in 0..2_000 {
                    recorded += usize::from(trace::internal("one").start().is_recording());
                }
            },
        );
        assert_eq!(names.len(), recorded);
        // The bounds are 22 standard deviations from the expected number.
        assert!((500..1_500).contains(&recorded), "{recorded}");
    });
}

fn all(tool: &str) -> ToolRatio {
    ToolRatio {
        tool: tool.to_owned(),
        ratio: 1.0,
    }
}
