//! What a session decides: a pure state machine, `apply(input) -> effect`.
//!
//! No I/O, no clock, no randomness but call ids; every rule that a property test can check is here.

mod admission;
mod answers;
mod handshake;
mod kept;
mod made_tasks;
mod requests;
mod slot;
mod task;
mod updates;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use shoal_ports::{
    AskId, CallId, Caller, ClientInfo, DeliveryId, ForwardedHeaders, LogFilter, Principal,
    ServerFacts, SessionId, SessionTransport, StateRequest,
};
use shoal_protocol::task::TaskEnd;
use shoal_protocol::{
    Method, Notification, Outcome, RawJson, Request, RequestId, Response, Revision,
};

pub(crate) use admission::{Admission, Admitted};
pub(crate) use answers::{question_id, withdrawal};
pub(crate) use handshake::handshake_of;
pub(crate) use kept::{Change, Kept, KeptLimits, kept};
pub(crate) use requests::{capability_of, empty_result, has_capability};
pub(crate) use slot::CallSlot;
pub(crate) use task::{TaskAnswer, TaskTimes, lost_call};
pub(crate) use updates::News;

use crate::record::{MadeTask, Record};

/// Everything that a session knows.
pub(crate) struct SessionState {
    session: SessionId,
    limits: Limits,
    record: Record,
    /// The client as calls see it; replaced by `initialize`.
    caller: Arc<Caller>,
    /// The requests in flight, for everybody.
    admitted: Arc<Admitted>,
    /// Cancellations of requests that are not known here, the latest: an earlier owner may have had them, and they may be
    /// delivered again.
    unmatched: VecDeque<(RequestId, String)>,
    /// Which reader of the standalone stream there is, if any.
    listener: Option<u64>,
    /// The list versions that the client was last told of, in passing or by the log: it may not have heard,
    /// and the record's `announced` says what it knows.
    told: [u64; 3],
    /// What there is to know of a task besides its record.
    task: task::TaskProgress,
}

/// The bounds that the state machine keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) calls: usize,
    pub(crate) subscriptions: usize,
    pub(crate) subscription_bytes: usize,
    pub(crate) kept: KeptLimits,
    /// Whether sessions whose revision has tasks are offered some.
    pub(crate) offers_tasks: bool,
    pub(crate) task: TaskTimes,
    pub(crate) retry_after: Duration,
}

/// Something that happens to a session.
pub(crate) enum Input {
    /// The client asks.
    Request(Request, Came),
    /// What the client asked is delivered again. If it has been admitted and still runs, that is the effect.
    Repeated(Request, Came),
    /// The client tells.
    Notification(Notification),
    /// The client answers.
    Response(Response),
    /// A call asks the client.
    Asked {
        call: CallId,
        ask: AskId,
        method: Method,
        params: Option<RawJson>,
    },
    /// A call asks for what the session keeps.
    StateAsked { call: CallId, asked: StateRequest },
    /// A change of what the session keeps has been stored.
    Kept(Change),
    /// A subscribed resource changed.
    ResourceUpdated { uri: String, params: RawJson },
    /// The server's lists may have changed.
    ListsChanged,
    /// These list versions were announced in the log.
    Announced([u64; 3]),
    /// The updates of these resources could not be announced.
    Unannounced(Vec<String>),
    /// A connection reads the standalone stream, as this reader of it.
    Listening(u64),
    /// This reader of the standalone stream is gone.
    Left(u64),
    /// A subscription that was granted has failed at the backend.
    SubscriptionFailed(String),
    /// A call of the session is to be this task.
    TaskMade(MadeTask),
    /// A task that was made has never begun.
    TaskUnmade(SessionId),
    /// The client asks something of the task that the session is.
    Task(Request),
    /// Something of the task has changed at this time, in milliseconds since 1970.
    TaskChanged(u64),
    /// What the task's call has asked under this key has its answer.
    TaskAnswered(String),
    /// Nobody waits any more for what the task's call has asked.
    TaskWithdrawn(CallId, AskId),
    /// How the task's call has ended, and when.
    TaskEnded(TaskEnd, u64),
    /// That cannot be kept: this is, in its place.
    TaskNotKept(TaskEnd),
    /// How the task's call has ended is stored.
    TaskStored,
    /// Which of these requests of a delivery still run?
    Runs(Vec<RequestId>, DeliveryId),
}

/// How a request came to its session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Came {
    /// The delivery that brought it: two requests of one id that came by different ones are two requests.
    pub(crate) delivery: DeliveryId,
    /// The id that its call has already, if it has one.
    pub(crate) call: Option<CallId>,
}

