use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use futures::{StreamExt as _, stream};
use serde::Serialize;

use super::{Answer, EchoResult, TextContent};

const HEADERS: [(HeaderName, HeaderValue); 3] = [
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

static CALLS: AtomicU64 = AtomicU64::new(0);

#[derive(Debug, Clone, Copy)]
pub(super) struct Job {
    pub(super) id: u64,
    pub(super) token: u64,
    pub(super) steps: u32,
    pub(super) interval: Duration,
}

#[derive(Serialize)]
struct Notification {
    jsonrpc: &'static str,
    method: &'static str,
    params: Report,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    progress_token: u64,
    progress: f64,
    total: f64,
    message: String,
}

/// Without an interval, hyper combines the events into few writes.
pub(super) fn stream(job: &Job) -> Response {
    let (job, call) = (*job, CALLS.fetch_add(1, Ordering::Relaxed));
    let events = stream::iter(0..=job.steps + 1).then(move |number| async move {
        // The first report comes at once, and the result after the last step.
        if number > 1 && !job.interval.is_zero() {
            tokio::time::sleep(job.interval).await;
        }
        let token = job.token;
        let event = match number {
            0 => format!("id: {token:08x}-{call:x}-0\nretry: 1000\ndata: \n\n"),
            number => {
                let message = if number <= job.steps {
                    report(&job, number)
                } else {
                    result(&job)
                };
                format!("id: {token:08x}-{call:x}-{number:x}\ndata: {message}\n\n")
            }
        };
        Ok::<_, Infallible>(Bytes::from(event))
    });
    (HEADERS, Body::from_stream(events)).into_response()
}

fn report(job: &Job, step: u32) -> String {
    json(&Notification {
        jsonrpc: "2.0",
        method: "notifications/progress",
        params: Report {
            progress_token: job.token,
            progress: f64::from(step),
            total: f64::from(job.steps),
            message: format!("step {step} of {}", job.steps),
        },
    })
}

fn result(job: &Job) -> String {
    json(&Answer {
        jsonrpc: "2.0",
        id: job.id,
        result: EchoResult {
            content: [TextContent {
                r#type: "text",
                text: &format!("done after {} steps", job.steps),
            }],
            is_error: false,
        },
    })
}

fn json(message: &impl Serialize) -> String {
    serde_json::to_string(message).expect("numbers and strings can be written as JSON")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::body::to_bytes;

    use super::{Job, stream};

    #[tokio::test]
    async fn the_stream_has_the_bytes_of_one_of_shoal() {
        let job = Job {
            id: 2,
            token: 7,
            steps: 2,
            interval: Duration::ZERO,
        };
        let body = to_bytes(stream(&job).into_body(), 10_000);
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
