use std::sync::Arc;

use shoal_ports::{
    Attach, CallControl as _, CallEventKind, CallFailure, Epoch, Retry, RunningCall, WorkerId,
};
use shoal_telemetry::metrics::{AttachOutcome, metrics};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::{LONGEST_PAUSE, Superseded, WorkerCall};
use crate::pools::{CircuitMark, PoolMember};
use crate::shared::DispatchState;

impl WorkerCall {
    /// Continues the call at the same worker once it is reachable, or at any worker if the call is safe to repeat.
    ///
    /// # Errors
    /// `Superseded` if another reader has the call. As a failure: `Cancelled` by the caller; `Superseded` if the
    /// worker knows a later session owner; the last worker's failure for a call that is safe to repeat; otherwise
    /// `OutcomeUnknown`.
    pub(super) async fn recover(&mut self) -> Result<(), NotReattached> {
        if self.handle.is_replaced() && std::mem::take(&mut self.woken) {
            // Attaches as a new reader, because the old reader has ended.
            self.reader = None;
        } else if self.handle.is_replaced() {
            // Another reader has the call, and only the code that reads the events knows whether to take it back.
            return Err(NotReattached::Superseded);
        }
        let lost = self.lost();
        let patience = self.shared.config.cluster.rejoin.get();
        if Instant::now() > self.origin.call.deadline + patience {
            return Err(lost.into());
        }
        self.origin.broke();
        if self.attached_at.elapsed() > LONGEST_PAUSE {
            self.backoff.reset();
        }
        sleep(self.backoff.pause()).await;
        let elsewhere = self.may_repeat_after(&lost);
        self.go_on(lost, true, elsewhere).await
    }

    /// Runs the call again after its worker failed it.
    ///
    /// # Errors
    /// As [`recover`](Self::recover), or `failure` if the call is not safe to repeat.
    pub(super) async fn run_again(&mut self, failure: CallFailure) -> Result<(), NotReattached> {
        self.go_on(failure, false, true).await
    }

    /// Continues `here`, at the same worker, or `elsewhere`, by a repeat on any worker.
    async fn go_on(
        &mut self,
        mut failure: CallFailure,
        mut here: bool,
        mut elsewhere: bool,
    ) -> Result<(), NotReattached> {
        let (shared, handle) = (self.shared.clone(), self.handle.clone());
        let until = Instant::now() + shared.config.cluster.rejoin.get();
        let mut changes = shared.changes();
        let mut broken = here.then(|| (self.member.clone(), self.origin.begun));
        let mut refused = None;
        self.origin.tried.push(self.member.id.clone());
        loop {
            if handle.is_cancelled() {
                return Err(CallFailure::Cancelled.into());
            }
            if here {
                let own = shared.view().member(&self.member.id).cloned();
                let left = own.is_none() && shared.has_left(&self.member.id);
                // A worker that was removed may still be connected and answer for its running calls.
                let own = own.unwrap_or_else(|| self.member.clone());
                if !own.is_reachable() {
                    here = !left;
                } else if let Err(said) = self.reattach(own).await {
                    if matches!(said, CallFailure::Superseded { .. }) {
                        return Err(said.into());
                    }
                    here = false;
                    if self.is_unheard() {
                        elsewhere = self.may_repeat_after(&said);
                        failure = said;
                    }
                } else {
                    return Ok(());
                }
            }
            if !here {
                self.blame(broken.take());
            }
            let again = elsewhere && self.runs < shared.config.calls.attempts.max(1);
            if again {
                match self.place().await {
                    Ok(()) => {
                        self.blame(broken);
                        self.position.seen = 0;
                        self.shown.runs_again();
                        return Ok(());
                    }
                    Err(said) => refused = Some(said),
                }
            }
            let waits = self.is_repeatable() && !matches!(failure, CallFailure::Overloaded { .. });
            let may_go_on = here || again && waits;
            if !may_go_on || Instant::now() >= until {
                self.blame(broken);
                return Err(match refused {
                    Some(refused) if waits && refused.retry() == Retry::Always => refused,
                    _ if elsewhere => self.origin.told(failure),
                    _ => failure,
                }
                .into());
            }
            tokio::select! {
                _ = changes.changed() => {}
                () = sleep_until(until.min(Instant::now() + self.backoff.pause())) => {}
                () = handle.cancelled() => {}
            }
            // The previous workers may have recovered.
            self.origin.tried.clear();
        }
    }

