use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::{Method, Request, StatusCode, header};
use http_body_util::Full;
use serde_json::Value;
use tokio::time::Instant;

use super::connection::{Connection, Goodbye, Outgoing, Reply};
use super::failure::Failure;
use super::target::Target;
use super::{KEEP_IDLE, LONGEST_PAUSE};
use crate::check::is_passing;
use crate::history::Answer;
use crate::round_robin::TAG;

pub(super) const REVISION: &str = "2025-11-25";
pub(crate) const MODERN: &str = "2026-07-28";

const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";

/// The headers of a POST.
const POSTED: [(&str, &str); 2] = [
    ("accept", "application/json, text/event-stream"),
    ("content-type", "application/json"),
];

/// The connections of one client to the endpoints of one server.
#[derive(Debug)]
pub(crate) struct Wire {
    targets: Vec<Target>,
    at: AtomicUsize,
    goodbye: Goodbye,
    idle: Mutex<Vec<(Connection, Instant)>>,
    client: usize,
    exchanges: AtomicU64,
}

pub(crate) struct Exchange {
    pub(crate) tag: String,
    pub(crate) outcome: Result<Answered, Trouble>,
}

pub(crate) enum Answered {
    Empty,
    Json {
        body: String,
        session: Option<String>,
    },
    Stream(Box<Reply>),
}

pub(crate) enum Trouble {
    Broken(String),
    Refused(Refusal),
}

pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) code: Option<i64>,
    pub(crate) message: String,
    retry_after: Option<Duration>,
}

impl Wire {
    pub(crate) fn to(url: &str, client: usize) -> anyhow::Result<Self> {
        Ok(Self::to_each(
            vec![Target::of(url)?],
            Goodbye::Finish,
            client,
        ))
    }

    /// Begins with the first target, and goes on to the next one when [`move_on`](Self::move_on) is called.
    pub(crate) fn to_each(targets: Vec<Target>, goodbye: Goodbye, client: usize) -> Self {
        Self {
            targets,
            at: AtomicUsize::new(0),
            goodbye,
            idle: Mutex::default(),
            client,
            exchanges: AtomicU64::new(1),
        }
    }

    pub(super) fn move_on(&self) {
        if self.targets.len() > 1 {
            self.at.fetch_add(1, Ordering::Relaxed);
            self.idle().clear();
        }
    }

    pub(crate) async fn post(&self, session: Option<&str>, message: &Value) -> Exchange {
        let headers = [&POSTED[..], &of_session(session)].concat();
        self.send(Method::POST, &headers, message.to_string()).await
    }

    pub(crate) async fn post_modern(
        &self,
        method: &str,
        name: Option<&str>,
        message: &Value,
    ) -> Exchange {
        let mut headers = [&POSTED[..], &[(VERSION, MODERN), ("mcp-method", method)]].concat();
        headers.extend(name.map(|name| ("mcp-name", name)));
        self.send(Method::POST, &headers, message.to_string()).await
    }

    pub(super) async fn get(&self, session: &str, after: Option<&str>) -> Exchange {
        let mut headers = of_session(Some(session));
        headers.push(("accept", "text/event-stream"));
        headers.extend(after.map(|after| ("last-event-id", after)));
        self.send(Method::GET, &headers, String::new()).await
    }

    pub(super) async fn delete(&self, session: &str) -> Exchange {
        let headers = of_session(Some(session));
        self.send(Method::DELETE, &headers, String::new()).await
    }

    async fn send(&self, method: Method, headers: &[(&str, &str)], body: String) -> Exchange {
        let number = self.exchanges.fetch_add(1, Ordering::Relaxed);
        let tag = format!("{}-{number}", self.client);
        let target = &self.targets[self.at.load(Ordering::Relaxed) % self.targets.len()];
        let mut request = Request::builder()
            .method(method)
            .uri(target.path.clone())
            .header(header::HOST, target.host.clone())
            .header(TAG, &tag);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let outcome = match request.body(Full::from(body)) {
            Ok(request) => self.exchange(target, request).await,
            Err(error) => Err(Trouble::Broken(error.to_string())),
        };
        Exchange { tag, outcome }
    }

