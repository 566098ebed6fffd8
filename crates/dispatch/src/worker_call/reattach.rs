//! How a call goes on after the way to its worker broke, or its worker failed it.

use std::sync::Arc;

use shoal_ports::{
    Attach, CallControl as _, CallEventKind, CallFailure, Epoch, Retry, RunningCall, WorkerId,
};
use shoal_telemetry::metrics::{AttachOutcome, metrics};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::{LONGEST_PAUSE, Superseded, WorkerCall};
use crate::pools::{CircuitMark, Member};
use crate::shared::Shared;

impl WorkerCall {
    /// Goes on after the way broke: at the worker, once that can be reached, or where that is safe, at whoever comes
    /// first.
    ///
    /// # Errors
    /// `Superseded` when another reader has the call; `Cancelled` when its caller has cancelled it, which the worker is
    /// then told as soon as it can be; `Superseded` as a failure when its worker has heard of a later owner of its session;
    /// what the last worker said for one that is safe to repeat; else `OutcomeUnknown`.
    pub(super) async fn recover(&mut self) -> Result<(), NotReattached> {
        if self.handle.is_replaced() && std::mem::take(&mut self.woken) {
            // As a reader of its own: the one that it was is over.
            self.reader = None;
        } else if self.handle.is_replaced() {
            // Attaching again would only take it back: whether it may, only its caller can know.
            return Err(NotReattached::Superseded);
        }
        let lost = self.lost();
        let patience = self.shared.config.reconnect_wait();
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
    /// As [`recover`](Self::recover), but for the `failure` of a call that is not safe to repeat.
    pub(super) async fn run_again(&mut self, failure: CallFailure) -> Result<(), NotReattached> {
        self.go_on(failure, false, true).await
    }

    /// Goes on `here`, where the call is, or `elsewhere`, by running it again. Where it is safe to repeat, anybody who comes
    /// in time may run it; the same worker may: its backend starts again.
    async fn go_on(
        &mut self,
        mut failure: CallFailure,
        mut here: bool,
        mut elsewhere: bool,
    ) -> Result<(), NotReattached> {
        let (shared, handle) = (self.shared.clone(), self.handle.clone());
        let until = Instant::now() + shared.config.reconnect_wait();
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
                // One that was let go may still be asked for what it runs.
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
            let again = elsewhere && self.runs < shared.config.start_attempts.max(1);
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
                    Some(refused) if waits && refused.retry() == Retry::Safe => refused,
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
            // Whoever had it may be well again.
            self.origin.tried.clear();
        }
    }

    /// The call did not go on at the worker to which the way broke.
    fn blame(&mut self, broken: Option<(Arc<Member>, CircuitMark)>) {
        if let Some((member, begun)) = broken {
            self.origin.failed_at(&member, begun);
        }
    }

    /// Attaches to the call at its worker, which can be reached; one of which nothing was heard is started there again:
    /// the worker knows whether it has begun it.
    ///
    /// # Errors
    /// The worker's word.
    async fn reattach(&mut self, own: Arc<Member>) -> Result<(), CallFailure> {
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
            tracing::debug!(%call, %failure, "a call was not found again");
        })?;
        self.origin.goes_on();
        // Its name stays where the way broke again before it was heard.
        self.reader = running.control.reader().or(self.reader);
        self.handle.reattached(running.control);
        self.take_over(running.events, own);
        Ok(())
    }
}

/// Why a way was not mended.
pub(super) enum NotReattached {
    /// Another reader has the call.
    Superseded,
    /// The call is lost.
    Failed(CallFailure),
}

impl NotReattached {
    /// What whoever cannot go on is told.
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

/// Why a call was not found at its worker.
#[derive(Debug)]
pub(crate) enum NotFound {
    /// The worker is not there.
    Gone,
    /// The worker does not know it.
    Unknown,
    /// The worker has heard of a later owner of its session.
    Superseded(Epoch),
}

/// Attaches to a call at its worker, which is waited for until `until`. Cancellation safe.
pub(crate) async fn attach(
    shared: &Shared,
    worker: &WorkerId,
    sought: Attach,
    until: Instant,
) -> Result<(RunningCall, Arc<Member>), NotFound> {
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

/// Waits until a worker can be reached; one that was let go has been waited for already. Cancellation safe.
pub(super) async fn reach(
    shared: &Shared,
    worker: &WorkerId,
    until: Instant,
) -> Option<Arc<Member>> {
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
        // Either way it is looked at again.
        let _ = timeout_at(until, changes.changed()).await;
    }
}

fn count(
    member: &Member,
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

/// Tells a call to stop whose caller does not wait for it any more, once its worker can be reached.
pub(super) async fn cancel(
    shared: Arc<Shared>,
    member: Arc<Member>,
    attach: Attach,
    reason: String,
) {
    let until = Instant::now() + shared.config.reconnect_wait();
    while let Some(member) = reach(&shared, &member.id, until).await {
        let Ok(mut running) = member.worker.attach(attach.clone()).await else {
            return;
        };
        running.control.cancel(&reason);
        // It ends soon, unless the way breaks once more.
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
