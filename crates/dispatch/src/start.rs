//! Starting a call, and going on with one that an earlier owner of its session began.

use std::sync::Arc;
use std::time::Duration;

use shoal_ports::{Call, CallFailure, CallOutcome, Durability, RunningCall, WorkerId};
use shoal_protocol::{Era, RawJson, RawObject, RpcError};
use shoal_telemetry::metrics::{RetryReason, ShedReason, metrics};
use shoal_telemetry::trace::{self, attributes as key, names};
use tokio::time::Instant;

use crate::bridge::{
    Continued, Given, LegacyBridge, Modern, ModernBridge, Purpose, answered, continued, running,
};
use crate::dispatch::Dispatch;
use crate::picture::not_ready;
use crate::pools::View;
use crate::rounds::{Position, round_id};
use crate::route::{Arguments, Refused, Route, route};
use crate::worker_call::{NotFound, NotStarted, Origin, Sought, WorkerCall, attach};

/// How long a list waits for pools that are on their way.
const LIST_PATIENCE: Duration = Duration::from_secs(5);

impl Dispatch {
    /// A page of a list, once the lists are whole.
    pub(crate) async fn list_in_time(&self, call: &Call) -> Result<RunningCall, CallFailure> {
        let until = call.deadline.min(Instant::now() + LIST_PATIENCE);
        if tokio::time::timeout_at(until, self.settled())
            .await
            .is_err()
        {
            let reason = "this node does not know every pool yet";
            return Err(not_ready(reason.to_owned()));
        }
        self.list(&self.shared.view(), call)
    }

    /// A page of a list.
    pub(crate) fn list(&self, view: &View, call: &Call) -> Result<RunningCall, CallFailure> {
        let era = call.caller.revision.era();
        let Some(pages) = view.catalog.list(&call.method) else {
            return match view.unannounced() {
                Some(failure) => Err(failure),
                None => Ok(answered(CallOutcome::Refused(RpcError::method_not_found(
                    call.method.as_str(),
                )))),
            };
        };
        let page = pages.get(era, call.params.as_ref());
        Ok(answered(match page {
            Ok(page) => CallOutcome::Result(page),
            Err(error) => CallOutcome::Refused(error),
        }))
    }

    /// Runs a call of a legacy caller.
    pub(crate) async fn start_legacy(
        &self,
        view: &View,
        call: Call,
    ) -> Result<RunningCall, CallFailure> {
        let shaping = view.catalog.shaping.clone();
        let purpose = self.purpose(&call);
        match self.worker_call(view, call, self.arguments()).await? {
            Ok(worker_call) => Ok(running(worker_call, |worker_call| {
                LegacyBridge::new(worker_call, shaping, purpose)
            })),
            Err(outcome) => {
                let outcome = shaping.outcome(purpose.caller.revision, &purpose.method, outcome);
                Ok(answered(outcome))
            }
        }
    }

    /// Runs a request of a modern caller: a call that begins, or one that goes on.
    pub(crate) async fn start_modern(
        &self,
        view: &View,
        mut call: Call,
    ) -> Result<RunningCall, CallFailure> {
        let mut request = self.modern(view, &call);
        let mut given = Given::default();
        match continued(&self.shared, &call).await {
            Ok(None) => {}
            Ok(Some(Continued::Waiting(waiting))) => {
                request.deadline = Some(call.deadline);
                return Ok(waiting.wake(request));
            }
            Ok(Some(Continued::Backend(params))) => call.params = Some(params),
            Ok(Some(Continued::Again(again))) => {
                call.params = Some(again.params);
                given = again.given;
            }
            Err(outcome) => return Ok(answered(outcome)),
        }
        call.deadline = self.worker_deadline(&call);
        match self.worker_call(view, call, self.arguments()).await? {
            Ok(worker_call) => Ok(running(worker_call, |worker_call| {
                ModernBridge::again(request, worker_call, given)
            })),
            Err(outcome) => {
                let shaping = &request.shaping;
                let outcome = shaping.outcome(request.caller.revision, &request.method, outcome);
                Ok(answered(outcome))
            }
        }
    }

