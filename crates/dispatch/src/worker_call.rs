mod attempt_state;
mod attempts;
mod origin;
mod reattach;
mod shown;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use shoal_ports::{
    Attach, Backoff, CallControl as _, CallEvent, CallEventKind, CallEvents, CallFailure, CallId,
    CallOutcome, Repeat, Retry, RunningCall, WorkerId,
};
use shoal_protocol::RawJson;
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout_at};

pub(crate) use attempts::NotStarted;
pub(crate) use origin::CallOrigin;
use reattach::NotReattached;
pub(crate) use reattach::{NotFound, attach, reach};
use shown::Shown;

use crate::bridge::complete;
use crate::handle::CallHandle;
use crate::pools::PoolMember;
use crate::rounds::{EventPosition, round_id};
use crate::shape::Typed;
use crate::shared::DispatchState;

/// Maximum events that Shoal reads ahead for a parked call. The worker keeps later ones.
const KEPT_AHEAD: usize = 64;
/// The first pause before Shoal reattaches. Each pause is twice as long, until an event arrives.
const PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Superseded;

impl Superseded {
    pub(crate) fn failure(self) -> CallFailure {
        CallFailure::outcome_unknown("another request continues the call")
    }
}

/// A running call that ends in exactly one `Finished`.
///
/// When the connection breaks, Shoal reattaches. If that fails, a call that is safe to repeat runs
/// elsewhere, unless its caller was asked a question. Otherwise the outcome is unknown.
pub(crate) struct WorkerCall {
    shared: Arc<DispatchState>,
    call: CallId,
    /// Boxed, because a call moves often.
    origin: Box<CallOrigin>,
    position: EventPosition,
    events: CallEvents,
    ahead: VecDeque<CallEvent>,
    member: Arc<PoolMember>,
    /// `None` before the first event.
    reader: Option<u64>,
    pub(crate) handle: Arc<CallHandle>,
    shown: Shown,
    attached_at: Instant,
    backoff: Backoff,
    ended: bool,
    runs: usize,
    /// Whether a client's answer woke the parked call and no event has come since.
    woken: bool,
}

impl WorkerCall {
    /// Fails if no worker takes the call.
    pub(crate) async fn start(
        shared: Arc<DispatchState>,
        origin: CallOrigin,
    ) -> Result<Self, NotStarted> {
        let mut origin = Box::new(origin);
        let (running, member) = match origin.offer(&shared).await {
            Ok(started) => started,
            Err(failure) => return Err(origin.not_started(failure)),
        };
        let mut worker_call = Self::started(shared, origin, running, member);
        // The connection broke before the first event, so only the worker knows whether it has the call.
        if worker_call.is_unheard()
            && worker_call.is_cut_off()
            && let Err(lost) = worker_call.recover().await
        {
            let goes_on_elsewhere = matches!(lost, NotReattached::Superseded);
            return Err(NotStarted {
                goes_on_elsewhere,
                ..worker_call.origin.not_started(lost.failure())
            });
        }
        Ok(worker_call)
    }

    pub(crate) fn started(
        shared: Arc<DispatchState>,
        origin: Box<CallOrigin>,
        running: RunningCall,
        member: Arc<PoolMember>,
    ) -> Self {
        let (call, position) = (origin.call.id, EventPosition::default());
        Self::new(shared, call, origin, running, member, position)
    }

    pub(crate) fn attached(
        shared: Arc<DispatchState>,
        mut origin: CallOrigin,
        running: RunningCall,
        member: Arc<PoolMember>,
        position: EventPosition,
    ) -> Self {
        let call = origin.call.id;
        origin.call.id = round_id(call, position.round);
        let origin = Box::new(origin);
        let mut worker_call = Self::new(shared, call, origin, running, member, position);
        // This node does not know what the caller saw, so it assumes everything.
        worker_call.shown.anything = position.seen > 0 || position.round > 0;
        worker_call
    }

    fn new(
        shared: Arc<DispatchState>,
        call: CallId,
        origin: Box<CallOrigin>,
        running: RunningCall,
        member: Arc<PoolMember>,
        position: EventPosition,
    ) -> Self {
        Self {
            shared,
            call,
            origin,
            position,
            events: running.events,
            ahead: VecDeque::new(),
            member,
            reader: running.control.reader(),
            handle: CallHandle::new(running.control),
            shown: Shown::default(),
            attached_at: Instant::now(),
            backoff: Backoff::new(PAUSE, LONGEST_PAUSE),
            ended: false,
            runs: 1,
            woken: false,
        }
    }

