use bytes::Bytes;
use shoal_protocol::{
    Body, Ends, Era, Message, Method, Notification, Outcome, PROGRESS_TOKEN, RawJson, RawObject,
    Request, RequestId, Response, RpcError, Spotted,
};

use super::binding::{ConnectionBinding, Roots};
use super::lines::{Line, Readable, readable};
use super::link::ServerLink;
use super::params;
use super::pending::{Association, RequestOrigin, RequestOutcome, ServerRequest};

/// Maximum nesting of a message, as in later JSON readers.
const MAX_DEPTH: usize = 128;
const QUOTED: usize = 200;

/// Indexes into [`shoal_ports::PoolCatalog::generations`].
const TOOLS: usize = 0;
const RESOURCES: usize = 1;
const PROMPTS: usize = 2;

impl ServerLink {
    /// Processes one message without waiting.
    pub(crate) fn receive(&self, line: Line, origin: RequestOrigin) {
        match line {
            Line::Whole(text) => self.read(readable(text), origin),
            Line::TooLong(ends) => {
                if !self.end_unreadable(&ends, origin, || RequestOutcome::TooLarge) {
                    self.complain("a message is too long", ends.head());
                }
            }
        }
    }

    pub(crate) fn read(&self, Readable { text, replaced }: Readable, origin: RequestOrigin) {
        if text.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let read = Body::from_server(&text, MAX_DEPTH);
        if replaced && read.is_ok() {
            self.complain("bytes that are no UTF-8 were replaced", &text);
        }
        match read {
            Ok(Body::Single(message)) => self.take(message, origin),
            Ok(Body::Batch(messages)) => {
                for message in messages {
                    match message {
                        Ok(message) => self.take(message, origin),
                        Err(error) => self.complain(&error.to_string(), &text),
                    }
                }
            }
            Err(error) => {
                self.complain(&error.to_string(), &text);
                self.end_unreadable(&Ends::of(&text), origin, || {
                    RequestOutcome::Unreadable(error.to_string())
                });
            }
        }
    }

    fn end_unreadable(
        &self,
        ends: &Ends,
        origin: RequestOrigin,
        outcome: impl FnOnce() -> RequestOutcome,
    ) -> bool {
        match ends.spot() {
            Some(Spotted::Response(id)) => id
                .number_as_answered()
                .is_some_and(|id| origin.may_answer(id) && self.pending.finish(id, outcome())),
            _ => false,
        }
    }

    fn take(&self, message: Message, origin: RequestOrigin) {
        match message {
            Message::Response(response) => self.take_response(response, origin),
            Message::Notification(notification) => self.take_notification(notification, origin),
            Message::Request(request) => self.take_request(request, origin),
        }
    }

    fn take_response(&self, Response { id, outcome }: Response, origin: RequestOrigin) {
        let number = id.number_as_answered();
        if let Some(elsewhere) = number.filter(|number| !origin.may_answer(*number)) {
            self.complain(
                &format!("request {elsewhere} is not answered here"),
                id.to_string().as_bytes(),
            );
            return;
        }
        let outcome = RequestOutcome::Answered(outcome);
        if !number.is_some_and(|number| self.pending.finish(number, outcome)) {
            // The answer may have crossed a cancellation.
            tracing::debug!(target: "shoal::upstream", server = self.name(), %id, "nobody waits for this answer");
        }
    }

    fn take_notification(
        &self,
        Notification { method, params }: Notification,
        origin: RequestOrigin,
    ) {
        match method {
            Method::Progress => self.take_progress(params, origin),
            Method::LogMessage => {
                let association = match self.greeting().era {
                    Era::Legacy => Association::OnlyCall,
                    Era::Modern => Association::OnlyListener,
                };
                self.tell_call(method, params, origin, association);
            }
            Method::ToolsListChanged => self.list_changed(TOOLS),
            Method::ResourcesListChanged => self.list_changed(RESOURCES),
            Method::PromptsListChanged => self.list_changed(PROMPTS),
            Method::ResourceUpdated => self.subscriptions.report(params.as_ref()),
            Method::Cancelled => self.take_cancellation(params, origin),
            Method::ElicitationComplete => self.take_completion(params, origin),
            method if method.may_be_of_extension() => {
                self.tell_call(method, params, origin, Association::OnlyCall);
            }
            other => {
                tracing::debug!(target: "shoal::upstream", server = self.name(), method = %other, "notification ignored");
            }
        }
    }

    /// Passes a notification to the call of its stream, otherwise to a session's newest call, or on
    /// a shared connection to the call that `shared` selects.
    fn tell_call(
        &self,
        method: Method,
        params: Option<RawJson>,
        origin: RequestOrigin,
        shared: Association,
    ) {
        let association = match (origin, self.binding()) {
            (RequestOrigin::Request(id), _) => Association::Call(id),
            (_, ConnectionBinding::Session { .. }) => Association::NewestCall,
            (_, ConnectionBinding::Shared { .. }) => shared,
        };
        let named = method.clone();
        if !self.pending.tell(method, params, association) {
            tracing::debug!(target: "shoal::upstream", server = self.name(), method = %named, "a notification belongs to no call");
        }
    }

    /// Reports a finished URL elicitation to the client that was asked; its id must not reach another client.
    fn take_completion(&self, params: Option<RawJson>, origin: RequestOrigin) {
        let otherwise = match (origin, self.binding()) {
            (RequestOrigin::Request(id), _) => Some(Association::Call(id)),
            (_, ConnectionBinding::Session { .. }) => Some(Association::NewestCall),
            (_, ConnectionBinding::Shared { .. }) => None,
        };
        if !self.pending.complete_elicitation(params, otherwise) {
            tracing::debug!(target: "shoal::upstream", server = self.name(), "the end of an elicitation belongs to no call");
        }
    }

