use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, WeakShared};
use parking_lot::Mutex;

type SharedAttempt<V> = Shared<BoxFuture<'static, V>>;

/// Each attempt runs as long as requests wait for it, and all of them get its outcome, even a failure.
pub(crate) struct Flights<K, V>(Arc<Mutex<OpenFlights<K, V>>>)
where
    V: Clone;

struct OpenFlights<K, V: Clone> {
    attempts: HashMap<K, (u64, WeakShared<BoxFuture<'static, V>>)>,
    /// Numbers attempts, to tell successive attempts of a key apart.
    begun: u64,
}

impl<K, V> Flights<K, V>
where
    K: Clone + Eq + Hash + Send + 'static,
    V: Clone + Send + Sync + 'static,
{
    pub(crate) fn join<F>(&self, key: K, begin: impl FnOnce() -> F) -> SharedAttempt<V>
    where
        F: Future<Output = V> + Send + 'static,
    {
        let mut open = self.0.lock();
        let known = open.attempts.get(&key);
        if let Some(attempt) = known.and_then(|(_, attempt)| attempt.upgrade()) {
            return attempt;
        }
        open.begun += 1;
        let landing = Landing {
            open: Arc::clone(&self.0),
            key: key.clone(),
            number: open.begun,
        };
        let attempt = begin();
        let attempt = async move {
            let _landing = landing;
            attempt.await
        };
        let attempt = attempt.boxed().shared();
        if let Some(weak) = attempt.downgrade() {
            let number = open.begun;
            open.attempts.insert(key, (number, weak));
        }
        attempt
    }
}

impl<K, V: Clone> Default for Flights<K, V> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(OpenFlights {
            attempts: HashMap::new(),
            begun: 0,
        })))
    }
}

struct Landing<K: Eq + Hash, V: Clone> {
    open: Arc<Mutex<OpenFlights<K, V>>>,
    key: K,
    number: u64,
}

impl<K: Eq + Hash, V: Clone> Drop for Landing<K, V> {
    fn drop(&mut self) {
        let attempts = &mut self.open.lock().attempts;
        if (attempts.get(&self.key)).is_some_and(|(number, _)| *number == self.number) {
            attempts.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::FutureExt as _;
    use tokio::sync::Notify;

    use super::Flights;

    #[tokio::test]
    async fn all_share_an_attempt_and_the_next_begins_after_it() {
        let (flights, begun) = (Flights::default(), Arc::new(AtomicUsize::new(0)));
        let landed = Arc::new(Notify::new());
        let join = |key| {
            let (begun, landed) = (begun.clone(), landed.clone());
            flights.join(key, || async move {
                let number = begun.fetch_add(1, Ordering::SeqCst);
                landed.notified().await;
                number
            })
        };
        let (one, two, other) = (join("a"), join("a"), join("b"));
        assert_eq!(one.clone().now_or_never(), None);
        assert_eq!(other.clone().now_or_never(), None);
        drop(one);
        landed.notify_waiters();
        assert_eq!((two.await, other.await), (0, 1));
        assert!(flights.0.lock().attempts.is_empty());
        let third = join("a");
        assert_eq!(third.clone().now_or_never(), None);
        landed.notify_waiters();
        assert_eq!(third.await, 2);
    }

    #[tokio::test]
    async fn what_nobody_waits_for_ends() {
        let flights = Flights::default();
        let alone = flights.join("a", pending::<()>);
        assert_eq!(alone.clone().now_or_never(), None);
        drop(alone);
        assert!(flights.0.lock().attempts.is_empty());
    }
}
