use std::sync::Arc;

use shoal_ports::{
    Attach, Binding, Call, CallFailure, CallOutcome, CallPlan, Caller, MayStart, Repeat, Route,
    RunningCall, Starting, WorkerId, at_once, later,
};
use shoal_protocol::{Era, Method, RawJson};
use shoal_telemetry::metrics::{RetryReason, metrics};
use shoal_telemetry::trace::{self, attributes as key, names};
use tokio::time::Instant;

use crate::access::Access;
use crate::approval::{AfterApproval, AnsweredApproval, AskedCall, input_required, refused_before};
use crate::bridge::{
    Allowance, Continued, GivenAnswers, LegacyBridge, ModernBridge, ModernRequest, Purpose,
    answered, answered_before, continued, instead, not_waiting, running,
};
use crate::deadline::{is_askable_task, may_be_parked, worker_deadline};
use crate::dispatch::Dispatch;
use crate::in_flight::InFlightCall;
use crate::plan::{FoundRoute, refuse};
use crate::rounds::{EventPosition, round_id};
use crate::route::{ArgumentTrust, RouteError};
use crate::worker_call::{CallOrigin, NotFound, NotStarted, WorkerCall, attach};

enum Agreed {
    No,
    /// An earlier session owner began the call, so its approval is settled.
    Before,
    Now(AskedCall),
}

pub(crate) enum Resumed {
    Running(RunningCall),
    Asking(RunningCall),
}

impl Dispatch {
    pub(crate) async fn list_in_time(&self, call: &Call) -> CallOutcome {
        let settled = match self.shared.view().starts() {
            true => self.anything_by(call.deadline).await.map(drop),
            false => self.settled_by(call.deadline).await,
        };
        match settled {
            Ok(()) => self.list_once_known(call).await,
            Err(failure) => CallOutcome::Failed(failure),
        }
    }

    /// Starts a call that [`start_here`](Self::start_here) leaves: one that has to wait, or needs an approval.
    // Out of line, so that `start` needs little of the stack.
    #[inline(never)]
    pub(crate) fn start_later(&self, plan: &CallPlan) -> Starting {
        if let (true, Era::Legacy, Some(route)) = (
            plan.call.may_start == MayStart::IfApproved,
            plan.call.caller.revision.era(),
            &plan.route,
        ) {
            let next = AfterApproval::Planned(route.clone(), plan.worker.clone());
            return at_once(Ok(self.ask_first(plan.call.clone(), &route.pool, next)));
        }
        let (dispatch, plan) = (self.clone(), plan.clone());
        later(async move {
            let place = dispatch.shared.in_flight.enter(&plan.call);
            let starting = Box::pin(dispatch.start_planned(plan, &place));
            let running = place.unless_failed(place.unless_stopped(starting).await)?;
            let pool = dispatch.counted(&running);
            Ok(place.follow(running, pool))
        })
    }

    pub(crate) async fn start_planned(
        &self,
        plan: CallPlan,
        place: &InFlightCall,
    ) -> Result<RunningCall, CallFailure> {
        match plan.call.caller.revision.era() {
            Era::Modern => self.start_modern(plan, place).await,
            Era::Legacy => {
                let found = match plan.route {
                    Some(route) => (route, plan.worker),
                    None => match self.find_surely(self.access(&plan.call), &plan.call).await {
                        Ok(FoundRoute { route, worker, .. }) => (route, worker),
                        Err(outcome) => return instead(outcome),
                    },
                };
                place.takes(&found.0);
                self.start_legacy(plan.call, Some(found)).await
            }
        }
    }

    pub(crate) async fn start_legacy(
        &self,
        call: Call,
        route: Option<(Route, Option<Binding>)>,
    ) -> Result<RunningCall, CallFailure> {
        let (route, worker) = match route {
            Some(found) => found,
            None => match self.find_surely(Access::granted(), &call).await {
                Ok(FoundRoute { route, worker, .. }) => (route, worker),
                Err(outcome) => return instead(outcome),
            },
        };
        let purpose = self.purpose(&call);
        let origin = CallOrigin::new(call, route, &self.shared).first_at(worker);
        let worker_call = WorkerCall::start(self.shared.clone(), origin);
        let mut worker_call = worker_call.await.map_err(NotStarted::give_up)?;
        if let Some(ended) = self.ended(&purpose.caller, &purpose.method, &mut worker_call) {
            return Ok(ended);
        }
        Ok(self.running_legacy(purpose, worker_call))
    }

