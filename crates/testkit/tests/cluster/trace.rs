mod collector;
mod conventions;

use serde_json::json;
use shoal_testkit::cluster::{Builder, Cluster, Tools};

use self::collector::{Collector, Span, drawn, unconnected};
use crate::client::{Client, progress_of, text_of};
use crate::session::owner;
use crate::{LEASE, start};

const TRACE: [u8; 16] = *b"\x0a\xf7\x65\x19\x16\xcd\x43\xdd\x84\x48\xeb\x21\x1c\x80\x31\x9c";
const CLIENT_SPAN: [u8; 8] = *b"\x00\xf0\x67\xaa\x0b\xa9\x02\xb7";
const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";

const SERVER: i32 = 2;
const CLIENT: i32 = 3;

fn traced(collector: &Collector) -> Builder {
    Cluster::builder()
        .edges(3)
        .sessions(2)
        .workers(2)
        .lease(LEASE)
        .tools(Tools::Chaos)
        .setting("telemetry.endpoint", &collector.endpoint)
        .setting("telemetry.traces.ratio", "0")
        .setting("streams.hold", "0s")
}

fn meta() -> serde_json::Value {
    json!({ "traceparent": TRACEPARENT })
}

fn names(spans: &[Span]) -> Vec<&str> {
    spans.iter().map(Span::name).collect()
}

fn survivors(spans: &[Span], killed: &str) -> Vec<Span> {
    let mut spans = spans.to_vec();
    spans.retain(|span| span.resource["service.instance.id"] != killed);
    spans
}

fn one<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let mut found = spans.iter().filter(|span| span.name() == name);
    found
        .next()
        .unwrap_or_else(|| panic!("no {name:?} in\n{}", drawn(spans)))
}

#[tokio::test]
async fn a_trace_goes_on_when_the_owner_of_the_session_is_killed() {
    let collector = Collector::start().await;
    let cluster = start(traced(&collector)).await;
    let client = Client::open(cluster.url()).await;
    let arguments = json!({ "nonce": "once", "count": 40, "ms": 100 });
    let mut events = client
        .stream_with(1, "steps_once", &arguments, meta())
        .await;
    let mut messages = Vec::new();
    for _ in 0..5 {
        messages.extend(events.next().await);
    }
    let owner = owner(&cluster).await;
    let status = owner.admin().status().await.unwrap();
    let killed = status["node"].as_str().unwrap();
    owner.kill().await.unwrap();
    messages.extend(events.rest().await);
    assert_eq!(text_of(messages.last().unwrap()), "once");
    assert_eq!(progress_of(&messages), (1..=40).collect::<Vec<_>>());

    let all = [
        "tools/call steps_once",
        "worker run",
        "worker attach",
        "session resume call",
        "session take over",
    ];
    // Spans that the killed node had not sent are lost. All other spans must be connected.
    let spans = collector
        .wait_for(&TRACE, |spans| {
            let survivors = survivors(spans, killed);
            all.iter().all(|name| names(&survivors).contains(name))
                && unconnected(&survivors, &CLIENT_SPAN).is_empty()
        })
        .await;
    let spans = survivors(&spans, killed);

    let server = spans
        .iter()
        .find(|span| span.name() == "tools/call steps_once" && span.span.kind == SERVER)
        .unwrap();
    assert_eq!(server.span.parent_span_id, CLIENT_SPAN);
    for (key, value) in [
        ("mcp.method.name", "tools/call"),
        ("mcp.session.id", client.session()),
        ("mcp.protocol.version", "2025-11-25"),
        ("gen_ai.tool.name", "steps_once"),
        ("gen_ai.operation.name", "execute_tool"),
        ("jsonrpc.request.id", "1"),
        ("network.transport", "tcp"),
        ("network.protocol.name", "http"),
        ("network.protocol.version", "1.1"),
        ("client.address", "127.0.0.1"),
    ] {
        assert_eq!(server.attribute(key), value, "{key} of {}", drawn(&spans));
    }
    assert_ne!(server.attribute("client.port"), "");

    let resumed = one(&spans, "session resume call");
    assert_eq!(resumed.span.parent_span_id, server.span.span_id);
    let taken_over = one(&spans, "session take over");
    assert_eq!(taken_over.attribute("mcp.session.id"), client.session());
    assert_eq!(taken_over.attribute("shoal.calls"), "1");
    assert_eq!(taken_over.attribute("shoal.outcome"), "done");
    let mut links = taken_over.span.links.iter().map(|link| &link.span_id);
    let found = links.any(|link| *link == server.span.span_id);
    assert!(found, "{}", drawn(&spans));
    let run = one(&spans, "worker run");
    let attach = one(&spans, "worker attach");
    let links: Vec<_> = attach.span.links.iter().map(|link| &link.span_id).collect();
    assert!(links.contains(&&run.span.span_id), "{}", drawn(&spans));
    let processes = |name: &str| one(&spans, name).resource["service.instance.id"].clone();
    assert_eq!(processes("worker run"), processes("worker attach"));
    assert_ne!(processes("session resume call"), processes("worker run"));
}

