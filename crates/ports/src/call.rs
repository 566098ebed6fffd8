//! A call on its way to a tool: what goes in, what comes back, and how to steer it meanwhile.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use futures::{future, stream};
use shoal_protocol::{LogLevel, Method, Outcome, RawJson, Revision, RpcError, TraceContext};
use tokio::time::Instant;

use crate::{
    Bound, CallEvents, CallId, ClientInfo, Epoch, ForwardedHeaders, Grant, Kind, LedgerNumber,
    Principal, Repeat, Retry, SessionId, StateRequest, WorkerId,
};

/// A request for a worker (`tools/call`, `resources/read`, `prompts/get`, `completion/complete`), or
/// for the dispatcher's catalog (the list methods).
#[derive(Clone, Debug)]
pub struct Call {
    /// The call's identity, everywhere.
    pub id: CallId,
    /// What to do.
    pub method: Method,
    /// With what; untouched, `_meta` included.
    pub params: Option<RawJson>,
    /// For whom.
    pub caller: Arc<Caller>,
    /// The client's progress token. Backends report progress under it.
    pub progress_token: Option<RawJson>,
    /// Which `notifications/message` the caller wants.
    pub log: LogFilter,
    /// When the tool is told to stop and the caller gets [`CallFailure::DeadlineExceeded`].
    pub deadline: Instant,
    /// How it is carried. A worker keeps the result of a `Journaled` call for whoever attaches later; a
    /// `Repeatable` one that nobody was asked in is run again instead.
    pub repeat: Repeat,
    /// The span that caused it, for whoever makes the next one.
    pub trace: Option<TraceContext>,
    /// The only worker that may run it: a journaled call is bound to the worker that its journal names.
    /// `None` leaves the choice to the dispatcher.
    pub worker: Option<WorkerId>,
    /// The number of its worker's ledger under which it was bound. `None` where nobody knew one: then the worker
    /// remembers what it took, but no refusal of it is final.
    pub ledger: Option<LedgerNumber>,
    /// Whether it is attached to and never started: it was cancelled before it comes to its worker again. One that does not
    /// know it refuses it as cancelled, now and whoever starts it later.
    pub attach_only: bool,
    /// Whether a person must agree before it is started. The dispatcher asks; workers are not told.
    pub asks_first: bool,
    /// The epoch of its session's owner, who starts it or goes on with it. A worker refuses one that is lower than it has
    /// heard of for that session. `None` for callers without a session, and from releases that do not say it.
    pub epoch: Option<Epoch>,
}

/// The client behind a call.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Who pays and who may see the answer.
    pub principal: Principal,
    /// The legacy session, if it is one.
    pub session: Option<SessionId>,
    /// The revision that the client speaks on this request.
    pub revision: Revision,
    /// `Implementation`, if the client named itself.
    pub client_info: Option<ClientInfo>,
    /// `ClientCapabilities`; `{}` if it declared none.
    pub capabilities: RawJson,
    /// What its request says in headers that the call's pool asks for.
    pub headers: ForwardedHeaders,
    /// What was granted to the principal on this request, for whoever plans. Workers in other processes are not told, and a call
    /// that goes on at another node after its session's owner was lost has been allowed.
    pub grant: Option<Arc<Grant>>,
}

/// Which log messages of a call reach its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFilter {
    /// None: a modern request without `logLevel`.
    Off,
    /// This severity and above.
    AtLeast(LogLevel),
}

impl LogFilter {
    /// Whether a message of this severity passes.
    pub fn passes(self, level: LogLevel) -> bool {
        matches!(self, Self::AtLeast(least) if level >= least)
    }
}

/// A call that has been accepted.
///
/// Dropping it does not cancel the call; use the control. When `events` ends without
/// [`CallEventKind::Finished`], the way to the worker broke.
pub struct RunningCall {
    /// What the call sends, in order; `Finished` is the last. Read it with `events.next().await`.
    pub events: CallEvents,
    /// Steers the call.
    pub control: Arc<dyn CallControl>,
    /// The worker that runs it, to attach to it again; `None` for calls answered by the dispatcher.
    pub worker: Option<WorkerId>,
}

