//! The requests that one server has not answered, and which of them a message belongs to.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use shoal_ports::{CallFailure, SessionId};
use shoal_protocol::{Method, Outcome, RawJson, RequestId, RpcError};
use tokio::sync::{mpsc, oneshot};

use super::outgoing::WriteState;

/// Cancelled calls that a server is remembered to owe, before it counts as unfit for questions.
const MAX_OWED: usize = 64;
/// Questions that may wait for a session's next call.
const MAX_HELD: usize = 8;
/// URL elicitations of one call that are remembered until it ends.
const MAX_ELICITATIONS: usize = 16;
/// The longest id of an elicitation that is remembered.
const LONGEST_ELICITATION: usize = 1024;

/// Requests in flight to one server, by id, oldest first.
#[derive(Default)]
pub(crate) struct PendingRequests {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last_id: u64,
    open: BTreeMap<u64, PendingRequest>,
    /// Calls that could ask, were cancelled, and whose end the server has not confirmed.
    owed: BTreeMap<u64, Option<SessionId>>,
    held: Vec<ServerRequest>,
    had_calls: bool,
    ended: Option<Arc<str>>,
}

struct PendingRequest {
    outcome: oneshot::Sender<RequestOutcome>,
    write_state: Arc<WriteState>,
    call: Option<PendingCall>,
    /// The request that stands for the call, where this one is another of the same call.
    of: Option<u64>,
}

/// A caller's request, as opposed to one of Shoal's own.
pub(crate) struct PendingCall {
    /// Where its messages go.
    pub(crate) inbox: mpsc::Sender<CallMessage>,
    /// The caller's progress token.
    pub(crate) progress_token: Option<RawJson>,
    /// Whether it runs alone because its caller can be asked.
    pub(crate) askable: bool,
    /// Whether its caller wants log messages.
    pub(crate) wants_log: bool,
    /// The caller's session.
    pub(crate) session: Option<SessionId>,
    /// Whether it may be run again: it is safe to repeat, and its client was asked nothing.
    pub(crate) repeatable: Cell<bool>,
    /// The URL elicitations that were put to its client.
    pub(crate) elicitations: RefCell<Vec<String>>,
}

impl PendingCall {
    /// Hands it a question, or gives it back.
    fn ask(&self, question: ServerRequest) -> Result<(), ServerRequest> {
        let Ok(place) = self.inbox.try_reserve() else {
            return Err(question);
        };
        self.remember_elicitation(&question);
        place.send(CallMessage::Ask(question));
        self.repeatable.set(false);
        Ok(())
    }

    fn remember_elicitation(&self, question: &ServerRequest) {
        let named = elicitation_of(question.params.as_ref());
        let named = named.filter(|named| named.len() <= LONGEST_ELICITATION);
        let mut elicitations = self.elicitations.borrow_mut();
        if let Some(named) = named.filter(|_| elicitations.len() < MAX_ELICITATIONS) {
            elicitations.push(named);
        }
    }

    fn has_elicitation(&self, named: &str) -> bool {
        self.elicitations.borrow().iter().any(|own| own == named)
    }
}

/// Something that a server sent during a call.
pub(crate) enum CallMessage {
    /// Progress, a log message, the end of a URL elicitation, or a notification of an extension.
    Notify(Method, Option<RawJson>),
    /// A question to the caller.
    Ask(ServerRequest),
    /// The server has lost interest in a question.
    Withdraw(RequestId),
}

/// A request of the server to a client.
#[derive(Clone, Debug)]
pub(crate) struct ServerRequest {
    /// The server's id for it.
    pub(crate) id: RequestId,
    /// What it asks.
    pub(crate) method: Method,
    /// With what.
    pub(crate) params: Option<RawJson>,
}

