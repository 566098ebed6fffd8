use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// A resume omits an event, but not the response.
    LosesOnResume,
    LosesInLog,
    /// A resumed stream begins with an event that the client already has.
    RepeatsOnResume,
    /// The second step is sent twice, under two IDs.
    RepeatsInLog,
    Reorders,
    AnswersTwice,
    Forgets,
}

pub(crate) async fn start(fault: Fault) -> SocketAddr {
    let server = Server {
        fault,
        streams: Arc::default(),
    };
    let router = Router::new()
        .route(
            "/mcp",
            post(answer).get(listen).delete(StatusCode::NO_CONTENT),
        )
        .with_state(server);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

#[derive(Clone)]
struct Server {
    fault: Fault,
    streams: Arc<Mutex<HashMap<String, Stream>>>,
}

/// A log of events, and whether it is complete.
type Stream = watch::Sender<(Vec<String>, bool)>;

impl Server {
    fn open(&self) -> (String, Stream) {
        let mut streams = self.streams.lock().unwrap();
        let name = format!("s{}", streams.len());
        let stream = Stream::new((Vec::new(), false));
        streams.insert(name.clone(), stream.clone());
        (name, stream)
    }

    fn stream(&self, name: &str) -> Option<Stream> {
        self.streams.lock().unwrap().get(name).cloned()
    }
}

async fn answer(State(server): State<Server>, headers: HeaderMap, body: Bytes) -> Response {
    let request: Value = serde_json::from_slice(&body).unwrap();
    let Some(id) = request["id"].as_u64() else {
        return StatusCode::ACCEPTED.into_response();
    };
    let result = |result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
    match request["method"].as_str().unwrap() {
        "initialize" => {
            let (name, stream) = server.open();
            append(&stream, "");
            ([("mcp-session-id", name)], Json(result(json!({})))).into_response()
        }
        "tools/list" => {
            let tools = [
                json!({"name": "long_job"}),
                json!({"name": "increment_counter"}),
            ];
            Json(result(json!({"tools": tools}))).into_response()
        }
        "tools/call" if request["params"]["name"] == "long_job" => {
            let (name, stream) = server.open();
            append(&stream, "");
            tokio::spawn(long_job(server.fault, stream.clone(), request));
            follow(&name, &stream, 0)
        }
        "tools/call" => {
            let session = headers["mcp-session-id"].to_str().unwrap();
            let updated = json!({"method": "notifications/resources/updated", "params": {}});
            append(&server.stream(session).unwrap(), &updated.to_string());
            Json(result(json!({"content": [{"type": "text", "text": "1"}]}))).into_response()
        }
        _ => Json(result(json!({}))).into_response(),
    }
}

async fn listen(State(server): State<Server>, headers: HeaderMap) -> Response {
    let Some(last) = headers.get("last-event-id") else {
        let session = headers["mcp-session-id"].to_str().unwrap();
        // A new listener does not get earlier events, but it needs a new ID to resume from.
        let stream = server.stream(session).unwrap();
        let length = stream.borrow().0.len();
        append(&stream, "");
        return follow(session, &stream, length);
    };
    let (name, index) = last.to_str().unwrap().split_once('/').unwrap();
    let index: usize = index.parse().unwrap();
    let stream = server.stream(name).unwrap();
    let length = stream.borrow().0.len();
    match server.fault {
        Fault::Forgets => StatusCode::NOT_FOUND.into_response(),
        Fault::LosesOnResume if index + 2 < length => follow(name, &stream, index + 2),
        Fault::RepeatsOnResume => follow(name, &stream, index),
        _ => follow(name, &stream, index + 1),
    }
}

async fn long_job(fault: Fault, stream: Stream, request: Value) {
    let steps = request["params"]["arguments"]["steps"].as_u64().unwrap();
    let interval = request["params"]["arguments"]["interval_ms"]
        .as_u64()
        .unwrap();
    let mut order: Vec<u64> = (1..=steps).collect();
    if steps >= 2 {
        match fault {
            Fault::LosesInLog => drop(order.remove(1)),
            Fault::RepeatsInLog => order.insert(2, 2),
            Fault::Reorders => order.swap(0, 1),
            _ => {}
        }
    }
    for step in order {
        tokio::time::sleep(Duration::from_millis(interval)).await;
        let params =
            json!({"progressToken": request["params"]["_meta"]["progressToken"], "progress": step});
        let progress = json!({"method": "notifications/progress", "params": params});
        append(&stream, &progress.to_string());
    }
    let text = json!({"type": "text", "text": format!("done after {steps} steps")});
    let response = json!({"id": request["id"], "result": {"content": [text]}}).to_string();
    append(&stream, &response);
    if fault == Fault::AnswersTwice {
        append(&stream, &response);
    }
    stream.send_modify(|(_, ended)| *ended = true);
}

fn append(stream: &Stream, data: &str) {
    stream.send_modify(|(log, _)| log.push(data.to_owned()));
}

fn follow(name: &str, stream: &Stream, index: usize) -> Response {
    let start = (name.to_owned(), stream.subscribe(), index);
    let body = futures::stream::unfold(start, |(name, mut log, index)| async move {
        let (event, next) = {
            let now = log
                .wait_for(|(log, ended)| *ended || log.len() > index)
                .await
                .ok()?;
            let data = now.0.get(index)?;
            (format!("id: {name}/{index}\ndata: {data}\n\n"), index + 1)
        };
        Some((Ok::<_, Infallible>(event), (name, log, next)))
    });
    (
        [(header::CONTENT_TYPE, "text/event-stream")],
        Body::from_stream(body),
    )
        .into_response()
}