    /// A call without a session may become a task at its worker.
    pub(crate) fn tell_where(&self) {
        if self.origin.call.caller.session.is_none() && self.position.round == 0 {
            self.handle.runs_at(self.origin.bound_at(&self.member));
        }
    }

    pub(crate) fn take_end(&mut self) -> Option<(CallOutcome, Typed)> {
        let method = &self.origin.call.method;
        let typed = complete(method, self.events.ended()?)?;
        let outcome = self.events.take_ended()?;
        self.ended = true;
        self.origin.ended_at(&self.member, &outcome);
        Some((outcome, typed))
    }

    pub(crate) fn call(&self) -> CallId {
        self.origin.call.id
    }

    pub(crate) fn worker(&self) -> &WorkerId {
        &self.member.id
    }

    pub(crate) fn position(&self) -> EventPosition {
        self.position
    }

    pub(crate) fn is_repeatable(&self) -> bool {
        self.origin.call.repeat == Repeat::Safe
    }

    pub(crate) fn params(&self) -> Option<&RawJson> {
        self.origin.call.params.as_ref()
    }

    /// Returns `false` if the caller has cancelled the call, or if another reader has it.
    pub(crate) fn detach(&mut self) -> bool {
        match self.handle.hand_over() {
            Some(next) => {
                self.handle = next;
                true
            }
            None => false,
        }
    }

    /// `Finished` is the last event. Not cancel safe while a worker is replaced.
    ///
    /// # Errors
    /// Another reader has taken over the call. The call goes on there.
    pub(crate) async fn next(&mut self) -> Result<CallEventKind, Superseded> {
        loop {
            let overdue = self.origin.call.deadline + self.shared.config.cluster.rejoin.get();
            let Ok(event) = timeout_at(overdue, self.read()).await else {
                return Ok(self.overdue());
            };
            let Some(event) = event else {
                match self.recover().await {
                    Ok(()) => continue,
                    Err(NotReattached::Superseded) => return Err(Superseded),
                    Err(NotReattached::Failed(CallFailure::Superseded { .. })) => {
                        self.handle.superseded();
                        return Err(Superseded);
                    }
                    Err(NotReattached::Failed(failure)) => return Ok(finished(failure)),
                }
            };
            let mut kind = self.note(event);
            if let CallEventKind::Finished(CallOutcome::Failed(failure)) = &kind
                && self.may_repeat_after(failure)
            {
                let failure = failure.clone();
                self.origin.failed(&failure, &self.member);
                match self.run_again(failure).await {
                    Ok(()) => continue,
                    Err(lost) => kind = finished(lost.failure()),
                }
            }
            if let CallEventKind::Finished(CallOutcome::Failed(failure)) = &kind {
                self.origin.turned_away(failure);
            }
            if let Some(kind) = self.shown.pass(kind) {
                return Ok(kind);
            }
        }
    }

    /// Cancel safe: leaves the repair of a broken connection to [`WorkerCall::next`].
    pub(crate) async fn next_soon(&mut self, patience: Duration) -> Option<CallEventKind> {
        loop {
            let event = tokio::time::timeout(patience, self.read()).await.ok()??;
            let kind = self.note(event);
            if let Some(kind) = self.shown.pass(kind) {
                return Some(kind);
            }
        }
    }

    /// Reads a parked call's events ahead. Returns when another reader takes over, the call is lost, or too many events
    /// are kept, but not after the call's end. Cancel safe, because a parked call does not run again.
    pub(crate) async fn listen(&mut self) {
        while self.ahead.len() < KEPT_AHEAD {
            let Some(event) = self.events.next().await else {
                match self.recover().await {
                    Ok(()) => continue,
                    Err(_) => return,
                }
            };
            let ended = matches!(event.kind, CallEventKind::Finished(_));
            self.ahead.push_back(event);
            if ended {
                return std::future::pending().await;
            }
        }
    }

