use std::sync::{Arc, LazyLock};
use std::time::Duration;

use futures::{future, stream};
use shoal_protocol::{LogLevel, Method, Outcome, RawJson, Revision, RpcError, TraceContext};
use tokio::time::Instant;

use crate::{
    Binding, Bound, CallEvents, CallId, ClientInfo, Epoch, ForwardedHeaders, Grant, Kind,
    LedgerNumber, Principal, Repeat, Retry, SessionId, StateRequest, WorkerId,
};

/// A request to run on a worker, or a list method for the dispatcher.
#[derive(Clone, Debug)]
pub struct Call {
    /// The call's id on all nodes.
    pub id: CallId,
    /// The MCP method.
    pub method: Method,
    /// The parameters as the client sent them, including `_meta`.
    pub params: Option<RawJson>,
    /// The caller.
    pub caller: Arc<Caller>,
    /// The client's progress token.
    pub progress_token: Option<RawJson>,
    /// Which log messages the caller wants.
    pub log: LogFilter,
    /// The time at which the call fails with [`CallFailure::DeadlineExceeded`].
    pub deadline: Instant,
    /// Whether the call may run again. A worker keeps the result of a run-once call for later readers.
    pub repeat: Repeat,
    /// The span that is the call's parent.
    pub trace: Option<TraceContext>,
    /// The only worker that may run the call, if bound.
    pub binding: Option<Binding>,
    /// Whether the call may start.
    pub may_start: MayStart,
    /// The session owner's epoch. Workers refuse an epoch lower than one they know. `None` without a session, and from
    /// older releases.
    pub epoch: Option<Epoch>,
}

impl Call {
    /// Gives a bound call a newer ledger number of its worker.
    pub fn rebind(&mut self, ledger: Option<LedgerNumber>) {
        if let Some(binding) = &mut self.binding {
            binding.ledger = ledger;
        }
    }
}

/// Whether a call may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MayStart {
    /// The call may start.
    Yes,
    /// The dispatcher must ask a person first.
    IfApproved,
    /// The call was cancelled or refused, so a worker may only attach to it. A worker that does not know the call
    /// refuses it, and also refuses a later start.
    No,
}

/// The client behind a call.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The principal that quotas are charged to and that may read the result.
    pub principal: Principal,
    /// The legacy session of the call, if there is one.
    pub session: Option<SessionId>,
    /// The revision of this request.
    pub revision: Revision,
    /// The client's `Implementation`, if the client sent it.
    pub client_info: Option<ClientInfo>,
    /// The client's `ClientCapabilities`, or `{}`.
    pub capabilities: RawJson,
    /// The request headers that the call's pool asks for.
    pub headers: ForwardedHeaders,
    /// The principal's grant, for planning in this process only.
    pub grant: Option<Arc<Grant>>,
}

/// The log messages that reach a call's client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFilter {
    /// No messages, as for a modern request without `logLevel`.
    Off,
    /// Messages of at least this severity.
    AtLeast(LogLevel),
}

impl LogFilter {
    /// Whether a message of this severity passes.
    pub fn passes(self, level: LogLevel) -> bool {
        matches!(self, Self::AtLeast(least) if level >= least)
    }
}

/// A call that a worker has accepted. Dropping this handle does not cancel the call.
///
/// If `events` ends without [`CallEventKind::Finished`], the connection to the worker broke, or another reader [has
/// attached](CallControl::is_replaced).
pub struct RunningCall {
    /// The call's events, in order, up to `Finished`.
    pub events: CallEvents,
    /// Answers or cancels the call.
    pub control: Arc<dyn CallControl>,
    /// The worker that runs the call; `None` if the dispatcher answers.
    pub worker: Option<WorkerId>,
}

impl RunningCall {
    /// Makes a call that has already ended.
    pub fn ended(outcome: CallOutcome, worker: Option<WorkerId>) -> Self {
        static NOTHING: LazyLock<Arc<dyn CallControl>> = LazyLock::new(|| Arc::new(Nothing));
        Self {
            events: CallEvents::finished(outcome),
            control: Arc::clone(&NOTHING),
            worker,
        }
    }

    /// Makes a call whose worker is disconnected.
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
    /// The event's number. A worker counts from 1 without gaps.
    ///
    /// The numbers from a dispatcher do not decrease within a journaled call, but may skip or repeat. Their lowest 32
    /// bits are the worker's number, and the bits above count the call's rounds: each `InputRequiredResult` of a modern
    /// backend begins one. If an event makes the dispatcher ask a question, the question has the number before this
    /// event, so that a session owner that resumes after the question gets the event again.
    pub sequence: u64,
    /// The content of the event.
    pub kind: CallEventKind,
}

/// The content of an event.
#[derive(Clone, Debug)]
pub enum CallEventKind {
    /// `notifications/progress` or `notifications/message`, already filtered for the caller.
    Notification {
        /// The method.
        method: Method,
        /// The parameters.
        params: Option<RawJson>,
    },
    /// A request to the client, to answer through [`CallControl::answer`].
    Ask {
        /// The request's id within the call.
        ask: AskId,
        /// The method.
        method: Method,
        /// The parameters.
        params: Option<RawJson>,
    },
    /// Withdraws a question to the client.
    Withdrawn {
        /// The question's id, from [`Ask`](Self::Ask).
        ask: AskId,
    },
    /// A request for session state, which the session's owner answers. A call has one such request open at a time,
    /// and repeats the request to a new reader.
    State {
        /// The request's id within the call.
        ask: AskId,
        /// The read or write.
        request: StateRequest,
    },
    /// The tool asks to close the client's connection (SEP-1699).
    CloseStream {
        /// When the client should connect again.
        retry: Duration,
    },
    /// The call's end.
    Finished(CallOutcome),
}

