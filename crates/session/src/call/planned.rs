//! Plans admitted requests, without touching the store.

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

    /// Plans a call, unless its edge has planned it. Returns an answer if the call does not run.
    ///
    /// # Cancel safety
    /// If the future is dropped, the request has ended.
    ///
    /// # Errors
    /// If the session has moved, or this node cannot reach the bound worker.
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
                let runs_once = plan.runs_once();
                let own = plan.route.as_ref().and_then(|route| route.hold);
                in_flight.hold = match (runs_once, by_edge) {
                    (false, _) => self.config.grace,
                    (true, true) => own.unwrap_or(self.config.hold),
                    // Journal the call first, because a repeated delivery could not name the worker that has the call.
                    (true, false) => Duration::ZERO,
                };
                in_flight.came_bound = runs_once && by_edge;
                in_flight.repeated = repeated && in_flight.came_bound;
                if runs_once {
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

    /// Checks that this node can reach the call's worker. Unbinds a repeatable call if not.
    ///
    /// # Errors
    /// If this node cannot reach a run-once call's worker, because only the edge knows of all deliveries.
    fn reach(&self, in_flight: &mut InFlight) -> Result<(), GatewayError> {
        let planned = in_flight.plan.worker.as_ref();
        let Some(worker) = planned.map(|planned| &planned.worker) else {
            return Ok(());
        };
        if self.dispatcher.takes(worker, &in_flight.plan) {
            return Ok(());
        }
        if in_flight.runs_once() {
            let reason = format!("its worker {worker} is not available");
            return Err(GatewayError::WorkerAway { reason });
        }
        in_flight.plan.worker = None;
        Ok(())
    }
}

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
    /// Returns the answer to a repeated request whose first delivery left no trace. On a single stream a call that may
    /// have run gets an unknown outcome.
    fn repeats(&self, answer: Option<CallOutcome>) -> Option<CallOutcome> {
        let may_have_run = match &answer {
            None => self.plan.call.repeat == Repeat::Never,
            Some(CallOutcome::Failed(failure)) => failure.retry() == Retry::Always,
            Some(_) => false,
        };
        if self.live.transport != SessionTransport::SingleStream || !may_have_run {
            return answer;
        }
        let failure = CallFailure::outcome_unknown("the node that took the request was lost");
        Some(CallOutcome::Failed(failure))
    }
}

fn trace_of(meta: &RequestMeta) -> Option<TraceContext> {
    TraceContext::parse(meta.traceparent.as_deref()?, meta.tracestate.as_deref())
}
