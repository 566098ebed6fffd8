use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use shoal_ports::{CallEventKind, CallFailure, CallOutcome};

#[derive(Default)]
pub(super) struct Stopping(FuturesUnordered<BoxFuture<'static, u64>>);

impl Stopping {
    pub(super) fn add(&mut self, flight: u64, over: BoxFuture<'static, ()>) {
        self.0.push(Box::pin(async move {
            over.await;
            flight
        }));
    }

    /// Pends if no tool is running. Cancellation safe.
    pub(super) async fn next(&mut self) -> u64 {
        match self.0.next().await {
            Some(flight) => flight,
            None => std::future::pending().await,
        }
    }
}

pub(super) fn is_stop(event: &CallEventKind) -> bool {
    matches!(
        event,
        CallEventKind::Finished(CallOutcome::Failed(
            CallFailure::Cancelled | CallFailure::DeadlineExceeded { .. }
        ))
    )
}
