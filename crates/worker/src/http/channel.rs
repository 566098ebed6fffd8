//! One connection: each message is a POST, and streams return answers.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method as HttpMethod, StatusCode, header};
use parking_lot::Mutex;
use reqwest::{Response, Url};
use shoal_outbound::Client;
use shoal_ports::Caller;
use shoal_protocol::{
    Era, LAST_EVENT_ID, MCP_METHOD, MCP_NAME, MCP_PROTOCOL_VERSION, MCP_SESSION_ID, Method,
    RawJson, RequestId, Revision, encode_value,
};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::cookies::Cookies;
use super::endpoint::{HttpEndpoint, Sent};
use super::presence::Presence;
use super::refusal::{self, Refusal, RefusedRequest};
use super::tools::Tools;
use crate::http_client::{NoToken, RequestUnanswered};
use crate::upstream::{
    OutgoingMessage, OutgoingRequest, RequestOutcome, ServerConnection, ServerLink,
};

/// Maximum bytes of a session id. By default, servers refuse longer headers.
const LONGEST_SESSION: usize = 8192;
/// Maximum notifications and answers in flight to the server.
const TELLING: u32 = 64;
pub(super) const FORGOTTEN: &str = "the server has forgotten the session";

pub(super) struct HttpChannel {
    pub(super) endpoint: Arc<HttpEndpoint>,
    pub(super) link: Arc<ServerLink>,
    pub(super) stopping: CancellationToken,
    client: Client,
    tools: Arc<Tools>,
    pub(super) presence: Arc<Presence>,
    ended: CancellationToken,
    session: OnceLock<HeaderValue>,
    version: OnceLock<HeaderValue>,
    pub(super) messages: OnceLock<Url>,
    pub(super) speaks_http_sse: Arc<AtomicBool>,
    /// The caller of the last call, if the connection belongs to one caller. Messages between calls
    /// go in this caller's name.
    caller: Mutex<Option<Arc<Caller>>>,
    /// The cookies of the owner's requests, or of Shoal's own if callers share the connection.
    cookies: Cookies,
    telling: Arc<Semaphore>,
}

pub(super) struct SharedByConnections {
    pub(super) endpoint: Arc<HttpEndpoint>,
    pub(super) tools: Arc<Tools>,
    pub(super) presence: Arc<Presence>,
    /// Whether the server speaks HTTP+SSE; `false` while this is unknown.
    pub(super) speaks_http_sse: Arc<AtomicBool>,
}

impl HttpChannel {
    pub(super) fn open(
        common: &SharedByConnections,
        client: Client,
        link: Arc<ServerLink>,
        queue: mpsc::Receiver<OutgoingMessage>,
        closing: &CancellationToken,
    ) -> ServerConnection {
        let stopping = closing.child_token();
        let ended = CancellationToken::new();
        let channel = Arc::new(Self {
            endpoint: common.endpoint.clone(),
            link: link.clone(),
            stopping: stopping.clone(),
            client,
            tools: common.tools.clone(),
            presence: common.presence.clone(),
            ended: ended.clone(),
            session: OnceLock::new(),
            version: OnceLock::new(),
            messages: OnceLock::new(),
            speaks_http_sse: common.speaks_http_sse.clone(),
            caller: Mutex::new(link.binding().caller().cloned()),
            cookies: Cookies::default(),
            telling: Arc::new(Semaphore::new(TELLING as usize)),
        });
        tokio::spawn(channel.run(queue));
        ServerConnection::new(link, stopping, ended)
    }

    async fn run(self: Arc<Self>, mut queue: mpsc::Receiver<OutgoingMessage>) {
        let carrying = async {
            while let Some(message) = queue.recv().await {
                self.take(message).await;
            }
        };
        tokio::select! {
            () = carrying => {}
            () = self.stopping.cancelled() => {}
        }
        self.link.pending.end("the connection was closed".into());
        self.cancel_the_rest(&mut queue).await;
        self.end_session().await;
        self.ended.cancel();
    }

    /// Sends the queued cancellations, because a server need not stop a session's calls when the
    /// session ends.
    async fn cancel_the_rest(self: &Arc<Self>, queue: &mut mpsc::Receiver<OutgoingMessage>) {
        if self.link.lost().is_some() {
            return;
        }
        let telling = async {
            while let Ok(message) = queue.try_recv() {
                if message.method == Some(Method::Cancelled) {
                    self.take(message).await;
                }
            }
            let _ = self.telling.acquire_many(TELLING).await;
        };
        let grace = self.endpoint.config().shutdown_grace.get();
        let _ = tokio::time::timeout(grace, telling).await;
    }

