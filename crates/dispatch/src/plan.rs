//! Planning may wait for lists, a slow check of arguments, a worker of a pool at zero, or a worker for a journaled
//! call, because the journal must name it.

use std::sync::Arc;

use shoal_ports::{
    Binding, Call, CallFailure, CallOutcome, CallPlan, MayStart, Planning, Repeat, Route, WorkerId,
    at_once, later,
};
use shoal_protocol::{Era, Index, RawJson};
use shoal_telemetry::metrics::{ShedReason, metrics};
use tokio::time::{Instant, timeout_at};

use crate::access::Access;
use crate::audit;
use crate::bridge::may_continue;
use crate::dispatch::Dispatch;
use crate::own::{BRIEFLY, Sees, may_ask_again};
use crate::picture::not_ready;
use crate::pools::View;
use crate::route::{ArgumentTrust, RouteError, Routed, route};
use crate::settling::STARTS_WITHIN;
use crate::shape::Typed;
use crate::slow_checks::ArgumentCheck;

pub(crate) struct FoundRoute {
    pub(crate) route: Route,
    pub(crate) repeat: Repeat,
    pub(crate) asks: bool,
    pub(crate) worker: Option<Binding>,
}

enum Finding {
    Done(Result<FoundRoute, CallOutcome>),
    Check(ArgumentCheck, Routed),
    Worker(Routed),
    Lists,
    /// The only pool, scaled to zero, that may have the call's target.
    Vacant(Arc<str>),
    Start(CallFailure),
}

impl Dispatch {
    pub(crate) fn plan_call(&self, access: &Access, call: Call) -> Planning {
        let view = self.shared.view();
        if !call.method.runs_on_backend() {
            let waits = view.unsettled().is_some() || view.catalog.is_empty() && view.starts();
            let listed = match waits {
                false => self.list_now(&view, access, &call, 0),
                true => None,
            };
            return match listed {
                Some(listed) => at_once(Err(listed)),
                None => {
                    let dispatch = self.clone();
                    later(async move { Err(dispatch.list_in_time(&call).await) })
                }
            };
        }
        let given = call.params.clone();
        let params = given.as_ref().map(RawJson::index);
        let params = params.as_ref();
        if call.caller.revision.era() == Era::Modern && may_continue(&call.method, params) {
            // The rules decide later, when the continued call is routed again.
            let access = Access::granted();
            let own = self.view_of(&call.caller);
            let routed = self.route(&own, &access, &call, ArgumentTrust::Trusted, params);
            let repeat = match routed {
                Ok(routed) => routed.repeat,
                // The item may be known before the call continues, for example when its worker has joined.
                Err(_) => Repeat::Never,
            };
            return at_once(Ok(CallPlan {
                call: Call { repeat, ..call },
                route: None,
                worker: None,
            }));
        }
        match self.find(&view, access, &call, params, 0) {
            Finding::Done(found) => at_once(found.map(|found| found.into_plan(call))),
            finding => {
                let dispatch = self.clone();
                later(async move {
                    let access = dispatch.access(&call);
                    let found = dispatch.find_in_time(access, &call, finding).await?;
                    Ok(found.into_plan(call))
                })
            }
        }
    }

    /// Fails with the answer to the call.
    pub(crate) async fn find_surely(
        &self,
        access: Access,
        call: &Call,
    ) -> Result<FoundRoute, CallOutcome> {
        let finding = {
            let params = call.params.as_ref().map(RawJson::index);
            self.find(&self.shared.view(), &access, call, params.as_ref(), 0)
        };
        self.find_in_time(access, call, finding).await
    }

    pub(crate) fn access(&self, call: &Call) -> Access {
        Access::of_call(&self.shared.config, call)
    }

    pub(crate) fn route(
        &self,
        view: &View,
        access: &Access,
        call: &Call,
        arguments: ArgumentTrust,
        params: Option<&Index<'_>>,
    ) -> Result<Routed, RouteError> {
        let revision = call.caller.revision;
        route(view, access, arguments, revision, &call.method, params)
    }

    fn find(
        &self,
        view: &View,
        access: &Access,
        call: &Call,
        params: Option<&Index<'_>>,
        asked: usize,
    ) -> Finding {
        let sees = self.sees(view, &call.caller, &call.method, params);
        let view = match &sees {
            Sees::All => view,
            Sees::Own(own, _) => own,
            Sees::Unknown if may_ask_again(asked) => return Finding::Lists,
            Sees::Unknown => {
                let why = "the server has not sent this caller's lists".to_owned();
                let refused = RouteError::NotReady(not_ready(why));
                return Finding::Done(Err(refuse(view, call, refused)));
            }
        };
        let arguments = match self.shared.config.catalog.validate_arguments {
            true => ArgumentTrust::Checked,
            false => ArgumentTrust::Trusted,
        };
        match self.route(view, access, call, arguments, params) {
            Ok(routed) => self.placed(view, call, routed),
            Err(RouteError::NotReady(failure)) if view.starts() => Finding::Start(failure),
            Err(RouteError::Answer(_)) if asked == 0 && sees.may_be_more(&call.method, params) => {
                Finding::Lists
            }
            Err(refused) => {
                if let (RouteError::Answer(_), Some(pool)) =
                    (&refused, sees.vacant(access, &call.method, params))
                {
                    return Finding::Vacant(pool);
                }
                tell_allowed(call, access.rule());
                let instead = match &refused {
                    RouteError::Answer(_) => sees.instead_of_unknown(access, &call.method, params),
                    RouteError::NotReady(_) => None,
                };
                let refused = instead.map_or(refused, RouteError::Answer);
                Finding::Done(Err(refuse(view, call, refused)))
            }
        }
    }

