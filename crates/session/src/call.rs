//! Carries a request from its admission to its answer.
//!
//! A call is first held ([`hold`]) in its caller's task. If its result comes soon, the answer is JSON. Otherwise the
//! call is [`journaled`] with a stream, and its own task [`pump`]s events: it logs them before clients can read them.

mod as_task;
mod driver;
mod gathering;
mod granted;
mod hold;
mod journaled;
mod keeping;
mod open_call;
mod outlast;
mod planned;
mod pump;
mod resumed;
mod start;
mod superseded;
mod task;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub(crate) use driver::CallDriver;
pub(crate) use granted::GrantedCaller;
pub(crate) use open_call::OpenCall;
use open_call::entry_of;
pub(crate) use resumed::TakenOver;
pub(crate) use start::brought_by;

use bytes::Bytes;
use shoal_ports::{
    AskId, Binding, Call, CallFailure, CallOutcome, CallPlan, Delivered, DeliveryId, GatewayError,
    JournalEntry, MayStart, RunningCall, SessionTransport, Starting, later,
};
use shoal_protocol::{
    EventId, Method, Outcome, RawJson, RequestId, Revision, TraceContext, error_response, response,
};
use shoal_telemetry::trace::{self, Span, attributes as key, names};

use crate::live::LiveSession;
use crate::measure::Journaled;
use crate::state::{Admission, CallSlot, question_id};
use crate::streams::Tail;

/// An admitted call. Dropping it frees the request id.
pub(crate) struct InFlight {
    live: Arc<LiveSession>,
    admission: Admission,
    plan: CallPlan,
    slot: Arc<CallSlot>,
    /// The client's span, which is the parent on every owner, because the spans of a killed owner are lost.
    brought: Option<TraceContext>,
    span: Span,
    journaled: OnceLock<Journaled>,
    /// How long the call may run before it is journaled. If zero, the call is journaled before its start.
    hold: Duration,
    /// Whether the call may have been started before.
    repeated: bool,
    /// The edge bound the call to a worker, which may already have the call.
    came_bound: bool,
    /// The refusal of a repeated delivery by its plan. It counts only if the worker refuses the call too.
    refused: Option<CallOutcome>,
    seen: u64,
    /// The highest progress of the call's earlier run. Lower values are dropped, because progress must increase (basic,
    /// Progress).
    reached: Option<f64>,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.end();
    }
}

impl CallDriver {
    /// Runs a planned call. Returns its answer, or the stream that will carry the answer.
    ///
    /// # Cancel safety
    /// The call runs on if the future is dropped, but without an open stream the answer is lost.
    pub(crate) async fn carry(
        self: &Arc<Self>,
        in_flight: Box<InFlight>,
        delivery: DeliveryId,
    ) -> Result<Delivered, GatewayError> {
        let runs_once = in_flight.runs_once();
        let asks_first = in_flight.hold.is_zero()
            || (!in_flight.repeated && self.is_full.load(Ordering::Relaxed));
        let is_held = !runs_once || !asks_first;
        if is_held && in_flight.live.transport == SessionTransport::Streamable {
            if runs_once && !in_flight.repeated {
                // The call may outlast the hold, and could then not end without room for its answer.
                in_flight.live.share.check()?;
            }
            return self.hold(in_flight, delivery).await;
        }
        Box::pin(self.carry_journaled(vec![*in_flight], Vec::new(), delivery)).await
    }

    /// If the call may have been started before, first looks for it at its worker.
    fn start(&self, in_flight: &InFlight) -> Starting {
        if !in_flight.repeated {
            return self.dispatcher.start(&in_flight.plan);
        }
        let dispatcher = self.dispatcher.clone();
        let mut call = in_flight.plan.call.clone();
        if in_flight.slot.is_cancelled() {
            call.may_start = MayStart::No;
        }
        later(async move { dispatcher.resume(call, 0).await })
    }

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
            refused: None,
            seen: 0,
            reached: None,
        }
    }

    /// Frees the request id, only once, because the client may use the id again after the answer.
    fn end(&self) {
        self.admission.outlive(&self.slot);
        if self.admission.release() {
            self.leave();
        }
    }

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

    fn is_task(&self) -> bool {
        self.live.transport == SessionTransport::Task
    }

    pub(crate) fn answer(&self, outcome: CallOutcome) -> Bytes {
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

    /// Ends a call that does not run, and returns its answer.
    ///
    /// # Errors
    /// A limit was reached.
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

    fn open_call(&self, seen: u64) -> OpenCall {
        OpenCall {
            call: self.plan.call.clone(),
            request: self.request().clone(),
            brought: self.brought.clone(),
            seen,
        }
    }

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

    fn bind(&mut self, binding: Binding) {
        self.plan.worker = Some(binding);
        self.plan.bind();
        self.begins_here();
    }

    fn unbind(&mut self) {
        self.plan.worker = self.plan.call.binding.take();
    }

    fn begins_here(&mut self) {
        self.repeated = false;
        self.came_bound = false;
    }

    fn journaled(&self, running: &Arc<AtomicUsize>) {
        self.journaled.get_or_init(|| {
            let bytes = self.plan.call.params.as_ref().map_or(0, RawJson::len);
            Journaled::count(running, self.live.share.journal(bytes))
        });
    }

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

    fn started(&mut self, running: &RunningCall) {
        let ledger = self
            .plan
            .call
            .binding
            .take()
            .and_then(|binding| binding.ledger);
        let worker = running.worker.clone();
        self.plan.call.binding = worker.map(|worker| Binding { worker, ledger });
        self.slot.started(running.control.clone());
    }
}

fn lost_worker() -> CallFailure {
    CallFailure::outcome_unknown("the link to the worker broke")
}
