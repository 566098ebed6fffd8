//! Carrying one request from its admission to its answer.
//!
//! A call runs in its caller's own task for a moment, the [`hold`], and is answered as JSON if its result comes first and
//! soon. Every other call is [`journaled`] with a stream in the log, and has a task of its own that [`pump`]s: it
//! appends what the call sends before anybody may read it.

mod as_task;
mod gathering;
mod granted;
mod hold;
mod journaled;
mod keeping;
mod outlast;
mod planned;
mod pump;
mod resumed;
mod start;
mod superseded;
mod task;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub(crate) use granted::GrantedCaller;
pub(crate) use journaled::AGAIN;
pub(crate) use resumed::TakenOver;
pub(crate) use start::brought_by;

use bytes::Bytes;
use shoal_ports::{
    AskId, Binding, Call, CallFailure, CallId, CallOutcome, CallPlan, Delivered, DeliveryId,
    Dispatcher, GatewayError, JournalEntry, JournaledCall, RunningCall, SessionTransport, Starting,
    Store, later,
};
use shoal_protocol::{
    EventId, Method, Outcome, RawJson, RequestId, Revision, TraceContext, error_response, response,
};
use shoal_telemetry::trace::{self, Span, attributes as key, names};

use crate::config::SessionConfig;
use crate::live::LiveSession;
use crate::measure::Journaled;
use crate::state::{Admission, CallSlot, question_id};
use crate::streams::Tail;

/// What a call needs of its node.
pub(crate) struct CallDriver {
    pub(crate) config: Arc<SessionConfig>,
    pub(crate) store: Store,
    pub(crate) dispatcher: Arc<dyn Dispatcher>,
    /// Calls of this node that are journaled and have not ended.
    pub(crate) running: Arc<AtomicUsize>,
    /// Whether the store took the last call from its reserve: then it is asked before others start.
    pub(crate) is_full: AtomicBool,
}

/// An admitted call; frees its request's id when it is over, however it ends.
pub(crate) struct InFlight {
    live: Arc<LiveSession>,
    admission: Admission,
    plan: CallPlan,
    slot: Arc<CallSlot>,
    /// The span of whoever brought it: the parent at every owner, since one that is killed never tells of its own
    /// spans.
    brought: Option<TraceContext>,
    span: Span,
    journaled: OnceLock<Journaled>,
    /// How long nothing of it is written after its start; zero: it is journaled before.
    hold: Duration,
    /// Whether it was delivered before, so that an earlier owner may have started it at its worker.
    repeated: bool,
    /// Whether it came here bound to its worker. Then it may have been started there, whatever its delivery calls itself: the
    /// first may come after those that repeat it.
    came_bound: bool,
    /// The worker's number of the last event that was in the log when this owner took the call over.
    seen: u64,
    /// The progress that the client had from the owners before. What a second run says of where an earlier one has been
    /// is left out, since progress must increase (basic, Progress).
    reached: Option<f64>,
}

/// An open call, from which its journal entry can be written again.
pub(crate) struct OpenCall {
    call: Call,
    request: RequestId,
    brought: Option<TraceContext>,
    seen: u64,
}

impl OpenCall {
    pub(crate) fn id(&self) -> CallId {
        self.call.id
    }

    pub(crate) fn request(&self) -> &RequestId {
        &self.request
    }

    /// More of what it has sent is in the log.
    pub(crate) fn note(&mut self, seen: u64) {
        self.seen = seen;
    }

    /// It is about to be started there.
    pub(crate) fn rebind(&mut self, binding: Binding) {
        self.call.ledger = binding.ledger;
        self.call.worker = Some(binding.worker);
    }

    pub(crate) fn to_journal(&self) -> JournaledCall {
        JournaledCall {
            entry: entry_of(&self.call, &self.request, self.brought.as_ref()),
            seen: self.seen,
        }
    }
}