    fn take_progress(&self, params: Option<RawJson>, origin: RequestOrigin) {
        let Some(params) = params else { return };
        let token = RawObject::of(&params).and_then(|params| params.get(PROGRESS_TOKEN));
        let id = token.and_then(|token| token.read().ok());
        let is_here = |id: &u64| origin.may_tell_progress(*id) || self.pending.is_of(origin, *id);
        if let Some(id) = id.filter(is_here) {
            self.pending
                .progress(id, |token| params::restore_token(&params, token));
        }
    }

    fn take_cancellation(&self, params: Option<RawJson>, origin: RequestOrigin) {
        let params = params.as_ref().and_then(RawObject::of);
        let id = params.and_then(|params| params.get("requestId"));
        let Some(id) = id.and_then(|id| RequestId::from_json(&id).ok()) else {
            return;
        };
        match (self.greeting().era, id.number()) {
            (Era::Legacy, _) => self.pending.withdraw_ask(&id),
            (Era::Modern, Some(id)) if origin.may_answer(id) => {
                let ended = RpcError::internal("the server ended the subscription");
                self.pending
                    .end_own(id, RequestOutcome::Answered(Outcome::Error(ended)));
            }
            (Era::Modern, _) => {}
        }
    }

    fn take_request(&self, Request { id, method, params }: Request, origin: RequestOrigin) {
        if self.greeting().era == Era::Modern {
            // A modern server must not send requests, and Shoal must not answer them (2026-07-28).
            self.complain("a modern server sent a request", method.as_str().as_bytes());
            return;
        }
        match method {
            Method::Ping => {
                let empty = RawJson::from_static("{}");
                self.try_answer(shoal_protocol::response(&id, &empty));
            }
            Method::CreateMessage | Method::Elicit | Method::RootsList => {
                self.take_question(ServerRequest { id, method, params }, origin);
            }
            other => {
                let error = RpcError::method_not_found(other.as_str());
                self.try_answer(shoal_protocol::error_response(&id, &error));
            }
        }
    }

    /// Routes a server's question to a client. The protocol does not name the question's call, so
    /// the stream or a single call must make the call certain: one user's answer must not reach
    /// another.
    fn take_question(&self, question: ServerRequest, origin: RequestOrigin) {
        if question.method == Method::RootsList && self.concerns_no_client(origin) {
            let none = RawJson::from_static(r#"{"roots":[]}"#);
            return self.try_answer(shoal_protocol::response(&question.id, &none));
        }
        let association = match (self.binding(), origin) {
            (ConnectionBinding::Shared { roots, .. }, _)
                if question.method == Method::RootsList && *roots == Roots::None =>
            {
                return self.refuse(&question);
            }
            (_, RequestOrigin::Request(id)) => Association::Call(id),
            (ConnectionBinding::Shared { roots, .. }, _)
                if question.method == Method::RootsList && *roots == Roots::OfTheOwner =>
            {
                Association::NewestCall
            }
            (ConnectionBinding::Shared { .. }, _) => Association::OnlyCall,
            (ConnectionBinding::Session { .. }, _) => Association::NewestCall,
        };
        if let Err(question) = self.pending.ask(question, association) {
            self.refuse(&question);
        }
    }

    /// Whether a request for roots concerns Shoal's own request, for example a list. Some servers answer such
    /// a request only after they have the roots.
    fn concerns_no_client(&self, origin: RequestOrigin) -> bool {
        if !self.binding().declares_roots() {
            return false;
        }
        match (self.binding(), origin) {
            (_, RequestOrigin::Request(id)) => !self.pending.is_call(id),
            (ConnectionBinding::Shared { roots, .. }, _) if *roots != Roots::OfTheOwner => {
                !self.pending.has_calls()
            }
            _ => false,
        }
    }

    /// Handles a question whose call has ended. A question for an owner's roots goes to the next
    /// call.
    pub(crate) fn return_question(&self, question: ServerRequest) {
        match question.method == Method::RootsList && self.binding().gives_roots_early() {
            true => self.take_question(question, RequestOrigin::Common),
            false => self.refuse(&question),
        }
    }

    fn refuse(&self, question: &ServerRequest) {
        let ServerRequest { id, method, .. } = question;
        tracing::debug!(target: "shoal::upstream", server = self.name(), %method, "a question belongs to no call");
        let error = RpcError::internal(format!(
            "{method} can be asked only during a call whose client can be asked"
        ));
        self.try_answer(shoal_protocol::error_response(id, &error));
    }

    fn complain(&self, what: &str, line: &[u8]) {
        if let Some(kept_back) = self.complaints.admit() {
            let line = quote(line);
            tracing::warn!(target: "shoal::upstream", server = self.name(), line, kept_back, "the server wrote no valid message: {what}");
        }
    }
}

pub(crate) fn quote(line: &[u8]) -> String {
    let begin = String::from_utf8_lossy(&line[..line.len().min(QUOTED)]);
    if line.len() > QUOTED {
        format!("{begin}…")
    } else {
        begin.into_owned()
    }
}

pub(crate) fn answer(id: &RequestId, outcome: &Outcome) -> Bytes {
    match outcome {
        Outcome::Result(result) => shoal_protocol::response(id, result),
        Outcome::Error(error) => shoal_protocol::error_response(id, error),
    }
}
