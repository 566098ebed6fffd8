//! The floor is the least work of an HTTP server in Rust that answers an echo call: typed serde
//! over bare axum, without checking MCP. The floor's progress events have the same bytes as
//! Shoal's. A call of `echo_slowly` is a task that has ended at the first poll.

mod progress;
mod task;

use std::borrow::Cow;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Json;
use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures::stream::pending;
use serde::{Deserialize, Serialize};
use serde_json::json;

const KEEP_ALIVE: Duration = Duration::from_secs(15);

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

pub(crate) async fn serve(listen: SocketAddr) -> anyhow::Result<()> {
    super::serve(
        Router::new().route(super::PATH, post(answer).get(silence)),
        listen,
    )
    .await
}

async fn silence() -> impl IntoResponse {
    let events = pending::<Result<Event, Infallible>>();
    Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
}

async fn answer(body: Bytes) -> Response {
    let Ok(request) = serde_json::from_slice::<Request<'_>>(&body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let Some(id) = request.id else {
        return StatusCode::ACCEPTED.into_response();
    };
    match request.method.as_ref() {
        "tools/call" if request.params.name == "long_job" => progress::stream(&progress::Job {
            id,
            token: request.params.meta.progress_token,
            steps: request.params.arguments.steps,
            interval: Duration::from_millis(request.params.arguments.interval_ms),
        }),
        "tools/call" if request.params.name == "echo_slowly" => {
            result(id, task::created(&request.params.arguments.text))
        }
        "tasks/get" => result(id, task::ended(&request.params.task_id)),
        "tools/call" => result(
            id,
            EchoResult {
                content: [TextContent {
                    r#type: "text",
                    text: &request.params.arguments.text,
                }],
                is_error: false,
            },
        ),
        "initialize" => result(
            id,
            json!({
                "protocolVersion": crate::mcp::legacy::VERSION,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "floor", "version": env!("CARGO_PKG_VERSION")},
            }),
        ),
        "tools/list" => result(
            id,
            json!({"tools": [
                {"name": "echo", "inputSchema": {"type": "object"}},
                {"name": "echo_slowly", "inputSchema": {"type": "object"}},
                {"name": "long_job", "inputSchema": {"type": "object"}},
            ]}),
        ),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

fn result(id: u64, result: impl Serialize) -> Response {
    Json(Answer {
        jsonrpc: "2.0",
        id,
        result,
    })
    .into_response()
}
