//! Plans admitted requests, without touching the store.

use std::sync::Arc;

use futures::future::Either;
use shoal_ports::{
    Binding, Call, CallFailure, CallOutcome, GatewayError, MayStart, Planned, Repeat, Retry,
    SessionRef, SessionTransport,
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
            deadline: Instant::now() + self.config.calls.timeout.get(),
            repeat: Repeat::Never,
            trace: to.trace.clone().or_else(|| trace_of(&meta)),
            progress_token: meta.progress_token,
            binding: None,
            may_start: MayStart::Yes,
            epoch: Some(live.rank()),
        };
        InFlight::new(live.clone(), admission, call, slot, names::SESSION_CALL)
    }

    /// Plans a call. Returns an answer if the call does not run.
    ///
    /// `repeated` means that an earlier delivery may have begun the call. If the plan then refuses a bound call, the
    /// refusal waits for the call's worker, which either has the call or refuses it for good.
    ///
    /// # Cancel safety
    /// Callers drop the future together with its `InFlight`, which ends the request.
    ///
    /// # Errors
    /// If the session has moved, or the call was not sent to the worker that its edge has drawn.
    pub(crate) async fn plan(
        &self,
        in_flight: &mut InFlight,
        repeated: bool,
    ) -> Result<Option<CallOutcome>, GatewayError> {
        let planned = match self.dispatcher.plan(in_flight.plan.call.clone()) {
            Either::Left(planned) => planned.into_inner(),
            Either::Right(planning) => Box::pin(in_time(planning, in_flight)).await?,
        };
        let answer = match planned {
            Ok(plan) => {
                in_flight.plan = plan;
                self.planned(in_flight);
                if in_flight.came_bound && !repeated {
                    self.reach(in_flight)?;
                }
                None
            }
            Err(answer) if in_flight.repeated && !in_flight.is_on_single_stream() => {
                in_flight.refused = Some(answer);
                in_flight.plan.call.may_start = MayStart::No;
                self.planned(in_flight);
                None
            }
            Err(CallOutcome::Failed(CallFailure::WorkerAway { reason }))
                if in_flight.came_bound && !repeated =>
            {
                return Err(GatewayError::WorkerAway { reason });
            }
            Err(answer) => Some(answer),
        };
        Ok(match repeated {
            true => in_flight.repeats(answer),
            false => answer,
        })
    }

    fn planned(&self, in_flight: &mut InFlight) {
        let plan = &in_flight.plan;
        if !plan.runs_once() {
            in_flight.hold = self.config.streams.grace.get();
            return;
        }
        in_flight.slot.run_once();
        // An unbound call is journaled first, because a repeated delivery could not name the worker that has it.
        if in_flight.came_bound && plan.call.may_start != MayStart::IfApproved {
            let own = plan.route.as_ref().and_then(|route| route.hold);
            in_flight.hold = own.unwrap_or(self.config.streams.hold.get());
        }
    }

    /// Fails if this node cannot reach the call's worker: the edge must decide, because only it
    /// knows of all deliveries.
    fn reach(&self, in_flight: &InFlight) -> Result<(), GatewayError> {
        let binding = in_flight.plan.call.binding.as_ref();
        match binding.filter(|to| !self.dispatcher.takes(&to.worker, &in_flight.plan)) {
            Some(to) => Err(GatewayError::WorkerAway {
                reason: format!("its worker {} is not available", to.worker),
            }),
            None => Ok(()),
        }
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
    /// The edge has drawn the worker, which may have the call if the delivery is repeated.
    pub(crate) fn came_bound_to(&mut self, binding: Binding, repeated: bool) {
        self.plan.call.binding = Some(binding);
        self.came_bound = true;
        self.repeated = repeated;
    }

    /// Returns the plan's refusal if the worker's failure means that the call never runs.
    pub(super) fn refusal_after(&mut self, failure: &CallFailure) -> Option<CallOutcome> {
        let never = failure.retry() == Retry::Always || *failure == CallFailure::Cancelled;
        self.refused.take_if(|_| never && !self.slot.is_cancelled())
    }

    fn is_on_single_stream(&self) -> bool {
        self.live.transport == SessionTransport::SingleStream
    }

    /// Returns the answer to a repeated request whose first delivery left no trace. On a single stream, the outcome
    /// of a call that may have run is unknown.
    fn repeats(&self, answer: Option<CallOutcome>) -> Option<CallOutcome> {
        let may_have_run = match &answer {
            None => self.plan.call.repeat == Repeat::Never,
            Some(CallOutcome::Failed(failure)) => failure.retry() == Retry::Always,
            Some(_) => self.came_bound,
        };
        if !self.is_on_single_stream() || !may_have_run {
            return answer;
        }
        let failure = CallFailure::outcome_unknown("the node that took the request was lost");
        Some(CallOutcome::Failed(failure))
    }
}

fn trace_of(meta: &RequestMeta) -> Option<TraceContext> {
    TraceContext::parse(meta.traceparent.as_deref()?, meta.tracestate.as_deref())
}