    async fn take(self: &Arc<Self>, message: OutgoingMessage) {
        let OutgoingMessage {
            text,
            method,
            request,
        } = message;
        match (method, request) {
            (Some(method), Some(request)) => {
                tokio::spawn(self.clone().exchange(text, method, request));
            }
            // A server may refuse other messages until it has received this one.
            (Some(Method::Initialized), None) => {
                self.tell(text, Some(Method::Initialized)).await;
                self.listen_soon().await;
            }
            // A modern call is cancelled by the end of its request's stream instead.
            (Some(Method::Cancelled), None) if self.era() == Era::Modern => {}
            (method, None) => {
                // A server that stops reading answers to its requests gets no further messages, so connections
                // stay bounded.
                let Ok(place) = self.telling.clone().acquire_owned().await else {
                    return;
                };
                let channel = self.clone();
                tokio::spawn(async move {
                    channel.tell(text, method).await;
                    drop(place);
                });
            }
            (None, Some(_)) => {}
        }
    }

    async fn tell(&self, text: Bytes, method: Option<Method>) {
        let headers = self.post_headers(method.as_ref(), None);
        let telling = async {
            match self.send_own(HttpMethod::POST, headers, text).await {
                Ok(answer) if answer.status().is_success() => {}
                Ok(answer) => match self.refused(answer, None, None).await {
                    RequestOutcome::Lost { reason, .. } => self.untold(&reason),
                    other => self.untold(&format!("{other:?}")),
                },
                Err(
                    RequestUnanswered::NotSent(why)
                    | RequestUnanswered::Lost(why)
                    | RequestUnanswered::NoToken(NoToken::Refused(why) | NoToken::Away(why)),
                ) => self.untold(&why),
            }
        };
        let config = self.endpoint.config();
        let (timeout, grace) = (config.request_timeout.get(), config.shutdown_grace.get());
        let over = async {
            self.stopping.cancelled().await;
            tokio::time::sleep(grace).await;
        };
        tokio::select! {
            told = tokio::time::timeout(timeout, telling) => {
                if told.is_err() {
                    self.untold("it did not answer in time");
                }
            }
            () = over => {}
        }
    }

    fn untold(&self, why: &str) {
        tracing::debug!(target: "shoal::http", server = self.link.name(), why, "a message did not reach the server");
    }

    /// Legacy until the handshake is over.
    pub(super) fn era(&self) -> Era {
        self.link.greeting().era
    }

    pub(super) fn in_session(&self) -> bool {
        self.session.get().is_some()
    }

    pub(super) fn take_session(&self, answer: &Response) -> Result<(), String> {
        match answer.headers().get(MCP_SESSION_ID) {
            Some(session) if session.len() > LONGEST_SESSION => Err(format!(
                "its session id has more than {LONGEST_SESSION} bytes"
            )),
            Some(session) => {
                let mut session = session.clone();
                session.set_sensitive(true);
                let _ = self.session.set(session);
                Ok(())
            }
            None => {
                self.link.set_stateless();
                Ok(())
            }
        }
    }

    pub(super) fn take_version(&self, result: &RawJson) {
        let version = result.member("protocolVersion").and_then(|v| v.string());
        if let Some(version) = version.and_then(|version| HeaderValue::try_from(version).ok()) {
            let _ = self.version.set(version);
        }
    }

