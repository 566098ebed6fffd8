//! A request is in flight while its [`Admission`] exists.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use shoal_ports::{CallId, DeliveryId};
use shoal_protocol::RequestId;

use super::{CallSlot, Came};

#[derive(Default)]
pub(crate) struct Admitted {
    calls: Mutex<Calls>,
    /// Calls whose tools still run although their requests have been answered.
    outliving: Mutex<Vec<(RequestId, Arc<CallSlot>)>>,
    /// Admissions that exist, also released ones whose answers are not written yet.
    held: AtomicUsize,
}

#[derive(Default)]
struct Calls {
    by_request: HashMap<RequestId, InUse, RandomState>,
    count: usize,
}

/// The calls of one request id. Streamable HTTP allows several.
struct InUse {
    newest: EnteredCall,
    older: Vec<EnteredCall>,
}

struct EnteredCall {
    slot: Arc<CallSlot>,
    /// `None` if an earlier owner began the call.
    delivery: Option<DeliveryId>,
}

impl InUse {
    fn all(&self) -> impl Iterator<Item = &EnteredCall> {
        std::iter::once(&self.newest).chain(&self.older)
    }
}

impl Admitted {
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Acquire)
    }

    pub(crate) fn count(&self) -> usize {
        self.calls.lock().count
    }

    pub(super) fn get(&self, request: &RequestId) -> Option<Arc<CallSlot>> {
        let calls = self.calls.lock();
        let in_use = calls.by_request.get(request)?;
        Some(in_use.newest.slot.clone())
    }

    /// Returns the call that the delivery `came` began. The delivery of an earlier owner's call is unknown, so that
    /// call must have the call id of `came`, if `came` has one.
    pub(super) fn of_delivery(&self, request: &RequestId, came: Came) -> Option<Arc<CallSlot>> {
        let calls = self.calls.lock();
        let is_same = |entered: &&EnteredCall| match entered.delivery {
            Some(delivery) => delivery == came.delivery,
            None => came.call.is_none_or(|call| entered.slot.call() == call),
        };
        let entered = calls.by_request.get(request)?.all().find(is_same)?;
        Some(entered.slot.clone())
    }

    pub(super) fn has(&self, request: &RequestId, came: Came) -> bool {
        let calls = self.calls.lock();
        let is_same = |entered: &EnteredCall| {
            entered.delivery == Some(came.delivery) || came.call == Some(entered.slot.call())
        };
        let in_use = calls.by_request.get(request);
        in_use.is_some_and(|in_use| in_use.all().any(is_same))
    }

    pub(super) fn slots(&self) -> Vec<Arc<CallSlot>> {
        let calls = self.calls.lock();
        let all = calls.by_request.values().flat_map(InUse::all);
        all.map(|entered| entered.slot.clone()).collect()
    }

    pub(super) fn running(&self, call: CallId) -> Option<Arc<CallSlot>> {
        let calls = self.calls.lock();
        let mut all = calls.by_request.values().flat_map(InUse::all);
        let entered = all.find(|entered| entered.slot.call() == call)?;
        Some(entered.slot.clone())
    }

    /// Returns calls whose tools run, also after their answers: those of `requests` or, if `None`, all.
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

    pub(super) fn enter(
        self: &Arc<Self>,
        request: RequestId,
        slot: Arc<CallSlot>,
        delivery: Option<DeliveryId>,
    ) -> Admission {
        self.held.fetch_add(1, Ordering::Relaxed);
        let call = slot.call();
        let newest = EnteredCall { slot, delivery };
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

    fn remove(&self, request: &RequestId, call: CallId) -> Option<EnteredCall> {
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

/// A request in flight, which ends when this is released or dropped.
pub(crate) struct Admission {
    request: RequestId,
    call: CallId,
    admitted: Arc<Admitted>,
    released: AtomicBool,
}

impl Admission {
    pub(crate) fn request(&self) -> &RequestId {
        &self.request
    }

    pub(crate) fn outlive(&self, slot: &Arc<CallSlot>) {
        if slot.outlives() {
            let mut outliving = self.admitted.outliving.lock();
            outliving.retain(|(_, slot)| !slot.is_over());
            outliving.push((self.request.clone(), Arc::clone(slot)));
        }
    }

    pub(crate) fn release(&self) -> bool {
        let first = !self.released.swap(true, Ordering::Relaxed);
        if first {
            // The removed entry is dropped outside the lock, because it may hold the last reference to the call.
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