#[tokio::test]
async fn every_hop_of_a_call_is_in_its_trace() {
    let collector = Collector::start().await;
    let cluster = start(traced(&collector)).await;
    let client = Client::open(cluster.url()).await;
    let arguments = json!({ "nonce": "n", "ms": 1 });
    let mut events = client.stream_with(1, "record", &arguments, meta()).await;
    assert_eq!(text_of(events.rest().await.last().unwrap()), "n");
    let all = [
        "tools/call record",
        "session call",
        "journal begin",
        "event log append",
        "dispatch",
        "dispatch attempt",
        "worker run",
    ];
    let spans = collector
        .wait_for(&TRACE, |spans| {
            all.iter().all(|name| names(spans).contains(name))
                && unconnected(spans, &CLIENT_SPAN).is_empty()
        })
        .await;
    let mut span = spans
        .iter()
        .find(|span| span.name() == "tools/call record" && span.span.kind == CLIENT)
        .unwrap();
    let mut way = vec![span.name()];
    while span.span.parent_span_id != CLIENT_SPAN {
        let parent = &span.span.parent_span_id;
        span = spans
            .iter()
            .find(|above| above.span.span_id == *parent)
            .unwrap();
        way.push(span.name());
    }
    for hop in [
        "worker run",
        "dispatch attempt",
        "dispatch",
        "session call",
        "tools/call record",
    ] {
        assert!(way.contains(&hop), "{hop} is not on the way {way:?}");
    }
    let roles = spans
        .iter()
        .map(|span| span.resource["service.instance.id"].clone());
    let roles: std::collections::BTreeSet<_> = roles.collect();
    assert_eq!(roles.len(), 3, "edge, session node and worker: {roles:?}");
}

#[tokio::test]
async fn what_a_tool_asks_its_client_is_in_the_trace() {
    let collector = Collector::start().await;
    let cluster = start(traced(&collector)).await;
    let client = Client::open(cluster.url()).await;
    let arguments = json!({ "nonce": "asked" });
    let mut events = client.stream_with(1, "ask", &arguments, meta()).await;
    let question = events.next().await.unwrap();
    let error = json!({ "code": -32601, "message": "nobody is here" });
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "error": error });
    assert_eq!(client.post(&answer).await.status, 202);
    events.rest().await;

    let asks = |span: &&Span| {
        let owner = span.attribute("shoal.role") == "session" && span.span.kind == 3;
        owner && span.name() == "elicitation/create"
    };
    let spans = collector
        .wait_for(&TRACE, |spans| {
            spans.iter().any(|span| asks(&span)) && names(spans).contains(&"session call")
        })
        .await;
    let asked: Vec<_> = spans.iter().filter(asks).collect();
    assert_eq!(asked.len(), 1, "{}", drawn(&spans));
    let call = one(&spans, "session call");
    assert_eq!(asked[0].span.parent_span_id, call.span.span_id);
    for (key, value) in [
        ("mcp.method.name", "elicitation/create"),
        ("mcp.session.id", client.session()),
        ("mcp.protocol.version", "2025-11-25"),
        ("jsonrpc.request.id", question["id"].as_str().unwrap()),
        ("rpc.response.status_code", "-32601"),
        ("error.type", "-32601"),
    ] {
        assert_eq!(asked[0].attribute(key), value, "{key} of {}", drawn(&spans));
    }
}