    /// Goes on with a call of a legacy caller, after the event that was seen last.
    pub(crate) async fn resume_legacy(
        &self,
        mut call: Call,
        after: u64,
    ) -> Result<RunningCall, CallFailure> {
        let journaled = call.durability == Durability::Journaled;
        let Some(worker) = call.worker.clone() else {
            if journaled {
                return Err(unknown("its journal names no worker".to_owned()));
            }
            return self.start_legacy(&self.shared.view(), call).await;
        };
        let position = Position::of(after);
        let mut until = Instant::now();
        if journaled {
            until += self.shared.config.reconnect_wait();
        }
        let gone = match self.find(&call, &worker, position, until).await {
            Ok(running) => return Ok(running),
            Err(NotFound::Gone) => unknown(format!("its worker {worker} is gone")),
            Err(NotFound::Unknown) if journaled && after == 0 => {
                let started = self.start_at(call.clone(), &worker, until).await;
                let Err(failure @ CallFailure::OutcomeUnknown { .. }) = started else {
                    return started;
                };
                // The start of an owner before this one may have arrived meanwhile, and taken the call's events over.
                let found = self.find(&call, &worker, position, until).await;
                return found.map_err(|_| failure);
            }
            Err(NotFound::Unknown) => {
                unknown(format!("its worker {worker} does not know it any more"))
            }
        };
        if journaled {
            return Err(gone);
        }
        call.worker = None;
        self.start_legacy(&self.shared.view(), call).await
    }

    /// Goes on with a call at the worker that runs it.
    async fn find(
        &self,
        call: &Call,
        worker: &WorkerId,
        position: Position,
        until: Instant,
    ) -> Result<RunningCall, NotFound> {
        let span = trace::client(names::ATTEMPT)
            .parent(call.trace.as_ref())
            .start_with(|set| {
                set.set(key::WORKER, &worker.to_string())
                    .set(key::CALL_ID, &call.id.to_string());
            });
        let sought = Sought {
            call: round_id(call.id, position.round),
            after: position.seen,
            trace: span.context(),
        };
        let attached = attach(&self.shared, worker, None, sought, until, || false);
        let (running, member) = attached.await?;
        let view = self.shared.view();
        let route = known_route(&view, call, &member.pool);
        let mut call = call.clone();
        if call.durability != Durability::Journaled {
            // It may run elsewhere when this worker is lost too.
            call.worker = None;
        }
        let mut origin = Origin::new(call.clone(), route, &self.shared);
        origin.attempted(span);
        let worker_call =
            WorkerCall::attached(self.shared.clone(), origin, running, member, position);
        Ok(self.running_legacy(&view, &call, worker_call))
    }

    /// Starts a journaled call at its worker, which does not know it: it was never begun there, or the
    /// worker refuses it. A full queue is waited for.
    async fn start_at(
        &self,
        mut call: Call,
        worker: &WorkerId,
        until: Instant,
    ) -> Result<RunningCall, CallFailure> {
        loop {
            let view = self.shared.view();
            let begun = self.begin_line(&view, call.clone(), Arguments::Trusted, Origin::repeats);
            let refused = match begun.await {
                Ok(Ok(worker_call)) => return Ok(self.running_legacy(&view, &call, worker_call)),
                Ok(Err(outcome)) => {
                    let outcome =
                        view.catalog
                            .shaping
                            .outcome(call.caller.revision, &call.method, outcome);
                    return Ok(answered(outcome));
                }
                Err(refused) => refused,
            };
            match refused.failure {
                CallFailure::Overloaded { retry_after, .. }
                    if Instant::now() + retry_after < until =>
                {
                    (metrics().pools).retried(&refused.pool, RetryReason::Busy);
                    tokio::time::sleep(retry_after).await;
                    // Its refusal is final: it is bound anew.
                    call.ledger = self.shared.view().ledger(worker);
                }
                // An earlier owner's own start may still be on its way there: that nothing was executed is
                // not for certain.
                failure => {
                    return Err(unknown(format!(
                        "its worker {worker} did not take it ({failure})"
                    )));
                }
            }
        }
    }

    fn running_legacy(&self, view: &View, call: &Call, worker_call: WorkerCall) -> RunningCall {
        let (shaping, purpose) = (view.catalog.shaping.clone(), self.purpose(call));
        running(worker_call, |worker_call| {
            LegacyBridge::new(worker_call, shaping, purpose)
        })
    }

