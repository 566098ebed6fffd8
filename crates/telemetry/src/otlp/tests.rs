use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry::trace::{Event, SpanKind, Status};
use opentelemetry::{Array, InstrumentationScope, KeyValue, StringValue, Value};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue as Pair};
use opentelemetry_proto::tonic::trace::v1 as proto;
use opentelemetry_sdk::Resource;
use prost::Message as _;
use shoal_protocol::TraceContext;

use super::{Envelope, append, encode};
use crate::trace::SpanData;

const CONTEXT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const OTHER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

fn context(text: &str, state: Option<&str>) -> TraceContext {
    TraceContext::parse(text, state).expect("a good context")
}

fn at(nanos: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_nanos(nanos)
}

fn running() -> SpanData {
    SpanData {
        parent: None,
        is_parent_remote: false,
        name: "tools/call add".into(),
        kind: SpanKind::Server,
        started: at(1_700_000_000_000_000_001),
        attributes: Vec::new(),
        dropped_attributes: 0,
        events: Vec::new(),
        dropped_events: 0,
        links: Vec::new(),
        dropped_links: 0,
        status: Status::Unset,
    }
}

fn read(spans: &[(TraceContext, SpanData)]) -> ExportTraceServiceRequest {
    let resource = Resource::builder_empty()
        .with_attributes([KeyValue::new("service.name", "shoal")])
        .build();
    let scope = InstrumentationScope::builder("shoal")
        .with_version("1.2.3")
        .build();
    let mut batch = Vec::new();
    for (context, span) in spans {
        append(
            &mut batch,
            &encode(context, span, at(1_700_000_000_000_000_009)),
        );
    }
    let request = Envelope::new(&resource, &scope).request(&batch);
    ExportTraceServiceRequest::decode(request).expect("a good request")
}

fn one(context: TraceContext, span: SpanData) -> proto::Span {
    let mut request = read(&[(context, span)]);
    request
        .resource_spans
        .remove(0)
        .scope_spans
        .remove(0)
        .spans
        .remove(0)
}

fn pair(key: &str, value: Any) -> Pair {
    Pair {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..Pair::default()
    }
}

#[test]
fn a_batch_says_whose_it_is() {
    let spans = [
        (context(CONTEXT, None), running()),
        (context(OTHER, None), running()),
    ];
    let request = read(&spans);
    let [all] = &*request.resource_spans else {
        panic!("{request:?}")
    };
    let resource = all.resource.as_ref().expect("a resource");
    let name = pair("service.name", Any::StringValue("shoal".to_owned()));
    assert_eq!(resource.attributes, [name]);
    let [scoped] = &*all.scope_spans else {
        panic!("{all:?}")
    };
    let scope = scoped.scope.as_ref().expect("a scope");
    assert_eq!((&*scope.name, &*scope.version), ("shoal", "1.2.3"));
    assert_eq!(scoped.spans.len(), 2);
}

#[test]
fn a_span_that_says_little() {
    let span = one(context(CONTEXT, None), running());
    let little = proto::Span {
        trace_id: 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736_u128
            .to_be_bytes()
            .to_vec(),
        span_id: 0x00f0_67aa_0ba9_02b7_u64.to_be_bytes().to_vec(),
        name: "tools/call add".to_owned(),
        kind: proto::span::SpanKind::Server as i32,
        start_time_unix_nano: 1_700_000_000_000_000_001,
        end_time_unix_nano: 1_700_000_000_000_000_009,
        flags: 0x101,
        ..proto::Span::default()
    };
    assert_eq!(span, little);
}

#[test]
fn a_span_that_says_everything() {
    let attributes = vec![
        KeyValue::new("text", "é"),
        KeyValue::new("empty", ""),
        KeyValue::new("negative", -1),
        KeyValue::new("zero", 0),
        KeyValue::new("no", false),
        KeyValue::new("share", 0.5),
        KeyValue::new(
            "list",
            Value::Array(Array::String(vec![StringValue::from("a"), "".into()])),
        ),
        KeyValue::new("long", "x".repeat(1_000)),
    ];
    let span = one(
        context(CONTEXT, Some("rojo=1")),
        SpanData {
            parent: Some(7),
            is_parent_remote: true,
            kind: SpanKind::Client,
            attributes,
            dropped_attributes: 300,
            events: vec![Event::new("retry", at(5), vec![KeyValue::new("n", 2)], 0)],
            dropped_events: 1,
            links: vec![context(OTHER, Some("a=b"))],
            dropped_links: 2,
            status: Status::error("it broke"),
            ..running()
        },
    );
    let text = |text: &str| Any::StringValue(text.to_owned());
    let list = ["a", ""].map(|it| AnyValue {
        value: Some(text(it)),
    });
    let expected = [
        pair("text", text("é")),
        pair("empty", text("")),
        pair("negative", Any::IntValue(-1)),
        pair("zero", Any::IntValue(0)),
        pair("no", Any::BoolValue(false)),
        pair("share", Any::DoubleValue(0.5)),
        pair(
            "list",
            Any::ArrayValue(ArrayValue {
                values: list.to_vec(),
            }),
        ),
        pair("long", text(&"x".repeat(1_000))),
    ];
    assert_eq!(span.attributes, expected);
    assert_eq!(span.trace_state, "rojo=1");
    assert_eq!(span.parent_span_id, [0, 0, 0, 0, 0, 0, 0, 7]);
    assert_eq!(span.kind(), proto::span::SpanKind::Client);
    assert_eq!(span.flags, 0x301);
    let dropped = (
        span.dropped_attributes_count,
        span.dropped_events_count,
        span.dropped_links_count,
    );
    assert_eq!(dropped, (300, 1, 2));
    let event = proto::span::Event {
        time_unix_nano: 5,
        name: "retry".to_owned(),
        attributes: vec![pair("n", Any::IntValue(2))],
        dropped_attributes_count: 0,
    };
    assert_eq!(span.events, [event]);
    let link = &span.links[0];
    assert_eq!(
        link.trace_id,
        0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c_u128.to_be_bytes()
    );
    assert_eq!(link.span_id, 0xb7ad_6b71_6920_3331_u64.to_be_bytes());
    assert_eq!((&*link.trace_state, link.flags), ("a=b", 0x300));
    let status = span.status.expect("a status");
    assert_eq!(status.code(), proto::status::StatusCode::Error);
    assert_eq!(status.message, "it broke");
}
