//! The rules of a session: a state machine, `apply(input) -> effect`, without I/O, clock or randomness, except for call
//! ids.

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
use shoal_protocol::task::{Task, TaskEnd};
use shoal_protocol::{
    Method, Notification, Outcome, RawJson, Request, RequestId, Response, Revision,
};

pub(crate) use admission::{Admission, Admitted};
pub(crate) use answers::{question_id, withdrawal};
pub(crate) use handshake::handshake_of;
pub(crate) use kept::{Change, Kept, KeptLimits, kept};
pub(crate) use requests::{capability_of, empty_result, has_capability};
pub(crate) use slot::CallSlot;
pub(crate) use task::{TaskInputAnswer, TaskTimes, lost_call};
pub(crate) use updates::News;

use crate::record::{MadeTask, Record};

pub(crate) struct SessionMachine {
    session: SessionId,
    limits: Limits,
    record: Record,
    caller: Arc<Caller>,
    admitted: Arc<Admitted>,
    /// Recent cancellations of requests that were not in flight. A repeated delivery may still bring such a request.
    unmatched: VecDeque<(RequestId, String)>,
    listener: Option<u64>,
    /// The list versions last sent to the listener. `record.announced` has those that the client surely knows.
    told: [u64; 3],
    task: task::TaskProgress,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) calls: usize,
    pub(crate) subscriptions: usize,
    pub(crate) subscription_bytes: usize,
    pub(crate) kept: KeptLimits,
    pub(crate) offers_tasks: bool,
    pub(crate) task: TaskTimes,
    pub(crate) retry_after: Duration,
}

pub(crate) enum Input {
    Request(Request, Came),
    Repeated(Request, Came),
    Notification(Notification),
    Response(Response),
    Asked {
        call: CallId,
        ask: AskId,
        method: Method,
        params: Option<RawJson>,
    },
    StateAsked {
        call: CallId,
        asked: StateRequest,
    },
    Kept(Change),
    ResourceUpdated {
        uri: String,
        params: RawJson,
    },
    ListsChanged,
    Announced([u64; 3]),
    Unannounced(Vec<String>),
    Listening(u64),
    Left(u64),
    SubscriptionFailed(String),
    TaskMade(MadeTask),
    TaskUnmade(SessionId),
    TaskCancelled,
    TaskAnswer(String, Outcome),
    /// Milliseconds since 1970.
    TaskChanged(u64),
    TaskAnswered(String),
    TaskWithdrawn(CallId, AskId),
    TaskEnded(TaskEnd, u64),
    /// Replaces the task's end, which is too large to store.
    TaskNotKept(TaskEnd),
    TaskStored,
    Runs(Vec<RequestId>, DeliveryId),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Came {
    /// Requests with equal ids from different deliveries are different requests.
    pub(crate) delivery: DeliveryId,
    pub(crate) call: Option<CallId>,
}

impl Came {
    pub(crate) fn anew() -> Self {
        Self {
            delivery: DeliveryId::generate(),
            call: None,
        }
    }
}

#[derive(Debug)]
pub(crate) enum Effect {
    None,
    Respond(Bytes),
    RespondAndSave(Bytes),
    /// A second `initialize`: refused, unless the answer to the first was lost.
    InitializedAgain {
        request: RequestId,
        greeting: Bytes,
        refusal: Bytes,
    },
    Run(Box<AdmittedCall>),
    Subscribe {
        request: RequestId,
        uri: String,
    },
    Unsubscribe {
        request: RequestId,
        uri: String,
    },
    Overloaded {
        retry_after: Duration,
    },
    Answer {
        slot: Arc<CallSlot>,
        ask: AskId,
        outcome: Outcome,
    },
    TaskAnswer(TaskInputAnswer),
    /// The question is unknown, but a worker may still repeat it to this new owner.
    NotAskedYet,
    Cancel {
        slot: Arc<CallSlot>,
        reason: String,
    },
    TaskCancel {
        task: Box<Task>,
        slot: Option<Arc<CallSlot>>,
        reason: &'static str,
    },
    Ask(Bytes),
    AskRefused,
    StateAnswer(Outcome),
    Keep {
        record: Bytes,
        change: Change,
    },
    Announce(News),
    Pass(Vec<Bytes>),
    Running(Vec<Arc<CallSlot>>),
}

/// Dropping an admitted call ends its request.
#[derive(Debug)]
pub(crate) struct AdmittedCall {
    pub(crate) admission: Admission,
    pub(crate) slot: Arc<CallSlot>,
    pub(crate) method: Method,
    pub(crate) params: Option<RawJson>,
    pub(crate) caller: Arc<Caller>,
    pub(crate) log: LogFilter,
}

impl SessionMachine {
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
            Input::TaskCancelled => self.cancel_task(),
            Input::TaskAnswer(key, outcome) => self.task_answer(key, outcome),
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

    fn same(&self, request: &RequestId, came: Came) -> Option<Arc<CallSlot>> {
        if self.answers_each_post() {
            return self.admitted.of_delivery(request, came);
        }
        let slot = self.admitted.get(request)?;
        came.call
            .is_none_or(|call| slot.call() == call)
            .then_some(slot)
    }

    /// If each answer uses its own request's connection, request ids may repeat.
    fn answers_each_post(&self) -> bool {
        self.record.transport == SessionTransport::Streamable
    }

    pub(crate) fn record(&self) -> &Record {
        &self.record
    }

    pub(crate) fn snapshot(&mut self) -> Bytes {
        self.forget_writings();
        self.record.to_bytes()
    }

    /// Idle means no running calls, unstored answers or listener.
    pub(crate) fn is_idle(&self) -> bool {
        self.admitted.held() == 0 && self.listener.is_none()
    }

    pub(crate) fn admitted(&self) -> &Arc<Admitted> {
        &self.admitted
    }

    pub(crate) fn slots(&self) -> Vec<Arc<CallSlot>> {
        self.admitted.slots()
    }

    pub(crate) fn take_over(
        &mut self,
        request: RequestId,
        call: CallId,
    ) -> (Admission, Arc<CallSlot>) {
        let slot = Arc::new(CallSlot::new(call));
        self.task_taken_over();
        (self.admitted.enter(request, slot.clone(), None), slot)
    }

    pub(crate) fn caller(&self) -> &Arc<Caller> {
        &self.caller
    }

    pub(crate) fn revision(&self) -> Option<Revision> {
        self.record
            .handshake
            .as_ref()
            .map(|handshake| handshake.revision)
    }

    pub(crate) fn principal(&self) -> &Principal {
        &self.record.principal
    }

    pub(crate) fn transport(&self) -> SessionTransport {
        self.record.transport
    }
}

/// Before `initialize`, when no calls run, the caller's revision is 2024-11-05, without capabilities.
fn caller_of(session: &SessionId, record: &Record) -> Caller {
    let handshake = record.handshake.as_ref();
    Caller {
        principal: record.principal.clone(),
        session: Some(session.clone()),
        revision: handshake.map_or(Revision::V2024_11_05, |handshake| handshake.revision),
        client_info: handshake
            .and_then(|handshake| handshake.client_info.clone())
            .map(ClientInfo::new),
        capabilities: handshake.map_or(RawJson::from_static("{}"), |handshake| {
            handshake.capabilities.clone()
        }),
        headers: ForwardedHeaders::default(),
        grant: None,
    }
}

#[cfg(test)]
pub(crate) mod tests;
