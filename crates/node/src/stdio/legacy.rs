//! Carries the client's legacy session over POSTs and resumable streams.

mod follow;
mod listen;
mod pending;
mod reopen;
mod session;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method as HttpMethod, StatusCode, header};
use shoal_protocol::{
    Body, LAST_EVENT_ID, Message, Method, Notification, Outcome, Request, RequestId,
};
use tokio::time::timeout;

use super::exchange::{
    ExchangeReply, Outgoing, SendError, collect, is_event_stream, send_patiently,
};
use super::in_flight::{InFlightRequests, Unreached};
use super::sse::Events;
use super::wire::{BridgeWire, is_readable, no_response, post_headers, refusal, unanswered};
use pending::Pending;
use session::ServerSession;

const GOODBYE: Duration = Duration::from_secs(2);

pub(super) struct LegacyHalf {
    wire: BridgeWire,
    in_flight: InFlightRequests,
    session: ServerSession,
    reopening: tokio::sync::Mutex<()>,
}

impl LegacyHalf {
    pub(super) fn new(wire: BridgeWire) -> Arc<Self> {
        Arc::new(Self {
            wire,
            in_flight: InFlightRequests::new(),
            session: ServerSession::default(),
            reopening: tokio::sync::Mutex::default(),
        })
    }

    pub(super) fn in_flight(&self) -> &InFlightRequests {
        &self.in_flight
    }

    pub(super) fn is_open(&self) -> bool {
        self.session.is_open()
    }

    /// Sends a request. Waits for the answer to `initialize` before other messages, because they need the session that
    /// `initialize` opens.
    pub(super) async fn request(self: &Arc<Self>, request: &Request, text: Bytes) {
        let in_flight = match self.in_flight.begin(&request.id) {
            Ok(in_flight) => in_flight,
            Err(error) => return self.wire.fail(&request.id, &error).await,
        };
        self.session.note_request(request, &text);
        let work = Arc::clone(self).carry(Pending::one(&request.id, in_flight), text);
        self.wire.begin(work).await;
        if request.method == Method::Initialize {
            self.in_flight.until_gone(&request.id).await;
        }
    }

    pub(super) async fn batch(self: &Arc<Self>, body: &Body, text: Bytes) {
        let Body::Batch(messages) = body else {
            return;
        };
        let requests = messages.iter().filter_map(|message| match message {
            Ok(Message::Request(request)) => Some(request),
            _ => None,
        });
        let mut pending = Pending::default();
        for request in requests {
            match self.in_flight.begin(&request.id) {
                Ok(in_flight) => pending.add(&request.id, in_flight),
                Err(error) => self.wire.fail(&request.id, &error).await,
            }
        }
        self.wire.begin(Arc::clone(self).carry(pending, text)).await;
    }

    /// Waits until the server has received the notification, to keep the order.
    pub(super) async fn notify(self: &Arc<Self>, notification: &Notification, text: Bytes) {
        if notification.method == Method::Cancelled
            && let Some(id) = super::cancelled_request(notification)
        {
            self.in_flight.cancel(&id);
        }
        let taken = self.hand_over(text).await;
        let ready = taken && notification.method == Method::Initialized;
        if ready && self.session.note_initialized() {
            self.wire.begin(Arc::clone(self).listen()).await;
        }
    }

    pub(super) async fn answer(&self, text: Bytes) {
        self.hand_over(text).await;
    }

