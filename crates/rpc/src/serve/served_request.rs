use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use parking_lot::Mutex;
use shoal_telemetry::metrics::{LinkKind, metrics};
use tokio::sync::Notify;

use crate::link::ByFlight;

pub(super) struct ServedRequest {
    credit: AtomicI64,
    detached: AtomicBool,
    changed: Notify,
}

impl ServedRequest {
    pub(super) fn new(credit: i64) -> Self {
        Self {
            credit: AtomicI64::new(credit),
            detached: AtomicBool::new(false),
            changed: Notify::new(),
        }
    }

    pub(super) fn detach(&self) {
        self.detached.store(true, Ordering::Release);
        self.changed.notify_one();
    }

    pub(super) fn grant(&self, bytes: u64) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX / 4);
        self.credit.fetch_add(bytes, Ordering::AcqRel);
        self.changed.notify_one();
    }

    pub(super) fn sent(&self, cost: u64) {
        let cost = i64::try_from(cost).unwrap_or(i64::MAX / 4);
        let had = self.credit.fetch_sub(cost, Ordering::AcqRel);
        if had > 0 && had <= cost {
            metrics().rpc.stalled(LinkKind::Gateway);
        }
    }

    pub(super) fn is_detached(&self) -> bool {
        self.detached.load(Ordering::Acquire)
    }

    /// `false` if the edge has left. Cancellation safe, but only one task may wait.
    pub(super) async fn may_send(&self) -> bool {
        loop {
            if self.is_detached() {
                return false;
            }
            if self.credit.load(Ordering::Acquire) > 0 {
                return true;
            }
            self.changed.notified().await;
        }
    }

    /// Cancellation safe, but only one task may wait.
    pub(super) async fn left(&self) {
        while !self.is_detached() {
            self.changed.notified().await;
        }
    }
}

#[derive(Default)]
pub(super) struct ServedRequests(pub(super) Mutex<ByFlight<Arc<ServedRequest>>>);

impl ServedRequests {
    pub(super) fn remove(&self, number: u64) {
        self.0.lock().remove(&number);
    }

    pub(super) fn get(&self, number: u64) -> Option<Arc<ServedRequest>> {
        self.0.lock().get(&number).cloned()
    }
}
