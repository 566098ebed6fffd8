//! A call's seat among those that run: an actor of the pool, which it gives back while it waits for its client.
//!
//! A call is run by an actor until it asks. Then it goes on as a task of its own, and the actor has other work. Once
//! nothing is open any more, the call takes a seat before it goes on, ahead of calls that have not begun. A call whose
//! backend cannot begin it yet leaves its actor as well.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use futures::task::AtomicWaker;
use parking_lot::{Mutex, MutexGuard};
use shoal_ports::{CallFailure, Principal};
use shoal_protocol::RpcError;
use tokio::sync::Notify;

use super::places::Places;
use super::pool::{Lent, Running, Shared};
use super::record::CallRecord;

/// Where a call is to run.
#[derive(Default)]
pub(super) struct Seat {
    state: Mutex<State>,
    /// Its actor is to leave it alone: it waits for its client, or in its backend.
    leave: AtomicBool,
    actor: AtomicWaker,
    /// Tells that the call does not return any more.
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
    lent: Option<Lent>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Holds {
    /// The call does not run.
    #[default]
    Nothing,
    /// A seat.
    Seat,
    /// None: its client is asked.
    Asking,
    /// None: its backend cannot begin it yet.
    Waiting,
    /// None yet: it has its answers, or can begin.
    Returning,
}

/// A question that is open.
pub(super) struct Question<'a>(&'a CallRecord);

/// A wait for the backend.
pub(super) struct BackendWait<'a>(&'a CallRecord);

/// Lets the call run until it is dropped.
pub(super) struct Seated<'a>(&'a CallRecord);

impl CallRecord {
    /// The call runs in `pool`, on an actor of it.
    pub(super) fn sit(self: &Arc<Self>, pool: &Arc<Shared>) -> Seated<'_> {
        let mut state = self.seat.state.lock();
        state.pool = Arc::downgrade(pool);
        state.call = Arc::downgrade(self);
        state.holds = Holds::Seat;
        state.driven = true;
        drop(state);
        pool.places.run();
        Seated(self)
    }

    /// The client is about to be asked: the call needs no seat until it has answered.
    ///
    /// # Errors
    /// What the tool is told when too many calls wait for their clients.
    pub(super) fn question(&self) -> Result<Question<'_>, RpcError> {
        let mut state = self.seat.state.lock();
        let mut left = None;
        if let (0, Holds::Seat, Some(pool)) = (state.open, state.holds, state.pool.upgrade()) {
            pool.places.ask(&self.caller.principal)?;
            state.holds = Holds::Asking;
            state.asks = true;
            left = self.leave_seat(&mut state);
        } else if state.holds == Holds::Returning {
            state.holds = Holds::Asking;
        }
        state.open += 1;
        drop(state);
        self.left(left);
        Ok(Question(self))
    }

    /// The backend cannot begin the call yet: it needs no seat until it can. With the pool that it waits in.
    ///
    /// # Errors
    /// The call has ended, or its principal has too many that wait there.
    pub(super) fn wait_in_backend(
        &self,
    ) -> Result<(BackendWait<'_>, Option<Arc<Shared>>), CallFailure> {
        let mut state = self.seat.state.lock();
        let pool = state.pool.upgrade();
        let mut left = None;
        if let (0, Holds::Seat, Some(pool)) = (state.open, state.holds, &pool) {
            if !self.pause() {
                return Err(CallFailure::Cancelled);
            }
            pool.places.wait(&self.caller.principal)?;
            state.holds = Holds::Waiting;
            left = self.leave_seat(&mut state);
        }
        drop(state);
        self.left(left);
        Ok((BackendWait(self), pool))
    }

    /// Has the actor go, if there is one.
    fn leave_seat(&self, state: &mut State) -> Option<Lent> {
        if state.driven {
            self.seat.leave.store(true, Ordering::Release);
        }
        state.lent.take()
    }

    fn left(&self, lent: Option<Lent>) {
        drop(lent);
        self.seat.actor.wake();
        self.seat.taken.notify_waiters();
    }

    /// Lets the call have this seat, or any without one where the pool is closing, if it waits for that.
    ///
    /// # Errors
    /// With the seat, if it does not.
    pub(super) fn seat(&self, lent: Option<Lent>) -> Result<(), Option<Lent>> {
        let mut state = self.seat.state.lock();
        let (Holds::Returning, Some(pool)) = (state.holds, state.pool.upgrade()) else {
            return Err(lent);
        };
        state.lent = lent;
        state.go_on(&pool.places, &self.caller.principal);
        drop(state);
        self.seat.taken.notify_waiters();
        Ok(())
    }

    fn close_question(&self) {
        let mut state = self.seat.state.lock();
        state.open -= 1;
        if state.open == 0 && state.holds == Holds::Asking {
            self.come_back(state);
        }
    }

    fn close_wait(&self) {
        let state = self.seat.state.lock();
        if state.holds == Holds::Waiting {
            if let Some(pool) = state.pool.upgrade() {
                pool.places.waited(&self.caller.principal);
            }
            self.come_back(state);
        }
    }

    /// Finds a seat for the call.
    fn come_back(&self, mut state: MutexGuard<'_, State>) {
        let (Some(pool), Some(call)) = (state.pool.upgrade(), state.call.upgrade()) else {
            return;
        };
        if self.seat.leave.swap(false, Ordering::AcqRel) {
            // That was quicker than the actor.
            state.go_on(&pool.places, &self.caller.principal);
            return;
        }
        state.holds = Holds::Returning;
        drop(state);
        pool.seat(call);
    }

    /// Returns once the call may go on.
    async fn seated(&self) {
        loop {
            let taken = self.seat.taken.notified();
            tokio::pin!(taken);
            taken.as_mut().enable();
            if self.seat.state.lock().holds != Holds::Returning {
                return;
            }
            taken.await;
        }
    }
}

