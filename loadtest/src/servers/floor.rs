//! The floor is the least work of an HTTP server in Rust that answers an echo call: typed serde
//! over bare axum, without checking MCP. The floor's progress events have the same bytes as
//! Shoal's. A call of `echo_slowly` is a task that has ended at the first poll.

use std::borrow::Cow;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Json;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::engine::call::POLL_INTERVAL_MS;

const KEEP_ALIVE: Duration = Duration::from_secs(15);
const TASK: &str = "task-";
const WHEN: &str = "2026-07-28T00:00:00.000Z";

const STREAM_HEADERS: [(HeaderName, HeaderValue); 3] = [
    (
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    ),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (
        HeaderName::from_static("x-accel-buffering"),
        HeaderValue::from_static("no"),
    ),
];

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(default)]
    id: Option<u64>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow, default)]
    params: Params<'a>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    arguments: Arguments<'a>,
    #[serde(borrow, default)]
    task_id: Cow<'a, str>,
    #[serde(default, rename = "_meta")]
    meta: Meta,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Meta {
    #[serde(default)]
    progress_token: u64,
}

#[derive(Deserialize, Default)]
struct Arguments<'a> {
    #[serde(borrow, default)]
    text: Cow<'a, str>,
    #[serde(default)]
    steps: u32,
    #[serde(default)]
    interval_ms: u64,
}

#[derive(Serialize)]
struct Answer<T> {
    jsonrpc: &'static str,
    id: u64,
    result: T,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EchoResult<'a> {
    content: [TextContent<'a>; 1],
    is_error: bool,
}

#[derive(Serialize)]
struct TextContent<'a> {
    r#type: &'static str,
    text: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Task<'a> {
    result_type: &'static str,
    task_id: String,
    status: &'static str,
    created_at: &'static str,
    last_updated_at: &'static str,
    ttl_ms: u64,
    poll_interval_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<EchoResult<'a>>,
}

pub(crate) async fn serve(listen: SocketAddr) -> anyhow::Result<()> {
    super::serve(
        Router::new().route(super::PATH, post(answer).get(silence)),
        listen,
    )
    .await
}

async fn silence() -> impl IntoResponse {
    let events = stream::pending::<Result<Event, Infallible>>();
    Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
}

async fn answer(body: Bytes) -> Response {
    let Ok(request) = serde_json::from_slice::<Request<'_>>(&body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let Some(id) = request.id else {
        return StatusCode::ACCEPTED.into_response();
    };
    let (params, arguments) = (&request.params, &request.params.arguments);
    match request.method.as_ref() {
        "tools/call" if params.name == "long_job" => {
            let interval = Duration::from_millis(arguments.interval_ms);
            progress(id, params.meta.progress_token, arguments.steps, interval)
        }
        "tools/call" if params.name == "echo_slowly" => {
            result(id, task("task", "working", &arguments.text, None))
        }
        "tasks/get" => {
            let text = params.task_id.strip_prefix(TASK).unwrap_or_default();
            result(id, task("complete", "completed", text, Some(echo(text))))
        }
        "tools/call" => result(id, echo(&arguments.text)),
        "initialize" => result(
            id,
            json!({
                "protocolVersion": crate::mcp::request::LEGACY,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "floor", "version": env!("CARGO_PKG_VERSION")},
            }),
        ),
        "tools/list" => {
            let tool = |name| json!({"name": name, "inputSchema": {"type": "object"}});
            let tools = ["echo", "echo_slowly", "long_job"].map(tool);
            result(id, json!({"tools": tools}))
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

fn answer_of<T>(id: u64, result: T) -> Answer<T> {
    Answer {
        jsonrpc: "2.0",
        id,
        result,
    }
}

fn result(id: u64, result: impl Serialize) -> Response {
    Json(answer_of(id, result)).into_response()
}

fn echo(text: &str) -> EchoResult<'_> {
    EchoResult {
        content: [TextContent {
            r#type: "text",
            text,
        }],
        is_error: false,
    }
}

fn task<'a>(
    result_type: &'static str,
    status: &'static str,
    text: &str,
    result: Option<EchoResult<'a>>,
) -> Task<'a> {
    Task {
        result_type,
        task_id: format!("{TASK}{text}"),
        status,
        created_at: WHEN,
        last_updated_at: WHEN,
        ttl_ms: 1000,
        poll_interval_ms: POLL_INTERVAL_MS,
        result,
    }
}

/// Without an interval, hyper combines the events into few writes.
fn progress(id: u64, token: u64, steps: u32, interval: Duration) -> Response {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let events = stream::iter(0..=steps + 1).then(move |number| async move {
        // The first report comes at once, and the result after the last step.
        if number > 1 && !interval.is_zero() {
            tokio::time::sleep(interval).await;
        }
        let rest = match number {
            0 => "retry: 1000\ndata: ".to_owned(),
            step if step <= steps => format!(
                r#"data: {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{step}.0,"total":{steps}.0,"message":"step {step} of {steps}"}}}}"#
            ),
            _ => {
                let text = format!("done after {steps} steps");
                let json = serde_json::to_string(&answer_of(id, echo(&text)));
                let json = json.expect("strings can be written as JSON");
                format!("data: {json}")
            }
        };
        let event = format!("id: {token:08x}-{call:x}-{number:x}\n{rest}\n\n");
        Ok::<_, Infallible>(Bytes::from(event))
    });
    (STREAM_HEADERS, Body::from_stream(events)).into_response()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::body::to_bytes;

    use super::progress;

    #[tokio::test]
    async fn the_stream_has_the_bytes_of_one_of_shoal() {
        let body = to_bytes(progress(2, 7, 2, Duration::ZERO).into_body(), 10_000);
        let body = String::from_utf8(body.await.unwrap().to_vec()).unwrap();
        let call = body.split('-').nth(1).unwrap();
        let expected = [
            "id: 00000007-CALL-0\nretry: 1000\ndata: \n\n",
            "id: 00000007-CALL-1\ndata: ",
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1.0,"total":2.0,"message":"step 1 of 2"}}"#,
            "\n\nid: 00000007-CALL-2\ndata: ",
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":2.0,"total":2.0,"message":"step 2 of 2"}}"#,
            "\n\nid: 00000007-CALL-3\ndata: ",
            r#"{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"done after 2 steps"}],"isError":false}}"#,
            "\n\n",
        ];
        assert_eq!(body, expected.concat().replace("CALL", call));
    }
}