    fn placed(&self, view: &View, call: &Call, mut routed: Routed) -> Finding {
        if let Some(check) = routed.unchecked.take() {
            return Finding::Check(check, routed);
        }
        let worker = match &call.binding {
            Some(Binding { worker, .. }) => {
                if let Some(reason) = elsewhere(view, worker, &routed.route) {
                    let failure = CallFailure::WorkerAway { reason };
                    return Finding::Done(Err(CallOutcome::Failed(failure)));
                }
                routed.repeat = Repeat::Never;
                None
            }
            None => match self.place(view, call, &routed.route) {
                Ok(worker) => Some(worker),
                // Only a journaled call, or a pool that may scale to zero, waits for a worker. Shoal refuses other
                // calls at once.
                Err((_, ShedReason::NoWorker))
                    if is_journaled(call, routed.repeat)
                        || view.settings.scale_to_zero(&routed.route.pool).is_some() =>
                {
                    return Finding::Worker(routed);
                }
                Err((failure, reason)) => {
                    tell_allowed(call, routed.route.rule);
                    return Finding::Done(Err(shed(&routed.route.pool, failure, reason)));
                }
            },
        };
        Finding::Done(Ok(FoundRoute::of(routed, worker)))
    }

    async fn find_in_time(
        &self,
        access: Access,
        call: &Call,
        mut finding: Finding,
    ) -> Result<FoundRoute, CallOutcome> {
        let until = call.deadline.min(Instant::now() + STARTS_WITHIN);
        let mut changes = self.shared.changes();
        let mut asked = 0;
        loop {
            finding = match finding {
                Finding::Done(found) => return found,
                Finding::Lists => {
                    asked += 1;
                    let learnt = self.learn(&call.caller, call.deadline, BRIEFLY).await;
                    if let Err(failure) = learnt {
                        tell_allowed(call, access.rule());
                        let refused = RouteError::NotReady(failure);
                        return Err(refuse(&self.shared.view(), call, refused));
                    }
                    let params = call.params.as_ref().map(RawJson::index);
                    self.find(&self.shared.view(), &access, call, params.as_ref(), asked)
                }
                Finding::Vacant(pool) => {
                    if let Err(refused) = self.shared.worker_of(&pool, call).await {
                        tell_allowed(call, access.rule());
                        return Err(refused);
                    }
                    Finding::Lists
                }
                Finding::Start(failure) => {
                    let again = {
                        let params = call.params.as_ref().map(RawJson::index);
                        self.find(&self.shared.view(), &access, call, params.as_ref(), asked)
                    };
                    let still = matches!(again, Finding::Start(_));
                    if still && timeout_at(until, changes.changed()).await.is_err() {
                        tell_allowed(call, access.rule());
                        let refused = RouteError::NotReady(failure);
                        return Err(refuse(&self.shared.view(), call, refused));
                    }
                    again
                }
                Finding::Worker(routed) => return self.worker_in_time(call, routed).await,
                Finding::Check(check, routed) => {
                    let checked = self.shared.checking.run(check, &call.caller.principal);
                    let refused = match checked.await {
                        Ok(Ok(())) => None,
                        Ok(Err(outcome)) => Some(RouteError::Answer(outcome)),
                        Err(failure) => Some(RouteError::NotReady(failure)),
                    };
                    let view = self.shared.view();
                    if let Some(refused) = refused {
                        tell_allowed(call, routed.route.rule);
                        return Err(refuse(&view, call, refused));
                    }
                    self.placed(&view, call, routed)
                }
            };
        }
    }
}

impl FoundRoute {
    pub(crate) fn of(routed: Routed, worker: Option<Binding>) -> Self {
        Self {
            route: routed.route,
            repeat: routed.repeat,
            asks: routed.asks,
            worker,
        }
    }

    fn into_plan(self, call: Call) -> CallPlan {
        CallPlan {
            call: Call {
                repeat: self.repeat,
                may_start: match (call.may_start, self.asks) {
                    (MayStart::No, _) => MayStart::No,
                    (_, true) => MayStart::IfApproved,
                    (_, false) => MayStart::Yes,
                },
                ..call
            },
            route: Some(self.route),
            worker: self.worker,
        }
    }
}

/// For a call that Shoal then refuses, because a refused call has no audit event of its own.
pub(crate) fn tell_allowed(call: &Call, rule: Option<Arc<str>>) {
    if let Some(rule) = rule {
        let subject = audit::AuditedCall {
            rule: Some(&rule),
            ..audit::AuditedCall::of(call)
        };
        audit::allowed(&subject);
    }
}

fn elsewhere(view: &View, worker: &WorkerId, route: &Route) -> Option<String> {
    match view.member(worker) {
        Some(member) if member.pool == route.pool => None,
        Some(_) => Some(format!(
            "its worker {worker} is not in the pool {}",
            route.pool
        )),
        None => Some(format!("its worker {worker} is not connected")),
    }
}

fn is_journaled(call: &Call, repeat: Repeat) -> bool {
    repeat == Repeat::Never && call.caller.revision.era() == Era::Legacy
}

pub(crate) fn refuse(view: &View, call: &Call, refused: RouteError) -> CallOutcome {
    match refused {
        RouteError::Answer(outcome) => {
            let shaping = view.shaping(&call.caller, &call.method);
            shaping.outcome(call.caller.revision, &call.method, outcome, Typed::No)
        }
        RouteError::NotReady(failure) => {
            let reason = match failure {
                CallFailure::Overloaded { .. } => ShedReason::QueueFull,
                _ => ShedReason::NoWorker,
            };
            shed("", failure, reason)
        }
    }
}

pub(crate) fn shed(pool: &str, failure: CallFailure, reason: ShedReason) -> CallOutcome {
    metrics().pools.shed(pool, reason);
    CallOutcome::Failed(failure)
}
