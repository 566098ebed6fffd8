//! A correct server of both eras with the tools that the load tool calls, except for one planted
//! fault.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::sync::{broadcast, mpsc, oneshot};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    WrongText,
    /// Every third answer has the ID of another call.
    WrongId,
    LosesStep,
    Reorders,
    AsksNothing,
    CountsTwice,
    Breaks,
    Refuses,
    EndsStreams,
    TellsNothing,
    Stalls,
}

const TOOLS: [&str; 6] = [
    "echo",
    "echo_once",
    "long_job",
    "book_table",
    "count_up",
    "increment_counter",
];

struct Server {
    fault: Fault,
    calls: AtomicU64,
    sessions: Mutex<HashMap<String, u64>>,
    asked: Mutex<HashMap<String, oneshot::Sender<Value>>>,
    changed: broadcast::Sender<()>,
}

type Shared = State<Arc<Server>>;

pub(crate) async fn start(fault: Fault) -> SocketAddr {
    let server = Arc::new(Server {
        fault,
        calls: AtomicU64::new(0),
        sessions: Mutex::default(),
        asked: Mutex::default(),
        changed: broadcast::channel(1024).0,
    });
    let routes = post(answer).get(listen).delete(StatusCode::NO_CONTENT);
    let router = Router::new().route("/mcp", routes).with_state(server);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

async fn answer(State(server): Shared, headers: HeaderMap, body: Bytes) -> Response {
    let message: Value = serde_json::from_slice(&body).unwrap();
    let Some(method) = message["method"].as_str() else {
        let waiting = server
            .asked
            .lock()
            .unwrap()
            .remove(message["id"].as_str().unwrap());
        let _ = waiting.unwrap().send(message["result"].clone());
        return StatusCode::ACCEPTED.into_response();
    };
    let id = &message["id"];
    let params = &message["params"];
    match method {
        "initialize" => {
            let mut sessions = server.sessions.lock().unwrap();
            let name = format!("s{}", sessions.len());
            sessions.insert(name.clone(), 0);
            ([("mcp-session-id", name)], respond(id, &json!({}))).into_response()
        }
        "tools/list" => {
            let tools = TOOLS.map(|name| json!({"name": name}));
            respond(id, &json!({"tools": tools})).into_response()
        }
        "tools/call" => call(&server, &headers, id, params).await,
        "subscriptions/listen" => {
            let first = json!({"method": "notifications/subscriptions/acknowledged", "params": {}});
            changes(&server, Some(first))
        }
        "resources/subscribe" => respond(id, &json!({})).into_response(),
        _ => StatusCode::ACCEPTED.into_response(),
    }
}

async fn call(server: &Arc<Server>, headers: &HeaderMap, id: &Value, params: &Value) -> Response {
    let arguments = &params["arguments"];
    let number = server.calls.fetch_add(1, Ordering::SeqCst) + 1;
    let third = number.is_multiple_of(3);
    match server.fault {
        Fault::Breaks if third => return broken(),
        Fault::Refuses if third => return StatusCode::SERVICE_UNAVAILABLE.into_response(),
        Fault::WrongId if third => {
            return respond(&json!(id.as_u64().unwrap() + 1), &text_result("")).into_response();
        }
        Fault::Stalls if number == 10 => tokio::time::sleep(Duration::from_secs(1)).await,
        _ => {}
    }
    let text = match params["name"].as_str().unwrap() {
        "echo" | "echo_once" if third && server.fault == Fault::WrongText => {
            "another text".to_owned()
        }
        "echo" | "echo_once" => arguments["text"].as_str().unwrap().to_owned(),
        "long_job" => return long_job(server.fault, id, params),
        "book_table" => return book_table(server, id, params),
        "count_up" => {
            let mut sessions = server.sessions.lock().unwrap();
            let count = sessions
                .get_mut(headers["mcp-session-id"].to_str().unwrap())
                .unwrap();
            *count += if third && server.fault == Fault::CountsTwice {
                2
            } else {
                1
            };
            count.to_string()
        }
        "increment_counter" => {
            let _ = server.changed.send(());
            number.to_string()
        }
        other => panic!("no tool {other}"),
    };
    respond(id, &text_result(&text)).into_response()
}

fn long_job(fault: Fault, id: &Value, params: &Value) -> Response {
    let steps = params["arguments"]["steps"].as_u64().unwrap();
    let mut order: Vec<u64> = (1..=steps).collect();
    match fault {
        Fault::LosesStep => drop(order.remove(1)),
        Fault::Reorders => order.swap(0, 1),
        _ => {}
    }
    let mut body = String::new();
    for step in order {
        let params = json!({"progressToken": params["_meta"]["progressToken"], "progress": step});
        body += &event(&json!({"method": "notifications/progress", "params": params}));
    }
    let text = format!("done after {steps} steps");
    body += &event(&json!({"id": id, "result": text_result(&text)}));
    stream(Body::from(body))
}

fn book_table(server: &Arc<Server>, id: &Value, params: &Value) -> Response {
    let restaurant = params["arguments"]["restaurant"]
        .as_str()
        .unwrap()
        .to_owned();
    let booked = move |answer: &Value| {
        let content = &answer["content"];
        format!(
            "booked {restaurant} for {} on {}",
            content["guests"],
            content["date"].as_str().unwrap()
        )
    };
    if server.fault == Fault::AsksNothing {
        let answer = json!({"content": {"guests": 2, "date": "day 1"}});
        return respond(id, &text_result(&booked(&answer))).into_response();
    }
    let question = json!({"message": format!("When at {}?", params["arguments"]["restaurant"])});
    if params["_meta"]["io.modelcontextprotocol/protocolVersion"].is_string() {
        if params["requestState"] == "opaque \"state\"" {
            return respond(id, &text_result(&booked(&params["inputResponses"]["q 1"])))
                .into_response();
        }
        let asked = json!({"q 1": {"method": "elicitation/create", "params": question}});
        let result = json!({"resultType": "input_required", "inputRequests": asked, "requestState": "opaque \"state\""});
        return respond(id, &result).into_response();
    }
    let name = format!("question {}", server.calls.load(Ordering::SeqCst));
    let name = format!(
        "{name} of {restaurant}",
        restaurant = params["arguments"]["restaurant"]
    );
    let (answer, answered) = oneshot::channel();
    server.asked.lock().unwrap().insert(name.clone(), answer);
    let (events, received) = mpsc::channel(2);
    let id = id.clone();
    tokio::spawn(async move {
        let asked = json!({"id": name, "method": "elicitation/create", "params": question});
        let _ = events.send(event(&asked)).await;
        let answer = answered.await.unwrap();
        let response = json!({"id": id, "result": text_result(&booked(&answer))});
        let _ = events.send(event(&response)).await;
    });
    stream(following(received))
}

async fn listen(State(server): Shared) -> Response {
    changes(&server, None)
}

fn changes(server: &Server, first: Option<Value>) -> Response {
    let (events, received) = mpsc::channel(16);
    let mut changed = server.changed.subscribe();
    let fault = server.fault;
    tokio::spawn(async move {
        if let Some(first) = first {
            let _ = events.send(event(&first)).await;
        }
        while fault != Fault::EndsStreams && changed.recv().await.is_ok() {
            let updated = json!({"method": "notifications/resources/updated", "params": {}});
            if fault != Fault::TellsNothing && events.send(event(&updated)).await.is_err() {
                return;
            }
        }
    });
    stream(following(received))
}

fn broken() -> Response {
    let broken = futures::stream::once(async { Err::<Bytes, _>(std::io::Error::other("broken")) });
    Body::from_stream(broken).into_response()
}

fn following(received: mpsc::Receiver<String>) -> Body {
    let next = |mut received: mpsc::Receiver<String>| async move {
        let event = received.recv().await?;
        Some((Ok::<_, std::io::Error>(event), received))
    };
    Body::from_stream(futures::stream::unfold(received, next))
}

fn stream(body: Body) -> Response {
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

fn event(message: &Value) -> String {
    format!("data: {message}\n\n")
}

fn text_result(text: &str) -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": text}], "isError": false})
}

fn respond(id: &Value, result: &Value) -> Json<Value> {
    Json(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}