    async fn start_modern(
        &self,
        plan: CallPlan,
        place: &InFlightCall,
    ) -> Result<RunningCall, CallFailure> {
        let CallPlan {
            mut call,
            route,
            mut worker,
        } = plan;
        let mut request = self.modern(&call);
        let mut given = GivenAnswers::default();
        let mut agreed = Agreed::No;
        let mut is_rerun = false;
        let (route, asks) = match route {
            Some(route) => (route, call.may_start == MayStart::IfApproved),
            None => {
                match continued(&self.shared, &call, place).await {
                    Ok(None) => {}
                    Ok(Some(Continued::Woken(waiting))) => {
                        request.deadline = Some(call.deadline);
                        return Ok(waiting.wake(request));
                    }
                    Ok(Some(Continued::Backend(params))) => {
                        call.params = Some(params);
                        agreed = Agreed::Before;
                    }
                    Ok(Some(Continued::Rerun(again))) => {
                        is_rerun = true;
                        call.params = Some(again.params);
                        given = again.given;
                        agreed = Agreed::Before;
                    }
                    Ok(Some(Continued::Asked(params, answered))) => {
                        call.params = Some(params);
                        match answered {
                            AnsweredApproval::Not => {}
                            AnsweredApproval::Yes(asked) => agreed = Agreed::Now(asked),
                            AnsweredApproval::No(asked, answer) => {
                                return self.refuse_asked(request, call, asked, &answer).await;
                            }
                        }
                    }
                    Err(outcome) => return Ok(answered(request.shaped(outcome))),
                }
                match self.find_surely(self.access(&call), &call).await {
                    Ok(found) => {
                        if found.repeat == Repeat::Never {
                            if is_rerun {
                                return Err(not_waiting());
                            }
                            call.repeat = Repeat::Never;
                        }
                        worker = found.worker;
                        (found.route, found.asks)
                    }
                    Err(outcome) => return instead(outcome),
                }
            }
        };
        place.takes(&route);
        let may_begin = match agreed {
            Agreed::No => !asks,
            Agreed::Before => true,
            Agreed::Now(approved) => approved.bind(&self.shared.view(), &mut call),
        };
        if !may_begin {
            return Ok(ask(&request, &call, &route.pool, worker.as_ref()));
        }
        let agreed = call
            .binding
            .is_some()
            .then(|| (call.clone(), route.pool.clone()));
        request.is_answer = agreed.is_some();
        let origin = CallOrigin::new(call, route, &self.shared).first_at(worker.clone());
        let worker_call = WorkerCall::start(self.shared.clone(), origin);
        let mut worker_call = match (worker_call.await, agreed) {
            (Ok(worker_call), _) => worker_call,
            (Err(refused), Some((call, pool)))
                if matches!(refused.failure, CallFailure::WorkerAway { .. }) =>
            {
                // Only the lost worker knew whether the approved call ran, so a person must approve
                // again.
                return Ok(ask(&request, &call, &pool, worker.as_ref()));
            }
            (Err(refused), Some(_)) if refused.goes_on_elsewhere => {
                return Ok(answered(answered_before()));
            }
            (Err(refused), Some(_)) if matches!(refused.failure, CallFailure::Cancelled) => {
                return Ok(answered(request.shaped(refused_before())));
            }
            (Err(refused), _) => {
                return Err(match refused.give_up() {
                    // A modern call has a session only if it has become a task.
                    CallFailure::Superseded { .. } => {
                        let reason = "it has become a task, which reports the result";
                        CallFailure::outcome_unknown(reason)
                    }
                    failure => failure,
                });
            }
        };
        if let Some(ended) = self.ended(&request.caller, &request.method, &mut worker_call) {
            return Ok(ended);
        }
        Ok(running(worker_call, |worker_call| {
            ModernBridge::again(request, worker_call, given)
        }))
    }

    fn ended(
        &self,
        caller: &Caller,
        method: &Method,
        worker_call: &mut WorkerCall,
    ) -> Option<RunningCall> {
        let (outcome, typed) = worker_call.take_end()?;
        let view = self.shared.view();
        let shaping = view.shaping(caller, method);
        let outcome = shaping.outcome(caller.revision, method, outcome, typed);
        Some(RunningCall::ended(
            outcome,
            Some(worker_call.worker().clone()),
        ))
    }