fn entry_of(call: &Call, request: &RequestId, brought: Option<&TraceContext>) -> JournalEntry {
    JournalEntry {
        call: call.id,
        request: request.clone(),
        worker: call.worker.clone(),
        ledger: call.ledger,
        start: start::of(call, brought),
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.end();
    }
}

impl CallDriver {
    /// Runs a planned call and says how its answer travels.
    ///
    /// If the future is dropped before a stream is open, the answer is lost with its connection: the client had no id to
    /// come back with. The call runs on.
    pub(crate) async fn carry(
        self: &Arc<Self>,
        in_flight: Box<InFlight>,
        delivery: DeliveryId,
    ) -> Result<Delivered, GatewayError> {
        let once = in_flight.is_once();
        let asks_first = in_flight.hold.is_zero()
            || (!in_flight.repeated && self.is_full.load(Ordering::Relaxed));
        let is_held = !once || !asks_first;
        if is_held && in_flight.live.transport == SessionTransport::Streamable {
            if once && !in_flight.repeated {
                // Nothing may have to be stored; but where there is no room for it, the call could not end otherwise.
                in_flight.live.share.check()?;
            }
            return self.hold(in_flight, delivery).await;
        }
        // Boxed, so that the future of a held call stays small.
        Box::pin(self.carry_journaled(vec![*in_flight], Vec::new(), delivery)).await
    }

    /// Has a call started as planned. One that an earlier owner may have started is looked for at its worker.
    fn start(&self, in_flight: &InFlight) -> Starting {
        if !in_flight.repeated {
            return self.dispatcher.start(&in_flight.plan);
        }
        let dispatcher = self.dispatcher.clone();
        let call = Call {
            // What it may do before it hears of its cancellation, nobody wants.
            attach_only: in_flight.slot.is_cancelled(),
            ..in_flight.plan.call.clone()
        };
        later(async move { dispatcher.resume(call, 0).await })
    }

    /// The connection that asked reads the stream on from there.
    pub(crate) fn read_from(
        &self,
        live: &LiveSession,
        tail: &Arc<Tail>,
        from: EventId,
    ) -> Delivered {
        let prime = live.primes_streams();
        let attachment = live.streams.read_live(tail.clone(), from, prime);
        Delivered::Stream(attachment.start(()))
    }
}

impl InFlight {
    /// A call whose span, of this name, lasts until its answer.
    fn new(
        live: Arc<LiveSession>,
        admission: Admission,
        mut call: Call,
        slot: Arc<CallSlot>,
        name: &'static str,
    ) -> Self {
        let brought = call.trace.take();
        let id = call.id;
        let span = trace::internal(name)
            .parent(brought.as_ref())
            .start_with(|set| {
                set.set(key::MCP_SESSION_ID, live.id.as_str())
                    .set(key::CALL_ID, &id.to_string())
                    .set(key::ROLE, "session");
            });
        call.trace = span.context().cloned();
        Self {
            live,
            admission,
            plan: CallPlan {
                call,
                route: None,
                worker: None,
            },
            slot,
            brought,
            span,
            journaled: OnceLock::new(),
            hold: Duration::ZERO,
            repeated: false,
            came_bound: false,
            seen: 0,
            reached: None,
        }
    }

    /// Frees the request's id. Only once: a client may use it again after the answer.
    fn end(&self) {
        self.admission.outlive(&self.slot);
        if self.admission.release() {
            self.leave();
        }
    }

    /// Nothing reaches the call any more.
    fn leave(&self) {
        self.admission.outlive(&self.slot);
        let why = match self.live.is_lost() {
            true => "moved",
            false => "unanswered",
        };
        self.slot.leave(why);
    }

    fn request(&self) -> &RequestId {
        self.admission.request()
    }

    /// Whether it is the call of a task.
    fn is_task(&self) -> bool {
        self.live.transport == SessionTransport::Task
    }

