use std::sync::{Arc, LazyLock};

use futures::{future, stream};
use shoal_protocol::{LogLevel, Method, Outcome, RawJson, Revision, TraceContext};
use tokio::time::Instant;

use crate::{
    AskId, Binding, Bound, CallEvents, CallId, CallOutcome, ClientInfo, Epoch, ForwardedHeaders,
    Grant, LedgerNumber, Principal, Repeat, SessionId, WorkerId,
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
    /// The time at which the call fails with [`CallFailure::DeadlineExceeded`](crate::CallFailure::DeadlineExceeded).
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
/// If `events` ends without [`CallEventKind::Finished`](crate::CallEventKind::Finished), the connection to the worker broke, or another reader [has
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
