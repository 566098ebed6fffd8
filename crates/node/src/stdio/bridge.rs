use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use shoal_protocol::{
    Body, Ends, Era, Message, Method, Notification, RawJson, Request, RequestId, RequestMeta,
    Revision, RpcError, Spotted, code, error_response, error_response_without_id, response,
};

use super::console::ConsoleOutbox;
use super::exchange::ServerExchange;
use super::in_flight::Unreached;
use super::legacy::LegacyHalf;
use super::modern::ModernHalf;
use super::wire::BridgeWire;

pub(super) struct StdioBridge {
    wire: BridgeWire,
    legacy: Arc<LegacyHalf>,
    modern: Arc<ModernHalf>,
    nesting: usize,
}

impl StdioBridge {
    pub(super) fn new(
        exchange: Arc<dyn ServerExchange>,
        outbox: ConsoleOutbox,
        nesting: usize,
    ) -> Self {
        let wire = BridgeWire::new(exchange, outbox);
        Self {
            legacy: LegacyHalf::new(wire.clone()),
            modern: ModernHalf::new(wire.clone()),
            wire,
            nesting,
        }
    }

    /// Handles a line. Replaces invalid UTF-8 by U+FFFD, as common stdio servers do.
    pub(super) async fn take(&self, line: Bytes) {
        let line = match str::from_utf8(&line) {
            Ok(_) => line,
            Err(_) => String::from_utf8_lossy(&line).into_owned().into(),
        };
        let body = match Body::parse(&line, self.nesting) {
            Ok(body) => body,
            Err(invalid) => {
                let answer = match &invalid.id {
                    Some(id) => error_response(id, &invalid.error),
                    None => error_response_without_id(&invalid.error),
                };
                return self.wire.deliver(answer).await;
            }
        };
        match body {
            Body::Single(Message::Request(request)) => {
                if self.is_modern(&request) {
                    self.modern.request(request, line).await;
                } else if request.method == Method::Ping && !self.legacy.is_open() {
                    // Clients may ping before `initialize` (2025-11-25, lifecycle).
                    let pong = response(&request.id, &RawJson::from_static("{}"));
                    self.wire.deliver(pong).await;
                } else {
                    self.legacy.request(&request, line).await;
                }
            }
            Body::Single(Message::Notification(notification)) => {
                self.notification(&notification, line).await;
            }
            // Only legacy servers send requests.
            Body::Single(Message::Response(_)) => self.legacy.answer(line).await,
            Body::Batch(_) => self.legacy.batch(&body, line).await,
        }
    }

    /// Answers an overlong request with an error, without an id if the bridge cannot find it. Replaces an overlong
    /// response by an error, so that the server does not wait.
    pub(super) async fn too_long(&self, ends: &Ends, limit: usize) {
        let error = RpcError::new(
            code::INVALID_REQUEST,
            format!("a message is longer than {limit} bytes (limits.body_bytes)"),
        );
        let answer = match ends.spot() {
            Some(Spotted::Request(id)) => error_response(&id, &error),
            Some(Spotted::Response(id)) => {
                return self.legacy.answer(error_response(&id, &error)).await;
            }
            None => error_response_without_id(&error),
        };
        self.wire.deliver(answer).await;
    }

    pub(super) fn unreached(&self, id: &RequestId) -> Option<Unreached> {
        let legacy = self.legacy.in_flight().unreached(id);
        legacy.or_else(|| self.modern.in_flight().unreached(id))
    }

    pub(super) async fn finish(&self, limit: Duration) {
        let begin = tokio::time::Instant::now();
        self.modern.end_subscriptions();
        let legacy = self.legacy.in_flight().wait(limit).await;
        let rest = limit.saturating_sub(begin.elapsed());
        let unanswered = legacy + self.modern.in_flight().wait(rest).await;
        if unanswered > 0 {
            tracing::warn!(requests = unanswered, "ending without some answers");
        }
        self.wire.stop.cancel();
        self.legacy.close().await;
        self.wire.tasks.close();
        self.wire.tasks.wait().await;
    }

    async fn notification(&self, notification: &Notification, line: Bytes) {
        if notification.method == Method::Cancelled
            && super::cancelled_request(notification).is_some_and(|id| self.modern.cancel(&id))
        {
            return;
        }
        if self.legacy.is_open() {
            self.legacy.notify(notification, line).await;
        } else {
            tracing::debug!(method = %notification.method, "nobody to hand a notification to");
        }
    }

    /// Decides by the version in `_meta`, where a request of a legacy session may name a legacy version. Without a
    /// version, decides by the method.
    fn is_modern(&self, request: &Request) -> bool {
        let meta = RequestMeta::of(request.params.as_ref());
        let Some(version) = meta.protocol_version else {
            return matches!(request.method, Method::Discover | Method::Listen);
        };
        match version.parse::<Revision>() {
            Ok(revision) if revision.era() == Era::Modern => true,
            _ => request.method != Method::Initialize && !self.legacy.is_open(),
        }
    }
}
