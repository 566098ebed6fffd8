//! A call's seat among those that run: an actor of the pool, which it gives back while it waits for its client.
//!
//! A call is run by an actor until it asks. Then it goes on as a task of its own, and the actor has other work. Once
//! nothing is open any more, the call takes a seat before it goes on, ahead of calls that have not begun.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use futures::task::AtomicWaker;
use parking_lot::Mutex;
use shoal_protocol::RpcError;
use tokio::sync::Notify;

use super::pool::{Lent, Running, Shared};
use super::record::CallRecord;

/// Where a call is to run.
#[derive(Default)]
pub(super) struct Seat {
    state: Mutex<State>,
    /// Its actor is to leave it alone: it waits for its client.
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
    /// None yet: it has its answers.
    Returning,
}

/// A question that is open.
pub(super) struct Question<'a>(&'a CallRecord);

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
            left = state.lent.take();
            if state.driven {
                self.seat.leave.store(true, Ordering::Release);
            }
        } else if state.holds == Holds::Returning {
            state.holds = Holds::Asking;
        }
        state.open += 1;
        drop(state);
        drop(left);
        self.seat.actor.wake();
        self.seat.taken.notify_waiters();
        Ok(Question(self))
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
        state.holds = Holds::Seat;
        state.lent = lent;
        pool.places.go_on(&self.caller.principal);
        drop(state);
        self.seat.taken.notify_waiters();
        Ok(())
    }

    fn close_question(&self) {
        let mut state = self.seat.state.lock();
        state.open -= 1;
        if state.open > 0 || state.holds != Holds::Asking {
            return;
        }
        let (Some(pool), Some(call)) = (state.pool.upgrade(), state.call.upgrade()) else {
            return;
        };
        if self.seat.leave.swap(false, Ordering::AcqRel) {
            // The answer was quicker than the actor.
            state.holds = Holds::Seat;
            pool.places.go_on(&self.caller.principal);
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
        let lent = state.lent.take();
        let pool = state.pool.upgrade();
        drop(state);
        if let Some(pool) = pool {
            match held {
                Holds::Nothing => {}
                Holds::Seat => pool.places.end(),
                Holds::Asking | Holds::Returning => pool.places.asked(&self.0.caller.principal),
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