/// The id of a request within a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AskId(pub u64);

/// The outcome of a call.
#[derive(Clone, Debug)]
pub enum CallOutcome {
    /// The backend's result. Only modern callers see `resultType: "input_required"`.
    Result(RawJson),
    /// The backend's own error.
    Error(RpcError),
    /// Shoal's refusal before the call ran, such as for an unknown tool.
    Refused(RpcError),
    /// Shoal could not finish the call.
    Failed(CallFailure),
}

/// Why Shoal did not finish a call: clients must tell calls that were not executed from calls with an unknown outcome
/// (`docs/guarantees.md`).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallFailure {
    /// The call was not executed.
    #[error("the call was not executed: {reason}; it is safe to send it again")]
    NotExecuted {
        /// The reason.
        reason: String,
    },
    /// This node could not send the call to its bound worker. Only the node that bound the call knows whether other
    /// nodes sent it.
    #[error("the call was not executed: {reason}; it is safe to send it again")]
    WorkerAway {
        /// The reason.
        reason: String,
    },
    /// The call was not executed, because this node may not know the call's target yet.
    #[error("the call was not executed: {reason}; it is safe to send it again in {} s", retry_after.as_secs().max(1))]
    NotReady {
        /// The facts that this node lacks.
        reason: String,
        /// When to retry.
        retry_after: Duration,
    },
    /// A limit was reached, and the call was not executed.
    #[error("the call was not executed: {reason}; try again in {} s", retry_after.as_secs().max(1))]
    Overloaded {
        /// The limit.
        reason: String,
        /// When to retry.
        retry_after: Duration,
    },
    /// The call may have run, and Shoal does not know its effect.
    #[error("the outcome of the call is unknown: {reason}; check before you repeat it")]
    OutcomeUnknown {
        /// The reason.
        reason: String,
    },
    /// The call's deadline passed.
    #[error("the call did not finish within {} s and was cancelled", (limit.as_secs_f64() * 100.0).round() / 100.0)]
    DeadlineExceeded {
        /// The time that the call was allowed.
        limit: Duration,
    },
    /// The caller or an operator cancelled the call.
    #[error("the call was cancelled")]
    Cancelled,
    /// The worker knows a later session owner and did not act. The caller must ask the store who owns the session.
    #[error(
        "the outcome of the call is unknown: its session has another owner; check before you repeat it"
    )]
    Superseded {
        /// The highest epoch that the worker knows.
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

    /// Returns the failure's kind.
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

    /// Whether a client may send the call again.
    pub fn retry(&self) -> Retry {
        match self {
            Self::NotExecuted { .. }
            | Self::WorkerAway { .. }
            | Self::NotReady { .. }
            | Self::Overloaded { .. } => Retry::Always,
            Self::OutcomeUnknown { .. }
            | Self::DeadlineExceeded { .. }
            | Self::Cancelled
            | Self::Superseded { .. } => Retry::IfIdempotent,
        }
    }

    /// Returns when to retry, if known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::NotReady { retry_after, .. } | Self::Overloaded { retry_after, .. } => {
                Some(*retry_after)
            }
            _ => None,
        }
    }

    /// Returns the JSON-RPC error that the client gets.
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
    /// Returns the result or error of the response to the client.
    pub fn into_outcome(self) -> Outcome {
        match self {
            Self::Result(result) => Outcome::Result(result),
            Self::Error(error) | Self::Refused(error) => Outcome::Error(error),
            Self::Failed(failure) => Outcome::Error(failure.to_rpc()),
        }
    }
}

/// Controls a running call. `answer` and `cancel` have no effect once the call has ended or another reader has
/// attached.
pub trait CallControl: Send + Sync {
    /// Answers a question of the call. Only the first answer counts. Dropping the future does not take the answer
    /// back.
    fn answer(&self, ask: AskId, answer: Outcome) -> Answered;

    /// Tells the tool to stop. One `Finished` event still follows.
    fn cancel(&self, reason: &str);

    /// Resolves when the tool has stopped, perhaps after the call's end, or when the connection to the worker breaks.
    /// `None` if the tool has already stopped, or this node cannot know. Cancellation safe.
    fn over(&self) -> Option<future::BoxFuture<'static, ()>> {
        None
    }

    /// Whether another reader has attached to the call. The events then end without `Finished`, as after a broken
    /// connection. Attaching again would take the call back.
    fn is_replaced(&self) -> bool {
        false
    }

    /// Returns where a sessionless call runs, so that a session can take the call over. Resolves once all answers have
    /// reached the worker, because the session would ask open questions again.
    fn bound(&self) -> future::BoxFuture<'static, Option<Bound>> {
        Box::pin(future::ready(None))
    }

    /// Returns the id of this reader, for [reattaching](crate::Attach::reader), if the worker gave one.
    fn reader(&self) -> Option<u64> {
        None
    }
}

/// Resolves once the answer has reached the worker, with whether the question was open, or with `false` once the call
/// has ended. After a broken connection, the future stays pending, because the next reader answers again; only the
/// dispatcher's futures then resolve with `false` once the connection is lost for good.
pub type Answered = future::BoxFuture<'static, bool>;

/// Returns a future with a known result.
pub fn answered(open: bool) -> Answered {
    Box::pin(std::future::ready(open))
}