    /// Resumes a legacy call after event `after`, without asking the rules again, because the caller's grant is not
    /// available here.
    pub(crate) async fn resume_legacy(
        &self,
        mut call: Call,
        after: u64,
    ) -> Result<Resumed, CallFailure> {
        let journaled = call.repeat == Repeat::Never;
        // If its worker has reported an event, a person has approved the call.
        let asks = call.may_start == MayStart::IfApproved && after == 0;
        let Some(worker) = call.binding.as_ref().map(|to| to.worker.clone()) else {
            if journaled {
                return Err(unknown("its journal names no worker".to_owned()));
            }
            return self.start_anywhere(call, asks).await;
        };
        let position = EventPosition::of(after);
        let mut until = Instant::now();
        if journaled {
            until += self.shared.config.cluster.rejoin.get();
        }
        let gone = match self.find_running(&call, &worker, position, until).await {
            Ok(running) => return Ok(Resumed::Running(running)),
            Err(NotFound::Gone) => unknown(format!("its worker {worker} is gone")),
            Err(NotFound::Unknown) if journaled && asks => {
                let pool = self.pool_asked_of(&call);
                let asking = self.ask_first(call, &pool, AfterApproval::At(worker));
                return Ok(Resumed::Asking(asking));
            }
            Err(NotFound::Unknown) if journaled && after == 0 => {
                let started = self.start_at(call.clone(), &worker, until).await;
                let Err(failure @ CallFailure::OutcomeUnknown { .. }) = started else {
                    return started.map(Resumed::Running);
                };
                // The previous owner's start may have come in between and have the call's events.
                let found = self.find_running(&call, &worker, position, until).await;
                let found = found.map_err(|not_found| match not_found {
                    NotFound::Superseded(epoch) => CallFailure::Superseded { epoch },
                    _ => failure,
                });
                return found.map(Resumed::Running);
            }
            Err(NotFound::Superseded(epoch)) => return Err(CallFailure::Superseded { epoch }),
            Err(NotFound::Unknown) => {
                unknown(format!("its worker {worker} does not know it any more"))
            }
        };
        if journaled {
            return Err(gone);
        }
        call.binding = None;
        self.start_anywhere(call, asks).await
    }

    async fn start_anywhere(&self, mut call: Call, asks: bool) -> Result<Resumed, CallFailure> {
        if !asks {
            if call.may_start == MayStart::IfApproved {
                call.may_start = MayStart::Yes;
            }
            let started = self.start_legacy(call, None).await;
            return started.map(Resumed::Running);
        }
        let pool = self.pool_asked_of(&call);
        let asking = self.ask_first(call, &pool, AfterApproval::Anywhere);
        Ok(Resumed::Asking(asking))
    }

    async fn find_running(
        &self,
        call: &Call,
        worker: &WorkerId,
        position: EventPosition,
        until: Instant,
    ) -> Result<RunningCall, NotFound> {
        let span = trace::client(names::ATTEMPT)
            .parent(call.trace.as_ref())
            .start_with(|set| {
                set.set(key::WORKER, &worker.to_string())
                    .set(key::CALL_ID, &call.id.to_string());
            });
        let sought = Attach {
            call: round_id(call.id, position.round),
            after: position.seen,
            reader: None,
            epoch: call.epoch,
            trace: span.context().cloned(),
        };
        let attached = attach(&self.shared, worker, sought, until);
        let (running, member) = attached.await?;
        let route = self.known_route(call, &member.pool);
        let purpose = self.purpose(call);
        let mut call = call.clone();
        if call.repeat != Repeat::Never {
            call.binding = None;
        }
        let mut origin = CallOrigin::new(call, route, &self.shared);
        origin.attempted(&member, span);
        let worker_call =
            WorkerCall::attached(self.shared.clone(), origin, running, member, position);
        Ok(self.running_legacy(purpose, worker_call))
    }

