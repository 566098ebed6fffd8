//! The worker for a planned call.

use std::sync::Arc;

use shoal_ports::{Binding, Call, CallFailure, CallOutcome, CallPlan, Principal, Route, WorkerId};
use shoal_telemetry::metrics::ShedReason;
use tokio::time::{Instant, timeout_at};

use crate::awaiting::nobody_came;
use crate::dispatch::Dispatch;
use crate::plan::{Found, shed, tell_allowed};
use crate::pools::{AffinityKey, View, Wanted};
use crate::route::Routed;
use crate::shared::Shared;

impl Dispatch {
    /// Another worker for a call, by the way that was found for it.
    pub(crate) fn place_again(&self, plan: &CallPlan, tried: &[WorkerId]) -> Option<Binding> {
        if tried.len() >= self.shared.config.start_attempts.max(1) {
            return None;
        }
        let (view, route) = (self.shared.view(), plan.route.as_ref()?);
        self.place(&view, &plan.call, route, tried).ok()
    }

    /// Waits for a worker, up to `reconnect_wait` or, for a pool that may scale to zero, its `wait` if that is longer. The caller that
    /// polls the future owns all of it.
    pub(crate) async fn worker_in_time(
        &self,
        call: &Call,
        routed: Routed,
    ) -> Result<Found, CallOutcome> {
        let began = Instant::now();
        let pool = &routed.route.pool;
        // Cloned, because a call that held the view while it waits would keep everything in it alive.
        let scale = self.shared.view().settings.scale_to_zero(pool).cloned();
        let mut patience = self.shared.config.reconnect_wait();
        let refuse = |failure, reason| {
            tell_allowed(call, routed.route.rule.clone());
            shed(pool, failure, reason)
        };
        let _awaiting = match &scale {
            Some(scale) => {
                patience = patience.max(scale.wait.get());
                let entered = self
                    .shared
                    .awaiting
                    .enter(pool, &call.caller.principal, scale);
                Some(entered.map_err(|failure| refuse(failure, ShedReason::QueueFull))?)
            }
            None => None,
        };
        let until = (began + patience).min(call.deadline);
        let mut changes = self.shared.changes();
        loop {
            let placed = self.place(&self.shared.view(), call, &routed.route, &[]);
            match placed {
                Ok(worker) => return Ok(Found::of(routed, Some(worker))),
                Err((_, ShedReason::NoWorker)) if Instant::now() < until => {}
                Err((_, ShedReason::NoWorker)) if scale.is_some() => {
                    let failure = nobody_came(pool, began.elapsed());
                    return Err(refuse(failure, ShedReason::NoWorker));
                }
                Err((failure, reason)) => return Err(refuse(failure, reason)),
            }
            // Either way it is looked at again.
            let _ = timeout_at(until, changes.changed()).await;
        }
    }

    /// The worker that is offered a call next, or why there is none.
    pub(crate) fn place(
        &self,
        view: &View,
        call: &Call,
        route: &Route,
        tried: &[WorkerId],
    ) -> Result<Binding, (CallFailure, ShedReason)> {
        let affinity = &view.settings.of(&route.pool).affinity;
        let (session, principal) = (call.caller.session.as_ref(), &call.caller.principal);
        let wanted = Wanted {
            tool: route.tool.as_deref(),
            key: AffinityKey::of(affinity, route.params.as_ref(), session, Some(principal)),
            call: Some(call),
        };
        // What only this caller sees is there and nowhere else.
        let own = view.own.worker(&route.pool, &call.caller);
        let own = own.filter(|worker| !tried.contains(worker));
        let own = own.and_then(|worker| view.member(worker));
        let chosen = match own.filter(|member| member.is_reachable()) {
            Some(own) => Ok(own),
            None => view.choose(&route.pool, &wanted, tried),
        };
        match chosen {
            Ok(member) => Ok(Binding {
                worker: member.id.clone(),
                ledger: member.worker.ledger(),
            }),
            Err(failure) => Err((failure, view.shed_reason(&route.pool, &wanted))),
        }
    }
}

impl Shared {
    /// Waits until a pool that may scale to zero has a worker, as its calls do. Returns at once for other pools.
    ///
    /// # Errors
    /// No worker came in time, or as many calls wait already as the limits allow.
    pub(crate) async fn any_worker(
        &self,
        pool: &Arc<str>,
        principal: &Principal,
    ) -> Result<(), CallFailure> {
        let began = Instant::now();
        let mut changes = self.changes();
        let scale = {
            let view = self.view();
            match view.has_worker(pool) {
                true => None,
                false => view.settings.scale_to_zero(pool).cloned(),
            }
        };
        let Some(scale) = scale else {
            return Ok(());
        };
        let _awaiting = self.awaiting.enter(pool, principal, &scale)?;
        let until = began + scale.wait.get().max(self.config.reconnect_wait());
        while !self.view().has_worker(pool) {
            if timeout_at(until, changes.changed()).await.is_err() {
                return Err(nobody_came(pool, began.elapsed()));
            }
        }
        Ok(())
    }
}
