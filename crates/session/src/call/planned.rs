//! From an admitted request to its plan: what is refused goes no further, and has touched no store.

use std::sync::Arc;
use std::time::Duration;

use futures::future::Either;
use shoal_ports::{
    Call, CallFailure, CallOutcome, EdgePlan, GatewayError, Planned, Repeat, Retry, SessionRef,
    SessionTransport,
};
use shoal_protocol::{RequestMeta, TraceContext};
use shoal_telemetry::trace::names;
use tokio::time::Instant;

use super::{CallDriver, InFlight};
use crate::live::LiveSession;
use crate::state::AdmittedCall;

impl CallDriver {
    /// Gives an admitted request its call. `to` is what was said of whoever brought it.
    pub(crate) fn prepare(
        &self,
        live: &Arc<LiveSession>,
        admitted: AdmittedCall,
        to: &SessionRef,
    ) -> InFlight {
        let AdmittedCall {
            admission,
            slot,
            method,
            params,
            caller,
            log,
        } = admitted;
        let meta = RequestMeta::of(params.as_ref());
        let call = Call {
            id: slot.call(),
            method,
            params,
            caller: live.granted.with(caller, to),
            log,
            deadline: Instant::now() + self.config.call_timeout,
            // Until its plan knows better.
            repeat: Repeat::Never,
            trace: to.trace.clone().or_else(|| trace_of(&meta)),
            progress_token: meta.progress_token,
            worker: None,
            ledger: None,
            attach_only: false,
            asks_first: false,
            epoch: Some(live.rank()),
        };
        InFlight::new(live.clone(), admission, call, slot, names::SESSION_CALL)
    }

    /// Plans a call that its edge has not; what is returned is its answer, and then it does not run. `repeated` says that it
    /// was delivered before.
    ///
    /// Nothing is written down, and whoever polls this owns all of it: a request whose client gives up while it waits
    /// for a worker has ended.
    ///
    /// # Errors
    /// When the session has moved meanwhile, or its edge has bound the call to a worker that this node does not reach.
    pub(crate) async fn plan(
        &self,
        in_flight: &mut InFlight,
        edge: Option<Arc<EdgePlan>>,
        repeated: bool,
    ) -> Result<Option<CallOutcome>, GatewayError> {
        let by_edge = edge.is_some();
        let planned = match edge {
            Some(plan) => Arc::unwrap_or_clone(plan).map(|plan| in_flight.plan.fill(plan)),
            None => {
                let planned = match self.dispatcher.plan(in_flight.plan.call.clone()) {
                    Either::Left(planned) => planned.into_inner(),
                    Either::Right(planning) => Box::pin(in_time(planning, in_flight)).await?,
                };
                planned.map(|plan| in_flight.plan = plan)
            }
        };
        let answer = match planned {
            Ok(()) => {
                let plan = &in_flight.plan;
                let once = plan.is_once();
                let own = plan.route.as_ref().and_then(|route| route.hold);
                in_flight.hold = match (once, by_edge) {
                    (false, _) => self.config.grace,
                    (true, true) => own.unwrap_or(self.config.hold),
                    // Who delivers it again could not say where it was begun.
                    (true, false) => Duration::ZERO,
                };
                in_flight.came_bound = once && by_edge;
                in_flight.repeated = repeated && in_flight.came_bound;
                if once {
                    in_flight.slot.run_once();
                }
                if by_edge && !repeated {
                    self.reach(in_flight)?;
                }
                None
            }
            Err(answer) => Some(answer),
        };
        Ok(match repeated {
            true => in_flight.repeats(answer),
            false => answer,
        })
    }

    /// An edge may plan a worker that this node cannot reach, or leaves alone. A call that is safe to repeat goes to whichever
    /// this node finds.
    ///
    /// # Errors
    /// For any other: only its edge, which hears of each attempt, can know that nothing of it has left.
    fn reach(&self, in_flight: &mut InFlight) -> Result<(), GatewayError> {
        let planned = in_flight.plan.worker.as_ref();
        let Some(worker) = planned.map(|planned| &planned.worker) else {
            return Ok(());
        };
        if self.dispatcher.takes(worker, &in_flight.plan) {
            return Ok(());
        }
        if in_flight.is_once() {
            let reason = format!("its worker {worker} is not there, or was left alone");
            return Err(GatewayError::WorkerAway { reason });
        }
        in_flight.plan.worker = None;
        Ok(())
    }
}

/// A plan that is waited for, unless its request is cancelled or its session is over before.
async fn in_time(
    planning: impl Future<Output = Planned>,
    in_flight: &InFlight,
) -> Result<Planned, GatewayError> {
    let cancelled = || Err(CallOutcome::Failed(CallFailure::Cancelled));
    tokio::select! {
        biased;
        () = in_flight.live.until_over() => match in_flight.live.is_lost() {
            true => Err(GatewayError::Moved { owner: None }),
            false => Ok(cancelled()),
        },
        () = in_flight.slot.until_cancelled() => Ok(cancelled()),
        planned = planning => Ok(planned),
    }
}

impl InFlight {
    /// What a repetition is told that finds nothing of the first delivery. The store does not know by which delivery a
    /// call on the standalone stream began: what became of the first one cannot be told.
    fn repeats(&self, answer: Option<CallOutcome>) -> Option<CallOutcome> {
        let may_have_run = match &answer {
            None => self.plan.call.repeat == Repeat::Never,
            Some(CallOutcome::Failed(failure)) => failure.retry() == Retry::Safe,
            Some(_) => false,
        };
        if self.live.transport != SessionTransport::SingleStream || !may_have_run {
            return answer;
        }
        let failure = CallFailure::outcome_unknown("the node that took the request was lost");
        Some(CallOutcome::Failed(failure))
    }
}

/// What the client itself says of its span, when no edge has made one of it.
fn trace_of(meta: &RequestMeta) -> Option<TraceContext> {
    TraceContext::parse(meta.traceparent.as_deref()?, meta.tracestate.as_deref())
}
