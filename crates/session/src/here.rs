use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Waker};

use shoal_ports::GatewayError;

/// Polls a future once in place, and spawns it only if it waits, because spawning costs more than
/// most of these futures. Call within a runtime. A panic of the future is contained.
pub(crate) fn here_or_spawned(future: impl Future<Output = ()> + Send + 'static) {
    let mut future = Box::pin(future);
    // The spawned task polls again, so wake-ups are not lost.
    let mut context = Context::from_waker(Waker::noop());
    let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut context)));
    if polled.is_ok_and(|polled| polled.is_pending()) {
        tokio::spawn(future);
    }
}

/// Completes even if the caller leaves.
pub(crate) async fn in_task<T: Send + 'static>(
    work: impl Future<Output = Result<T, GatewayError>> + Send + 'static,
) -> Result<T, GatewayError> {
    let worked = tokio::spawn(work).await;
    worked.unwrap_or_else(|error| Err(GatewayError::Internal(error.to_string())))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Notify;

    use super::here_or_spawned;

    #[tokio::test]
    async fn what_waits_goes_on_in_a_task() {
        let (steps, go) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let done = Arc::new(Notify::new());
        let (counted, gate, end) = (steps.clone(), go.clone(), done.clone());
        here_or_spawned(async move {
            counted.fetch_add(1, Ordering::Relaxed);
            gate.notified().await;
            counted.fetch_add(1, Ordering::Relaxed);
            end.notify_one();
        });
        assert_eq!(steps.load(Ordering::Relaxed), 1, "the first step, at once");
        go.notify_one();
        done.notified().await;
        assert_eq!(steps.load(Ordering::Relaxed), 2, "each step once");
    }

    #[tokio::test]
    async fn a_panic_is_no_concern_of_the_caller() {
        here_or_spawned(async { panic!("expected") });
    }
}
