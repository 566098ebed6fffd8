//! The data that a call starts from, and its attempts.

use std::sync::Arc;

use shoal_ports::{
    Binding, Bound, Call, CallFailure, CallOutcome, FailureKey, LedgerNumber, Repeat, Retry, Route,
    RunningCall, WorkerHere, WorkerId,
};
use shoal_protocol::TraceContext;
use shoal_telemetry::metrics::ShedReason;
use shoal_telemetry::trace::{self, Span, attributes as key, names};
use tokio::time::Instant;

use super::attempt_state::AttemptState;
use super::reattach::reach;
use crate::asker::Asker;
use crate::deadline::worker_deadline;
use crate::pools::{AffinityKey, CircuitMark, PoolMember, WantedWorker};
use crate::shared::DispatchState;

pub(crate) struct CallOrigin {
    pub(super) call: Call,
    pub(super) pool: Arc<str>,
    pub(super) tool: Option<Arc<str>>,
    key: Option<AffinityKey>,
    planned: Option<WorkerId>,
    pub(super) tried: Vec<WorkerId>,
    pub(super) span: Span,
    attempt: Span,
    attempts: i64,
    pub(super) begun: CircuitMark,
    /// Whether an earlier session owner may have started the call.
    repetition: bool,
    /// The ledger number at the current worker, the same for all attempts there. It tells the
    /// worker whether it still remembers the call.
    ledger: Option<LedgerNumber>,
    pub(super) attempt_state: AttemptState,
}

impl CallOrigin {
    pub(crate) fn new(call: Call, route: Route, shared: &DispatchState) -> Self {
        let view = shared.view();
        let affinity = &view.settings.of(&route.pool).affinity;
        let session = call.caller.session.as_ref();
        let principal = Some(&call.caller.principal);
        let params = route.params;
        Self {
            key: AffinityKey::of(affinity, params.as_ref(), session, principal),
            tool: route.tool,
            span: trace::internal(names::DISPATCH)
                .parent(call.trace.as_ref())
                .start_with(|set| {
                    set.set(key::POOL, &route.pool)
                        .set(key::CALL_ID, &call.id.to_string());
                }),
            pool: route.pool,
            ledger: call.binding.as_ref().and_then(|binding| binding.ledger),
            call: Call {
                params,
                deadline: worker_deadline(&call, &shared.config),
                ..call
            },
            planned: None,
            tried: Vec::new(),
            attempt: Span::none(),
            attempts: 0,
            begun: CircuitMark::default(),
            repetition: false,
            attempt_state: AttemptState::default(),
        }
    }

    pub(crate) fn first_at(mut self, worker: Option<Binding>) -> Self {
        self.planned = worker.map(|binding| binding.worker);
        self
    }

    pub(crate) fn repeats(mut self) -> Self {
        self.repetition = true;
        self
    }

    /// Offers the call to its bound worker, for which it waits. Without one, offers it to several workers,
    /// up to the configured number over the call's life, until one takes it.
    ///
    /// # Errors
    /// The last worker's failure. `NotExecuted` without a worker, and `WorkerAway` if the bound one is away.
    pub(super) async fn offer(
        &mut self,
        shared: &DispatchState,
    ) -> Result<(RunningCall, Arc<PoolMember>), CallFailure> {
        if let Some(Binding { worker, ledger }) = &self.call.binding {
            let until = match shared.view().member(worker) {
                Some(_) => Instant::now() + shared.config.cluster.rejoin.get(),
                None => Instant::now(),
            };
            let Some(member) = reach(shared, worker, until).await else {
                let reason = format!("its worker {worker} is not connected");
                self.nobody(ShedReason::NoWorker);
                return Err(CallFailure::WorkerAway { reason });
            };
            self.ledger = *ledger;
            return self.start_on(member).await;
        }
        let mut refused = None;
        loop {
            if self.tried.len() >= shared.config.calls.attempts.max(1) {
                return Err(refused.unwrap_or_else(|| {
                    CallFailure::not_executed(format!("{} workers failed it", self.tried.len()))
                }));
            }
            let view = shared.view();
            let planned = self.planned.take();
            let chosen = match planned.and_then(|worker| view.member(&worker)) {
                Some(planned) => Ok(planned),
                None => view.choose(&self.pool, &self.wanted(), &self.tried),
            };
            let member = match chosen {
                Ok(member) => member.clone(),
                // A refusal by a worker says more than "no worker is left".
                Err(none) => {
                    self.nobody(view.shed_reason(&self.pool, &self.wanted()));
                    return Err(refused.unwrap_or(none));
                }
            };
            drop(view);
            let id = member.id.clone();
            self.ledger = member.worker.ledger();
            match self.start_on(member).await {
                Err(failure) if self.may_go_elsewhere(&failure) => {
                    tracing::debug!(worker = %id, %failure, "a worker did not accept a call");
                    self.tried.push(id);
                    refused = Some(failure);
                }
                decided => return decided,
            }
        }
    }

