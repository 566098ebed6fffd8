use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use shoal_ports::{CallFailure, Principal, PrincipalCounts, WorkerLoad};
use shoal_protocol::{RpcError, code};

use super::config::PoolConfig;
use super::overload::RETRY_AFTER;

const ASK_AGAIN: Duration = Duration::from_secs(10);

/// The permits for a pool's running and queued calls.
///
/// Admission bounds the queue (`pool/queue.rs`), which has no limit of its own. Calls that wait for their
/// clients hold no permit, but have a separate limit.
pub(super) struct PoolAdmission {
    pool: Arc<str>,
    concurrency: usize,
    total: usize,
    taken: AtomicUsize,
    running: AtomicUsize,
    most_asking: usize,
    most_asking_of_principal: usize,
    asking: Mutex<ClientWaits>,
    waiting: Mutex<PrincipalCounts>,
}

#[derive(Default)]
struct ClientWaits {
    all: usize,
    by_principal: PrincipalCounts,
}

pub(super) struct Permit(Arc<PoolAdmission>);

impl PoolAdmission {
    pub(super) fn new(config: &PoolConfig) -> Arc<Self> {
        Arc::new(Self {
            pool: Arc::clone(&config.pool),
            concurrency: config.concurrency,
            total: config.concurrency.saturating_add(config.queue),
            taken: AtomicUsize::new(0),
            running: AtomicUsize::new(0),
            most_asking: config.asking,
            most_asking_of_principal: config.asking_per_principal,
            asking: Mutex::default(),
            waiting: Mutex::default(),
        })
    }

    pub(super) fn take(self: &Arc<Self>) -> Option<Permit> {
        // One increment while there is room. A refused call counts until it decrements, so others
        // may be refused although they would have fitted.
        if self.taken.fetch_add(1, Ordering::Relaxed) < self.total {
            Some(Permit(Arc::clone(self)))
        } else {
            self.taken.fetch_sub(1, Ordering::Relaxed);
            None
        }
    }

    pub(super) fn are_busy(&self) -> bool {
        self.taken.load(Ordering::Relaxed) >= self.concurrency
    }

    pub(super) fn are_full(&self) -> bool {
        self.taken.load(Ordering::Relaxed) >= self.total
    }

    pub(super) fn load(&self) -> WorkerLoad {
        let running = self.running.load(Ordering::Relaxed);
        let taken = self.taken.load(Ordering::Relaxed).min(self.total);
        WorkerLoad {
            running,
            queued: taken.saturating_sub(running),
            capacity: self.concurrency,
        }
    }

    pub(super) fn run(&self) {
        self.running.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn end(&self) {
        self.running.fetch_sub(1, Ordering::Relaxed);
    }

    /// Releases the permit of a call that asks.
    ///
    /// # Errors
    /// Too many calls wait for their clients.
    pub(super) fn ask(&self, principal: &Principal) -> Result<(), RpcError> {
        let mut asking = self.asking.lock();
        let own = asking.by_principal.of(principal);
        if asking.all >= self.most_asking || own >= self.most_asking_of_principal {
            let whose = match asking.all >= self.most_asking {
                true => format!("{} calls of pool {}", asking.all, self.pool),
                false => format!("{own} calls of this principal in pool {}", self.pool),
            };
            let seconds = ASK_AGAIN.as_secs();
            return Err(RpcError::new(
                code::OVERLOADED,
                format!(
                    "the client was not asked: {whose} wait for answers; try again in {seconds} s"
                ),
            ));
        }
        asking.all += 1;
        asking.by_principal.add(principal, 1);
        drop(asking);
        self.end();
        self.taken.fetch_sub(1, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn asking(&self) -> usize {
        self.asking.lock().all
    }

    /// Counts a call that waits in its backend. New calls cannot displace it there, so one
    /// principal may use only half of the permits.
    pub(super) fn wait(&self, principal: &Principal) -> Result<(), CallFailure> {
        let mut waiting = self.waiting.lock();
        let own = waiting.of(principal);
        if own >= (self.total / 2).max(1) {
            return Err(CallFailure::overloaded(
                format!(
                    "{own} calls of this principal wait for the server of pool {}",
                    self.pool
                ),
                RETRY_AFTER,
            ));
        }
        waiting.add(principal, 1);
        drop(waiting);
        self.end();
        Ok(())
    }

    pub(super) fn waited(&self, principal: &Principal) {
        self.waiting.lock().subtract(principal, 1);
    }

    /// Returns the permit to a call whose client has answered, even above the limit.
    pub(super) fn asked(&self, principal: &Principal) {
        self.taken.fetch_add(1, Ordering::Relaxed);
        let mut asking = self.asking.lock();
        asking.all -= 1;
        asking.by_principal.subtract(principal, 1);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
    }
}