impl RunningCall {
    /// A call that has ended already; there is nothing left to steer.
    pub fn ended(outcome: CallOutcome, worker: Option<WorkerId>) -> Self {
        static NOTHING: LazyLock<Arc<dyn CallControl>> = LazyLock::new(|| Arc::new(Nothing));
        Self {
            events: CallEvents::finished(outcome),
            control: Arc::clone(&NOTHING),
            worker,
        }
    }

    /// A call whose worker could not be asked: the way to it is broken.
    pub fn lost(worker: WorkerId) -> Self {
        static NOWHERE: LazyLock<Arc<dyn CallControl>> = LazyLock::new(|| Arc::new(Nowhere));
        Self {
            events: CallEvents::from_stream(stream::empty()),
            control: Arc::clone(&NOWHERE),
            worker: Some(worker),
        }
    }
}

/// Steers nothing: the way is broken.
struct Nowhere;

impl CallControl for Nowhere {
    fn answer(&self, _: AskId, _: Outcome) -> Answered {
        Box::pin(future::pending())
    }

    fn cancel(&self, _: &str) {}
}

/// What is left to steer of a call that has ended.
struct Nothing;

impl CallControl for Nothing {
    fn answer(&self, _: AskId, _: Outcome) -> Answered {
        answered(false)
    }

    fn cancel(&self, _: &str) {}
}

/// Something that a call sent.
#[derive(Clone, Debug)]
pub struct CallEvent {
    /// The worker's number of the event. A worker counts a call's events from 1 without gaps, so that
    /// whoever attaches again can say after which.
    ///
    /// The dispatcher's numbers never fall within a journaled call, but some are missing or come twice.
    /// Where it calls a backend in rounds, the round stands above the lowest 32 bits. A question that it
    /// puts itself carries the number before that of the event which made it ask, so that an owner who
    /// resumes there gets that event, and the question, again.
    pub sequence: u64,
    /// What it is.
    pub kind: CallEventKind,
}

/// What a call can send.
#[derive(Clone, Debug)]
pub enum CallEventKind {
    /// `notifications/progress` or `notifications/message`, already filtered, for the caller.
    Notification {
        /// The method.
        method: Method,
        /// Its parameters.
        params: Option<RawJson>,
    },
    /// A request to the client (`elicitation/create`, `sampling/createMessage`, `roots/list`); the
    /// answer goes to [`CallControl::answer`].
    Ask {
        /// Names the request within the call.
        ask: AskId,
        /// The method.
        method: Method,
        /// Its parameters.
        params: Option<RawJson>,
    },
    /// Nobody waits any more for what was asked: the client need not answer it.
    Withdrawn {
        /// The request, as [`Ask`](Self::Ask) has named it.
        ask: AskId,
    },
    /// A request for the state of the caller's session, for the session's owner; the answer goes to
    /// [`CallControl::answer`]. Never for the client's eyes. A call puts one at a time, and one that has not
    /// been answered comes again, under another number, to whoever attaches.
    State {
        /// Names the request within the call, among its questions.
        ask: AskId,
        /// What is asked.
        request: StateRequest,
    },
    /// The tool asks that the client's connection be closed and polled again later (SEP-1699).
    CloseStream {
        /// When the client should come back.
        retry: Duration,
    },
    /// The end.
    Finished(CallOutcome),
}

/// A request to the client, or to its session, within one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AskId(pub u64);

/// How a call ended.
#[derive(Clone, Debug)]
pub enum CallOutcome {
    /// The backend's result, untouched (`resultType: "input_required"` reaches only modern callers).
    Result(RawJson),
    /// The backend's own error.
    Error(RpcError),
    /// The request earned it before it came to a backend (unknown tool, bad cursor).
    Refused(RpcError),
    /// Shoal could not finish it.
    Failed(CallFailure),
}