    async fn start_on(
        &mut self,
        member: Arc<PoolMember>,
    ) -> Result<(RunningCall, Arc<PoolMember>), CallFailure> {
        let failure = match self.send(&member, self.repetition).await {
            Ok(running) => {
                self.goes_on();
                return Ok((running, member));
            }
            Err(failure) => failure,
        };
        self.failed(&failure, &member);
        // If an earlier owner may have started the call, an unknown outcome is no failure of this worker. In other
        // cases it counts, so that a broken worker does not look idle.
        if !(self.repetition && matches!(failure, CallFailure::OutcomeUnknown { .. })) {
            let key = || self.failure_key();
            let changed = member.circuit.refused(key, &failure, self.begun);
            self.circuit(&member, changed);
        }
        Err(failure)
    }

    pub(super) fn bound_at(&self, member: &PoolMember) -> Bound {
        Bound {
            call: self.call.id,
            pool: self.pool.clone(),
            worker: Binding {
                worker: member.id.clone(),
                ledger: self.ledger,
            },
        }
    }

    /// With `again`, the worker may already have the call.
    ///
    /// # Errors
    /// The worker's failure, which tells whether an unreachable worker may have the call.
    pub(super) async fn send(
        &mut self,
        member: &PoolMember,
        again: bool,
    ) -> Result<RunningCall, CallFailure> {
        self.tries(member);
        let mut call = self.call.clone();
        call.caller = member.told(&call.caller);
        call.trace = self.attempt(member);
        match again {
            true => member.worker.start_again(call, self.ledger).await,
            false => member.worker.start(call, self.ledger).await,
        }
    }

    /// `None` if the worker cannot start the call without waiting.
    pub(crate) fn start_here(
        &mut self,
        member: &PoolMember,
        here: &dyn WorkerHere,
    ) -> Option<RunningCall> {
        let mut call = self.call.clone();
        if call.binding.is_none() {
            self.ledger = member.worker.ledger();
        }
        call.caller = member.told(&call.caller);
        call.trace = self.attempt(member);
        here.start_now(call, self.ledger).ok()
    }

    pub(super) fn overdue(&mut self, member: &PoolMember) {
        tracing::warn!(worker = %member.id, call = %self.call.id, "a worker did not end a call at its deadline");
        self.failed_at(member, self.begun);
    }

    pub(crate) fn ended_at(&mut self, member: &PoolMember, outcome: &CallOutcome) {
        let key = || self.failure_key();
        let changed = member.circuit.ended(key, outcome, self.begun);
        self.circuit(member, changed);
    }

    pub(super) fn attempt(&mut self, member: &PoolMember) -> Option<TraceContext> {
        self.attempts += 1;
        self.begun = member.circuit.mark();
        self.attempt = trace::client(names::ATTEMPT)
            .parent(self.span.context())
            .start_with(|set| {
                set.set(key::WORKER, &member.id.to_string())
                    .set(key::POOL, &self.pool)
                    .set(key::ATTEMPT, self.attempts);
            });
        self.attempt.context().cloned()
    }

    pub(crate) fn attempted(&mut self, member: &PoolMember, attempt: Span) {
        self.attempts += 1;
        self.begun = member.circuit.mark();
        self.attempt = attempt;
    }

    /// A call that is safe to repeat can be sent again even if its outcome is unknown.
    pub(super) fn told(&self, failure: CallFailure) -> CallFailure {
        match failure {
            CallFailure::OutcomeUnknown { reason } if self.is_repeatable() => {
                CallFailure::NotExecuted { reason }
            }
            failure => failure,
        }
    }

    fn is_repeatable(&self) -> bool {
        self.call.repeat == Repeat::Safe
    }

    fn may_go_elsewhere(&self, failure: &CallFailure) -> bool {
        match failure.retry() {
            Retry::Always => true,
            _ => self.is_repeatable() && matches!(failure, CallFailure::OutcomeUnknown { .. }),
        }
    }

    fn wanted(&self) -> WantedWorker<'_> {
        WantedWorker {
            tool: self.tool.as_deref(),
            key: self.key,
            by: Some((Asker::from(&self.call.caller), &self.call.method)),
        }
    }

    fn failure_key(&self) -> FailureKey {
        FailureKey::of(&self.call.caller, &self.call.method, self.tool.as_deref())
    }

    pub(super) fn failed_at(&mut self, member: &PoolMember, begun: CircuitMark) {
        self.circuit(member, member.circuit.failed(self.failure_key(), begun));
    }
}
