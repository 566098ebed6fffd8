//! Carries each 2026-07-28 request on its own connection.

mod mirror;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use shoal_protocol::{
    Body, MCP_METHOD, MCP_NAME, MCP_PROTOCOL_VERSION, Message, Method, Outcome, RawObject, Request,
    RequestId, RequestMeta, Revision, RpcError, code, encode_value,
};

use super::exchange::{ExchangeReply, Outgoing, collect, is_event_stream, send_patiently};
use super::in_flight::{InFlightRequest, InFlightRequests, Unreached};
use super::sse::Events;
use super::wire::{
    BridgeWire, is_readable, no_response, outcome_unknown, post_headers, refusal_of, unanswered,
};
use mirror::Mirror;

pub(super) struct ModernHalf {
    wire: BridgeWire,
    in_flight: InFlightRequests,
    subscriptions: InFlightRequests,
    mirror: Mirror,
}

impl ModernHalf {
    pub(super) fn new(wire: BridgeWire) -> Arc<Self> {
        Arc::new(Self {
            wire,
            in_flight: InFlightRequests::new(),
            subscriptions: InFlightRequests::new(),
            mirror: Mirror::default(),
        })
    }

    /// Leaves out subscriptions, which do not end by themselves.
    pub(super) fn in_flight(&self) -> &InFlightRequests {
        &self.in_flight
    }

    pub(super) fn cancel(&self, id: &RequestId) -> bool {
        self.in_flight.cancel(id) || self.subscriptions.cancel(id)
    }

    pub(super) fn end_subscriptions(&self) {
        self.subscriptions.cancel_all();
    }

    pub(super) async fn request(self: &Arc<Self>, request: Request, text: Bytes) {
        let all = match request.method {
            Method::Listen => &self.subscriptions,
            _ => &self.in_flight,
        };
        let in_flight = match all.begin(&request.id) {
            Ok(in_flight) => in_flight,
            Err(error) => return self.wire.fail(&request.id, &error).await,
        };
        let this = Arc::clone(self);
        let work = async move {
            let cancelled = in_flight.cancelled().clone();
            tokio::select! {
                biased;
                // Dropping `carry` closes the request's stream, which cancels the request.
                () = cancelled.cancelled() => {}
                () = this.carry(&request, &in_flight, text) => {}
            }
        };
        self.wire.begin(work).await;
    }

    async fn carry(&self, request: &Request, in_flight: &InFlightRequest, text: Bytes) {
        let answered = match self.answer_to(request, in_flight, text).await {
            Ok(reply) if is_event_stream(&reply) => self.follow(request, reply).await,
            Ok(reply) => self.pass(request, reply).await,
            Err(error) => Err(error),
        };
        if let Err(error) = answered {
            self.wire.fail(&request.id, &error).await;
        }
    }

    /// Sends a request. If the server reports missing mirrored arguments, fetches the tools' schemas and
    /// sends the request again.
    async fn answer_to(
        &self,
        request: &Request,
        in_flight: &InFlightRequest,
        text: Bytes,
    ) -> Result<ExchangeReply, RpcError> {
        let reply = self.send(request, in_flight, text.clone()).await?;
        if reply.status().is_success() {
            return Ok(reply);
        }
        let status = reply.status();
        let error = self.refusal(reply).await;
        let unmirrored = status == StatusCode::BAD_REQUEST
            && error.code == code::HEADER_MISMATCH
            && request.method == Method::ToolsCall;
        if !unmirrored || !self.learn_tools(request, in_flight).await {
            return Err(error);
        }
        let reply = self.send(request, in_flight, text).await?;
        if reply.status().is_success() {
            return Ok(reply);
        }
        Err(self.refusal(reply).await)
    }

    async fn refusal(&self, reply: ExchangeReply) -> RpcError {
        let status = reply.status();
        refusal_of(status, collect(reply.into_body()).await.unwrap_or_default())
    }

    async fn send(
        &self,
        request: &Request,
        in_flight: &InFlightRequest,
        body: Bytes,
    ) -> Result<ExchangeReply, RpcError> {
        let outgoing = Outgoing {
            method: http::Method::POST,
            headers: self.headers(request)?,
            body,
        };
        send_patiently(&*self.wire.exchange, outgoing, |error| {
            in_flight.attempted(error.and_then(|error| Unreached::of(error, false)));
        })
        .await
        .map_err(|error| unanswered(&error))
    }

