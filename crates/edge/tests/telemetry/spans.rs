use std::time::Duration;

use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use reqwest::Method;
use serde_json::json;
use shoal_ports::StreamItem;

use crate::collector::attribute;
use crate::gateway::{LIVE, id};
use crate::page::{alone, collector};
use crate::server::{Server, rpc};
use crate::sse::Events;

const OF_MESSAGE: [u8; 8] = [1; 8];
const OF_HEADERS: [u8; 8] = [2; 8];

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn traceparent(trace: [u8; 16], span: [u8; 8]) -> String {
    format!("00-{}-{}-01", hex(&trace), hex(&span))
}

fn expect(span: &Span, attributes: &[(&str, &str)]) {
    assert_eq!(span.kind(), SpanKind::Server);
    for (key, value) in attributes {
        assert_eq!(attribute(span, key), *value, "{key} of {span:#?}");
    }
}

fn status_of(span: &Span) -> i32 {
    span.status.as_ref().map_or(0, |status| status.code)
}

#[tokio::test]
async fn listening_resuming_and_ending_a_session_have_one() {
    let _turn = alone().await;
    let server = Server::start().await;
    let traces = [[0x11; 16], [0x12; 16], [0x13; 16]];
    let [listening, resuming, ending] = traces.map(|trace| traceparent(trace, OF_HEADERS));

    let listen = server.listen().header("traceparent", listening);
    let _listening = Events::of(listen.send().await.unwrap());
    let resume = server.listen().header("traceparent", resuming);
    let resume = resume.header("last-event-id", id(3).to_string());
    let _resumed = Events::of(resume.send().await.unwrap());
    let end = server
        .request(Method::DELETE, "/mcp")
        .header("mcp-session-id", LIVE)
        .header("traceparent", ending);
    assert_eq!(end.send().await.unwrap().status(), 204);

    let of_all = [("http.route", "/mcp"), ("mcp.session.id", LIVE)];
    let ok = ("http.response.status_code", "200");
    let span = collector().span(traces[0], "GET /mcp").await;
    assert_eq!(span.parent_span_id, OF_HEADERS);
    expect(&span, &of_all);
    expect(&span, &[ok, ("shoal.reason", "listen")]);
    let span = collector().span(traces[1], "GET /mcp").await;
    expect(&span, &of_all);
    let stream = id(3).stream.to_string();
    let resumed = [("shoal.reason", "resume"), ("shoal.stream.id", &stream)];
    expect(&span, &[ok]);
    expect(&span, &resumed);
    let span = collector().span(traces[2], "DELETE /mcp").await;
    expect(&span, &of_all);
    expect(&span, &[("http.response.status_code", "204")]);
}

#[tokio::test]
async fn that_of_initialize_says_what_came_of_it() {
    let _turn = alone().await;
    let server = Server::start().await;
    let trace = [0x21; 16];
    let meta = json!({"traceparent": traceparent(trace, OF_MESSAGE)});
    let params = json!({"protocolVersion": "2025-06-18", "_meta": meta});
    let asked = server
        .post(rpc("initialize", &params).to_string())
        .header("traceparent", traceparent([0x22; 16], OF_HEADERS));
    assert_eq!(asked.send().await.unwrap().status(), 200);
    let span = collector().span(trace, "initialize").await;
    assert_eq!(span.parent_span_id, OF_MESSAGE);
    let links: Vec<_> = span.links.iter().map(|link| &link.span_id[..]).collect();
    assert_eq!(links, [OF_HEADERS]);
    expect(
        &span,
        &[
            ("mcp.method.name", "initialize"),
            ("mcp.session.id", LIVE),
            ("mcp.protocol.version", "2025-11-25"),
            ("jsonrpc.request.id", "7"),
        ],
    );
}

#[tokio::test]
async fn what_a_client_makes_up_names_none() {
    let _turn = alone().await;
    let server = Server::start().await;
    let traces = [[0x31; 16], [0x32; 16], [0x33; 16]];
    let header = |at: usize| traceparent(traces[at], OF_HEADERS);
    let unknown = server.tool("unknown").header("traceparent", header(0));
    unknown.send().await.unwrap().bytes().await.unwrap();
    let echo = server.tool("echo").header("traceparent", header(1));
    echo.send().await.unwrap().bytes().await.unwrap();
    let method = server.legacy(&rpc("made/up", &json!({})));
    let method = method.header("traceparent", header(2));
    method.send().await.unwrap().bytes().await.unwrap();

    let span = collector().span(traces[0], "tools/call").await;
    assert_eq!(status_of(&span), 2, "{span:#?}");
    let code = ("rpc.response.status_code", "-32602");
    expect(&span, &[("gen_ai.tool.name", "unknown"), code]);
    let span = collector().span(traces[1], "tools/call echo").await;
    assert_eq!(status_of(&span), 0, "{span:#?}");
    let span = collector().span(traces[2], "_OTHER").await;
    expect(&span, &[("mcp.method.name", "made/up")]);
}

#[tokio::test]
async fn a_stream_that_ends_before_the_answer_is_no_error() {
    let _turn = alone().await;
    let server = Server::start().await;
    let trace = [0x41; 16];
    let call = server.legacy(&rpc("tools/call", &json!({"name": "played"})));
    let call = call.header("traceparent", traceparent(trace, OF_HEADERS));
    let mut events = Events::of(call.send().await.unwrap());
    let feed = server.gateway.stream().await;
    let retry = Duration::from_secs(1);
    feed.send(StreamItem::Retry(retry)).await.unwrap();
    while events.block().await.is_some() {}
    let span = collector().span(trace, "tools/call").await;
    let events: Vec<_> = span.events.iter().map(|event| &event.name[..]).collect();
    assert_eq!(events, ["stream closed"]);
    assert_eq!(status_of(&span), 0, "{span:#?}");
}
