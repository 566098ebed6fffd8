//! Calls that have ended on a link, whose tools have not stopped.

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use shoal_ports::{CallEventKind, CallFailure, CallOutcome};

/// The flights of calls that were stopped and whose tools run on.
#[derive(Default)]
pub(super) struct Stopping(FuturesUnordered<BoxFuture<'static, u64>>);

impl Stopping {
    /// Waits for the tool of the call of this flight.
    pub(super) fn add(&mut self, flight: u64, over: BoxFuture<'static, ()>) {
        self.0.push(Box::pin(async move {
            over.await;
            flight
        }));
    }

    /// Waits for the next tool that has stopped; never returns while none is waited for. Cancellation safe.
    pub(super) async fn next(&mut self) -> u64 {
        match self.0.next().await {
            Some(flight) => flight,
            None => std::future::pending().await,
        }
    }
}

/// Whether an event is the end of a call that was told to stop.
pub(super) fn is_stop(event: &CallEventKind) -> bool {
    matches!(
        event,
        CallEventKind::Finished(CallOutcome::Failed(
            CallFailure::Cancelled | CallFailure::DeadlineExceeded { .. }
        ))
    )
}
