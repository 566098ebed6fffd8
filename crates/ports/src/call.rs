//! A call to a tool: its request, events, outcome and control.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use futures::{future, stream};
use shoal_protocol::{LogLevel, Method, Outcome, RawJson, Revision, RpcError, TraceContext};
use tokio::time::Instant;

use crate::{
    Bound, CallEvents, CallId, ClientInfo, Epoch, ForwardedHeaders, Grant, Kind, LedgerNumber,
    Principal, Repeat, Retry, SessionId, StateRequest, WorkerId,
};

/// A request for a worker (`tools/call`, `resources/read`, `prompts/get`, `completion/complete`), or a list method for
/// the dispatcher's catalog.
#[derive(Clone, Debug)]
pub struct Call {
    /// The call's id on all nodes.
    pub id: CallId,
    /// The method.
    pub method: Method,
    /// The parameters as sent, `_meta` included.
    pub params: Option<RawJson>,
    /// The caller.
    pub caller: Arc<Caller>,
    /// The client's progress token, under which backends report progress.
    pub progress_token: Option<RawJson>,
    /// The log messages that the caller wants.
    pub log: LogFilter,
    /// When the tool is told to stop and the caller gets [`CallFailure::DeadlineExceeded`].
    pub deadline: Instant,
    /// Whether the call may run again. A worker keeps the result of a call that must run once, for later readers. It
    /// may rerun a repeatable call that has asked no questions.
    pub repeat: Repeat,
    /// The parent span.
    pub trace: Option<TraceContext>,
    /// The only worker that may run the call, as named in its journal. `None` lets the dispatcher choose.
    pub worker: Option<WorkerId>,
    /// The worker's ledger number under which the call was bound. If `None`, the worker's refusals are not final.
    pub ledger: Option<LedgerNumber>,
    /// Whether the worker must only attach, because the call was cancelled before it reached the worker again. A worker
    /// that does not know the call refuses it as cancelled, also later.
    pub attach_only: bool,
    /// Whether a person must agree before the start. The dispatcher asks, before the worker sees the call.
    pub asks_first: bool,
    /// The epoch of the session's owner. A worker refuses an epoch lower than the highest it has seen for the session.
    /// `None` without a session, and from older releases.
    pub epoch: Option<Epoch>,
}

/// The client behind a call.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The principal that quotas are charged to and that may read the result.
    pub principal: Principal,
    /// The legacy session, if there is one.
    pub session: Option<SessionId>,
    /// The revision of this request.
    pub revision: Revision,
    /// The client's `Implementation`, if sent.
    pub client_info: Option<ClientInfo>,
    /// The `ClientCapabilities`, or `{}`.
    pub capabilities: RawJson,
    /// The request headers that the pool asks for.
    pub headers: ForwardedHeaders,
    /// The principal's grant, for planning. It stays in this process: a call that resumes on another node was already
    /// allowed.
    pub grant: Option<Arc<Grant>>,
}

/// The log messages that reach a call's client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFilter {
    /// All messages are dropped, as for a modern request without `logLevel`.
    Off,
    /// Messages of at least this severity pass.
    AtLeast(LogLevel),
}

impl LogFilter {
    /// Whether a message of this severity passes.
    pub fn passes(self, level: LogLevel) -> bool {
        matches!(self, Self::AtLeast(least) if level >= least)
    }
}

/// A call that a worker has accepted.
///
/// Dropping it does not cancel the call; use the control. If `events` ends without [`CallEventKind::Finished`], the
/// connection to the worker broke.
pub struct RunningCall {
    /// The call's events, in order, up to `Finished`.
    pub events: CallEvents,
    /// The call's control.
    pub control: Arc<dyn CallControl>,
    /// The worker, for attaching again; `None` for calls that the dispatcher answers.
    pub worker: Option<WorkerId>,
}

impl RunningCall {
    /// A call that has already ended.
    pub fn ended(outcome: CallOutcome, worker: Option<WorkerId>) -> Self {
        static NOTHING: LazyLock<Arc<dyn CallControl>> = LazyLock::new(|| Arc::new(Nothing));
        Self {
            events: CallEvents::finished(outcome),
            control: Arc::clone(&NOTHING),
            worker,
        }
    }

    /// A call whose worker is disconnected.
    pub fn lost(worker: WorkerId) -> Self {
        static NOWHERE: LazyLock<Arc<dyn CallControl>> = LazyLock::new(|| Arc::new(Nowhere));
        Self {
            events: CallEvents::from_stream(stream::empty()),
            control: Arc::clone(&NOWHERE),
            worker: Some(worker),
        }
    }
}

struct Nowhere;