    pub(super) async fn close(&self) {
        if !self.is_open() {
            return;
        }
        let goodbye = Outgoing {
            method: HttpMethod::DELETE,
            headers: self.session.headers(),
            body: Bytes::new(),
        };
        match timeout(GOODBYE, self.wire.exchange.send(goodbye)).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::debug!(%error, "could not end the session"),
            Err(_) => tracing::debug!("the server did not end the session in time"),
        }
    }

    /// Returns whether the server accepted the message.
    async fn hand_over(&self, text: Bytes) -> bool {
        match send_patiently(&*self.wire.exchange, self.posting(text), |_| {}).await {
            Ok(reply) if reply.status().is_success() => true,
            Ok(reply) => {
                let error = refusal(reply).await;
                tracing::warn!(%error, "the server refused a message that has no answer");
                false
            }
            Err(error) => {
                tracing::warn!(%error, "a message that has no answer was lost");
                false
            }
        }
    }

    async fn carry(self: Arc<Self>, mut pending: Pending, text: Bytes) {
        let key = self.session.key();
        let mut sent = self.post(&pending, text.clone()).await;
        // A 404 means that the server lost the session, so it did not execute the request.
        let lost = matches!(&sent, Ok(reply) if reply.status() == StatusCode::NOT_FOUND);
        if lost && key.is_some() && self.reopen(key).await {
            sent = self.post(&pending, text.clone()).await;
        }
        match sent {
            Ok(reply) if reply.status().is_success() => self.receive(&text, pending, reply).await,
            Ok(reply) => {
                let error = refusal(reply).await;
                self.fail(&mut pending, &error).await;
            }
            Err(error) => self.fail(&mut pending, &unanswered(&error)).await,
        }
    }

    async fn post(&self, pending: &Pending, text: Bytes) -> Result<ExchangeReply, SendError> {
        send_patiently(&*self.wire.exchange, self.posting(text), |error| {
            pending.attempted(error.and_then(|error| Unreached::of(error, false)));
        })
        .await
    }

    async fn receive(&self, posted: &Bytes, mut pending: Pending, reply: ExchangeReply) {
        self.session.note_headers(reply.headers());
        if is_event_stream(&reply) {
            return self.follow(Events::of(reply.into_body()), pending).await;
        }
        let (head, body) = reply.into_parts();
        let error = match collect(body).await {
            Ok(text) => {
                // Drops a body that answers none of this POST's requests.
                if answers(&text).any(|id| pending.has(&id)) {
                    self.deliver(text.clone(), &mut pending).await;
                }
                if pending.is_done() {
                    return;
                }
                let kind = head.headers.get(header::CONTENT_TYPE);
                no_response(kind, text, calls_a_tool(posted))
            }
            Err(broken) => super::wire::outcome_unknown(&broken.to_string()),
        };
        self.fail(&mut pending, &error).await;
    }

    /// Marks the requests that the messages answer. Drops text that is not a message.
    async fn deliver(&self, text: Bytes, pending: &mut Pending) {
        let Some(messages) = messages(&text) else {
            tracing::debug!("the server sent what is no message");
            return;
        };
        let responses = messages.iter().filter_map(|message| match message {
            Message::Response(response) => Some(response),
            Message::Request(_) | Message::Notification(_) => None,
        });
        for response in responses.clone() {
            if let Outcome::Result(result) = &response.outcome {
                self.session.note_result(&response.id, result);
            }
        }
        self.wire.deliver(text).await;
        // Marked last, because this can end the bridge.
        for response in responses {
            pending.answered(&response.id);
        }
    }

    /// Leaves out cancelled requests.
    async fn fail(&self, pending: &mut Pending, error: &shoal_protocol::RpcError) {
        for (id, request) in pending.take() {
            if !request.cancelled().is_cancelled() {
                self.wire.fail(&id, error).await;
            }
        }
    }

    fn posting(&self, body: Bytes) -> Outgoing {
        let mut headers = post_headers();
        headers.extend(self.session.headers());
        Outgoing {
            method: HttpMethod::POST,
            headers,
            body,
        }
    }

    fn listening(&self, after: Option<&str>) -> Outgoing {
        let mut headers: HeaderMap = self.session.headers();
        headers.insert(
            header::ACCEPT,
            HeaderValue::from_static("text/event-stream"),
        );
        if let Some(id) = after.and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.insert(LAST_EVENT_ID, id);
        }
        Outgoing {
            method: HttpMethod::GET,
            headers,
            body: Bytes::new(),
        }
    }
}

fn messages(text: &Bytes) -> Option<Vec<Message>> {
    let messages = match Body::parse(text, usize::MAX).ok()? {
        Body::Single(message) => vec![message],
        Body::Batch(messages) => messages.into_iter().collect::<Result<_, _>>().ok()?,
    };
    messages.iter().all(is_readable).then_some(messages)
}

fn answers(text: &Bytes) -> impl Iterator<Item = RequestId> {
    let messages = messages(text).unwrap_or_default();
    messages.into_iter().filter_map(|message| match message {
        Message::Response(response) => Some(response.id),
        Message::Request(_) | Message::Notification(_) => None,
    })
}

fn calls_a_tool(text: &Bytes) -> bool {
    let messages = messages(text).unwrap_or_default();
    let calls = |message: &Message| matches!(message, Message::Request(request) if request.method == Method::ToolsCall);
    messages.iter().any(calls)
}