impl Came {
    /// By a delivery that nobody repeats.
    pub(crate) fn anew() -> Self {
        Self {
            delivery: DeliveryId::generate(),
            call: None,
        }
    }
}

/// What follows.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Nothing.
    None,
    /// Send this response.
    Respond(Bytes),
    /// Send this response, and store the record.
    RespondAndSave(Bytes),
    /// The session has been initialized by the same before: send this greeting and store the record if that was never
    /// answered; if it was, this refusal, unless it is the same delivery.
    InitializedAgain {
        request: RequestId,
        greeting: Bytes,
        refusal: Bytes,
    },
    /// Run this call and answer the request with its outcome.
    Run(Box<AdmittedCall>),
    /// Subscribe at the backend, store the record, then answer.
    Subscribe { request: RequestId, uri: String },
    /// Unsubscribe at the backend, store the record, then answer.
    Unsubscribe { request: RequestId, uri: String },
    /// Refuse: too much in flight.
    Overloaded { retry_after: Duration },
    /// Hand the client's answer to a call.
    Answer {
        slot: Arc<CallSlot>,
        ask: AskId,
        outcome: Outcome,
    },
    /// Hand the client's answer to the task's call.
    TaskAnswer(TaskAnswer),
    /// The task's call may have asked that, and asks it again: look later.
    NotAskedYet,
    /// Stop a call.
    Cancel { slot: Arc<CallSlot>, reason: String },
    /// Hand the client's answers to the task's call, then acknowledge.
    TaskAnswers {
        acknowledgement: Bytes,
        answers: Vec<TaskAnswer>,
    },
    /// Stop the task's call, and acknowledge.
    TaskCancel {
        acknowledgement: Bytes,
        slot: Arc<CallSlot>,
        reason: String,
    },
    /// Put this request to the client, on the stream of the call that asks.
    Ask(Bytes),
    /// The call that asks is no more: nobody will answer.
    AskRefused,
    /// Tell the call this of what the session keeps.
    StateAnswer(Outcome),
    /// Store this record; once that is done, the change counts.
    Keep { record: Bytes, change: Change },
    /// Append these to the standalone stream.
    Announce(News),
    /// Send these in passing to whoever reads the standalone stream.
    Pass(Vec<Bytes>),
    /// These still run.
    Running(Vec<Arc<CallSlot>>),
}

/// A request that may run. One that is dropped has ended.
#[derive(Debug)]
pub(crate) struct AdmittedCall {
    /// The client's request.
    pub(crate) admission: Admission,
    /// Where its control will be found; names the call.
    pub(crate) slot: Arc<CallSlot>,
    pub(crate) method: Method,
    pub(crate) params: Option<RawJson>,
    pub(crate) caller: Arc<Caller>,
    pub(crate) log: LogFilter,
}

impl SessionState {
    /// A session as its record has it.
    pub(crate) fn new(session: SessionId, record: Record, limits: Limits) -> Self {
        let caller = Arc::new(caller_of(&session, &record));
        let told = record.announced;
        Self {
            session,
            limits,
            record,
            caller,
            admitted: Arc::default(),
            unmatched: VecDeque::new(),
            listener: None,
            told,
            task: task::TaskProgress::default(),
        }
    }

