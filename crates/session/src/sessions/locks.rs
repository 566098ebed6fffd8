//! Locks of sessions that wake, fall asleep or end.

use std::sync::Arc;

use dashmap::DashMap;
use foldhash::fast::RandomState;
use shoal_ports::SessionId;
use tokio::sync::{Mutex, OwnedMutexGuard};

#[derive(Default)]
pub(crate) struct SessionLocks {
    locks: Arc<DashMap<SessionId, Arc<Mutex<()>>, RandomState>>,
}

pub(crate) struct Alone {
    #[allow(dead_code, reason = "held until dropped")]
    guard: OwnedMutexGuard<()>,
    #[allow(dead_code, reason = "after the lock is free")]
    turn: LockTurn,
}

/// Belongs to a future that holds the lock or waits for it. The drop of the last turn removes the lock.
struct LockTurn {
    locks: Arc<DashMap<SessionId, Arc<Mutex<()>>, RandomState>>,
    session: SessionId,
}

impl SessionLocks {
    /// Cancellation safe, but a dropped future loses its place in the queue.
    pub(crate) async fn lock(&self, session: &SessionId) -> Alone {
        let turn = LockTurn {
            locks: self.locks.clone(),
            session: session.clone(),
        };
        // In this order, `lock` is dropped before `turn`.
        let lock = self.locks.entry(session.clone()).or_default().clone();
        let guard = lock.lock_owned().await;
        Alone { guard, turn }
    }

    #[cfg(test)]
    fn count(&self) -> usize {
        self.locks.len()
    }
}

impl Drop for LockTurn {
    fn drop(&mut self) {
        // With one reference, only the table has the lock.
        let unused = |_: &SessionId, lock: &Arc<Mutex<()>>| Arc::strong_count(lock) == 1;
        self.locks.remove_if(&self.session, unused);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt as _;
    use shoal_ports::SessionId;
    use tokio::time::timeout;

    use super::SessionLocks;

    #[tokio::test]
    async fn a_lock_is_its_sessions_own_and_goes_with_whoever_used_it_last() {
        let locks = SessionLocks::default();
        let (a, b) = (SessionId::random(), SessionId::random());
        let first = locks.lock(&a).await;
        let other = locks.lock(&b).now_or_never().expect("nobody has it");
        assert!(locks.lock(&a).now_or_never().is_none());
        assert_eq!(locks.count(), 2, "who gave up took nothing along");
        let mut waiting = Box::pin(locks.lock(&a));
        assert!(futures::poll!(&mut waiting).is_pending());
        drop(first);
        let second = timeout(Duration::from_secs(20), waiting).await.unwrap();
        drop(other);
        assert_eq!(locks.count(), 1);
        drop(second);
        assert_eq!(locks.count(), 0);
    }

    #[tokio::test]
    async fn who_waits_and_gives_up_last_leaves_no_lock() {
        let locks = SessionLocks::default();
        let session = SessionId::random();
        let held = locks.lock(&session).await;
        let mut waiting = Box::pin(locks.lock(&session));
        assert!(futures::poll!(&mut waiting).is_pending());
        drop(held);
        assert_eq!(locks.count(), 1);
        drop(waiting);
        assert_eq!(locks.count(), 0);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn one_at_a_time_has_it() {
        use std::sync::Arc;
        use std::sync::atomic::{AtomicUsize, Ordering};
        let (locks, inside) = (
            Arc::new(SessionLocks::default()),
            Arc::new(AtomicUsize::new(0)),
        );
        let session = SessionId::random();
        let tasks = (0..8).map(|_| {
            let (locks, inside, session) = (locks.clone(), inside.clone(), session.clone());
            tokio::spawn(async move {
                for _ in 0..200 {
                    let alone = locks.lock(&session).await;
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                    tokio::task::yield_now().await;
                    inside.fetch_sub(1, Ordering::SeqCst);
                    drop(alone);
                }
            })
        });
        for task in Vec::from_iter(tasks) {
            task.await.unwrap();
        }
        assert_eq!(locks.count(), 0);
    }
}
