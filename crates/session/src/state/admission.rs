//! Who has been let in, until it is let go: what holds for a request ends with whoever holds its [`Admission`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use shoal_protocol::RequestId;

/// So many ended requests are kept for an actor that is told nothing else: each keeps what its call was.
const MOST_ENDED: usize = 16;

/// The requests of a session that are in flight, as anybody may count them.
#[derive(Default)]
pub(crate) struct Admitted {
    /// Those that the state machine knows.
    known: AtomicUsize,
    /// Those of them that have ended meanwhile.
    ended: Mutex<Vec<RequestId>>,
    /// Admissions that somebody holds, also when they were released: a call is over when its answer is written.
    held: AtomicUsize,
}

impl Admitted {
    /// How many calls are not over, their answers included.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Acquire)
    }

    /// Requests in flight.
    pub(crate) fn count(&self) -> usize {
        let ended = self.ended.lock();
        let known = self.known.load(Ordering::Relaxed);
        known.saturating_sub(ended.len())
    }

    /// The state machine knows so many.
    pub(super) fn known(&self, count: usize) {
        self.known.store(count, Ordering::Relaxed);
    }

    /// Has the state machine forget what has ended; it says how many it knows then.
    pub(super) fn forget_ended(
        &self,
        forget: impl FnOnce(std::vec::Drain<'_, RequestId>) -> usize,
    ) {
        // Under the lock, so that nobody counts one that has ended as in flight, or counts its end twice.
        let mut ended = self.ended.lock();
        let count = forget(ended.drain(..));
        self.known(count);
    }

    /// Notes that a request has ended; true where the actor should be told so now.
    fn ended(&self, request: RequestId) -> bool {
        let mut ended = self.ended.lock();
        ended.push(request);
        ended.len() == MOST_ENDED
    }
}

/// The admission of one request: its id is in use until this is released or dropped.
///
/// Whatever becomes of what the state machine decided (nobody waits for it any more, a batch fails half-way, a task
/// panics), the request is over then. The state machine sees it with its next input, so this may also be dropped within one.
pub(crate) struct Admission {
    request: RequestId,
    admitted: Arc<Admitted>,
    released: AtomicBool,
}

impl Admission {
    pub(super) fn new(request: RequestId, admitted: &Arc<Admitted>) -> Self {
        admitted.held.fetch_add(1, Ordering::Relaxed);
        Self {
            request,
            admitted: admitted.clone(),
            released: AtomicBool::new(false),
        }
    }

    /// The request.
    pub(crate) fn request(&self) -> &RequestId {
        &self.request
    }

    /// The request has been answered, or never will be: its id is free again. Only once, since a client may use it again;
    /// `None` when that has been said before, else whether the session's actor should be told now.
    pub(crate) fn release(&self) -> Option<bool> {
        let first = !self.released.swap(true, Ordering::Relaxed);
        first.then(|| self.admitted.ended(self.request.clone()))
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.release();
        self.admitted.held.fetch_sub(1, Ordering::Release);
    }
}

impl std::fmt::Debug for Admission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Admission({})", self.request)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use shoal_protocol::RequestId;

    use super::{Admission, Admitted, MOST_ENDED};

    #[test]
    fn what_has_ended_is_not_in_flight_and_the_actor_is_told_when_much_has() {
        let admitted = Arc::new(Admitted::default());
        admitted.known(MOST_ENDED + 1);
        for number in 1..=MOST_ENDED {
            let admission = Admission::new(RequestId::from_number(number as u64), &admitted);
            let tell = admission.release();
            assert_eq!(tell, Some(number == MOST_ENDED), "{number}");
            assert_eq!(admission.release(), None, "it ends once");
            drop(admission);
            assert_eq!(admitted.count(), MOST_ENDED + 1 - number);
        }
    }

    #[test]
    fn who_is_dropped_has_ended() {
        let admitted = Arc::new(Admitted::default());
        admitted.known(1);
        drop(Admission::new(RequestId::from_number(1), &admitted));
        assert_eq!(admitted.count(), 0);
    }
}