/// How a request in flight ended.
#[derive(Debug)]
pub(crate) enum RequestOutcome {
    /// The server answered.
    Answered(Outcome),
    /// A proxy in front of the server, or the transport, refused the request: this is not the server's own answer.
    Rejected(RpcError),
    /// The server answered with a message that is too long.
    TooLarge,
    /// The server answered with something that is no message: why not.
    Unreadable(String),
    /// Nothing of it reached the server, for this reason.
    Refused(CallFailure),
    /// The server says that it took nothing of it. That is its word only.
    Declined(CallFailure),
    /// The server ended.
    Lost {
        /// Whether the request had reached it.
        written: bool,
        /// How it ended.
        reason: Arc<str>,
    },
}

/// Which way a message came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The one that all messages of the server share.
    Common,
    /// One that belongs to no request, since each has its own.
    Unrelated,
    /// One that belongs to this request alone.
    Request(u64),
}

impl Origin {
    /// Whether the request `id` can be answered there. A server that puts an answer elsewhere has mixed up its callers.
    pub(crate) fn may_answer(self, id: u64) -> bool {
        match self {
            Self::Common => true,
            Self::Unrelated => false,
            Self::Request(own) => own == id,
        }
    }

    /// Whether the progress of the request `id` can be told there. Many servers tell it by the way that belongs to no request.
    pub(crate) fn may_tell_progress(self, id: u64) -> bool {
        match self {
            Self::Common | Self::Unrelated => true,
            Self::Request(own) => own == id,
        }
    }
}

/// A request that has an id.
pub(crate) struct RegisteredRequest {
    /// Its id, which is also its progress token.
    pub(crate) id: u64,
    /// Where it stands.
    pub(crate) write_state: Arc<WriteState>,
    /// How it ends.
    pub(crate) outcome: oneshot::Receiver<RequestOutcome>,
}

/// Who may be asked something by a server that has just been shared with a cancelled call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Quarantine {
    /// Anybody.
    None,
    /// Only the session whose call was cancelled.
    AllBut(SessionId),
    /// Nobody.
    Everybody,
}

/// Which call a message without a sign of its own is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Association {
    /// The one in flight; nobody's, if there are several.
    OnlyCall,
    /// The one in flight that wants log messages (modern: the one whose request said so).
    OnlyListener,
    /// The newest one: all are of one session.
    NewestCall,
    /// This one: its message came by a way of its own.
    Call(u64),
}

impl PendingRequests {
    /// Registers a request.
    ///
    /// # Errors
    /// How the server ended, if it has.
    pub(crate) fn register(
        &self,
        call: Option<PendingCall>,
    ) -> Result<RegisteredRequest, Arc<str>> {
        self.enter(call, None)
    }

    /// Registers a request of the same call as `request`.
    ///
    /// # Errors
    /// How the server ended, if it has.
    pub(crate) fn register_for(&self, request: u64) -> Result<RegisteredRequest, Arc<str>> {
        self.enter(None, Some(request))
    }

    fn enter(
        &self,
        call: Option<PendingCall>,
        of: Option<u64>,
    ) -> Result<RegisteredRequest, Arc<str>> {
        let mut state = self.state.lock();
        if let Some(reason) = &state.ended {
            return Err(reason.clone());
        }
        if let Some(call) = &call {
            state.had_calls = true;
            for question in state.held.drain(..) {
                // The inbox is new and has room for more than can be held back.
                let _ = call.ask(question);
            }
        }
        let (sender, outcome) = oneshot::channel();
        let write_state = Arc::<WriteState>::default();
        state.last_id += 1;
        let id = state.last_id;
        let request = PendingRequest {
            outcome: sender,
            write_state: write_state.clone(),
            call,
            of,
        };
        state.open.insert(id, request);
        Ok(RegisteredRequest {
            id,
            write_state,
            outcome,
        })
    }

    /// Ends a request. Returns whether it was in flight.
    pub(crate) fn finish(&self, id: u64, outcome: RequestOutcome) -> bool {
        let mut state = self.state.lock();
        state.owed.remove(&id);
        // Nobody waits any more if sending fails, which is as good as finished.
        let request = state.open.remove(&id);
        request
            .map(|request| request.outcome.send(outcome))
            .is_some()
    }

