//! Who has been let in, until it is let go: what holds for a request ends with whoever holds its [`Admission`].

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use shoal_ports::{CallId, DeliveryId};
use shoal_protocol::RequestId;

use super::{CallSlot, Came};

/// The requests of a session that are in flight.
#[derive(Default)]
pub(crate) struct Admitted {
    calls: Mutex<Calls>,
    /// The calls of requests that have been answered, whose tools have not stopped.
    outliving: Mutex<Vec<(RequestId, Arc<CallSlot>)>>,
    /// Admissions that somebody holds, also when they were released: a call is over when its answer is written.
    held: AtomicUsize,
}

#[derive(Default)]
struct Calls {
    by_request: HashMap<RequestId, InUse, RandomState>,
    count: usize,
}

/// The calls of one request id. Over Streamable HTTP there may be several, since each request has an answer of its own.
struct InUse {
    newest: Entered,
    older: Vec<Entered>,
}

struct Entered {
    slot: Arc<CallSlot>,
    /// The delivery that brought the request; not known of a call that an earlier owner began.
    delivery: Option<DeliveryId>,
}

impl InUse {
    fn all(&self) -> impl Iterator<Item = &Entered> {
        std::iter::once(&self.newest).chain(&self.older)
    }
}

impl Admitted {
    /// How many calls are not over, their answers included.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Acquire)
    }

    /// Requests in flight.
    pub(crate) fn count(&self) -> usize {
        self.calls.lock().count
    }

    /// The newest call that runs for a request id.
    pub(super) fn get(&self, request: &RequestId) -> Option<Arc<CallSlot>> {
        let calls = self.calls.lock();
        let in_use = calls.by_request.get(request)?;
        Some(in_use.newest.slot.clone())
    }

    /// The call that runs for this delivery of a request.
    ///
    /// Of a call that an earlier owner began, the delivery is not known: one that has an id of its own is told by that, and any
    /// other may be it.
    pub(super) fn of_delivery(&self, request: &RequestId, came: Came) -> Option<Arc<CallSlot>> {
        let calls = self.calls.lock();
        let is_same = |entered: &&Entered| match entered.delivery {
            Some(delivery) => delivery == came.delivery,
            None => came.call.is_none_or(|call| entered.slot.call() == call),
        };
        let entered = calls.by_request.get(request)?.all().find(is_same)?;
        Some(entered.slot.clone())
    }

    /// Whether this very delivery of a request runs, as far as that is known.
    pub(super) fn has(&self, request: &RequestId, came: Came) -> bool {
        let calls = self.calls.lock();
        let is_same = |entered: &Entered| {
            entered.delivery == Some(came.delivery) || came.call == Some(entered.slot.call())
        };
        let in_use = calls.by_request.get(request);
        in_use.is_some_and(|in_use| in_use.all().any(is_same))
    }

    /// What runs.
    pub(super) fn slots(&self) -> Vec<Arc<CallSlot>> {
        let calls = self.calls.lock();
        let all = calls.by_request.values().flat_map(InUse::all);
        all.map(|entered| entered.slot.clone()).collect()
    }

    /// A call that runs.
    pub(super) fn running(&self, call: CallId) -> Option<Arc<CallSlot>> {
        let calls = self.calls.lock();
        let mut all = calls.by_request.values().flat_map(InUse::all);
        let entered = all.find(|entered| entered.slot.call() == call)?;
        Some(entered.slot.clone())
    }

    /// The calls of these requests that still run, answered ones included; `None`: of any request.
    pub(crate) fn of(&self, requests: Option<&[RequestId]>) -> Vec<Arc<CallSlot>> {
        let asked = |id: &RequestId| requests.is_none_or(|requests| requests.contains(id));
        let calls = self.calls.lock();
        let outliving = self.outliving.lock();
        let outliving = outliving.iter().map(|(id, slot)| (id, slot));
        let running = calls.by_request.iter();
        let running = running.flat_map(|(id, calls)| calls.all().map(move |call| (id, &call.slot)));
        let found = running.chain(outliving).filter(|(id, _)| asked(id));
        found.map(|(_, slot)| Arc::clone(slot)).collect()
    }

    /// Lets a request in, whose call has this slot.
    pub(super) fn enter(
        self: &Arc<Self>,
        request: RequestId,
        slot: Arc<CallSlot>,
        delivery: Option<DeliveryId>,
    ) -> Admission {
        self.held.fetch_add(1, Ordering::Relaxed);
        let call = slot.call();
        let newest = Entered { slot, delivery };
        let mut calls = self.calls.lock();
        calls.count += 1;
        match calls.by_request.entry(request.clone()) {
            Entry::Occupied(mut in_use) => {
                let InUse {
                    newest: last,
                    older,
                } = in_use.get_mut();
                older.push(std::mem::replace(last, newest));
            }
            Entry::Vacant(free) => {
                let older = Vec::new();
                free.insert(InUse { newest, older });
            }
        }
        drop(calls);
        Admission {
            request,
            call,
            admitted: self.clone(),
            released: AtomicBool::new(false),
        }
    }

    /// Takes a call out, which is in flight no more.
    fn remove(&self, request: &RequestId, call: CallId) -> Option<Entered> {
        let mut calls = self.calls.lock();
        let in_use = calls.by_request.get_mut(request)?;
        let removed = match in_use
            .older
            .iter()
            .position(|older| older.slot.call() == call)
        {
            Some(at) => in_use.older.remove(at),
            None if in_use.newest.slot.call() != call => return None,
            None => match in_use.older.pop() {
                Some(before) => std::mem::replace(&mut in_use.newest, before),
                None => calls.by_request.remove(request)?.newest,
            },
        };
        calls.count -= 1;
        Some(removed)
    }
}

