//! Follows the stream of a POST to its last response, across broken connections.

use std::time::Duration;

use http::StatusCode;
use shoal_ports::Backoff;
use shoal_protocol::{RpcError, code};
use tokio::time::{Instant, sleep};

use super::super::exchange::is_event_stream;
use super::super::in_flight::Unreached;
use super::super::sse::Events;
use super::super::wire::{outcome_unknown, refusal};
use super::{LegacyHalf, Pending};

/// The pause before a retry if the server names none.
pub(super) const RETRY: Duration = Duration::from_secs(1);
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(15);
/// How long to retry the resumption of a stream.
const GIVE_UP_AFTER: Duration = Duration::from_secs(300);

pub(super) struct FollowCursor {
    pub(super) id: Option<String>,
    pub(super) retry: Duration,
}

impl Default for FollowCursor {
    fn default() -> Self {
        Self {
            id: None,
            retry: RETRY,
        }
    }
}

impl LegacyHalf {
    /// Reads the stream to its end, even after the last response, so that the connection can be reused.
    pub(super) async fn follow(&self, mut events: Events, mut pending: Pending) {
        let mut cursor = FollowCursor::default();
        loop {
            while let Some(Ok(event)) = events.next().await {
                cursor.id = event.id.or(cursor.id);
                cursor.retry = event.retry.unwrap_or(cursor.retry);
                if let Some(text) = event.data {
                    self.deliver(text, &mut pending).await;
                }
            }
            if pending.is_done() {
                return;
            }
            events = match self.resume(&cursor, &pending).await {
                Ok(events) => events,
                Err(error) => return self.fail(&mut pending, &error).await,
            };
        }
    }

    /// Reopens the stream after its last event (2025-11-25, Resumability).
    async fn resume(&self, cursor: &FollowCursor, pending: &Pending) -> Result<Events, RpcError> {
        let Some(id) = &cursor.id else {
            return Err(outcome_unknown("the connection broke before the response"));
        };
        let give_up = Instant::now() + GIVE_UP_AFTER;
        let mut pause = cursor.retry;
        let mut backoff = Backoff::new((pause * 2).max(RETRY), LONGEST_PAUSE);
        loop {
            sleep(pause).await;
            let sent = self.wire.exchange.send(self.listening(Some(id))).await;
            let error = sent.as_ref().err();
            pending.attempted(error.and_then(|error| Unreached::of(error, true)));
            match sent {
                Ok(reply) if reply.status().is_success() && is_event_stream(&reply) => {
                    return Ok(Events::of(reply.into_body()));
                }
                Ok(reply) if !may_pass(reply.status()) => {
                    let reason = refusal(reply).await;
                    return Err(RpcError::new(
                        code::OUTCOME_UNKNOWN,
                        format!(
                            "the outcome of the request is unknown: its stream cannot be resumed \
                             ({}); check before you repeat it",
                            reason.message
                        ),
                    ));
                }
                _ if Instant::now() >= give_up => {
                    return Err(outcome_unknown(
                        "its stream could not be resumed for too long",
                    ));
                }
                Ok(_) | Err(_) => pause = backoff.pause(),
            }
        }
    }
}

pub(super) fn may_pass(status: StatusCode) -> bool {
    status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED
        || status == StatusCode::TOO_MANY_REQUESTS
        || status == StatusCode::REQUEST_TIMEOUT
}