    pub(crate) fn answer(&self, outcome: CallOutcome) -> Bytes {
        // It was stopped with its session, and not by its client, which may wait for an answer.
        let stopped = matches!(outcome, CallOutcome::Failed(CallFailure::Cancelled));
        let outcome = match stopped && self.live.streams.is_ending() {
            true => pump::session_ended(),
            false => outcome,
        };
        match outcome.into_outcome() {
            Outcome::Result(result) => response(self.request(), &result),
            Outcome::Error(error) => error_response(self.request(), &error),
        }
    }

    /// The answer to a call that does not run.
    ///
    /// # Errors
    /// When a limit was reached.
    pub(crate) fn refuse(&self, outcome: CallOutcome) -> Result<Bytes, GatewayError> {
        match outcome {
            CallOutcome::Failed(CallFailure::Overloaded {
                reason,
                retry_after,
            }) => Err(GatewayError::Overloaded {
                reason,
                retry_after,
            }),
            outcome => Ok(self.answer(outcome)),
        }
    }

    fn json(&self, outcome: CallOutcome) -> Delivered {
        Delivered::Json(self.answer(outcome))
    }

    fn entry(&self) -> JournalEntry {
        entry_of(&self.plan.call, self.request(), self.brought.as_ref())
    }

    /// The call as its stream knows it while it is open.
    fn open_call(&self, seen: u64) -> OpenCall {
        OpenCall {
            call: self.plan.call.clone(),
            request: self.request().clone(),
            brought: self.brought.clone(),
            seen,
        }
    }

    /// Whether a notification goes to the client.
    fn passes(&self, method: &Method, params: Option<&RawJson>) -> bool {
        match (self.reached, method) {
            (Some(reached), Method::Progress) => {
                let progress: Option<f64> = params
                    .and_then(|params| params.member("progress"))
                    .and_then(|progress| progress.read().ok());
                progress.is_none_or(|progress| progress > reached)
            }
            _ => true,
        }
    }

    /// Binds the call to the only worker that may run it. It is known to this owner, and in the journal, that nothing of it
    /// has left for there.
    fn bind(&mut self, binding: Binding) {
        self.plan.worker = Some(binding);
        self.plan.bind();
        self.begins_here();
    }

    /// The worker that it was bound to is only the first that it is offered to.
    fn unbind(&mut self) {
        let ledger = self.plan.call.ledger.take();
        let worker = self.plan.call.worker.take();
        self.plan.worker = worker.map(|worker| Binding { worker, ledger });
    }

    /// Nothing of it has left for the worker that it is bound to.
    fn begins_here(&mut self) {
        self.repeated = false;
        self.came_bound = false;
    }

    /// The call is in the journal.
    fn journaled(&self, running: &Arc<AtomicUsize>) {
        self.journaled.get_or_init(|| {
            let bytes = self.plan.call.params.as_ref().map_or(0, RawJson::len);
            Journaled::count(running, self.live.share.journal(bytes))
        });
    }

    /// The span of asking the client something, until it answers.
    fn asking(&self, ask: AskId, method: &Method) -> Span {
        trace::client(|| names::mcp_name(method.as_str(), None))
            .parent(self.span.context())
            .start_with(|set| {
                let request = question_id(self.plan.call.id, ask);
                let revision = self.live.revision().map(Revision::as_str);
                set.set(key::MCP_METHOD_NAME, method.as_str())
                    .set(key::MCP_SESSION_ID, self.live.id.as_str())
                    .set_some(
                        key::JSONRPC_REQUEST_ID,
                        request.to_json().string().as_deref(),
                    )
                    .set(key::CALL_ID, &self.plan.call.id.to_string())
                    .set(key::ROLE, "session")
                    .set_some(key::MCP_PROTOCOL_VERSION, revision);
            })
    }

    /// Enters where the call runs now.
    fn started(&mut self, running: &RunningCall) {
        self.plan.call.worker.clone_from(&running.worker);
        self.slot.started(running.control.clone());
    }
}

fn lost_worker() -> CallFailure {
    CallFailure::outcome_unknown("the way to the worker broke")
}