    /// The rules: one input, one effect. `facts` is what the server says of itself now.
    pub(crate) fn apply(&mut self, input: Input, facts: &ServerFacts) -> Effect {
        match input {
            Input::Repeated(request, came) => {
                if let Some(slot) = self.same(&request.id, came) {
                    return Effect::Running(vec![slot]);
                }
                let id = request.id.clone();
                let effect = self.request(request, came, true, facts);
                if let Effect::Run(admitted) = &effect {
                    self.cancel_at_once(&id, &admitted.slot);
                }
                effect
            }
            Input::Request(request, came) => self.request(request, came, false, facts),
            Input::Notification(notification) => self.notification(&notification),
            Input::Response(response) => self.response(response),
            Input::Asked {
                call,
                ask,
                method,
                params,
            } => self.asked(call, ask, &method, params.as_ref()),
            Input::StateAsked { call, asked } => self.state_asked(call, asked),
            Input::Kept(change) => {
                self.keep(change);
                Effect::None
            }
            Input::ResourceUpdated { uri, params } => self.resource_updated(uri, &params),
            Input::ListsChanged => self.lists_changed(facts),
            Input::Announced(versions) => {
                self.announced(versions);
                Effect::None
            }
            Input::Unannounced(resources) => {
                self.unannounced(resources);
                Effect::None
            }
            Input::Listening(reader) => self.listening(reader, facts),
            Input::Left(reader) => {
                self.left(reader);
                Effect::None
            }
            Input::SubscriptionFailed(uri) => {
                self.record.subscriptions.remove(&uri);
                Effect::None
            }
            Input::TaskMade(task) => {
                self.task_made(task);
                Effect::None
            }
            Input::TaskUnmade(task) => {
                self.task_unmade(&task);
                Effect::None
            }
            Input::Task(request) => self.task_request(&request),
            Input::TaskChanged(at) => {
                self.task_changed(at);
                Effect::None
            }
            Input::TaskAnswered(key) => {
                self.task_answered(&key);
                Effect::None
            }
            Input::TaskWithdrawn(call, ask) => {
                self.task_withdrawn(call, ask);
                Effect::None
            }
            Input::TaskEnded(end, at) => {
                self.task_ended(end, at);
                Effect::None
            }
            Input::TaskNotKept(end) => {
                self.task_not_kept(end);
                Effect::None
            }
            Input::TaskStored => {
                self.task_stored();
                Effect::None
            }
            Input::Runs(requests, delivery) => {
                let came = Came {
                    delivery,
                    call: None,
                };
                let running = requests.iter().filter_map(|id| self.same(id, came));
                Effect::Running(running.collect())
            }
        }
    }

    /// What runs for this delivery of a request. Where all answers go on one stream, a request id is in use once at most.
    fn same(&self, request: &RequestId, came: Came) -> Option<Arc<CallSlot>> {
        if self.answers_each_post() {
            return self.admitted.of_delivery(request, came);
        }
        let slot = self.admitted.get(request)?;
        came.call
            .is_none_or(|call| slot.call() == call)
            .then_some(slot)
    }

    /// Whether each request is answered where it was posted, so that its id need not tell it from others.
    fn answers_each_post(&self) -> bool {
        self.record.transport == SessionTransport::Streamable
    }

    /// The record.
    pub(crate) fn record(&self) -> &Record {
        &self.record
    }

    /// The record to store.
    pub(crate) fn snapshot(&mut self) -> Bytes {
        self.forget_writings();
        self.record.to_bytes()
    }

    /// Whether nothing is going on: no call runs, no answer waits for the store, and nobody listens.
    pub(crate) fn is_idle(&self) -> bool {
        self.admitted.held() == 0 && self.listener.is_none()
    }

    /// The requests in flight, for everybody.
    pub(crate) fn admitted(&self) -> &Arc<Admitted> {
        &self.admitted
    }

    /// The running calls, for the session's end.
    pub(crate) fn slots(&self) -> Vec<Arc<CallSlot>> {
        self.admitted.slots()
    }

    /// Takes in a call that an earlier owner began.
    pub(crate) fn take_over(
        &mut self,
        request: RequestId,
        call: CallId,
    ) -> (Admission, Arc<CallSlot>) {
        let slot = Arc::new(CallSlot::new(call));
        self.task_taken_over();
        (self.admitted.enter(request, slot.clone(), None), slot)
    }

    /// The client as calls see it.
    pub(crate) fn caller(&self) -> &Arc<Caller> {
        &self.caller
    }

    /// The negotiated revision.
    pub(crate) fn revision(&self) -> Option<Revision> {
        self.record
            .handshake
            .as_ref()
            .map(|handshake| handshake.revision)
    }

    /// Whose session it is.
    pub(crate) fn principal(&self) -> &Principal {
        &self.record.principal
    }

    /// How answers travel.
    pub(crate) fn transport(&self) -> SessionTransport {
        self.record.transport
    }
}

/// The client of a record; 2024-11-05 and no capabilities before `initialize`, when no call runs yet.
fn caller_of(session: &SessionId, record: &Record) -> Caller {
    let handshake = record.handshake.as_ref();
    Caller {
        principal: record.principal.clone(),
        session: Some(session.clone()),
        revision: handshake.map_or(Revision::V2024_11_05, |handshake| handshake.revision),
        client_info: handshake.map(|handshake| ClientInfo::new(handshake.client_info.clone())),
        capabilities: handshake.map_or(RawJson::from_static("{}"), |handshake| {
            handshake.capabilities.clone()
        }),
        headers: ForwardedHeaders::default(),
        grant: None,
    }
}

#[cfg(test)]
pub(crate) mod tests;
