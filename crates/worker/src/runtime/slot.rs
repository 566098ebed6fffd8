//! A call's slot among those that run: an actor of the pool, which it gives back while it waits for its client.
//!
//! A call is run by an actor until it asks. Then it goes on as a task of its own, and the actor has other work. Once
//! nothing is open any more, the call takes a slot before it goes on, ahead of calls that have not begun. A call whose
//! backend cannot begin it yet leaves its actor as well.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use futures::task::AtomicWaker;
use parking_lot::{Mutex, MutexGuard};
use shoal_ports::{CallFailure, Principal};
use shoal_protocol::RpcError;
use tokio::sync::Notify;

use super::admission::Admission;
use super::pool::{ActorLease, CallTask, Shared};
use super::record::CallRecord;

/// Where a call is to run.
#[derive(Default)]
pub(super) struct ActorSlot {
    state: Mutex<State>,
    /// Its actor is to leave it alone: it waits for its client, or in its backend.
    leave: AtomicBool,
    actor: AtomicWaker,
    /// Tells that the call does not return any more, or has ended.
    taken: Notify,
}

#[derive(Default)]
struct State {
    pool: Weak<Shared>,
    call: Weak<CallRecord>,
    holds: Holds,
    /// Whether the call counts as one that waits for its client.
    asks: bool,
    /// Questions that are open.
    open: usize,
    /// Whether the actor that began the call still runs it.
    driven: bool,
    /// The actor that stands still for the call since it went on.
    lent: Option<ActorLease>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Holds {
    /// The call does not run.
    #[default]
    Nothing,
    /// A slot.
    Slot,
    /// None: its client is asked.
    Asking,
    /// None: its backend cannot begin it yet.
    Waiting,
    /// None yet: it has its answers, or can begin.
    Returning,
}

/// The wait for an answer to a question that is open.
pub(super) struct ClientWait<'a>(&'a CallRecord);

/// A wait for the backend.
pub(super) struct BackendWait<'a>(&'a CallRecord);

/// Lets the call run until it is dropped.
pub(super) struct SlotGuard<'a>(&'a CallRecord);

impl ActorSlot {
    /// The call has ended, though its tool may not have stopped.
    pub(super) fn ended(&self) {
        self.taken.notify_waiters();
    }
}

impl CallRecord {
    /// The call runs in `pool`, on an actor of it.
    pub(super) fn take_slot(self: &Arc<Self>, pool: &Arc<Shared>) -> SlotGuard<'_> {
        let mut state = self.slot.state.lock();
        state.pool = Arc::downgrade(pool);
        state.call = Arc::downgrade(self);
        state.holds = Holds::Slot;
        state.driven = true;
        drop(state);
        pool.admission.run();
        SlotGuard(self)
    }

    /// The client is about to be asked: the call needs no slot until it has answered.
    ///
    /// # Errors
    /// What the tool is told when too many calls wait for their clients.
    pub(super) fn wait_for_client(&self) -> Result<ClientWait<'_>, RpcError> {
        let mut state = self.slot.state.lock();
        let mut left = None;
        if let (0, Holds::Slot, Some(pool)) = (state.open, state.holds, state.pool.upgrade()) {
            pool.admission.ask(&self.caller.principal)?;
            state.holds = Holds::Asking;
            state.asks = true;
            left = self.leave_slot(&mut state);
        } else if state.holds == Holds::Returning {
            state.holds = Holds::Asking;
        }
        state.open += 1;
        drop(state);
        self.left(left);
        Ok(ClientWait(self))
    }

    /// The backend cannot begin the call yet: it needs no slot until it can. With the pool that it waits in.
    ///
    /// # Errors
    /// The call has ended, or its principal has too many that wait there.
    pub(super) fn wait_in_backend(
        &self,
    ) -> Result<(BackendWait<'_>, Option<Arc<Shared>>), CallFailure> {
        let mut state = self.slot.state.lock();
        let pool = state.pool.upgrade();
        let mut left = None;
        if let (0, Holds::Slot, Some(pool)) = (state.open, state.holds, &pool) {
            if !self.pause() {
                return Err(CallFailure::Cancelled);
            }
            pool.admission.wait(&self.caller.principal)?;
            state.holds = Holds::Waiting;
            left = self.leave_slot(&mut state);
        }
        drop(state);
        self.left(left);
        Ok((BackendWait(self), pool))
    }

    /// Has the actor go, if there is one.
    fn leave_slot(&self, state: &mut State) -> Option<ActorLease> {
        if state.driven {
            self.slot.leave.store(true, Ordering::Release);
        }
        state.lent.take()
    }

    fn left(&self, lent: Option<ActorLease>) {
        drop(lent);
        self.slot.actor.wake();
        self.slot.taken.notify_waiters();
    }

    /// Lets the call have this slot, or any without one where the pool is closing, if it waits for that.
    ///
    /// # Errors
    /// With the slot, if it does not.
    pub(super) fn resume(&self, lent: Option<ActorLease>) -> Result<(), Option<ActorLease>> {
        let mut state = self.slot.state.lock();
        let (Holds::Returning, Some(pool)) = (state.holds, state.pool.upgrade()) else {
            return Err(lent);
        };
        state.lent = lent;
        state.go_on(&pool.admission, &self.caller.principal);
        drop(state);
        self.slot.taken.notify_waiters();
        Ok(())
    }

    fn close_client_wait(&self) {
        let mut state = self.slot.state.lock();
        state.open -= 1;
        if state.open == 0 && state.holds == Holds::Asking {
            self.come_back(state);
        }
    }

    fn close_wait(&self) {
        let state = self.slot.state.lock();
        if state.holds == Holds::Waiting {
            if let Some(pool) = state.pool.upgrade() {
                pool.admission.waited(&self.caller.principal);
            }
            self.come_back(state);
        }
    }

    /// Finds an actor for the call.
    fn come_back(&self, mut state: MutexGuard<'_, State>) {
        let (Some(pool), Some(call)) = (state.pool.upgrade(), state.call.upgrade()) else {
            return;
        };
        if self.slot.leave.swap(false, Ordering::AcqRel) {
            // That was quicker than the actor.
            state.go_on(&pool.admission, &self.caller.principal);
            return;
        }
        state.holds = Holds::Returning;
        drop(state);
        pool.resume(call);
    }

    /// Waits until the call has ended and its tool has stopped; `None` if both are so.
    pub(super) fn over(self: &Arc<Self>) -> Option<BoxFuture<'static, ()>> {
        if self.is_over() {
            return None;
        }
        let record = Arc::clone(self);
        Some(Box::pin(async move {
            loop {
                let taken = record.slot.taken.notified();
                tokio::pin!(taken);
                taken.as_mut().enable();
                if record.is_over() {
                    return;
                }
                taken.await;
            }
        }))
    }

    fn is_over(&self) -> bool {
        let is_stopped = self.cancelled.is_cancelled();
        self.has_ended() && (!is_stopped || self.slot.state.lock().holds == Holds::Nothing)
    }

    /// Returns once the call may go on.
    async fn resumed(&self) {
        loop {
            let taken = self.slot.taken.notified();
            tokio::pin!(taken);
            taken.as_mut().enable();
            if self.slot.state.lock().holds != Holds::Returning {
                return;
            }
            taken.await;
        }
    }
}

