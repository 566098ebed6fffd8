//! Who has been let in, until it is let go: what holds for a request ends with whoever holds its [`Admission`].

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use shoal_ports::CallId;
use shoal_protocol::RequestId;

use super::CallSlot;

/// The requests of a session that are in flight.
#[derive(Default)]
pub(crate) struct Admitted {
    calls: Mutex<HashMap<RequestId, Arc<CallSlot>, RandomState>>,
    /// The calls of requests that have been answered, whose tools have not stopped.
    outliving: Mutex<Vec<(RequestId, Arc<CallSlot>)>>,
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
        self.calls.lock().len()
    }

    /// What runs for a request that is in flight.
    pub(super) fn get(&self, request: &RequestId) -> Option<Arc<CallSlot>> {
        self.calls.lock().get(request).cloned()
    }

    /// What runs.
    pub(super) fn slots(&self) -> Vec<Arc<CallSlot>> {
        self.calls.lock().values().cloned().collect()
    }

    /// A call that runs.
    pub(super) fn running(&self, call: CallId) -> Option<Arc<CallSlot>> {
        let calls = self.calls.lock();
        calls.values().find(|slot| slot.call() == call).cloned()
    }

    /// What runs of these requests, also if they have been answered; `None`: of any.
    pub(crate) fn of(&self, requests: Option<&[RequestId]>) -> Vec<Arc<CallSlot>> {
        let asked = |id: &RequestId| requests.is_none_or(|requests| requests.contains(id));
        let calls = self.calls.lock();
        let outliving = self.outliving.lock();
        let outliving = outliving.iter().map(|(id, slot)| (id, slot));
        let found = calls.iter().chain(outliving).filter(|(id, _)| asked(id));
        found.map(|(_, slot)| Arc::clone(slot)).collect()
    }

    /// Lets a request in, whose call has this slot.
    pub(super) fn enter(self: &Arc<Self>, request: RequestId, slot: Arc<CallSlot>) -> Admission {
        self.held.fetch_add(1, Ordering::Relaxed);
        self.calls.lock().insert(request.clone(), slot);
        Admission {
            request,
            admitted: self.clone(),
            released: AtomicBool::new(false),
        }
    }
}

/// The admission of one request: its id is in use until this is released or dropped.
///
/// Whatever becomes of what the state machine decided (nobody waits for it any more, a batch fails half-way, a task
/// panics), the request is over then.
pub(crate) struct Admission {
    request: RequestId,
    admitted: Arc<Admitted>,
    released: AtomicBool,
}

impl Admission {
    /// The request.
    pub(crate) fn request(&self) -> &RequestId {
        &self.request
    }

    /// The request's call is about to leave: what runs on of it stays known until that has stopped.
    pub(crate) fn outlive(&self, slot: &Arc<CallSlot>) {
        if slot.outlives() {
            let mut outliving = self.admitted.outliving.lock();
            outliving.retain(|(_, slot)| !slot.is_over());
            outliving.push((self.request.clone(), Arc::clone(slot)));
        }
    }

    /// The request has been answered, or never will be: its id is free again. Only once, since a client may use it again;
    /// whether this was that.
    pub(crate) fn release(&self) -> bool {
        let first = !self.released.swap(true, Ordering::Relaxed);
        if first {
            let slot = self.admitted.calls.lock().remove(&self.request);
            // Not under the lock: with it may go the last of its call.
            drop(slot);
        }
        first
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

    use shoal_ports::CallId;
    use shoal_protocol::RequestId;

    use super::{Admitted, CallSlot};

    #[test]
    fn a_request_ends_once_and_when_it_is_dropped() {
        let admitted = Arc::new(Admitted::default());
        let id = RequestId::from_number(1);
        let enter = || {
            let slot = Arc::new(CallSlot::new(CallId::generate()));
            admitted.enter(id.clone(), slot)
        };
        let first = enter();
        assert!(first.release());
        assert_eq!((admitted.count(), admitted.held()), (0, 1));
        let second = enter();
        assert!(!first.release(), "the id is somebody else's now");
        drop(first);
        assert_eq!((admitted.count(), admitted.held()), (1, 1));
        drop(second);
        assert_eq!((admitted.count(), admitted.held()), (0, 0));
    }
}