    /// Ends a request of Shoal's own, but no caller's.
    pub(crate) fn end_own(&self, id: u64, outcome: RequestOutcome) {
        let is_own = |request: &PendingRequest| request.call.is_none();
        if self.state.lock().open.get(&id).is_some_and(is_own) {
            self.finish(id, outcome);
        }
    }

    /// Stops waiting for a request. Returns whether the server must be told, because the request
    /// has reached it and is not answered.
    pub(crate) fn abandon(&self, id: u64) -> bool {
        let mut state = self.state.lock();
        let Some(request) = state.open.remove(&id) else {
            return false;
        };
        if request.write_state.withdraw() || state.ended.is_some() {
            return false;
        }
        if let Some(call) = request.call.filter(|call| call.askable) {
            let session = call.session.filter(|_| state.owed.len() < MAX_OWED);
            state.owed.insert(id, session);
        }
        true
    }

    /// Ends everything in flight and refuses what comes after.
    pub(crate) fn end(&self, reason: Arc<str>) {
        let mut state = self.state.lock();
        if state.ended.is_none() {
            state.ended = Some(reason);
        }
        let reason = state.ended.clone().unwrap_or_default();
        for (_, request) in std::mem::take(&mut state.open) {
            let outcome = RequestOutcome::Lost {
                written: request.write_state.is_written(),
                reason: reason.clone(),
            };
            let _ = request.outcome.send(outcome);
        }
    }

    /// Whether a request is in flight.
    pub(crate) fn is_open(&self, id: u64) -> bool {
        self.state.lock().open.contains_key(&id)
    }

    /// Whether a request is a call that may be run again elsewhere.
    pub(crate) fn may_be_repeated(&self, id: u64) -> bool {
        let state = self.state.lock();
        let call = state.call_of(id);
        call.is_some_and(|call| call.repeatable.get())
    }

    /// Whether any request is a caller's.
    pub(crate) fn has_calls(&self) -> bool {
        self.state.lock().open.values().any(|it| it.call.is_some())
    }

    /// Whether a request is a caller's.
    pub(crate) fn is_call(&self, id: u64) -> bool {
        self.state.lock().call_of(id).is_some()
    }

    /// Whether what came this way may be about the call that `request` stands for.
    pub(crate) fn is_of(&self, origin: Origin, request: u64) -> bool {
        let Origin::Request(own) = origin else {
            return false;
        };
        let state = self.state.lock();
        state
            .open
            .get(&own)
            .is_some_and(|own| own.of == Some(request))
    }

    /// The rest of a call at the server may ask until it is settled.
    pub(crate) fn owe(&self, request: u64, session: Option<SessionId>) {
        let mut state = self.state.lock();
        let session = session.filter(|_| state.owed.len() < MAX_OWED);
        state.owed.insert(request, session);
    }

    /// Nothing is left of a call.
    pub(crate) fn settle(&self, request: u64) {
        self.state.lock().owed.remove(&request);
    }

    /// How the server ended, if it has.
    pub(crate) fn ended(&self) -> Option<Arc<str>> {
        self.state.lock().ended.clone()
    }

    /// Who may not be asked by this server because of calls it has not confirmed to have stopped.
    pub(crate) fn quarantine(&self) -> Quarantine {
        let state = self.state.lock();
        let mut sessions = state.owed.values();
        match sessions.next() {
            None => Quarantine::None,
            Some(Some(first)) if sessions.all(|other| other.as_ref() == Some(first)) => {
                Quarantine::AllBut(first.clone())
            }
            Some(_) => Quarantine::Everybody,
        }
    }

    /// Hands progress to the call with this token, its token restored. Dropped when the call wants
    /// none, or does not keep up: progress is superseded by what follows.
    pub(crate) fn progress(&self, id: u64, restore: impl FnOnce(RawJson) -> RawJson) {
        let state = self.state.lock();
        let call = state
            .open
            .get(&id)
            .and_then(|request| request.call.as_ref());
        if let Some((call, token)) =
            call.and_then(|call| Some((call, call.progress_token.clone()?)))
        {
            let params = Some(restore(token));
            let _ = call
                .inbox
                .try_send(CallMessage::Notify(Method::Progress, params));
        }
    }