    pub(super) fn post_headers(
        &self,
        method: Option<&Method>,
        params: Option<&RawJson>,
    ) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let json = HeaderValue::from_static("application/json");
        headers.insert(header::CONTENT_TYPE, json);
        let both = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(header::ACCEPT, both);
        match method {
            Some(method) if self.era() == Era::Modern || *method == Method::Discover => {
                self.add_modern(method, params, &mut headers);
            }
            _ => self.add_session(&mut headers),
        }
        headers
    }

    pub(super) fn get_headers(&self, after: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let events = HeaderValue::from_static("text/event-stream");
        headers.insert(header::ACCEPT, events);
        self.add_session(&mut headers);
        if let Some(after) = after.and_then(|after| HeaderValue::from_str(after).ok()) {
            headers.insert(LAST_EVENT_ID, after);
        }
        headers
    }

    fn add_session(&self, headers: &mut HeaderMap) {
        if let Some(session) = self.session.get() {
            headers.insert(MCP_SESSION_ID, session.clone());
        }
        if let Some(version) = self.version.get() {
            headers.insert(MCP_PROTOCOL_VERSION, version.clone());
        }
    }

    fn add_modern(&self, method: &Method, params: Option<&RawJson>, headers: &mut HeaderMap) {
        let mut add = |name: &str, value: &str| {
            if let (Ok(name), Ok(value)) =
                (HeaderName::try_from(name), HeaderValue::from_str(value))
            {
                headers.insert(name, value);
            }
        };
        add(MCP_PROTOCOL_VERSION, Revision::LATEST.as_str());
        add(MCP_METHOD, method.as_str());
        let named = method.named().map(|named| named.as_str());
        let name = named.and_then(|named| params?.member(named)?.string());
        if let Some(name) = name {
            add(MCP_NAME, &encode_value(&name));
            if *method == Method::ToolsCall {
                for (param, value) in self.tools.mirrored(&name, params) {
                    add(&param, &value);
                }
            }
        }
    }

    pub(super) fn caller_of(&self, request: &OutgoingRequest) -> Option<Arc<Caller>> {
        let mut own = self.caller.lock();
        match &request.caller {
            Some(caller) if own.is_some() => Some(own.insert(caller.clone()).clone()),
            Some(caller) => Some(caller.clone()),
            None => own.clone(),
        }
    }

    pub(super) async fn send_own(
        &self,
        method: HttpMethod,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response, RequestUnanswered> {
        let caller = self.caller.lock().clone();
        let own = Sent {
            url: self.messages.get().filter(|_| method == HttpMethod::POST),
            method,
            headers,
            body,
            caller: caller.as_deref(),
            is_call: false,
        };
        self.send(own).await
    }

    pub(super) async fn send(&self, sent: Sent<'_>) -> Result<Response, RequestUnanswered> {
        let caller = sent.caller;
        // One caller's cookies must not go with another caller's requests.
        let is_owned = self.link.binding().caller().is_some();
        let cookies = Some(&self.cookies).filter(|_| is_owned || caller.is_none());
        let sent = self.endpoint.send(&self.client, sent, cookies).await;
        match &sent {
            Err(RequestUnanswered::NotSent(_)) => self.presence.reachability.doubt(),
            Ok(answer) if answer.status() == StatusCode::UNAUTHORIZED => {
                self.endpoint.http.not_accepted(caller);
            }
            _ => {}
        }
        sent
    }

    /// Returns the request's outcome. Gives up the connection if the server has forgotten the session.
    pub(super) async fn refused(
        &self,
        answer: Response,
        id: Option<u64>,
        caller: Option<&Caller>,
    ) -> RequestOutcome {
        let http = &self.endpoint.http;
        let in_callers_name = caller.is_some_and(|caller| http.is_callers(caller));
        let refused = RefusedRequest {
            in_callers_name,
            // Without an id, the outcome goes only to the log, so no words are kept back.
            in_operators_name: id.is_some() && http.is_operators(caller),
            id,
            is_call: id.is_some_and(|id| self.link.pending.is_call(id)),
            in_session: self.in_session(),
        };
        let status = answer.status();
        let (refusal, for_operator) = refusal::read(answer, refused).await;
        if let Some(said) = for_operator {
            http.log_refusal(self.link.name(), status, &said);
        }
        match refusal {
            Refusal::Outcome(outcome) => return outcome,
            Refusal::PerhapsForgotten(otherwise) => {
                if !self.is_forgotten().await {
                    return otherwise;
                }
            }
            Refusal::Forgotten => {}
        }
        self.is_of_no_use(FORGOTTEN);
        RequestOutcome::Lost {
            written: false,
            reason: FORGOTTEN.into(),
        }
    }

    /// Sends a ping. A server that has forgotten the session answers even a ping with 404.
    async fn is_forgotten(&self) -> bool {
        let ping = Method::Ping;
        let text = shoal_protocol::request(&RequestId::from_number(0), ping.as_str(), None);
        let asking = async {
            let headers = self.post_headers(Some(&ping), None);
            let answer = self.send_own(HttpMethod::POST, headers, text).await;
            answer.is_ok_and(|answer| answer.status() == StatusCode::NOT_FOUND)
        };
        let patience = self.endpoint.config().request_timeout.get();
        let asked = tokio::time::timeout(patience, asking).await;
        asked.unwrap_or(false)
    }

    /// Stops sending. Requests in flight may still be answered.
    pub(super) fn is_of_no_use(&self, why: &str) {
        self.link.lose(why);
        self.ended.cancel();
    }

    async fn end_session(&self) {
        if !self.in_session() || self.link.lost().is_some() {
            return;
        }
        let mut headers = HeaderMap::new();
        self.add_session(&mut headers);
        let ending = self.send_own(HttpMethod::DELETE, headers, Bytes::new());
        let grace = self.endpoint.config().shutdown_grace.get();
        let _ = tokio::time::timeout(grace, ending).await;
    }
}