impl CallControl for Nowhere {
    fn answer(&self, _: AskId, _: Outcome) -> Answered {
        Box::pin(future::pending())
    }

    fn cancel(&self, _: &str) {}
}

struct Nothing;

impl CallControl for Nothing {
    fn answer(&self, _: AskId, _: Outcome) -> Answered {
        answered(false)
    }

    fn cancel(&self, _: &str) {}
}

/// An event of a call.
#[derive(Clone, Debug)]
pub struct CallEvent {
    /// The event's number. A worker counts a call's events from 1 without gaps, so that a reader can resume after any
    /// of them.
    ///
    /// The dispatcher's numbers do not decrease within a journaled call, but may skip or repeat. If it calls a backend
    /// in rounds, the bits above the lowest 32 hold the round. Its own question carries the number before the event
    /// that caused it, so that an owner resuming there gets the event and the question again.
    pub sequence: u64,
    /// The content.
    pub kind: CallEventKind,
}

/// The content of an event.
#[derive(Clone, Debug)]
pub enum CallEventKind {
    /// `notifications/progress` or `notifications/message`, already filtered.
    Notification {
        /// The method.
        method: Method,
        /// The parameters.
        params: Option<RawJson>,
    },
    /// A request to the client (`elicitation/create`, `sampling/createMessage`, `roots/list`). Answer through
    /// [`CallControl::answer`].
    Ask {
        /// The request's id within the call.
        ask: AskId,
        /// The method.
        method: Method,
        /// The parameters.
        params: Option<RawJson>,
    },
    /// The call withdraws a question.
    Withdrawn {
        /// The id from [`Ask`](Self::Ask).
        ask: AskId,
    },
    /// A request to the session's state, which the session's owner answers through [`CallControl::answer`]. A call has
    /// one such request open at a time. An unanswered request is repeated to a new reader with another event number.
    State {
        /// The request's id within the call.
        ask: AskId,
        /// The request.
        request: StateRequest,
    },
    /// The tool asks Shoal to close the client's connection so that the client polls later (SEP-1699).
    CloseStream {
        /// When the client should reconnect.
        retry: Duration,
    },
    /// The end.
    Finished(CallOutcome),
}

/// The id of a call's request to its client or session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AskId(pub u64);

/// The outcome of a call.
#[derive(Clone, Debug)]
pub enum CallOutcome {
    /// The backend's result as sent. Only modern callers see `resultType: "input_required"`.
    Result(RawJson),
    /// The backend's own error.
    Error(RpcError),
    /// Shoal refused the request before it reached a backend, as for an unknown tool or a bad cursor.
    Refused(RpcError),
    /// Shoal could not finish it.
    Failed(CallFailure),
}

/// Why Shoal did not finish a call. Clients must be able to distinguish the first three answers (`docs/guarantees.md`).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallFailure {
    /// The call was not executed. It is safe to send again.
    #[error("the call was not executed: {reason}; it is safe to send it again")]
    NotExecuted {
        /// The cause.
        reason: String,
    },
    /// The bound worker cannot be reached, and this node did not send it the call. Only the binder knows whether
    /// another node did.
    #[error("the call was not executed: {reason}; it is safe to send it again")]
    WorkerAway {
        /// The cause.
        reason: String,
    },
    /// This node does not know yet whether the target exists. The call was not executed.
    #[error("the call was not executed: {reason}; it is safe to send it again in {} s", retry_after.as_secs().max(1))]
    NotReady {
        /// The missing knowledge.
        reason: String,
        /// When to retry.
        retry_after: Duration,
    },
    /// A limit was reached. The call was not executed.
    #[error("the call was not executed: {reason}; try again in {} s", retry_after.as_secs().max(1))]
    Overloaded {
        /// The limit.
        reason: String,
        /// When to retry.
        retry_after: Duration,
    },
    /// The call was started, and its effect is unknown.
    #[error("the outcome of the call is unknown: {reason}; check before you repeat it")]
    OutcomeUnknown {
        /// The cause.
        reason: String,
    },
    /// The deadline passed, and the tool was told to stop.
    #[error("the call did not finish within {} s and was cancelled", (limit.as_secs_f64() * 100.0).round() / 100.0)]
    DeadlineExceeded {
        /// The time allowed.
        limit: Duration,
    },
    /// The caller or an operator cancelled the call.
    #[error("the call was cancelled")]
    Cancelled,
    /// The worker knows a later owner of the session and did not act. This is no outcome: the receiver asks the store
    /// for the owner.
    #[error(
        "the outcome of the call is unknown: its session has another owner; check before you repeat it"
    )]
    Superseded {
        /// The highest epoch known to the worker.
        epoch: Epoch,
    },
}