    /// Hands a notification to the call that it must be about. Returns whether there is one.
    pub(crate) fn tell(
        &self,
        method: Method,
        params: Option<RawJson>,
        association: Association,
    ) -> bool {
        let state = self.state.lock();
        let message = CallMessage::Notify(method, params);
        let call = state.associated(association);
        call.is_some_and(|call| call.inbox.try_send(message).is_ok())
    }

    /// Hands the end of a URL elicitation to the call that put it to its client, or to `otherwise`. Returns whether there is one.
    pub(crate) fn complete_elicitation(
        &self,
        params: Option<RawJson>,
        otherwise: Option<Association>,
    ) -> bool {
        let Some(named) = elicitation_of(params.as_ref()) else {
            return false;
        };
        let state = self.state.lock();
        let otherwise = otherwise.and_then(|otherwise| state.associated(otherwise));
        let call = match otherwise {
            Some(call) if call.has_elicitation(&named) => Some(call),
            otherwise => {
                let calls = state.open.values().filter_map(|f| f.call.as_ref());
                let mut calls = calls.filter(|call| call.has_elicitation(&named));
                match (calls.next(), calls.next()) {
                    (None, _) => otherwise,
                    (only, None) => only,
                    // Two clients may have got the same id.
                    _ => None,
                }
            }
        };
        let message = CallMessage::Notify(Method::ElicitationComplete, params);
        call.is_some_and(|call| call.inbox.try_send(message).is_ok())
    }

    /// Hands a question to the call that it must be about, or gives it back.
    pub(crate) fn ask(
        &self,
        question: ServerRequest,
        association: Association,
    ) -> Result<(), ServerRequest> {
        let mut state = self.state.lock();
        let mut question = question;
        let is_session = association == Association::NewestCall;
        let is_certain = is_session || matches!(association, Association::Call(_));
        let call = state.associated(association);
        if let Some(call) = call.filter(|call| is_certain || call.askable) {
            question = match call.ask(question) {
                Ok(()) => return Ok(()),
                Err(returned) => returned,
            };
        }
        // A session's server is started for a call, and may ask before that call reaches it. Roots
        // are not about a call at all.
        let may_wait = !state.had_calls || question.method == Method::RootsList;
        if is_session && may_wait && state.held.len() < MAX_HELD {
            state.held.push(question);
            return Ok(());
        }
        Err(question)
    }

    /// Takes a question back, wherever it is.
    pub(crate) fn withdraw_ask(&self, ask: &RequestId) {
        let mut state = self.state.lock();
        state.held.retain(|held| held.id != *ask);
        for call in state.open.values().filter_map(|f| f.call.as_ref()) {
            let _ = call.inbox.try_send(CallMessage::Withdraw(ask.clone()));
        }
    }
}

impl State {
    /// The call that a request belongs to.
    fn call_of(&self, id: u64) -> Option<&PendingCall> {
        let request = self.open.get(&id)?;
        match request.of {
            Some(of) => self.open.get(&of)?.call.as_ref(),
            None => request.call.as_ref(),
        }
    }

    fn associated(&self, association: Association) -> Option<&PendingCall> {
        if let Association::Call(id) = association {
            return self.call_of(id);
        }
        let mut calls = self.open.values().rev().filter_map(|f| f.call.as_ref());
        match association {
            Association::NewestCall | Association::Call(_) => calls.next(),
            Association::OnlyCall => calls.next().filter(|_| calls.next().is_none()),
            Association::OnlyListener => {
                let mut calls = calls.filter(|call| call.wants_log);
                calls.next().filter(|_| calls.next().is_none())
            }
        }
    }
}

/// The URL elicitation that a question or its end names.
fn elicitation_of(params: Option<&RawJson>) -> Option<String> {
    params?.member("elicitationId")?.string()
}

#[cfg(test)]
mod tests;