    /// The request of a modern call.
    pub(crate) fn modern(&self, view: &View, call: &Call) -> Modern {
        Modern {
            shared: self.shared.clone(),
            shaping: view.catalog.shaping.clone(),
            method: call.method.clone(),
            params: call.params.clone(),
            caller: call.caller.clone(),
            started: Instant::now(),
            deadline: may_be_parked(call).then_some(call.deadline),
            retry: None,
        }
    }

    /// Until when a worker runs a call.
    pub(crate) fn worker_deadline(&self, call: &Call) -> Instant {
        match may_be_parked(call) {
            // A parked call outlives its request: the worker's deadline must leave room for that.
            true => call.deadline + self.shared.config.parking_time(),
            false => call.deadline,
        }
    }

    pub(crate) fn purpose(&self, call: &Call) -> Purpose {
        Purpose {
            method: call.method.clone(),
            caller: call.caller.clone(),
            deadline: call.deadline,
            started: Instant::now(),
            max_rounds: self.shared.config.max_rounds,
        }
    }

    pub(crate) fn arguments(&self) -> Arguments {
        match self.shared.config.validate_arguments {
            true => Arguments::Checked,
            false => Arguments::Trusted,
        }
    }

    /// Checks a call and starts it; the inner error is the answer to a call that is at fault itself.
    async fn worker_call(
        &self,
        view: &View,
        call: Call,
        arguments: Arguments,
    ) -> Result<Result<WorkerCall, CallOutcome>, CallFailure> {
        let begun = self.begin_line(view, call, arguments, |origin| origin);
        let begun = begun.await;
        begun.map_err(NotStarted::give_up)
    }

    /// As [`worker_call`](Self::worker_call), for who may try again, by what `origin` makes of the call: what fails does not count as
    /// turned away yet.
    async fn begin_line(
        &self,
        view: &View,
        call: Call,
        arguments: Arguments,
        origin: impl FnOnce(Origin) -> Origin,
    ) -> Result<Result<WorkerCall, CallOutcome>, NotStarted> {
        let revision = call.caller.revision;
        let params = call.params.as_ref().map(RawJson::index);
        let (method, params) = (&call.method, params.as_ref());
        let mut routed = route(view, arguments, revision, method, params);
        if let Err(Refused::Unchecked(check)) = routed {
            let checked = self.shared.checking.run(check, &call.caller.principal);
            routed = match checked.await {
                Ok(Ok(())) => route(view, Arguments::Trusted, revision, method, params),
                Ok(Err(outcome)) => Err(Refused::Answer(outcome)),
                Err(failure) => Err(Refused::NotReady(failure)),
            };
        }
        let route = match routed {
            Ok(route) => route,
            Err(Refused::Answer(outcome)) => return Ok(Err(outcome)),
            Err(Refused::NotReady(failure)) => {
                let reason = match failure {
                    CallFailure::Overloaded { .. } => ShedReason::QueueFull,
                    _ => ShedReason::NoWorker,
                };
                return Err(NotStarted {
                    failure,
                    pool: Arc::default(),
                    reason,
                });
            }
            Err(Refused::Unchecked(_)) => unreachable!("they have been checked"),
        };
        let origin = origin(Origin::new(call, route, &self.shared));
        WorkerCall::start(self.shared.clone(), origin).await.map(Ok)
    }
}

/// The way of a call that runs already: what it calls may have left the catalog meanwhile.
fn known_route(view: &View, call: &Call, pool: &Arc<str>) -> Route {
    let (revision, trusted) = (call.caller.revision, Arguments::Trusted);
    let params = call.params.as_ref().map(RawJson::index);
    let found = route(view, trusted, revision, &call.method, params.as_ref());
    found.unwrap_or_else(|_| Route {
        pool: pool.clone(),
        params: call.params.clone(),
        tool: None,
    })
}

fn unknown(reason: String) -> CallFailure {
    CallFailure::OutcomeUnknown { reason }
}

/// Whether a call may have to wait for its client without a request of it.
fn may_be_parked(call: &Call) -> bool {
    call.caller.revision.era() == Era::Modern
        && call.method.may_require_input()
        && can_be_asked(&call.caller.capabilities)
}

/// Whether a client declared anything that a call could ask it for.
fn can_be_asked(capabilities: &RawJson) -> bool {
    RawObject::of(capabilities).is_some_and(|declared| {
        ["elicitation", "sampling", "roots"]
            .iter()
            .any(|capability| declared.has(capability))
    })
}
