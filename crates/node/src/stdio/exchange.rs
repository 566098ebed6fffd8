mod in_process;
mod remote;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use http::{HeaderMap, Method, Response, StatusCode, header};
use shoal_ports::Backoff;

pub(super) use in_process::InProcess;
pub(super) use remote::RemoteExchange;
pub(crate) use remote::endpoint;

const MAX_ANSWER_BYTES: usize = 64 << 20;
/// How long to retry an unreachable or overloaded server.
const PATIENCE: Duration = Duration::from_secs(15);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_millis(200);

#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// An answer. Dropping it closes the request's stream.
pub(super) type ExchangeReply = Response<ReplyBody>;

pub(super) type ReplyBody = BoxStream<'static, Result<Bytes, BodyError>>;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct BodyError(pub(super) String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SendError {
    #[error("the server cannot be reached: {0}")]
    NotSent(String),
    #[error("the connection to the server broke: {0}")]
    Lost(String),
}

#[async_trait]
pub(super) trait ServerExchange: Send + Sync + 'static {
    /// Waits for the head of the answer. Dropping the future cancels a modern request.
    async fn send(&self, request: Outgoing) -> Result<ExchangeReply, SendError>;

    fn may_come_up(&self) -> bool {
        true
    }
}

/// An exchange that reports an unreachable server without retries until the server has answered once, because the user
/// waits.
pub(super) struct Prompt {
    exchange: Arc<dyn ServerExchange>,
    reached: AtomicBool,
}

impl Prompt {
    pub(super) fn new(exchange: Arc<dyn ServerExchange>) -> Self {
        Self {
            exchange,
            reached: AtomicBool::new(false),
        }
    }
}

#[async_trait]
impl ServerExchange for Prompt {
    async fn send(&self, request: Outgoing) -> Result<ExchangeReply, SendError> {
        let sent = self.exchange.send(request).await;
        if sent.is_ok() {
            self.reached.store(true, Ordering::Relaxed);
        }
        sent
    }

    fn may_come_up(&self) -> bool {
        self.reached.load(Ordering::Relaxed)
    }
}

/// Retries for a while if that is safe and may help. Calls `attempted` with `None` before each attempt, and with its
/// error after it.
pub(super) async fn send_patiently(
    exchange: &dyn ServerExchange,
    request: Outgoing,
    attempted: impl Fn(Option<&SendError>) + Send,
) -> Result<ExchangeReply, SendError> {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
    loop {
        attempted(None);
        let sent = exchange.send(request.clone()).await;
        attempted(sent.as_ref().err());
        let wait = match &sent {
            Err(SendError::NotSent(_)) if !exchange.may_come_up() => return sent,
            Err(SendError::NotSent(_)) => backoff.pause(),
            Ok(reply) => match retry_after(reply) {
                Some(wait) => wait,
                None => return sent,
            },
            Err(SendError::Lost(_)) => return sent,
        };
        if tokio::time::Instant::now() + wait >= deadline {
            return sent;
        }
        tokio::time::sleep(wait).await;
    }
}

/// Returns the pause before a retry. A refusal by an MCP server with `Retry-After` means that nothing was executed. A
/// proxy's page does not mean this.
fn retry_after(reply: &ExchangeReply) -> Option<Duration> {
    let kind = reply.headers().get(header::CONTENT_TYPE);
    let refused = matches!(
        reply.status(),
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS
    ) && kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    let seconds = reply.headers().get(header::RETRY_AFTER)?;
    let wait = Duration::from_secs(seconds.to_str().ok()?.parse().ok()?);
    (refused && wait <= LONGEST_PAUSE).then_some(wait)
}

pub(super) async fn collect(mut body: ReplyBody) -> Result<Bytes, BodyError> {
    let Some(first) = body.next().await.transpose()? else {
        return Ok(Bytes::new());
    };
    let mut whole = BytesMut::new();
    let mut next = Some(first);
    while let Some(bytes) = next {
        if whole.len() + bytes.len() > MAX_ANSWER_BYTES {
            return Err(BodyError("an answer is larger than 64 MiB".to_owned()));
        }
        next = body.next().await.transpose()?;
        if whole.is_empty() && next.is_none() {
            return Ok(bytes);
        }
        whole.extend_from_slice(&bytes);
    }
    Ok(whole.freeze())
}

pub(super) fn is_event_stream(reply: &ExchangeReply) -> bool {
    reply
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    /// Refuses the first connection, and breaks the others.
    struct Restarting {
        known: Arc<Mutex<Option<SendError>>>,
        known_at_begin: Mutex<Vec<Option<SendError>>>,
    }

    #[async_trait]
    impl ServerExchange for Restarting {
        async fn send(&self, _: Outgoing) -> Result<ExchangeReply, SendError> {
            let mut begun = self.known_at_begin.lock();
            begun.push(self.known.lock().clone());
            Err(match begun.len() {
                1 => SendError::NotSent("refused".to_owned()),
                _ => SendError::Lost("reset".to_owned()),
            })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_error_of_an_attempt_is_forgotten_when_the_next_begins() {
        let known = Arc::new(Mutex::new(None));
        let server = Restarting {
            known: known.clone(),
            known_at_begin: Mutex::default(),
        };
        let request = Outgoing {
            method: Method::POST,
            headers: HeaderMap::new(),
            body: Bytes::new(),
        };
        let sent = send_patiently(&server, request, |error| *known.lock() = error.cloned()).await;
        assert!(matches!(sent, Err(SendError::Lost(_))));
        assert_eq!(*server.known_at_begin.lock(), [None, None]);
    }
}
