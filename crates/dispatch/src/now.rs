//! Calls that a worker in this process takes without being waited for.
//!
//! Most of them have ended when it returns. Nobody steers such a call, attaches to it, or sees it run, so it needs
//! nothing of what follows a call around: it is answered from where it was asked.

use std::sync::Arc;

use shoal_ports::{Call, CallFailure, CallOutcome, RunningCall};
use shoal_protocol::{Era, RawJson, TraceContext};
use shoal_telemetry::metrics::{self, CountedOutcome, metrics};
use tokio::time::Instant;

use crate::bridge::{LegacyBridge, ModernBridge, answered, is_complete, may_continue, running};
use crate::dispatch::Dispatch;
use crate::pools::{AffinityKey, Member, View, Wanted};
use crate::route::{Refused, Route, check_members, route};
use crate::worker_call::{Origin, WorkerCall};

impl Dispatch {
    /// Starts a call without waiting; `None`, with nothing done, where that cannot be, or where there is more to it than
    /// is worth knowing here: spans, workers elsewhere, and whatever goes wrong.
    pub(crate) fn begin_now(&self, call: &Call) -> Option<Result<RunningCall, CallFailure>> {
        let view = self.shared.view();
        if !call.method.runs_on_backend() {
            return view.unsettled().is_none().then(|| self.list(&view, call));
        }
        if !view.is_here || call.trace.as_ref().is_some_and(TraceContext::is_sampled) {
            return None;
        }
        let era = call.caller.revision.era();
        let params = call.params.as_ref().map(RawJson::index);
        let params = params.as_ref();
        if era == Era::Modern && may_continue(&call.method, params) {
            return None;
        }
        if let Err(error) = check_members(params) {
            return Some(Ok(answered(CallOutcome::Refused(error))));
        }
        let began = Instant::now();
        let revision = call.caller.revision;
        let mut route = match route(&view, self.arguments(), revision, &call.method, params) {
            Ok(route) => route,
            Err(Refused::Answer(outcome)) => {
                let shaping = &view.catalog.shaping;
                let outcome = shaping.outcome(revision, &call.method, outcome);
                return Some(Ok(answered(outcome)));
            }
            Err(Refused::NotReady(_) | Refused::Unchecked(_)) => return None,
        };
        let member = self.place(&view, call, &route)?;
        let placed = Call {
            params: route.params.take(),
            ledger: match call.worker {
                Some(_) => call.ledger,
                None => member.worker.ledger(),
            },
            deadline: self.worker_deadline(call),
            ..call.clone()
        };
        route.params.clone_from(&placed.params);
        // Where it takes nothing, nothing was executed: the other way asks again, and does what is to be done then.
        let started = member.worker.here()?.start_now(placed).ok()?;
        Some(Ok(match started.events.ended() {
            Some(outcome) if is_complete(&call.method, outcome) => {
                self.ended_now(&view, call, member, started, began)
            }
            _ => self.goes_on(&view, call, route, member, started),
        }))
    }

    /// The worker that a call is bound to, or that it is offered to first. Not one that is on trial: whoever asks that
    /// has to wait for its word.
    fn place<'v>(&self, view: &'v View, call: &Call, route: &Route) -> Option<&'v Arc<Member>> {
        if let Some(worker) = &call.worker {
            return view.member(worker);
        }
        if !view.is_well(&route.pool) {
            return None;
        }
        let affinity = &self.shared.config.pool(&route.pool).affinity;
        let (session, principal) = (call.caller.session.as_ref(), &call.caller.principal);
        let wanted = Wanted {
            tool: route.tool.as_ref().map(|tool| tool.name.as_str()),
            key: AffinityKey::of(affinity, route.params.as_ref(), session, Some(principal)),
        };
        view.choose(&route.pool, &wanted, &[]).ok()
    }

    /// Answers a call that has ended.
    fn ended_now(
        &self,
        view: &View,
        call: &Call,
        member: &Member,
        mut started: RunningCall,
        began: Instant,
    ) -> RunningCall {
        let Some(outcome) = started.events.take_ended() else {
            return started;
        };
        // A worker that answers is well, and where its circuit was open, it is closed by that.
        let _ = member.circuit.ended(&outcome);
        let shaping = &view.catalog.shaping;
        let outcome = shaping.outcome(call.caller.revision, &call.method, outcome);
        if metrics::enabled() {
            let counted = CountedOutcome::of(&outcome);
            (metrics().pools).called(&member.pool, began.elapsed(), counted);
        }
        RunningCall::ended(outcome, started.worker)
    }

    /// Follows a call that runs, or has ended in a way that does not end it for its caller.
    fn goes_on(
        &self,
        view: &View,
        call: &Call,
        route: Route,
        member: &Arc<Member>,
        started: RunningCall,
    ) -> RunningCall {
        let place = self.shared.in_flight.enter(call);
        let begun = Call {
            deadline: self.worker_deadline(call),
            ..call.clone()
        };
        let origin = Origin::new(begun, route, &self.shared);
        let worker_call =
            WorkerCall::started(self.shared.clone(), origin, started, Arc::clone(member));
        let running = match call.caller.revision.era() {
            Era::Legacy => {
                let (shaping, purpose) = (view.catalog.shaping.clone(), self.purpose(call));
                running(worker_call, |worker_call| {
                    LegacyBridge::new(worker_call, shaping, purpose)
                })
            }
            Era::Modern => {
                let request = self.modern(view, call);
                running(worker_call, |worker_call| {
                    ModernBridge::started(request, worker_call)
                })
            }
        };
        let pool = self.counted(&running);
        place.follow(running, pool)
    }
}