    /// Waits while the queue is full. If this node refuses the call, makes the worker refuse it too, because an
    /// earlier owner's start may still arrive.
    pub(crate) async fn start_at(
        &self,
        mut call: Call,
        worker: &WorkerId,
        until: Instant,
    ) -> Result<RunningCall, CallFailure> {
        let mut refused = None;
        let route = {
            let (view, trusted) = (
                self.learnt_view_of(&call.caller, until).await,
                ArgumentTrust::Trusted,
            );
            let params = call.params.as_ref().map(RawJson::index);
            match self.route(&view, &Access::granted(), &call, trusted, params.as_ref()) {
                Ok(routed) => Some(routed.route),
                Err(_) if call.may_start == MayStart::No => None,
                Err(RouteError::NotReady(failure)) => return Err(not_taken(worker, &failure)),
                Err(answer) => {
                    refused = Some(refuse(&view, &call, answer));
                    None
                }
            }
        };
        if refused.is_some() {
            call.may_start = MayStart::No;
        }
        let route = route.unwrap_or_else(|| {
            let member = self.shared.view().member(worker).cloned();
            let pool = member.map_or_else(Arc::default, |member| member.pool.clone());
            self.known_route(&call, &pool)
        });
        loop {
            let origin = CallOrigin::new(call.clone(), route.clone(), &self.shared).repeats();
            let not_started = match WorkerCall::start(self.shared.clone(), origin).await {
                Ok(worker_call) => {
                    return Ok(self.running_legacy(self.purpose(&call), worker_call));
                }
                Err(not_started) => not_started,
            };
            match not_started.failure {
                CallFailure::Overloaded { retry_after, .. }
                    if Instant::now() + retry_after < until =>
                {
                    (metrics().pools).retried(&not_started.pool, RetryReason::Busy);
                    tokio::time::sleep(retry_after).await;
                    // A refusal is final for a ledger number, so the call gets a new one.
                    call.rebind(self.shared.view().ledger(worker));
                }
                // With a ledger, the worker also refuses any start that is still on its way.
                failure @ (CallFailure::NotExecuted { .. } | CallFailure::Overloaded { .. })
                    if call.binding.as_ref().is_some_and(|to| to.ledger.is_some()) =>
                {
                    return Err(failure);
                }
                said @ (CallFailure::Cancelled | CallFailure::Superseded { .. }) => {
                    if let (CallFailure::Cancelled, Some(refused)) = (&said, refused) {
                        return instead(refused);
                    }
                    return Err(said);
                }
                // Without such a refusal, the previous owner's start may still arrive, so the call may run.
                failure => return Err(not_taken(worker, &failure)),
            }
        }
    }

    pub(crate) fn running_legacy(&self, purpose: Purpose, worker_call: WorkerCall) -> RunningCall {
        let Purpose { method, caller, .. } = &purpose;
        let shaping = self.shared.view().shaping(caller, method).clone();
        running(worker_call, |worker_call| {
            LegacyBridge::new(worker_call, shaping, purpose)
        })
    }

    pub(crate) fn modern(&self, call: &Call) -> ModernRequest {
        ModernRequest {
            shared: self.shared.clone(),
            shaping: self
                .shared
                .view()
                .shaping(&call.caller, &call.method)
                .clone(),
            call: call.id,
            method: call.method.clone(),
            params: call.params.clone(),
            caller: call.caller.clone(),
            started: Instant::now(),
            deadline: may_be_parked(call).then_some(call.deadline),
            is_answer: false,
            retry: None,
        }
    }

    pub(crate) fn purpose(&self, call: &Call) -> Purpose {
        let config = &self.shared.config;
        let allowance = is_askable_task(call).then(|| {
            Arc::new(Allowance::new(
                call.deadline,
                config.calls.input_timeout.get(),
            ))
        });
        Purpose {
            method: call.method.clone(),
            caller: call.caller.clone(),
            deadline: worker_deadline(call, config),
            started: Instant::now(),
            max_rounds: config.calls.input_rounds,
            allowance,
        }
    }

    fn pool_asked_of(&self, call: &Call) -> Arc<str> {
        let name = call
            .params
            .as_ref()
            .and_then(|params| params.member("name"));
        let name = name.and_then(|name| name.string()).unwrap_or_default();
        let view = self.view_of(&call.caller);
        let offered = view.catalog.tool(&name);
        offered.map_or_else(|| "this server".into(), |offered| offered.pool.clone())
    }

    pub(crate) fn known_route(&self, call: &Call, pool: &Arc<str>) -> Route {
        let (view, trusted) = (self.view_of(&call.caller), ArgumentTrust::Trusted);
        let params = call.params.as_ref().map(RawJson::index);
        match self.route(&view, &Access::granted(), call, trusted, params.as_ref()) {
            Ok(routed) => routed.route,
            Err(_) => Route {
                pool: pool.clone(),
                tool: None,
                params: call.params.clone(),
                hold: None,
                rule: None,
            },
        }
    }
}

fn ask(request: &ModernRequest, call: &Call, pool: &str, worker: Option<&Binding>) -> RunningCall {
    answered(request.shaped(input_required(request, call, pool, worker)))
}

fn not_taken(worker: &WorkerId, failure: &CallFailure) -> CallFailure {
    unknown(format!(
        "its worker {worker} did not accept the call ({failure})"
    ))
}

fn unknown(reason: String) -> CallFailure {
    CallFailure::OutcomeUnknown { reason }
}
