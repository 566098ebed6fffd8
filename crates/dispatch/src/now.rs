//! Runs a call at a worker of this process without waiting.
//!
//! Most such calls have ended when [`Dispatch::start_here`] returns, so they need no control or
//! event stream.

use std::sync::Arc;

use shoal_ports::{Call, CallPlan, MayStart, Route, RunningCall};
use shoal_protocol::Era;
use shoal_telemetry::audit;
use shoal_telemetry::metrics::{self, CountedOutcome, metrics};
use tokio::time::Instant;

use crate::asker::Asker;
use crate::audit::AuditedCall;
use crate::bridge::{ModernBridge, complete, running};
use crate::dispatch::Dispatch;
use crate::pools::{CircuitState, PoolMember, WantedWorker};
use crate::worker_call::{CallOrigin, WorkerCall};

impl Dispatch {
    /// Returns `None` without side effects if the call would have to wait.
    pub(crate) fn start_here(&self, plan: &CallPlan) -> Option<RunningCall> {
        let CallPlan {
            call,
            route,
            worker,
        } = plan;
        if call.may_start != MayStart::Yes {
            return None;
        }
        let view = self.shared.view();
        let binding = call.binding.as_ref().or(worker.as_ref())?;
        let member = view.member(&binding.worker)?;
        let here = member.worker.here()?;
        let route = route.as_ref()?;
        let wanted = WantedWorker {
            tool: route.tool.as_deref(),
            key: None,
            by: Some((Asker::from(&call.caller), &call.method)),
        };
        // A circuit's trial waits for its result on the normal path.
        if member.circuit_of(&wanted) != CircuitState::Closed {
            return None;
        }
        let began = (metrics::enabled() || audit::enabled()).then(Instant::now);
        let mut origin = CallOrigin::new(call.clone(), route.clone(), &self.shared);
        let mut started = origin.start_here(member, here)?;
        let ended = started.events.ended();
        let Some(typed) = ended.and_then(|outcome| complete(&call.method, outcome)) else {
            return Some(self.goes_on(call, route, origin, member, started));
        };
        let outcome = started.events.take_ended()?;
        origin.ended_at(member, &outcome);
        let shaping = view.shaping(&call.caller, &call.method);
        let outcome = shaping.outcome(call.caller.revision, &call.method, outcome, typed);
        if let Some(began) = began {
            let counted = CountedOutcome::of_complete(&outcome);
            if audit::enabled() {
                let subject = AuditedCall {
                    rule: route.rule.as_deref(),
                    ..AuditedCall::of(call)
                };
                crate::audit::ended(&subject, began.elapsed(), &outcome, || counted);
            }
            if metrics::enabled() {
                (metrics().pools).called(began.elapsed(), &member.pool, counted);
            }
        }
        Some(RunningCall::ended(outcome, started.worker))
    }

    fn goes_on(
        &self,
        call: &Call,
        route: &Route,
        origin: CallOrigin,
        member: &Arc<PoolMember>,
        started: RunningCall,
    ) -> RunningCall {
        let place = self.shared.in_flight.enter(call);
        place.takes(route);
        let worker_call = WorkerCall::started(
            self.shared.clone(),
            Box::new(origin),
            started,
            Arc::clone(member),
        );
        let running = match call.caller.revision.era() {
            Era::Legacy => self.running_legacy(self.purpose(call), worker_call),
            Era::Modern => {
                let request = self.modern(call);
                running(worker_call, |worker_call| {
                    ModernBridge::started(request, worker_call)
                })
            }
        };
        let pool = self.counted(&running);
        place.follow(running, pool)
    }
}
