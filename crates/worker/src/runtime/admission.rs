//! Admission: how many calls a pool holds, and how many of those wait for their clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use shoal_ports::{CallFailure, Principal, PrincipalCounts, WorkerLoad};
use shoal_protocol::{RpcError, code};

use super::config::PoolConfig;
use super::pool::RETRY_AFTER;

/// When a question that was refused may be put again, about.
const ASK_AGAIN: Duration = Duration::from_secs(10);

/// The permits of one pool: of calls that run, and of those that wait for it.
///
/// Admission is decided here, in front of the queue (`pool/queue.rs`), which has no bound of its own. A call that waits
/// for its client has no permit; there is another limit for those.
pub(super) struct Admission {
    pool: Arc<str>,
    concurrency: usize,
    total: usize,
    taken: AtomicUsize,
    running: AtomicUsize,
    most_asking: usize,
    most_asking_of_principal: usize,
    asking: Mutex<ClientWaits>,
    /// The calls that wait in the backend for what they need to begin.
    waiting: Mutex<PrincipalCounts>,
}

/// The calls that wait for their clients.
#[derive(Default)]
struct ClientWaits {
    all: usize,
    by_principal: PrincipalCounts,
}

/// A call's permit to be in the pool, from its admission until it is dropped.
pub(super) struct Permit(Arc<Admission>);

impl Admission {
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

    /// Takes a permit if there is one.
    pub(super) fn take(self: &Arc<Self>) -> Option<Permit> {
        // Adding first and giving back keeps this one instruction while there is room; a burst at the
        // very edge may refuse a call that would just have fitted.
        if self.taken.fetch_add(1, Ordering::Relaxed) < self.total {
            Some(Permit(Arc::clone(self)))
        } else {
            self.taken.fetch_sub(1, Ordering::Relaxed);
            None
        }
    }

    /// Whether one more call would have to wait, or find no room at all.
    pub(super) fn are_busy(&self) -> bool {
        self.taken.load(Ordering::Relaxed) >= self.concurrency
    }

    /// Whether there is no room for one more call.
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

    /// A call has left the queue.
    pub(super) fn run(&self) {
        self.running.fetch_add(1, Ordering::Relaxed);
    }

    /// A call runs no more.
    pub(super) fn end(&self) {
        self.running.fetch_sub(1, Ordering::Relaxed);
    }

    /// A call that runs asks its client, and gives its permit back meanwhile.
    ///
    /// # Errors
    /// What its tool is told when too many do.
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

    /// The calls that wait for their clients.
    pub(super) fn asking(&self) -> usize {
        self.asking.lock().all
    }

    /// A call waits in its backend. It counts as queued, though it cannot be displaced from there: so one principal has half
    /// of the permits at most.
    ///
    /// # Errors
    /// Its principal has as many waiting there as it may.
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

    /// A call waits in its backend no more.
    pub(super) fn waited(&self, principal: &Principal) {
        self.waiting.lock().subtract(principal, 1);
    }

    /// A call has asked, and goes on or ends. Its permit may be one more than there are, for as long as others leave.
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
