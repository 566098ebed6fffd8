use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use shoal_ports::{CallFailure, SessionId};
use shoal_protocol::{Method, Outcome, RawJson, RequestId, RpcError};
use tokio::sync::{mpsc, oneshot};

use super::outgoing::WriteState;

/// Maximum cancelled calls remembered per connection. With more, the server may ask no client there.
const MAX_OWED: usize = 64;
const MAX_HELD: usize = 8;
const MAX_ELICITATIONS: usize = 16;
const LONGEST_ELICITATION: usize = 1024;

#[derive(Default)]
pub(crate) struct PendingRequests {
    state: Mutex<PendingState>,
}

#[derive(Default)]
struct PendingState {
    last_id: u64,
    open: BTreeMap<u64, PendingRequest>,
    /// Cancelled calls that could ask and whose end the server has not confirmed, with their session.
    owed: BTreeMap<u64, Option<SessionId>>,
    held: Vec<ServerRequest>,
    had_calls: bool,
    ended: Option<Arc<str>>,
}

struct PendingRequest {
    outcome: oneshot::Sender<RequestOutcome>,
    write_state: Arc<WriteState>,
    call: Option<PendingCall>,
    of: Option<u64>,
}

pub(crate) struct PendingCall {
    pub(crate) inbox: mpsc::Sender<CallMessage>,
    pub(crate) progress_token: Option<RawJson>,
    pub(crate) askable: bool,
    pub(crate) wants_log: bool,
    pub(crate) session: Option<SessionId>,
    /// Another server may run the call: it is repeatable, and its client was not asked.
    pub(crate) repeatable: Cell<bool>,
    pub(crate) elicitations: RefCell<Vec<String>>,
}

impl PendingCall {
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

pub(crate) enum CallMessage {
    Notify(Method, Option<RawJson>),
    Ask(ServerRequest),
    Withdraw(RequestId),
}

#[derive(Clone, Debug)]
pub(crate) struct ServerRequest {
    pub(crate) id: RequestId,
    pub(crate) method: Method,
    pub(crate) params: Option<RawJson>,
}

#[derive(Debug)]
pub(crate) enum RequestOutcome {
    Answered(Outcome),
    /// A proxy or the transport, not the server, refused the request.
    Rejected(RpcError),
    TooLarge,
    Unreadable(String),
    Refused(CallFailure),
    /// The server claims that it did not process the request.
    Declined(CallFailure),
    Lost {
        written: bool,
        reason: Arc<str>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestOrigin {
    Common,
    Unrelated,
    Request(u64),
}

impl RequestOrigin {
    /// Whether request `id` may be answered on this stream. A server that answers elsewhere has confused its
    /// callers.
    pub(crate) fn may_answer(self, id: u64) -> bool {
        match self {
            Self::Common => true,
            Self::Unrelated => false,
            Self::Request(own) => own == id,
        }
    }

    /// Whether progress of request `id` may come on this stream. Many servers use the unrelated stream.
    pub(crate) fn may_tell_progress(self, id: u64) -> bool {
        match self {
            Self::Common | Self::Unrelated => true,
            Self::Request(own) => own == id,
        }
    }
}

pub(crate) struct RegisteredRequest {
    pub(crate) id: u64,
    pub(crate) write_state: Arc<WriteState>,
    pub(crate) outcome: oneshot::Receiver<RequestOutcome>,
}

/// The clients that a server must not ask while a cancelled call may still run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Quarantine {
    None,
    AllBut(SessionId),
    Everybody,
}

/// How Shoal finds the call of a message that names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Association {
    OnlyCall,
    OnlyListener,
    NewestCall,
    Call(u64),
}

impl PendingRequests {
    pub(crate) fn register(
        &self,
        call: Option<PendingCall>,
    ) -> Result<RegisteredRequest, Arc<str>> {
        self.enter(call, None)
    }

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
                // The new inbox has room for all held questions.
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

    pub(crate) fn finish(&self, id: u64, outcome: RequestOutcome) -> bool {
        let mut state = self.state.lock();
        state.owed.remove(&id);
        let request = state.open.remove(&id);
        request
            .map(|request| request.outcome.send(outcome))
            .is_some()
    }

    pub(crate) fn end_own(&self, id: u64, outcome: RequestOutcome) {
        let is_own = |request: &PendingRequest| request.call.is_none();
        if self.state.lock().open.get(&id).is_some_and(is_own) {
            self.finish(id, outcome);
        }
    }

    /// Stops waiting. Returns whether the server must be told.
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

    pub(crate) fn is_open(&self, id: u64) -> bool {
        self.state.lock().open.contains_key(&id)
    }

    pub(crate) fn may_be_repeated(&self, id: u64) -> bool {
        let state = self.state.lock();
        let call = state.call_of(id);
        call.is_some_and(|call| call.repeatable.get())
    }

    pub(crate) fn has_calls(&self) -> bool {
        self.state.lock().open.values().any(|it| it.call.is_some())
    }

    pub(crate) fn is_call(&self, id: u64) -> bool {
        self.state.lock().call_of(id).is_some()
    }

    pub(crate) fn is_of(&self, origin: RequestOrigin, request: u64) -> bool {
        let RequestOrigin::Request(own) = origin else {
            return false;
        };
        let state = self.state.lock();
        state
            .open
            .get(&own)
            .is_some_and(|own| own.of == Some(request))
    }

    pub(crate) fn owe(&self, request: u64, session: Option<SessionId>) {
        let mut state = self.state.lock();
        let session = session.filter(|_| state.owed.len() < MAX_OWED);
        state.owed.insert(request, session);
    }

    pub(crate) fn settle(&self, request: u64) {
        self.state.lock().owed.remove(&request);
    }

    pub(crate) fn ended(&self) -> Option<Arc<str>> {
        self.state.lock().ended.clone()
    }

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

    /// Passes progress to call `id`. Drops it if the call wants no progress or is slow, because
    /// later progress supersedes it.
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

    /// Passes the end of a URL elicitation to the call that asked. If no call did, `otherwise` gets
    /// it.
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
                    // Two clients may have the same elicitation id, so the message is dropped.
                    _ => None,
                }
            }
        };
        let message = CallMessage::Notify(Method::ElicitationComplete, params);
        call.is_some_and(|call| call.inbox.try_send(message).is_ok())
    }

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
        // Keeps a session's question for the next call if none has come yet, or if it asks for
        // roots, which do not depend on the call.
        let may_wait = !state.had_calls || question.method == Method::RootsList;
        if is_session && may_wait && state.held.len() < MAX_HELD {
            state.held.push(question);
            return Ok(());
        }
        Err(question)
    }

    pub(crate) fn withdraw_ask(&self, ask: &RequestId) {
        let mut state = self.state.lock();
        state.held.retain(|held| held.id != *ask);
        for call in state.open.values().filter_map(|f| f.call.as_ref()) {
            let _ = call.inbox.try_send(CallMessage::Withdraw(ask.clone()));
        }
    }
}

impl PendingState {
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

fn elicitation_of(params: Option<&RawJson>) -> Option<String> {
    params?.member("elicitationId")?.string()
}

#[cfg(test)]
mod tests;
