//! Finding a call again after the way to its worker broke.

use std::sync::Arc;
use std::time::Duration;

use shoal_ports::{CallControl as _, CallFailure, CallId, Retry, RunningCall, WorkerId};
use shoal_protocol::TraceContext;
use shoal_telemetry::metrics::{AttachOutcome, metrics};
use tokio::time::Instant;

use super::WorkerCall;
use crate::pools::Member;
use crate::shared::Shared;

/// How often a worker that is waited for is looked at: a connection that comes back is not announced.
const LOOK: Duration = Duration::from_millis(50);
/// How often a way may break, with nothing heard in between, before the call is given up.
const MOST_BREAKS: u32 = 5;
/// The pause after the second break in a row; twice as long after each further one.
const PAUSE: Duration = Duration::from_millis(100);

impl WorkerCall {
    /// Finds the call again after the way to it broke: at its worker, else, if it is safe to repeat, on
    /// another one.
    ///
    /// # Errors
    /// `Superseded` when another reader has it; `Cancelled` for a call that its caller has cancelled and that cannot be
    /// told so; what the last worker said for one that is safe to repeat; else `OutcomeUnknown`.
    pub(super) async fn recover(&mut self) -> Result<(), NotReattached> {
        if self.handle.is_replaced() {
            // Attaching again would only take it back: whether it may, only its caller can know.
            return Err(NotReattached::Superseded);
        }
        self.handle.broken();
        let lost = self.lost();
        let repeats = self.may_repeat_after(&lost);
        let patience = match repeats || self.handle.is_cancelled() {
            true => Duration::ZERO,
            false => self.shared.config.reconnect_wait(),
        };
        if self.reattach(patience).await {
            return Ok(());
        }
        (self.origin).circuit(&self.member, self.member.circuit.failed());
        if self.handle.is_cancelled() {
            return Err(CallFailure::Cancelled.into());
        }
        if repeats {
            self.origin.broke();
            if self.again().await.is_ok() {
                return Ok(());
            }
            let refused = match self.once_one_comes().await {
                Ok(()) => return Ok(()),
                Err(refused) => refused,
            };
            let failure = match refused.retry() {
                Retry::Safe => refused,
                _ => lost,
            };
            return Err(self.origin.told(failure).into());
        }
        Err(lost.into())
    }

    /// Goes on where there is no other worker: this one may come back, or another come, whichever is first.
    async fn once_one_comes(&mut self) -> Result<(), CallFailure> {
        let until = Instant::now() + self.shared.config.reconnect_wait();
        let mut changes = self.shared.changes();
        let mut refused = None;
        while Instant::now() < until && !self.handle.is_cancelled() {
            if self.origin.may_be_offered(&self.shared) {
                match self.again().await {
                    Ok(()) => return Ok(()),
                    // Several ways may have broken at once.
                    Err(failure) => refused = Some(failure),
                }
            }
            let own = self.shared.view().member(&self.member.id).cloned();
            let own = own.unwrap_or_else(|| self.member.clone());
            if own.is_reachable() && self.reattach(Duration::ZERO).await {
                return Ok(());
            }
            tokio::select! {
                _ = changes.changed() => {}
                () = tokio::time::sleep_until(until.min(Instant::now() + LOOK)) => {}
            }
        }
        match refused {
            Some(refused) => Err(refused),
            None => self.again().await,
        }
    }

    /// Attaches to the call at its worker, which is waited for; whether that succeeded.
    async fn reattach(&mut self, patience: Duration) -> bool {
        if self.attached_at.elapsed() > self.shared.config.reconnect_wait() {
            self.breaks = 0;
        }
        if self.breaks >= MOST_BREAKS {
            return false;
        }
        if self.breaks > 0 {
            tokio::time::sleep(PAUSE * 2_u32.pow(self.breaks - 1)).await;
        }
        self.breaks += 1;
        let until = Instant::now() + patience;
        let handle = self.handle.clone();
        let attached = attach(
            &self.shared,
            &self.member.id,
            Some(&self.member),
            Sought {
                call: self.origin.call.id,
                after: self.position.seen,
                trace: self.origin.call.trace.as_ref(),
            },
            until,
            || handle.is_cancelled(),
        );
        match attached.await {
            Ok((running, member)) => {
                self.origin.goes_on();
                self.handle.reattached(running.control);
                self.take_over(running.events, member);
                true
            }
            Err(failure) => {
                tracing::debug!(call = %self.origin.call.id, ?failure, "a call was not found again");
                false
            }
        }
    }
}

/// Why a way was not mended.
pub(super) enum NotReattached {
    /// Another reader has the call.
    Superseded,
    /// The call is lost.
    Failed(CallFailure),
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
    /// The worker does not know it, or cannot be reached.
    Unknown,
}

/// A call that somebody goes on with.
pub(crate) struct Sought<'a> {
    pub(crate) call: CallId,
    /// The last of its events that was seen.
    pub(crate) after: u64,
    /// The parent of what the worker does for this.
    pub(crate) trace: Option<&'a TraceContext>,
}

/// Attaches to a call at its worker, which is waited for until `until` or until `stop` says so. `held` is a
/// worker that was let go, but may still be asked for what it runs.
pub(crate) async fn attach(
    shared: &Shared,
    worker: &WorkerId,
    held: Option<&Arc<Member>>,
    sought: Sought<'_>,
    until: Instant,
    stop: impl Fn() -> bool,
) -> Result<(RunningCall, Arc<Member>), NotFound> {
    let Sought { call, after, trace } = sought;
    loop {
        let Some(member) = reach(shared, worker, held, until, &stop).await else {
            let pool = held.map_or("", |member| &member.pool);
            (metrics().pools).attached(pool, AttachOutcome::WorkerGone);
            return Err(NotFound::Gone);
        };
        match member.worker.attach(call, after, trace).await {
            Ok(running) => {
                (metrics().pools).attached(&member.pool, AttachOutcome::Attached);
                return Ok((running, member));
            }
            // The way broke once more: the answer is not the worker's.
            Err(_) if !member.is_reachable() && Instant::now() < until && !stop() => {}
            Err(_) => {
                (metrics().pools).attached(&member.pool, AttachOutcome::Unknown);
                return Err(NotFound::Unknown);
            }
        }
    }
}

/// Waits until a worker is connected. At the end, one that is there is worth a try, connected or not. One that was let go
/// has been waited for already.
pub(super) async fn reach(
    shared: &Shared,
    worker: &WorkerId,
    held: Option<&Arc<Member>>,
    until: Instant,
    stop: impl Fn() -> bool,
) -> Option<Arc<Member>> {
    let mut changes = shared.changes();
    loop {
        let present = shared.view().member(worker).cloned();
        let found = present.clone().or_else(|| held.cloned());
        if found.as_ref().is_some_and(|member| member.is_reachable()) {
            return found;
        }
        let now = Instant::now();
        let left = present.is_none() && shared.has_left(worker);
        if left || now >= until || stop() {
            return present;
        }
        tokio::select! {
            _ = changes.changed() => {}
            () = tokio::time::sleep_until(until.min(now + LOOK)) => {}
        }
    }
}
