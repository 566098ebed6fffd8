use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use http::{HeaderMap, StatusCode, header};
use reqwest::{RequestBuilder, Response};
use serde_json::Value;
use sse_stream::{Sse, SseStream};

use super::{KEEP_IDLE, LONGEST_PAUSE};
use crate::check::code;
use crate::history::{Answer, Channel, Step};
use crate::round_robin::TAG;

pub(super) const REVISION: &str = "2025-11-25";
pub(crate) const MODERN: &str = "2026-07-28";

const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";
const LAST_EVENT_ID: &str = "last-event-id";
const EVENT_STREAM: &str = "text/event-stream";

#[derive(Debug)]
pub(crate) struct Wire {
    http: reqwest::Client,
    url: String,
    client: usize,
    exchanges: AtomicU64,
}

pub(crate) struct Exchange {
    pub(crate) tag: String,
    pub(crate) outcome: Outcome,
}

pub(crate) enum Outcome {
    Broken(String),
    Refused(Refusal),
    Accepted,
    Json {
        body: String,
        session: Option<String>,
    },
    Stream(Events),
}

pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) code: Option<i64>,
    pub(crate) message: String,
    retry_after: Option<Duration>,
}

/// If the connection breaks, the stream yields an error.
pub(crate) type Events = BoxStream<'static, Result<Sse, sse_stream::Error>>;

impl Wire {
    pub(crate) fn to(url: &str, client: usize) -> anyhow::Result<Self> {
        let http = crate::http::client().pool_idle_timeout(KEEP_IDLE).build();
        Ok(Self {
            http: http.context("cannot build an HTTP client")?,
            url: url.to_owned(),
            client,
            exchanges: AtomicU64::new(1),
        })
    }

    pub(crate) async fn post(&self, session: Option<&str>, message: &Value) -> Exchange {
        self.send(self.posting(message), session).await
    }

    pub(crate) async fn post_modern(
        &self,
        method: &str,
        name: Option<&str>,
        message: &Value,
    ) -> Exchange {
        let mut request = self.posting(message);
        request = request.header(VERSION, MODERN).header("mcp-method", method);
        if let Some(name) = name {
            request = request.header("mcp-name", name);
        }
        self.send(request, None).await
    }

    fn posting(&self, message: &Value) -> RequestBuilder {
        self.http
            .post(&self.url)
            .header(header::ACCEPT, "application/json, text/event-stream")
            .header(header::CONTENT_TYPE, "application/json")
            .body(message.to_string())
    }

    pub(super) async fn get(&self, session: &str, after: Option<&str>) -> Exchange {
        let mut request = self.http.get(&self.url);
        request = request.header(header::ACCEPT, EVENT_STREAM);
        if let Some(after) = after {
            request = request.header(LAST_EVENT_ID, after);
        }
        self.send(request, Some(session)).await
    }

    async fn send(&self, mut request: RequestBuilder, session: Option<&str>) -> Exchange {
        let number = self.exchanges.fetch_add(1, Ordering::Relaxed);
        let tag = format!("{}-{number}", self.client);
        if let Some(session) = session {
            request = request.header(SESSION, session).header(VERSION, REVISION);
        }
        let outcome = match request.header(TAG, &tag).send().await {
            Ok(response) => Outcome::of(response).await,
            // An unsent request counts as the `502` of a balancer without an edge.
            Err(error) if error.is_connect() => Outcome::Refused(Refusal {
                status: StatusCode::BAD_GATEWAY,
                code: None,
                message: describe(&error),
                retry_after: None,
            }),
            Err(error) => Outcome::Broken(describe(&error)),
        };
        Exchange { tag, outcome }
    }
}

/// The messages of an answer.
pub(crate) enum Messages {
    One(Option<String>),
    Stream(Events),
}

impl Messages {
    /// Returns the next message, or `None` at the end.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Option<String>> {
        match self {
            Self::One(text) => Ok(text.take()),
            Self::Stream(events) => loop {
                let Some(event) = events.next().await.transpose()? else {
                    return Ok(None);
                };
                if let Some(data) = event.data.filter(|data| !data.is_empty()) {
                    return Ok(Some(data));
                }
            },
        }
    }
}

impl Outcome {
    /// Returns the messages of an answer.
    ///
    /// # Errors
    ///
    /// If the connection broke or the server refused.
    pub(crate) fn messages(self) -> anyhow::Result<Messages> {
        match self {
            Self::Broken(cause) => bail!("broken: {cause}"),
            Self::Refused(refusal) => bail!("refused with {refusal}"),
            Self::Accepted => Ok(Messages::One(None)),
            Self::Json { body, .. } => Ok(Messages::One(Some(body))),
            Self::Stream(events) => Ok(Messages::Stream(events)),
        }
    }

    async fn of(response: Response) -> Self {
        let (status, headers) = (response.status(), response.headers().clone());
        if status.is_success() && is_event_stream(&headers) {
            let events = SseStream::from_bytes_stream(response.bytes_stream());
            return Self::Stream(events.boxed());
        }
        let body = match response.text().await {
            Ok(body) => body,
            Err(error) => return Self::Broken(describe(&error)),
        };
        if !status.is_success() {
            return Self::Refused(Refusal::of(status, &headers, &body));
        }
        if body.is_empty() {
            return Self::Accepted;
        }
        let session = headers.get(SESSION).and_then(|value| value.to_str().ok());
        Self::Json {
            body,
            session: session.map(str::to_owned),
        }
    }
}

impl Refusal {
    fn of(status: StatusCode, headers: &HeaderMap, body: &str) -> Self {
        let answer = serde_json::from_str(body).ok();
        let (code, message) = match answer.as_ref().and_then(Answer::of) {
            Some(Answer::Error { code, message }) => (Some(code), message),
            _ => (None, body.chars().take(400).collect()),
        };
        let seconds = headers.get(header::RETRY_AFTER);
        let seconds = seconds.and_then(|value| value.to_str().ok()?.parse().ok());
        Self {
            status,
            code,
            message,
            retry_after: seconds.map(Duration::from_secs),
        }
    }

    pub(super) fn step(&self, channel: Channel) -> Step {
        Step::Refused {
            channel,
            status: self.status.as_u16(),
            code: self.code,
            message: self.message.clone(),
        }
    }

    /// Returns the pause before a retry, or `None` if a retry is not allowed. A balancer without an edge
    /// sends `502`.
    pub(crate) fn passes_after(&self) -> Option<Duration> {
        let passing = [
            StatusCode::TOO_MANY_REQUESTS,
            StatusCode::SERVICE_UNAVAILABLE,
            StatusCode::BAD_GATEWAY,
        ];
        let passes = passing.contains(&self.status) && self.code != Some(code::OUTCOME_UNKNOWN);
        let pause = self.retry_after.unwrap_or(super::PAUSE).min(LONGEST_PAUSE);
        passes.then_some(pause)
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            status,
            code,
            message,
            ..
        } = self;
        match code {
            Some(code) => write!(out, "{status}: {code}, {message}"),
            None => write!(out, "{status}: {message}"),
        }
    }
}

fn is_event_stream(headers: &HeaderMap) -> bool {
    headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(EVENT_STREAM.as_bytes()))
}

pub(crate) fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