    /// Starts the next round, on the same worker if the call is bound. Waits up to `deadline` while that worker's
    /// queue is full.
    ///
    /// # Errors
    /// As [`WorkerCall::start`]. `Superseded` if another reader takes over. `OutcomeUnknown` if the call must not be
    /// repeated, because its earlier rounds ran.
    pub(crate) async fn restart(
        &mut self,
        params: Option<RawJson>,
        deadline: Instant,
    ) -> Result<(), CallFailure> {
        let round = self.position.round + 1;
        self.origin.call.id = round_id(self.call, round);
        self.origin.call.params = params;
        self.origin.tried.clear();
        self.position = EventPosition { round, seen: 0 };
        self.shown = Shown::default();
        self.ended = false;
        self.runs = 0;
        loop {
            match self.place().await {
                Ok(()) => return Ok(()),
                Err(CallFailure::Overloaded { retry_after, .. })
                    if self.origin.call.binding.is_some()
                        && Instant::now() + retry_after < deadline
                        && !self.handle.is_cancelled() =>
                {
                    tokio::time::sleep(retry_after).await;
                    // A refusal is final for a ledger number, so the call gets a new one.
                    self.origin.call.rebind(self.member.worker.ledger());
                }
                Err(failure @ CallFailure::Superseded { .. }) => {
                    self.handle.superseded();
                    return Err(failure);
                }
                Err(failure) if self.is_repeatable() => return Err(failure),
                Err(failure) => {
                    return Err(CallFailure::outcome_unknown(format!(
                        "its backend asked for input and could not be called again ({failure})"
                    )));
                }
            }
        }
    }

    async fn read(&mut self) -> Option<CallEvent> {
        match self.ahead.pop_front() {
            Some(event) => Some(event),
            None => self.events.next().await,
        }
    }

    fn overdue(&mut self) -> CallEventKind {
        self.ended = true;
        self.handle.cancel("its deadline passed");
        self.origin.overdue(&self.member);
        let limit = self.origin.call.deadline - self.attached_at;
        finished(CallFailure::DeadlineExceeded { limit })
    }

    /// Marks a parked call as answered. If several nodes continue the call, the last one keeps it. So if another node
    /// has taken it meanwhile, this node attaches again.
    pub(crate) fn wake(&mut self) {
        self.woken = true;
    }

    fn note(&mut self, CallEvent { sequence, kind }: CallEvent) -> CallEventKind {
        self.position.seen = sequence;
        self.woken = false;
        self.backoff.reset();
        if let CallEventKind::Finished(outcome) = &kind {
            self.ended = true;
            self.origin.ended_at(&self.member, outcome);
        }
        kind
    }

    fn may_repeat_after(&self, failure: &CallFailure) -> bool {
        if self.origin.call.binding.is_some() || self.handle.is_cancelled() {
            return false;
        }
        match failure.retry() {
            Retry::Always => !self.shown.anything || self.is_repeatable() && !self.shown.asked,
            Retry::IfIdempotent => {
                self.is_repeatable()
                    && !self.shown.asked
                    && matches!(failure, CallFailure::OutcomeUnknown { .. })
            }
        }
    }

    async fn place(&mut self) -> Result<(), CallFailure> {
        let (running, member) = self.origin.offer(&self.shared).await?;
        self.runs += 1;
        self.reader = running.control.reader();
        self.ended = false;
        self.handle.restarted(running.control);
        self.take_over(running.events, member);
        Ok(())
    }

    fn take_over(&mut self, events: CallEvents, member: Arc<PoolMember>) {
        self.events = events;
        self.ahead.clear();
        self.member = member;
        self.attached_at = Instant::now();
    }

    fn is_unheard(&self) -> bool {
        self.reader.is_none() && self.position.seen == 0
    }

    fn is_cut_off(&mut self) -> bool {
        if self.ended || !self.ahead.is_empty() || self.events.ended().is_some() {
            return false;
        }
        match self.events.next().now_or_never() {
            None => false,
            Some(None) => true,
            Some(Some(event)) => {
                self.ahead.push_back(event);
                false
            }
        }
    }

    fn lost(&self) -> CallFailure {
        CallFailure::outcome_unknown(format!("the link to its worker {} broke", self.member.id))
    }
}

fn finished(failure: CallFailure) -> CallEventKind {
    CallEventKind::Finished(CallOutcome::Failed(failure))
}

impl Drop for WorkerCall {
    fn drop(&mut self) {
        self.handle.closed();
        // The cancellation may have been lost with the connection, so it is sent again.
        if let Some(reason) = self.handle.why_cancelled()
            && self.is_cut_off()
            && let Ok(runtime) = Handle::try_current()
        {
            let attach = Attach {
                reader: self.reader,
                epoch: self.origin.call.epoch,
                ..Attach::new(self.origin.call.id, 0)
            };
            let (shared, member) = (self.shared.clone(), self.member.clone());
            let cancelling = reattach::cancel(shared, member, attach, reason);
            runtime.spawn(cancelling);
        }
    }
}
