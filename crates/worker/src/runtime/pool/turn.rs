//! Polls a call for the first time in its caller's task.
//!
//! Many tools do not wait, and the hand-over to an actor would cost more than the rest of such a call.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::PoolInner;
use super::actor::Job;
use super::work::PooledCall;
use crate::runtime::record::CallRecord;

pub(super) enum TurnResult {
    Ended(Arc<CallRecord>),
    Goes(Job),
}

pub(super) fn first(work: PooledCall, shared: &Arc<PoolInner>) -> TurnResult {
    let long_turns = &shared.long_turns;
    let (began, target) = (work.admitted(), work.target());
    if long_turns.forbid(&target) {
        return TurnResult::Goes(Job::Waits(Box::new(work)));
    }
    let mut running = work.run(Arc::clone(shared));
    // The actor polls again, so this needs no waker.
    let polled = running
        .future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
    long_turns.took(began.elapsed(), &target);
    match polled {
        Poll::Ready(()) => TurnResult::Ended(running.call),
        Poll::Pending => TurnResult::Goes(Job::Begun(running)),
    }
}
