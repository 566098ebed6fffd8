use std::sync::Arc;
use std::time::Duration;

use shoal_ports::{Binding, Call, CallFailure, CallOutcome, CallPlan, Principal, Route, WorkerId};
use shoal_protocol::{Method, RawJson};
use shoal_telemetry::metrics::ShedReason;
use tokio::time::{Instant, timeout_at};

use crate::asker::Asker;
use crate::awaiting::nobody_came;
use crate::dispatch::Dispatch;
use crate::plan::{FoundRoute, shed, tell_allowed};
use crate::pools::{AffinityKey, PoolMember, View, WantedWorker};
use crate::route::Routed;
use crate::shared::DispatchState;

pub(crate) struct Wish<'a> {
    pub(crate) asker: Asker<'a>,
    pub(crate) method: &'a Method,
    pub(crate) pool: &'a Arc<str>,
    /// The tool's name at the backend.
    pub(crate) tool: Option<&'a str>,
    pub(crate) params: Option<&'a RawJson>,
}

impl<'a> Wish<'a> {
    fn of(call: &'a Call, route: &'a Route) -> Self {
        Self {
            asker: Asker::from(&call.caller),
            method: &call.method,
            pool: &route.pool,
            tool: route.tool.as_deref(),
            params: route.params.as_ref(),
        }
    }

    fn wanted(&self, view: &View) -> WantedWorker<'a> {
        let affinity = &view.settings.of(self.pool).affinity;
        let Asker {
            principal, session, ..
        } = self.asker;
        WantedWorker {
            tool: self.tool,
            key: AffinityKey::of(affinity, self.params, session, Some(principal)),
            by: Some((self.asker, self.method)),
        }
    }

    fn own_worker<'v>(&self, view: &'v View, tried: &[WorkerId]) -> Option<&'v Arc<PoolMember>> {
        let own = view.own.worker(self.pool, self.asker);
        let own = own.filter(|worker| !tried.contains(worker));
        let own = own.and_then(|worker| view.member(worker));
        own.filter(|member| member.is_reachable())
    }
}

impl Dispatch {
    pub(crate) fn place_again(&self, plan: &CallPlan, tried: &[WorkerId]) -> Option<Binding> {
        let (view, route) = (self.shared.view(), plan.route.as_ref()?);
        let wish = Wish::of(&plan.call, route);
        self.may_try(tried)
            .then(|| place(&view, &wish, tried).ok())?
    }

    pub(crate) fn draw_for(
        &self,
        view: &View,
        wish: &Wish<'_>,
        tried: &[WorkerId],
    ) -> Option<Binding> {
        if !self.may_try(tried) {
            return None;
        }
        let own = wish.own_worker(view, tried);
        let drawn = own.or_else(|| view.draw(wish.pool, &wish.wanted(view), tried));
        drawn.map(binding_to)
    }

    fn may_try(&self, tried: &[WorkerId]) -> bool {
        tried.len() < self.shared.config.calls.attempts.max(1)
    }

    /// Waits for a worker up to `cluster.rejoin` or, if longer, the `wait` of a pool that may scale to zero, but not
    /// beyond the call's deadline.
    pub(crate) async fn worker_in_time(
        &self,
        call: &Call,
        routed: Routed,
    ) -> Result<FoundRoute, CallOutcome> {
        let pool = &routed.route.pool;
        let place = |view: &View| self.place(view, call, &routed.route);
        let placed = self.shared.in_time(pool, call, place).await;
        match placed {
            Ok(worker) => Ok(FoundRoute::of(routed, Some(worker))),
            Err((failure, reason)) => {
                tell_allowed(call, routed.route.rule.clone());
                Err(shed(pool, failure, reason))
            }
        }
    }

    pub(crate) fn place(
        &self,
        view: &View,
        call: &Call,
        route: &Route,
    ) -> Result<Binding, (CallFailure, ShedReason)> {
        place(view, &Wish::of(call, route), &[])
    }
}

fn place(
    view: &View,
    wish: &Wish<'_>,
    tried: &[WorkerId],
) -> Result<Binding, (CallFailure, ShedReason)> {
    if let Some(own) = wish.own_worker(view, tried) {
        return Ok(binding_to(own));
    }
    let wanted = wish.wanted(view);
    match view.choose(wish.pool, &wanted, tried) {
        Ok(member) => Ok(binding_to(member)),
        Err(failure) => Err((failure, view.shed_reason(wish.pool, &wanted))),
    }
}

fn binding_to(member: &Arc<PoolMember>) -> Binding {
    Binding {
        worker: member.id.clone(),
        ledger: member.worker.ledger(),
    }
}

impl DispatchState {
    /// Fails with the call's answer: no worker came in time, or too many calls wait.
    pub(crate) async fn worker_of(&self, pool: &Arc<str>, call: &Call) -> Result<(), CallOutcome> {
        let waited = self
            .in_time(pool, call, |view| any_worker(view, pool))
            .await;
        waited.map_err(|(failure, reason)| shed(pool, failure, reason))
    }

    /// Counts as a waiting call, so that the autoscaler starts a worker of a pool at zero.
    pub(crate) fn wake(self: &Arc<Self>, pool: &Arc<str>, principal: &Principal) {
        if self.awaiting.has(pool, principal) {
            return;
        }
        let (shared, pool, principal) = (self.clone(), pool.clone(), principal.clone());
        tokio::spawn(async move {
            let look = |view: &View| any_worker(view, &pool);
            let _ = shared.patiently(&pool, &principal, None, look).await;
        });
    }

    async fn in_time<T>(
        &self,
        pool: &Arc<str>,
        call: &Call,
        look: impl FnMut(&View) -> Result<T, (CallFailure, ShedReason)>,
    ) -> Result<T, (CallFailure, ShedReason)> {
        let principal = &call.caller.principal;
        (self.patiently(pool, principal, Some(call.deadline), look)).await
    }

    async fn patiently<T>(
        &self,
        pool: &Arc<str>,
        principal: &Principal,
        deadline: Option<Instant>,
        mut look: impl FnMut(&View) -> Result<T, (CallFailure, ShedReason)>,
    ) -> Result<T, (CallFailure, ShedReason)> {
        let began = Instant::now();
        // A held view would keep old data in memory.
        let scale = self.view().settings.scale_to_zero(pool).cloned();
        let mut patience = self.config.cluster.rejoin.get();
        let _awaiting = match &scale {
            Some(scale) => {
                patience = patience.max(scale.wait.get());
                let entered = self.awaiting.enter(pool, principal, scale);
                Some(entered.map_err(|failure| (failure, ShedReason::QueueFull))?)
            }
            None => None,
        };
        let until = began + patience;
        let until = deadline.map_or(until, |deadline| deadline.min(until));
        let mut changes = self.changes();
        loop {
            let found = look(&self.view());
            match found {
                Err((_, ShedReason::NoWorker)) if Instant::now() < until => {}
                Err((_, ShedReason::NoWorker)) if scale.is_some() => {
                    return Err((nobody_came(pool, began.elapsed()), ShedReason::NoWorker));
                }
                found => return found,
            }
            let _ = timeout_at(until, changes.changed()).await;
        }
    }
}

fn any_worker(view: &View, pool: &Arc<str>) -> Result<(), (CallFailure, ShedReason)> {
    match view.has_worker(pool) {
        true => Ok(()),
        false => Err((nobody_came(pool, Duration::ZERO), ShedReason::NoWorker)),
    }
}