    /// Builds the headers that repeat parts of the body (Streamable HTTP, Request Metadata).
    fn headers(&self, request: &Request) -> Result<HeaderMap, RpcError> {
        let meta = RequestMeta::of(request.params.as_ref());
        let version = meta.protocol_version;
        // Send a request without a version under the latest one, to get the server's own refusal.
        let version = version.as_deref().unwrap_or(Revision::LATEST.as_str());
        let mut headers = post_headers();
        headers.insert(MCP_PROTOCOL_VERSION, value(version)?);
        headers.insert(MCP_METHOD, value(request.method.as_str())?);
        let params = request.params.as_ref().and_then(RawObject::of);
        let name = request.method.named().and_then(|named| {
            let name = params.as_ref()?.get(named.as_str())?;
            name.string()
        });
        if let Some(name) = &name {
            headers.insert(MCP_NAME, value(&encode_value(name))?);
            if request.method == Method::ToolsCall {
                let arguments = params.and_then(|params| params.get("arguments"));
                self.mirror
                    .add_headers(name, arguments.as_ref(), &mut headers);
            }
        }
        Ok(headers)
    }

    async fn pass(&self, request: &Request, reply: ExchangeReply) -> Result<(), RpcError> {
        let (head, body) = reply.into_parts();
        let text = collect(body)
            .await
            .map_err(|broken| outcome_unknown(&broken.to_string()))?;
        if !message(&text).is_some_and(|message| self.look_at(request, &message)) {
            let kind = head.headers.get(header::CONTENT_TYPE);
            let may_have_run = request.method == Method::ToolsCall;
            return Err(no_response(kind, text, may_have_run));
        }
        self.wire.deliver(text).await;
        Ok(())
    }

    async fn follow(&self, request: &Request, reply: ExchangeReply) -> Result<(), RpcError> {
        let mut events = Events::of(reply.into_body());
        let mut answered = false;
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    if let Some(text) = event.data
                        && let Some(message) = message(&text)
                    {
                        answered |= self.look_at(request, &message);
                        self.wire.deliver(text).await;
                    }
                }
                Err(_) if answered => break,
                Err(broken) => return Err(outcome_unknown(&broken.to_string())),
            }
        }
        if answered {
            return Ok(());
        }
        Err(if request.method == Method::Listen {
            RpcError::new(code::GONE, "the subscription was cut off; subscribe again")
        } else {
            outcome_unknown("the server closed the stream before the response")
        })
    }

    /// Remembers the schemas of a list of tools.
    fn look_at(&self, request: &Request, message: &Message) -> bool {
        let Message::Response(response) = message else {
            return false;
        };
        if response.id != request.id {
            return false;
        }
        if let (Method::ToolsList, Outcome::Result(result)) = (&request.method, &response.outcome) {
            self.mirror.learn(result);
        }
        true
    }

    async fn learn_tools(&self, for_request: &Request, in_flight: &InFlightRequest) -> bool {
        let id = RequestId::from_string("shoal-stdio-tools");
        let mut page = mirror::ListPage::first(for_request);
        while let Some(params) = page.params() {
            let request = Request {
                id: id.clone(),
                method: Method::ToolsList,
                params: Some(params),
            };
            let text = shoal_protocol::request(&id, "tools/list", request.params.as_ref());
            let Ok(reply) = self.send(&request, in_flight, text).await else {
                return false;
            };
            let result = match self.result_of(reply).await {
                Some(result) => result,
                None => return false,
            };
            self.mirror.learn(&result);
            page.turn(&result);
        }
        true
    }

    async fn result_of(&self, reply: ExchangeReply) -> Option<shoal_protocol::RawJson> {
        let text = if is_event_stream(&reply) {
            let mut events = Events::of(reply.into_body());
            loop {
                let data = events.next().await?.ok()?.data;
                if let Some(text) = data
                    && let Ok(Message::Response(_)) = Message::parse(&text)
                {
                    break text;
                }
            }
        } else {
            collect(reply.into_body()).await.ok()?
        };
        match Message::parse(&text).ok()? {
            Message::Response(response) => match response.outcome {
                Outcome::Result(result) => Some(result),
                Outcome::Error(_) => None,
            },
            Message::Request(_) | Message::Notification(_) => None,
        }
    }
}

fn message(text: &Bytes) -> Option<Message> {
    match Body::parse(text, usize::MAX) {
        Ok(Body::Single(message)) if is_readable(&message) => Some(message),
        Ok(_) | Err(_) => None,
    }
}

fn value(text: &str) -> Result<HeaderValue, RpcError> {
    HeaderValue::from_str(text)
        .map_err(|_| RpcError::invalid_request(format!("{text:?} cannot be repeated in a header")))
}