impl State {
    /// The call has a seat again.
    fn go_on(&mut self, places: &Places, principal: &Principal) {
        self.holds = Holds::Seat;
        if std::mem::take(&mut self.asks) {
            places.asked(principal);
        }
        places.run();
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
            () = call.seated() => {}
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

impl Question<'_> {
    /// The client has answered: returns once the call may go on. Where it is dropped, the tool does not wait for the
    /// answer any more, and the call takes the next seat all the same.
    pub(super) async fn answered(self) {
        let call = self.0;
        drop(self);
        call.seated().await;
    }
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        self.0.close_question();
    }
}

impl Drop for Seated<'_> {
    fn drop(&mut self) {
        let seat = &self.0.seat;
        let mut state = seat.state.lock();
        let held = std::mem::take(&mut state.holds);
        let asks = std::mem::take(&mut state.asks);
        let lent = state.lent.take();
        let pool = state.pool.upgrade();
        drop(state);
        if let Some(pool) = pool {
            let principal = &self.0.caller.principal;
            match held {
                Holds::Nothing | Holds::Asking | Holds::Returning => {}
                Holds::Seat => pool.places.end(),
                Holds::Waiting => pool.places.waited(principal),
            }
            if asks {
                pool.places.asked(principal);
            }
        }
        drop(lent);
        seat.taken.notify_waiters();
    }
}

impl Running {
    /// Runs the call on its actor: ready with `true` when it has ended, with `false` when it goes on without the actor.
    pub(super) fn poll_on_actor(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        let seat = &self.call.seat;
        // Before the call, which may ask in another task at any time.
        seat.actor.register(context.waker());
        if self.future.as_mut().poll(context).is_ready() {
            return Poll::Ready(true);
        }
        if !seat.leave.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        let mut state = seat.state.lock();
        match seat.leave.swap(false, Ordering::AcqRel) {
            true => {
                state.driven = false;
                Poll::Ready(false)
            }
            false => Poll::Pending,
        }
    }
}