    fn blame(&mut self, broken: Option<(Arc<PoolMember>, CircuitMark)>) {
        if let Some((member, begun)) = broken {
            self.origin.failed_at(&member, begun);
        }
    }

    /// If no event came yet, starts the call again instead: the worker knows whether the call has begun.
    ///
    /// # Errors
    /// The worker's failure.
    async fn reattach(&mut self, own: Arc<PoolMember>) -> Result<(), CallFailure> {
        let (call, after) = (self.origin.call.id, self.position.seen);
        let running = match self.reader {
            None if after == 0 => self.origin.send(&own, true).await,
            reader => {
                let attach = Attach {
                    call,
                    after,
                    reader,
                    epoch: self.origin.call.epoch,
                    trace: self.origin.call.trace.clone(),
                };
                count(&own, own.worker.attach(attach).await)
            }
        };
        let running = running.inspect_err(|failure| {
            tracing::debug!(%call, %failure, "cannot find a running call at its worker");
        })?;
        self.origin.goes_on();
        // If the connection broke again before the first event, the reader's number stays.
        self.reader = running.control.reader().or(self.reader);
        self.handle.reattached(running.control);
        self.take_over(running.events, own);
        Ok(())
    }
}

pub(super) enum NotReattached {
    Superseded,
    Failed(CallFailure),
}

impl NotReattached {
    pub(super) fn failure(self) -> CallFailure {
        match self {
            Self::Superseded => Superseded.failure(),
            Self::Failed(failure) => failure,
        }
    }
}

impl From<CallFailure> for NotReattached {
    fn from(failure: CallFailure) -> Self {
        Self::Failed(failure)
    }
}

#[derive(Debug)]
pub(crate) enum NotFound {
    Gone,
    Unknown,
    Superseded(Epoch),
}

/// Waits for the worker until `until`. Cancel safe.
pub(crate) async fn attach(
    shared: &DispatchState,
    worker: &WorkerId,
    sought: Attach,
    until: Instant,
) -> Result<(RunningCall, Arc<PoolMember>), NotFound> {
    let Some(member) = reach(shared, worker, until).await else {
        metrics().pools.attached("", AttachOutcome::WorkerGone);
        return Err(NotFound::Gone);
    };
    let attached = member.worker.attach(sought).await;
    match count(&member, attached) {
        Ok(running) => Ok((running, member)),
        Err(CallFailure::Superseded { epoch }) => Err(NotFound::Superseded(epoch)),
        Err(_) => Err(NotFound::Unknown),
    }
}

/// Does not wait for a removed worker. Cancel safe.
pub(crate) async fn reach(
    shared: &DispatchState,
    worker: &WorkerId,
    until: Instant,
) -> Option<Arc<PoolMember>> {
    let mut changes = shared.changes();
    loop {
        let present = shared.view().member(worker).cloned();
        let left = present.is_none() && shared.has_left(worker);
        if let Some(member) = present.filter(|member| member.is_reachable()) {
            return Some(member);
        }
        if left || Instant::now() >= until {
            return None;
        }
        let _ = timeout_at(until, changes.changed()).await;
    }
}

fn count(
    member: &PoolMember,
    attached: Result<RunningCall, CallFailure>,
) -> Result<RunningCall, CallFailure> {
    let outcome = match &attached {
        Ok(_) => AttachOutcome::Attached,
        Err(CallFailure::Superseded { .. }) => return attached,
        Err(_) => AttachOutcome::Unknown,
    };
    metrics().pools.attached(&member.pool, outcome);
    attached
}

pub(super) async fn cancel(
    shared: Arc<DispatchState>,
    member: Arc<PoolMember>,
    attach: Attach,
    reason: String,
) {
    let until = Instant::now() + shared.config.cluster.rejoin.get();
    while let Some(member) = reach(&shared, &member.id, until).await {
        let Ok(mut running) = member.worker.attach(attach.clone()).await else {
            return;
        };
        running.control.cancel(&reason);
        while let Ok(Some(event)) = timeout_at(until, running.events.next()).await {
            if matches!(event.kind, CallEventKind::Finished(_)) {
                return;
            }
        }
        if running.control.is_replaced() || Instant::now() >= until {
            return;
        }
        sleep(LONGEST_PAUSE / 10).await;
    }
}