impl CallFailure {
    /// Makes a [`NotExecuted`](Self::NotExecuted).
    pub fn not_executed(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::NotExecuted { reason }
    }

    /// Makes an [`Overloaded`](Self::Overloaded).
    pub fn overloaded(reason: impl Into<String>, retry_after: Duration) -> Self {
        let reason = reason.into();
        Self::Overloaded {
            reason,
            retry_after,
        }
    }

    /// Makes an [`OutcomeUnknown`](Self::OutcomeUnknown).
    pub fn outcome_unknown(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::OutcomeUnknown { reason }
    }

    /// The error's kind.
    pub fn kind(&self) -> Kind {
        match self {
            Self::NotExecuted { .. }
            | Self::WorkerAway { .. }
            | Self::NotReady { .. }
            | Self::OutcomeUnknown { .. }
            | Self::Superseded { .. } => Kind::Unavailable,
            Self::Overloaded { .. } => Kind::Overloaded,
            Self::DeadlineExceeded { .. } => Kind::Deadline,
            Self::Cancelled => Kind::Cancelled,
        }
    }

    /// Whether the call may be sent again.
    pub fn retry(&self) -> Retry {
        match self {
            Self::NotExecuted { .. }
            | Self::WorkerAway { .. }
            | Self::NotReady { .. }
            | Self::Overloaded { .. } => Retry::Safe,
            Self::OutcomeUnknown { .. }
            | Self::DeadlineExceeded { .. }
            | Self::Cancelled
            | Self::Superseded { .. } => Retry::OnlyIfIdempotent,
        }
    }

    /// When to retry, if known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::NotReady { retry_after, .. } | Self::Overloaded { retry_after, .. } => {
                Some(*retry_after)
            }
            _ => None,
        }
    }

    /// The JSON-RPC error that the client gets.
    pub fn to_rpc(&self) -> RpcError {
        use shoal_protocol::code;
        let code = match self {
            Self::NotExecuted { .. } | Self::WorkerAway { .. } | Self::NotReady { .. } => {
                code::NOT_EXECUTED
            }
            Self::Overloaded { .. } => code::OVERLOADED,
            Self::OutcomeUnknown { .. } | Self::Superseded { .. } => code::OUTCOME_UNKNOWN,
            Self::DeadlineExceeded { .. } => code::DEADLINE_EXCEEDED,
            Self::Cancelled => code::REQUEST_CANCELLED,
        };
        RpcError::new(code, self.to_string())
    }
}

impl CallOutcome {
    /// The response's result or error.
    pub fn into_outcome(self) -> Outcome {
        match self {
            Self::Result(result) => Outcome::Result(result),
            Self::Error(error) | Self::Refused(error) => Outcome::Error(error),
            Self::Failed(failure) => Outcome::Error(failure.to_rpc()),
        }
    }
}

/// Controls a running call. Methods return at once, and have no effect after the call has ended or another reader has
/// attached.
pub trait CallControl: Send + Sync {
    /// Answers a question of the call. Later answers are ignored and reported like the first. The answer is recorded
    /// when this returns. The future resolves once it has reached the worker, and tells whether the question is
    /// answered. Dropping the future does not take the answer back.
    fn answer(&self, ask: AskId, answer: Outcome) -> Answered;

    /// Tells the tool to stop. The call still ends with one `Finished`, soon.
    fn cancel(&self, reason: &str);

    /// Waits until the call has stopped running, which may be after its end. `None` if it has stopped, or this node
    /// cannot know. The future ends if the connection to the worker breaks. Cancellation safe.
    fn over(&self) -> Option<future::BoxFuture<'static, ()>> {
        None
    }

    /// Whether another reader has attached. The events then end without `Finished`, and attaching again would take the
    /// call back.
    fn is_replaced(&self) -> bool {
        false
    }

    /// Where a sessionless call runs, so that a session may take it over; `None` if unknown. Resolves once all answers
    /// have reached the worker, because a new owner would repeat a question that is still open.
    fn bound(&self) -> future::BoxFuture<'static, Option<Bound>> {
        Box::pin(future::ready(None))
    }

    /// This reader's id at the worker, for [reattaching](crate::Attach::reader) after a disconnection. `None` before
    /// the worker's first message, or if it does not name readers.
    fn reader(&self) -> Option<u64> {
        None
    }
}

/// Resolves when an answer has reached its worker, with whether the question is answered. A worker's control stays
/// pending if the connection breaks first: the next reader answers again. The dispatcher says `false` once the
/// connection is lost for good.
pub type Answered = future::BoxFuture<'static, bool>;

/// An answer whose result is already known.
pub fn answered(open: bool) -> Answered {
    Box::pin(std::future::ready(open))
}
