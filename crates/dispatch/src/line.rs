//! The way to the worker that runs a call: which one it is, and what happens when it breaks.

use std::sync::Arc;

use shoal_ports::{
    Call, CallEvent, CallEventKind, CallEvents, CallFailure, CallId, CallOutcome, Durability,
    Retry, RunningCall, WorkerId,
};
use shoal_protocol::RawJson;

use crate::shared::Shared;
use crate::steering::Steering;

/// A running call that ends in exactly one `Finished`, whatever happens to its worker.
///
/// A call that is safe to repeat is started again elsewhere as long as nothing of it has reached the
/// caller; any other is attached to once, and if that fails its outcome is unknown.
pub(crate) struct Line {
    shared: Arc<Shared>,
    call: CallId,
    /// What is needed to start it again; a call that was attached to has none.
    origin: Option<Origin>,
    events: CallEvents,
    worker: Option<WorkerId>,
    pub(crate) steering: Arc<Steering>,
    /// The worker's sequence number of the last event.
    seen: u64,
    /// Whether an event has gone on to the caller.
    forwarded: bool,
    reattached: bool,
}

struct Origin {
    pool: Arc<str>,
    call: Call,
    /// Workers that have been offered this call and are out.
    tried: Vec<WorkerId>,
}

impl Line {
    /// Starts a call on a worker of the pool.
    ///
    /// # Errors
    /// When no worker takes it; then nothing was executed.
    pub(crate) async fn start(
        shared: Arc<Shared>,
        pool: Arc<str>,
        call: Call,
    ) -> Result<Self, CallFailure> {
        let mut origin = Origin {
            pool,
            call,
            tried: Vec::new(),
        };
        let running = origin.offer(&shared).await?;
        Ok(Self {
            shared,
            call: origin.call.id,
            origin: Some(origin),
            steering: Steering::new(running.control),
            events: running.events,
            worker: running.worker,
            seen: 0,
            forwarded: false,
            reattached: false,
        })
    }

    /// Takes over a call that was attached to.
    pub(crate) fn attached(
        shared: Arc<Shared>,
        call: CallId,
        running: RunningCall,
        after: u64,
    ) -> Self {
        Self {
            shared,
            call,
            origin: None,
            steering: Steering::new(running.control),
            events: running.events,
            worker: running.worker,
            seen: after,
            forwarded: true,
            reattached: false,
        }
    }

    /// The call's identity at its worker.
    pub(crate) fn call(&self) -> CallId {
        self.call
    }

    /// The worker that runs it.
    pub(crate) fn worker(&self) -> Option<&WorkerId> {
        self.worker.as_ref()
    }

    /// The worker's sequence number of the last event.
    pub(crate) fn seen(&self) -> u64 {
        self.seen
    }

    /// Whether the call may be repeated.
    pub(crate) fn is_repeatable(&self) -> bool {
        self.origin
            .as_ref()
            .is_some_and(|origin| origin.call.durability == Durability::Repeatable)
    }

    /// What the call was started with; `None` for one that was attached to.
    pub(crate) fn params(&self) -> Option<&RawJson> {
        self.origin.as_ref()?.call.params.as_ref()
    }

    /// Ends the present caller's hold on the call; `false` when that caller has cancelled it.
    pub(crate) fn detach(&mut self) -> bool {
        match self.steering.hand_over() {
            Some(next) => {
                self.steering = next;
                true
            }
            None => false,
        }
    }

    /// The next event; `Finished` is the last. Not cancellation safe while a worker is replaced.
    pub(crate) async fn next(&mut self) -> CallEventKind {
        loop {
            let Some(CallEvent { sequence, kind }) = self.events.next().await else {
                match self.mend().await {
                    Ok(()) => continue,
                    Err(failure) => return CallEventKind::Finished(CallOutcome::Failed(failure)),
                }
            };
            self.seen = sequence;
            if let CallEventKind::Finished(CallOutcome::Failed(failure)) = &kind
                && self.may_repeat_after(failure)
                && self.again().await.is_ok()
            {
                continue;
            }
            self.forwarded = true;
            return kind;
        }
    }

    /// An event that is there within `patience`. Cancellation safe: a broken way is left for
    /// [`Line::next`] to mend.
    pub(crate) async fn next_soon(
        &mut self,
        patience: std::time::Duration,
    ) -> Option<CallEventKind> {
        let event = tokio::time::timeout(patience, self.events.next()).await;
        let CallEvent { sequence, kind } = event.ok()??;
        self.seen = sequence;
        Some(kind)
    }

