use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use shoal_protocol::TraceContext;
use shoal_telemetry::config::{Compression, Protocol, Secret, Telemetry};
use shoal_telemetry::trace::{self, InSpan as _, attributes, names};

use crate::collector::{Collector, texts};
use crate::process::{LONG, alone, json, telemetry};

const CLIENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[test]
fn arrive_over_grpc() {
    alone("spans::arrive_over_grpc", || {
        let collector = Collector::start(Protocol::Grpc);
        let telemetry = telemetry(collector.endpoint.clone(), Protocol::Grpc);
        check(&collector, telemetry);
    });
}

#[test]
fn arrive_over_http() {
    alone("spans::arrive_over_http", || {
        let collector = Collector::start(Protocol::Http);
        let telemetry = telemetry(format!("{}/", collector.endpoint), Protocol::Http);
        check(&collector, telemetry);
    });
}

fn check(collector: &Collector, mut telemetry: Telemetry) {
    telemetry.headers = [("authorization".to_owned(), Secret::new("Bearer x"))].into();
    let guard = shoal_telemetry::init(&telemetry, &json()).expect("telemetry starts");

    let parent = TraceContext::parse(CLIENT, Some("rojo=1")).expect("a good parent");
    let method = "tools/call".to_owned();
    let mut server = trace::server(|| names::mcp_name(&method, Some("add")))
        .parent(Some(&parent))
        .start_with(|set| {
            set.set(attributes::MCP_METHOD_NAME, "tools/call")
                .set_some(attributes::GEN_AI_TOOL_NAME, Some("add"))
                .set_some(attributes::GEN_AI_PROMPT_NAME, None);
        });
    server.set(attributes::EPOCH, 7);
    server.set(attributes::EPOCH, 8);
    server.set(attributes::IS_REPEATED, true);
    server.record_error_with("tool_error", "it broke");
    let context = server.context().expect("a context").clone();
    assert!(context.is_sampled() && server.is_recording());
    assert_eq!(context.trace_id(), parent.trace_id());
    assert_eq!(context.tracestate(), Some("rojo=1"));
    let current = async { trace::current() }.in_span(&server);
    assert_eq!(
        futures::executor::block_on(current).as_ref(),
        Some(&context)
    );
    assert_eq!(trace::current(), None);

    let first = trace::client(names::ATTEMPT).parent(Some(&context)).start();
    let first_context = first.context().cloned();
    first.end();
    let mut second = trace::client("placeholder")
        .parent(Some(&context))
        .link(first_context.as_ref())
        .start();
    second.rename(|| "second attempt");
    second.add_event("overloaded", |set| {
        set.set(attributes::WORKER, "w-1");
    });
    drop(second);
    drop(server);
    trace::internal("a root").start().end();
    guard.shutdown(LONG);

    assert_eq!(collector.spans().len(), 4);
    let server = collector.span("tools/call add");
    assert_eq!(server.kind(), SpanKind::Server);
    assert_eq!(hex(&server.trace_id), parent.trace_id());
    assert_eq!(hex(&server.parent_span_id), parent.span_id());
    assert_eq!(hex(&server.span_id), context.span_id());
    assert_eq!(server.trace_state, "rojo=1");
    let set = texts(&server.attributes);
    for (key, value) in [
        ("mcp.method.name", "tools/call"),
        ("gen_ai.tool.name", "add"),
        ("shoal.epoch", "8"),
        ("shoal.delivery.repeated", "true"),
        ("error.type", "tool_error"),
    ] {
        assert_eq!(set.get(key).map(String::as_str), Some(value), "{key}");
    }
    assert_eq!(set.len(), 5, "{set:?}");
    let status = server.status.expect("a status");
    assert_eq!(status.code(), StatusCode::Error);
    assert_eq!(status.message, "it broke");
    assert!(server.end_time_unix_nano >= server.start_time_unix_nano);

    let first = collector.span(names::ATTEMPT);
    assert_eq!(first.kind(), SpanKind::Client);
    assert_eq!(hex(&first.parent_span_id), context.span_id());
    let second = collector.span("second attempt");
    assert_eq!(hex(&second.trace_id), parent.trace_id());
    assert_eq!(hex(&second.links[0].span_id), hex(&first.span_id));
    assert_eq!(second.events[0].name, "overloaded");
    assert_eq!(texts(&second.events[0].attributes)["shoal.worker"], "w-1");

    let root = collector.span("a root");
    assert_eq!(root.kind(), SpanKind::Internal);
    assert!(root.parent_span_id.is_empty());
    assert_ne!(root.trace_id, server.trace_id);

    let resource = collector.resource();
    assert_eq!(resource["service.name"], "shoal");
    assert_eq!(resource["service.instance.id"], "node-1");
    assert_eq!(resource["shoal.node"], "node-1");
    let got = collector.got();
    assert!(!got.authorization.is_empty());
    assert!(got.authorization.iter().all(|it| it == "Bearer x"));
}

fn compressed(protocol: Protocol) {
    let collector = Collector::start(protocol);
    let mut telemetry = telemetry(collector.endpoint.clone(), protocol);
    telemetry.compression = Compression::Gzip;
    let guard = shoal_telemetry::init(&telemetry, &json()).expect("telemetry starts");
    trace::internal("a span").start().end();
    guard.shutdown(LONG);
    collector.span("a span");
    assert!(collector.got().is_compressed);
}

#[test]
fn are_compressed_over_grpc() {
    alone("spans::are_compressed_over_grpc", || {
        compressed(Protocol::Grpc);
    });
}

#[test]
fn are_compressed_over_http() {
    alone("spans::are_compressed_over_http", || {
        compressed(Protocol::Http);
    });
}

#[test]
fn do_not_carry_more_than_they_may() {
    alone("spans::do_not_carry_more_than_they_may", || {
        let collector = Collector::start(Protocol::Grpc);
        let telemetry = telemetry(collector.endpoint.clone(), Protocol::Grpc);
        let guard = shoal_telemetry::init(&telemetry, &json()).expect("telemetry starts");
        let long = format!("x{}", "é".repeat(attributes::LONGEST_TEXT));
        let mut span = trace::internal("a span").start_with(|set| {
            for _ in 0..1_000 {
                set.set(attributes::MCP_RESOURCE_URI, &long);
            }
        });
        span.record_error_with("broken", &long);
        let name = long.clone();
        span.rename(|| name);
        for _ in 0..1_000 {
            span.add_event("again", |_| ());
            span.add_link(&TraceContext::parse(CLIENT, None).expect("good"));
        }
        span.end();
        guard.shutdown(LONG);
        let limit = attributes::LONGEST_TEXT - 1;
        let span = collector.span(&long[..limit]);
        assert_eq!(texts(&span.attributes)["mcp.resource.uri"].len(), limit);
        assert_eq!(span.status.expect("a status").message.len(), limit);
        assert_eq!(span.attributes.len(), 128);
        assert_eq!((span.events.len(), span.dropped_events_count), (128, 872));
        assert_eq!((span.links.len(), span.dropped_links_count), (128, 872));
    });
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
