//! A call's actor, released while the call waits for its client or backend.
//!
//! The call then continues as a separate task. When its wait is over, it takes an actor again,
//! ahead of calls that have not begun.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use futures::task::AtomicWaker;
use parking_lot::{Mutex, MutexGuard};
use shoal_ports::{CallFailure, Principal};
use shoal_protocol::RpcError;
use tokio::sync::Notify;

use super::admission::PoolAdmission;
use super::pool::{ActorLease, CallTask, PoolInner};
use super::record::CallRecord;

#[derive(Default)]
pub(super) struct ActorSlot {
    state: Mutex<ActorSlotState>,
    leave: AtomicBool,
    actor: AtomicWaker,
    taken: Notify,
}

#[derive(Default)]
struct ActorSlotState {
    pool: Weak<PoolInner>,
    call: Weak<CallRecord>,
    holds: Holds,
    asks: bool,
    open: usize,
    driven: bool,
    lent: Option<ActorLease>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Holds {
    #[default]
    Nothing,
    Slot,
    Asking,
    Waiting,
    Returning,
}

pub(super) struct ClientWait<'a>(&'a CallRecord);

pub(super) struct BackendWait<'a>(&'a CallRecord);

pub(super) struct SlotGuard<'a>(&'a CallRecord);

impl ActorSlot {
    pub(super) fn ended(&self) {
        self.taken.notify_waiters();
    }
}

impl CallRecord {
    pub(super) fn take_slot(self: &Arc<Self>, pool: &Arc<PoolInner>) -> SlotGuard<'_> {
        let mut state = self.slot.state.lock();
        state.pool = Arc::downgrade(pool);
        state.call = Arc::downgrade(self);
        state.holds = Holds::Slot;
        state.driven = true;
        drop(state);
        pool.admission.run();
        SlotGuard(self)
    }

    /// Releases the slot until the client answers. Fails if too many calls wait for their clients.
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

    /// Releases the slot until the backend can begin the call.
    ///
    /// # Errors
    /// The call has ended, or too many calls of its principal wait there.
    pub(super) fn wait_in_backend(
        &self,
    ) -> Result<(BackendWait<'_>, Option<Arc<PoolInner>>), CallFailure> {
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

    fn leave_slot(&self, state: &mut ActorSlotState) -> Option<ActorLease> {
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

    /// Gives the lent actor to a call that continues. If the pool is closing, the call continues
    /// without one.
    ///
    /// # Errors
    /// Returns the actor if the call does not wait for one.
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

    fn come_back(&self, mut state: MutexGuard<'_, ActorSlotState>) {
        let (Some(pool), Some(call)) = (state.pool.upgrade(), state.call.upgrade()) else {
            return;
        };
        if self.slot.leave.swap(false, Ordering::AcqRel) {
            // The wait ended before the actor released the call, so the call stays on the actor.
            state.go_on(&pool.admission, &self.caller.principal);
            return;
        }
        state.holds = Holds::Returning;
        drop(state);
        pool.resume(call);
    }

    /// Waits until the call has ended and its tool has stopped; `None` if both have happened.
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

impl ActorSlotState {
    fn go_on(&mut self, admission: &PoolAdmission, principal: &Principal) {
        self.holds = Holds::Slot;
        if std::mem::take(&mut self.asks) {
            admission.asked(principal);
        }
        admission.run();
    }
}

impl BackendWait<'_> {
    /// Fails if the call has ended.
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
    /// If the future is dropped, the call still takes the next actor.
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
    /// Returns `true` when the call has ended, `false` when it continues without the actor.
    pub(super) fn poll_on_actor(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        let slot = &self.call.slot;
        // Registered first, because the call may ask in another task at any time.
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