/// Why Shoal did not finish a call. The first three answers are the ones that a client must be able
/// to tell apart (`docs/guarantees.md`).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallFailure {
    /// Nothing was executed; safe to send again.
    #[error("the call was not executed: {reason}; it is safe to send it again")]
    NotExecuted {
        /// What prevented it.
        reason: String,
    },
    /// The only worker that may run it cannot be reached from here, and has not got it from here. Whether it has from
    /// elsewhere is for whoever bound the call to know.
    #[error("the call was not executed: {reason}; it is safe to send it again")]
    WorkerAway {
        /// Why it cannot.
        reason: String,
    },
    /// This node does not know yet whether what was called exists, and nothing was executed.
    #[error("the call was not executed: {reason}; it is safe to send it again in {} s", retry_after.as_secs().max(1))]
    NotReady {
        /// What is not known yet.
        reason: String,
        /// When to come back.
        retry_after: Duration,
    },
    /// A limit was reached and nothing was executed.
    #[error("the call was not executed: {reason}; try again in {} s", retry_after.as_secs().max(1))]
    Overloaded {
        /// Which limit.
        reason: String,
        /// When to come back.
        retry_after: Duration,
    },
    /// It was started, and nobody knows whether it took effect.
    #[error("the outcome of the call is unknown: {reason}; check before you repeat it")]
    OutcomeUnknown {
        /// What was lost.
        reason: String,
    },
    /// Its deadline passed; the tool was told to stop.
    #[error("the call did not finish within {} s and was cancelled", (limit.as_secs_f64() * 100.0).round() / 100.0)]
    DeadlineExceeded {
        /// The time it was given.
        limit: Duration,
    },
    /// Its caller cancelled it, or an operator.
    #[error("the call was cancelled")]
    Cancelled,
    /// Its worker has heard of a later owner of its session, and has done nothing. Never an outcome: whoever hears it asks
    /// the store whose the session is.
    #[error(
        "the outcome of the call is unknown: its session has another owner; check before you repeat it"
    )]
    Superseded {
        /// Of the latest owner that the worker has heard of.
        epoch: Epoch,
    },
}

impl CallFailure {
    /// Nothing was executed, and what prevented it.
    pub fn not_executed(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::NotExecuted { reason }
    }

    /// A limit was reached, and when to come back.
    pub fn overloaded(reason: impl Into<String>, retry_after: Duration) -> Self {
        let reason = reason.into();
        Self::Overloaded {
            reason,
            retry_after,
        }
    }

    /// It was started, and what was lost.
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

    /// Whether the same call may be sent again.
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

    /// When to come back, where that is known.
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
    /// The response's content: result or error.
    pub fn into_outcome(self) -> Outcome {
        match self {
            Self::Result(result) => Outcome::Result(result),
            Self::Error(error) | Self::Refused(error) => Outcome::Error(error),
            Self::Failed(failure) => Outcome::Error(failure.to_rpc()),
        }
    }
}

/// Steers a running call. All methods return at once and are without effect when the call has ended, or
/// when somebody else has attached to it since.
pub trait CallControl: Send + Sync {
    /// Answers a request that the call put to its client or session; a second answer is ignored, and told as the
    /// first. The answer is taken when this returns, but it may still be on its way to the worker: the future tells
    /// when it has arrived, and whether that request has its answer. Dropping the future takes nothing back.
    fn answer(&self, ask: AskId, answer: Outcome) -> Answered;

    /// Tells the tool to stop. The call still ends with one `Finished`, soon.
    fn cancel(&self, reason: &str);

    /// Waits until nothing of the call runs any more. A tool that was told to stop may run on after the call's end. `None` if
    /// nothing runs, or nobody here can know. The future ends if the way to the worker breaks. Cancellation safe.
    fn over(&self) -> Option<future::BoxFuture<'static, ()>> {
        None
    }

    /// Whether somebody else has attached to the call since. Its events end here without `Finished` then, as
    /// they do when the way broke, but attaching again would only take it back from the other.
    fn is_replaced(&self) -> bool {
        false
    }

    /// Where a call runs that was begun without a session, so that one may take it over; `None` where that is not known.
    /// Told once no answer is on its way to the worker: who takes the call over before one has arrived finds its question
    /// open, and puts it again.
    fn bound(&self) -> future::BoxFuture<'static, Option<Bound>> {
        Box::pin(future::ready(None))
    }

    /// Names this reader to the worker, under which name it [comes back](crate::Attach::reader) when the way
    /// breaks; `None` where the worker has said nothing of the call, or names no readers.
    fn reader(&self) -> Option<u64> {
        None
    }
}

/// Whether a request has its answer, once that has arrived. Where the way to the worker breaks before that is known, a
/// worker's control never says: whoever attaches to the call again answers again. The dispatcher says `false` when the way
/// broke for good.
pub type Answered = future::BoxFuture<'static, bool>;

/// An answer whose fate is known already.
pub fn answered(open: bool) -> Answered {
    Box::pin(std::future::ready(open))
}
