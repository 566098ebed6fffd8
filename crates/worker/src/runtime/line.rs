use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use shoal_ports::{
    AskId, CallEventKind, CallFailure, StateDoor, StateRequest, no_session, perhaps_kept,
};
use shoal_protocol::{ClientCapability, LogLevel, Method, Outcome, RawJson, RpcError, declares};
use tokio_util::sync::CancellationToken;

use super::record::{CallRecord, Offered};
use crate::backend::{BackendPatience, CallLine};

/// How long a tool waits for a slow reader: longer than a hiccup, shorter than a user tolerates.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a tool waits for its session: longer than a failover of the owner.
const STATE_PATIENCE: Duration = Duration::from_secs(60);
const OPEN_ASKS: usize = 64;

#[async_trait]
impl CallLine for CallRecord {
    fn notify_now(
        &self,
        method: Method,
        params: Option<RawJson>,
    ) -> Result<(), (Method, Option<RawJson>)> {
        if method == Method::LogMessage && !self.wants_log(params.as_ref()) {
            return Ok(());
        }
        match self.offer(CallEventKind::Notification { method, params }) {
            Offered::Full(CallEventKind::Notification { method, params }) => Err((method, params)),
            _ => Ok(()),
        }
    }

    async fn notify(&self, method: Method, params: Option<RawJson>) {
        if method != Method::LogMessage || self.wants_log(params.as_ref()) {
            self.send(CallEventKind::Notification { method, params })
                .await;
        }
    }

    async fn wait(
        &self,
        patience: BackendPatience<'_>,
        ready: BoxFuture<'_, Result<(), CallFailure>>,
    ) -> Result<(), CallFailure> {
        let (waits, Some(pool)) = self.wait_in_backend()? else {
            return ready.await;
        };
        // Only the deadline limits such a wait, and `execute` enforces it.
        let BackendPatience::OfPool(busy) = patience else {
            ready.await?;
            return waits.over().await;
        };
        match tokio::time::timeout_at(self.admitted + pool.queue_age, ready).await {
            Ok(ready) => {
                ready?;
                waits.over().await
            }
            Err(_) => Err(pool.waited_in_backend(self.admitted, busy)),
        }
    }

    async fn ask(&self, method: Method, params: Option<RawJson>) -> Outcome {
        let Some(needed) = ClientCapability::needed_by(&method, params.as_ref()) else {
            return Outcome::Error(RpcError::method_not_found(method.as_str()));
        };
        if !declares(&self.caller.capabilities, needed) {
            return Outcome::Error(needed.missing());
        }
        let question = |ask| CallEventKind::Ask {
            ask,
            method,
            params,
        };
        let waits = match self.wait_for_client() {
            Ok(waits) => waits,
            Err(refused) => return Outcome::Error(refused),
        };
        let Some((ask, answered)) = self.open_ask(question, OPEN_ASKS) else {
            return Outcome::Error(if self.has_ended() {
                ended()
            } else {
                RpcError::internal(format!(
                    "{OPEN_ASKS} requests of this call are open already"
                ))
            });
        };
        let _until_answered = TakenBackOnDrop {
            record: self,
            ask,
            take_back: CallRecord::withdraw_ask,
        };
        let answer = answered.await;
        // An ended call can report its error without an actor.
        if answer.is_ok() {
            waits.answered().await;
        }
        answer.unwrap_or_else(|_| Outcome::Error(ended()))
    }

    async fn close_stream(&self, retry: Duration) {
        self.send(CallEventKind::CloseStream { retry }).await;
    }

    fn cancelled(&self) -> &CancellationToken {
        &self.cancelled
    }
}

#[async_trait]
impl StateDoor for CallRecord {
    async fn request(&self, request: StateRequest) -> Outcome {
        if self.caller.session.is_none() {
            return Outcome::Error(no_session());
        }
        if let Err(error) = request.check() {
            return Outcome::Error(error);
        }
        let _turn = self.state_turn.lock().await;
        let writes = matches!(request, StateRequest::Set { .. });
        let request = |ask| CallEventKind::State { ask, request };
        // A tool has at most one open request to its session, so this needs no limit.
        let Some((ask, answered)) = self.open_ask(request, usize::MAX) else {
            return Outcome::Error(ended());
        };
        let _until_answered = TakenBackOnDrop {
            record: self,
            ask,
            take_back: CallRecord::close_ask,
        };
        match tokio::time::timeout(STATE_PATIENCE, answered).await {
            Ok(answer) => answer.unwrap_or_else(|_| Outcome::Error(ended())),
            Err(_) => {
                let seconds = STATE_PATIENCE.as_secs();
                let silent = format!("the session did not answer within {seconds} s");
                Outcome::Error(match writes {
                    true => perhaps_kept(silent),
                    false => RpcError::internal(silent),
                })
            }
        }
    }
}

impl CallRecord {
    async fn send(&self, kind: CallEventKind) {
        let mut offered = self.offer(kind);
        while let Offered::Full(kind) = offered {
            if !self.room(PATIENCE).await {
                tracing::debug!(call = %self.id, "a reader that is too slow is detached");
                self.detach_slow_reader();
            }
            offered = self.offer(kind);
        }
    }

    /// A message without a readable level is invalid.
    fn wants_log(&self, params: Option<&RawJson>) -> bool {
        let level = params
            .and_then(|params| params.member("level"))
            .and_then(|level| level.read::<LogLevel>().ok());
        level.is_some_and(|level| self.log.passes(level))
    }
}

struct TakenBackOnDrop<'a> {
    record: &'a CallRecord,
    ask: AskId,
    take_back: fn(&CallRecord, AskId),
}

impl Drop for TakenBackOnDrop<'_> {
    fn drop(&mut self) {
        (self.take_back)(self.record, self.ask);
    }
}

fn ended() -> RpcError {
    RpcError::internal("the call ended before it was answered")
}