/// The admission of one request, which is in flight until this is released or dropped.
///
/// Whatever becomes of what the state machine decided (nobody waits for it any more, a batch fails half-way, a task
/// panics), the request is over then.
pub(crate) struct Admission {
    request: RequestId,
    call: CallId,
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

    /// The request has been answered, or never will be. Only once; whether this was that.
    pub(crate) fn release(&self) -> bool {
        let first = !self.released.swap(true, Ordering::Relaxed);
        if first {
            // Not under the lock: with it may go the last of its call.
            drop(self.admitted.remove(&self.request, self.call));
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

    use shoal_ports::{CallId, DeliveryId};
    use shoal_protocol::RequestId;

    use super::{Admitted, CallSlot, Came};

    #[test]
    fn a_request_ends_once_and_when_it_is_dropped() {
        let admitted = Arc::new(Admitted::default());
        let id = RequestId::from_number(1);
        let enter = || {
            let slot = Arc::new(CallSlot::new(CallId::generate()));
            admitted.enter(id.clone(), slot, Some(DeliveryId::generate()))
        };
        let first = enter();
        assert!(first.release());
        assert_eq!((admitted.count(), admitted.held()), (0, 1));
        let second = enter();
        assert!(!first.release(), "it has ended");
        drop(first);
        assert_eq!((admitted.count(), admitted.held()), (1, 1));
        drop(second);
        assert_eq!((admitted.count(), admitted.held()), (0, 0));
    }

    #[test]
    fn requests_of_one_id_end_each_for_itself() {
        let admitted = Arc::new(Admitted::default());
        let id = RequestId::from_number(1);
        let came = [(); 3].map(|()| Came::anew());
        let mut entered = Vec::from(came.map(|came| {
            let slot = Arc::new(CallSlot::new(CallId::generate()));
            (
                slot.call(),
                admitted.enter(id.clone(), slot, Some(came.delivery)),
            )
        }));
        let newest = || admitted.get(&id).map(|slot| slot.call());
        let found = |came| admitted.of_delivery(&id, came).map(|slot| slot.call());
        let [first, second, third] = [0, 1, 2].map(|at: usize| entered[at].0);
        assert_eq!((admitted.count(), newest()), (3, Some(third)));
        assert_eq!(came.map(found), [first, second, third].map(Some));
        assert_eq!(found(Came::anew()), None);
        drop(entered.remove(1));
        assert_eq!((found(came[1]), newest()), (None, Some(third)));
        drop(entered.pop());
        assert_eq!((admitted.count(), newest()), (1, Some(first)));
        drop(entered);
        assert_eq!((admitted.count(), newest()), (0, None));
    }
}