impl State {
    /// The call has a slot again.
    fn go_on(&mut self, admission: &Admission, principal: &Principal) {
        self.holds = Holds::Slot;
        if std::mem::take(&mut self.asks) {
            admission.asked(principal);
        }
        admission.run();
    }
}

impl BackendWait<'_> {
    /// The backend can begin the call: returns once it may.
    ///
    /// # Errors
    /// The call has ended.
    pub(super) async fn over(self) -> Result<(), CallFailure> {
        let call = self.0;
        drop(self);
        tokio::select! {
            biased;
            () = call.cancelled.cancelled() => return Err(CallFailure::Cancelled),
            () = call.resumed() => {}
        }
        match call.begin() {
            true => Ok(()),
            false => Err(CallFailure::Cancelled),
        }
    }
}

impl Drop for BackendWait<'_> {
    fn drop(&mut self) {
        self.0.close_wait();
    }
}

impl ClientWait<'_> {
    /// The client has answered: returns once the call may go on. Where it is dropped, the tool does not wait for the
    /// answer any more, and the call takes the next slot all the same.
    pub(super) async fn answered(self) {
        let call = self.0;
        drop(self);
        call.resumed().await;
    }
}

impl Drop for ClientWait<'_> {
    fn drop(&mut self) {
        self.0.close_client_wait();
    }
}

impl Drop for SlotGuard<'_> {
    fn drop(&mut self) {
        let slot = &self.0.slot;
        let mut state = slot.state.lock();
        let held = std::mem::take(&mut state.holds);
        let asks = std::mem::take(&mut state.asks);
        let lent = state.lent.take();
        let pool = state.pool.upgrade();
        drop(state);
        if let Some(pool) = pool {
            let principal = &self.0.caller.principal;
            match held {
                Holds::Nothing | Holds::Asking | Holds::Returning => {}
                Holds::Slot => pool.admission.end(),
                Holds::Waiting => pool.admission.waited(principal),
            }
            if asks {
                pool.admission.asked(principal);
            }
        }
        drop(lent);
        slot.taken.notify_waiters();
    }
}

impl CallTask {
    /// Runs the call on its actor: ready with `true` when it has ended, with `false` when it goes on without the actor.
    pub(super) fn poll_on_actor(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        let slot = &self.call.slot;
        // Before the call, which may ask in another task at any time.
        slot.actor.register(context.waker());
        if self.future.as_mut().poll(context).is_ready() {
            return Poll::Ready(true);
        }
        if !slot.leave.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        let mut state = slot.state.lock();
        match slot.leave.swap(false, Ordering::AcqRel) {
            true => {
                state.driven = false;
                Poll::Ready(false)
            }
            false => Poll::Pending,
        }
    }
}