    /// Starts the call anew, with other parameters and a new id, on the same pool.
    ///
    /// # Errors
    /// As [`Line::start`], and `OutcomeUnknown` for a call that was attached to, because nobody here
    /// knows what it was asked.
    pub(crate) async fn restart(&mut self, params: Option<RawJson>) -> Result<(), CallFailure> {
        let Some(origin) = &mut self.origin else {
            return Err(CallFailure::OutcomeUnknown {
                reason: "the call asked for input and its node was lost".to_owned(),
            });
        };
        origin.call.id = CallId::generate();
        origin.call.params = params;
        origin.tried.clear();
        self.call = origin.call.id;
        // It did nothing wrong: it may well run the next round too.
        self.worker = None;
        self.forwarded = false;
        self.reattached = false;
        self.again().await
    }

    /// Whether the call may run again elsewhere after it ended this way.
    fn may_repeat_after(&self, failure: &CallFailure) -> bool {
        if self.forwarded || self.origin.is_none() || self.steering.is_cancelled() {
            return false;
        }
        match failure.retry() {
            Retry::Safe => true,
            Retry::OnlyIfIdempotent => {
                self.is_repeatable() && matches!(failure, CallFailure::OutcomeUnknown { .. })
            }
            Retry::Never => false,
        }
    }

    async fn again(&mut self) -> Result<(), CallFailure> {
        let Some(origin) = &mut self.origin else {
            return Err(self.lost());
        };
        origin.tried.extend(self.worker.take());
        let running = origin.offer(&self.shared).await?;
        self.take_over(running, 0);
        Ok(())
    }

    /// Finds the call again after the way to it broke.
    async fn mend(&mut self) -> Result<(), CallFailure> {
        if self.steering.is_cancelled() {
            return Err(CallFailure::Cancelled);
        }
        let (lost, worker) = (self.lost(), self.worker.clone());
        if self.may_repeat_after(&lost) && self.again().await.is_ok() {
            return Ok(());
        }
        // Perhaps only the way broke, and the worker still has the call.
        let worker = worker.filter(|_| !std::mem::replace(&mut self.reattached, true));
        let view = self.shared.view();
        let Some(worker) = worker.as_ref().and_then(|id| view.worker(id).cloned()) else {
            return Err(lost);
        };
        drop(view);
        let running = worker
            .attach(self.call, self.seen)
            .await
            .map_err(|_| lost)?;
        self.take_over(running, self.seen);
        Ok(())
    }

    fn take_over(&mut self, running: RunningCall, seen: u64) {
        self.steering.follow(running.control);
        self.events = running.events;
        if running.worker.is_some() {
            self.worker = running.worker;
        }
        self.seen = seen;
    }

    fn lost(&self) -> CallFailure {
        let reason = match &self.worker {
            Some(worker) => format!("the way to its worker {worker} broke"),
            None => "the way to its worker broke".to_owned(),
        };
        CallFailure::OutcomeUnknown { reason }
    }
}

impl Origin {
    /// Offers the call to workers until one takes it, up to the configured number over its life.
    async fn offer(&mut self, shared: &Shared) -> Result<RunningCall, CallFailure> {
        let mut refused = None;
        loop {
            if self.tried.len() >= shared.config.start_attempts.max(1) {
                return Err(refused.unwrap_or_else(|| CallFailure::NotExecuted {
                    reason: format!("{} workers failed it", self.tried.len()),
                }));
            }
            let view = shared.view();
            let member = match view.choose(&self.pool, &self.tried) {
                Ok(member) => member.clone(),
                // What a worker said is more to the point than that there is no other one.
                Err(none) => return Err(refused.unwrap_or(none)),
            };
            drop(view);
            match member.worker.start(self.call.clone()).await {
                Ok(mut running) => {
                    running.worker.get_or_insert(member.id);
                    return Ok(running);
                }
                Err(failure) if failure.retry() == Retry::Safe => {
                    tracing::debug!(worker = %member.id, %failure, "a worker did not take a call");
                    self.tried.push(member.id);
                    refused = Some(failure);
                }
                Err(failure) => return Err(failure),
            }
        }
    }
}