    async fn exchange(&self, target: &Target, mut request: Outgoing) -> Result<Answered, Trouble> {
        if let Some(reused) = self.reuse() {
            match reused.try_send(request).await {
                Ok(reply) => return self.answered(reply).await,
                // The server had closed the connection.
                Err((_, Some(unsent))) => request = unsent,
                Err((failure, None)) => return Err(failure.into()),
            }
        }
        let sent = match Connection::open(target, self.goodbye).await {
            Ok(connection) => connection.try_send(request).await,
            Err(failure) => Err((failure, Some(request))),
        };
        match sent {
            Ok(reply) => self.answered(reply).await,
            // An unsent request counts as the `502` of a balancer without an edge.
            Err((failure, Some(_))) => {
                self.move_on();
                let (status, message) = (StatusCode::BAD_GATEWAY, failure.to_string());
                Err(Trouble::Refused(Refusal::new(status, message)))
            }
            Err((failure, None)) => Err(failure.into()),
        }
    }

    async fn answered(&self, mut reply: Reply) -> Result<Answered, Trouble> {
        if reply.is_streamed() {
            return Ok(Answered::Stream(Box::new(reply)));
        }
        let body = reply.next().await?;
        let session = reply.headers.get(SESSION);
        let session = session.and_then(|id| Some(id.to_str().ok()?.to_owned()));
        self.give_back(reply);
        Ok(body.map_or(Answered::Empty, |event| Answered::Json {
            body: event.data,
            session,
        }))
    }

    /// Keeps the connection of an answer that was read to its end.
    pub(super) fn give_back(&self, reply: Reply) {
        let connection = reply.into_connection();
        let idle = connection.map(|connection| (connection, Instant::now()));
        self.idle().extend(idle);
    }

    fn reuse(&self) -> Option<Connection> {
        let mut idle = self.idle();
        idle.retain(|(_, since)| since.elapsed() < KEEP_IDLE);
        idle.pop().map(|(connection, _)| connection)
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<(Connection, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn of_session(session: Option<&str>) -> Vec<(&str, &str)> {
    let headers = session.map(|session| [(SESSION, session), (VERSION, REVISION)]);
    headers.into_iter().flatten().collect()
}

impl Answered {
    /// Returns the next message, or `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<String>, Failure> {
        let Self::Stream(events) = self else {
            return Ok(std::mem::replace(self, Self::Empty).body());
        };
        loop {
            match events.next().await? {
                Some(event) if event.data.is_empty() => {}
                event => return Ok(event.map(|event| event.data)),
            }
        }
    }

    /// Returns the JSON, if it is not in a stream.
    pub(super) fn body(self) -> Option<String> {
        match self {
            Self::Json { body, .. } => Some(body),
            Self::Empty | Self::Stream(_) => None,
        }
    }
}

impl Exchange {
    /// Whether the server does not know the session.
    pub(super) fn is_gone(&self) -> bool {
        let refusal = self.outcome.as_ref().err();
        matches!(refusal, Some(Trouble::Refused(refusal)) if refusal.status == StatusCode::NOT_FOUND)
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        let Failure::Status {
            status,
            retry_after_s,
            body,
        } = failure
        else {
            return Self::Broken(failure.to_string());
        };
        let status = StatusCode::from_u16(status).unwrap_or_default();
        let answer = serde_json::from_str(&body).ok();
        let mut refusal = match answer.as_ref().and_then(Answer::of) {
            Some(Answer::Error { code, message }) => Refusal {
                code: Some(code),
                ..Refusal::new(status, message)
            },
            _ => Refusal::new(status, body.chars().take(400).collect()),
        };
        refusal.retry_after = retry_after_s.map(Duration::from_secs);
        Self::Refused(refusal)
    }
}

impl Refusal {
    fn new(status: StatusCode, message: String) -> Self {
        Self {
            status,
            code: None,
            message,
            retry_after: None,
        }
    }

    /// Returns the pause before a retry, or `None` if a retry is not allowed.
    pub(crate) fn passes_after(&self) -> Option<Duration> {
        let passes = is_passing(self.status.as_u16(), self.code);
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
