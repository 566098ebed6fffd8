//! Running a call again after its worker failed it.

use std::sync::Arc;
use std::time::Duration;

use shoal_ports::{Backoff, CallFailure, Retry};
use tokio::time::Instant;

use super::WorkerCall;

/// The pause before a call is offered again to whoever may have come back; twice as long each time.
const AGAIN: Duration = Duration::from_millis(100);
/// The longest of those pauses.
const MOST_AGAIN: Duration = Duration::from_secs(1);

impl WorkerCall {
    /// Runs the call again, on a worker that has not had it.
    pub(super) async fn again(&mut self) -> Result<(), CallFailure> {
        self.origin.tried.push(self.member.id.clone());
        self.place().await?;
        self.ran_again();
        Ok(())
    }

    fn ran_again(&mut self) {
        self.position.seen = 0;
        self.shown.runs_again();
    }

    /// Runs the call again after its worker failed it: on another one, or where there is none and the call is safe to
    /// repeat, on whoever comes in time. The same worker may: its backend starts again.
    ///
    /// # Errors
    /// What the client is to know.
    pub(super) async fn again_after(&mut self, failure: CallFailure) -> Result<(), CallFailure> {
        let refused = match self.again().await {
            Ok(()) => return Ok(()),
            Err(refused) => refused,
        };
        if !self.is_repeatable() || matches!(failure, CallFailure::Overloaded { .. }) {
            return Err(failure);
        }
        self.again_in_time(refused).await
    }

    /// Waits for a worker to run the call again.
    ///
    /// # Errors
    /// `NotExecuted`, or what the last worker said that is as safe, when nobody came in time or it was run too often.
    async fn again_in_time(&mut self, mut refused: CallFailure) -> Result<(), CallFailure> {
        let config = &self.shared.config;
        let most = config.start_attempts.max(1);
        let until = (Instant::now() + config.reconnect_wait()).min(self.origin.call.deadline);
        let mut changes = self.shared.changes();
        let mut backoff = Backoff::new(AGAIN, MOST_AGAIN);
        while self.runs < most && Instant::now() < until {
            let handle = Arc::clone(&self.handle);
            tokio::select! {
                _ = changes.changed() => {}
                () = tokio::time::sleep_until(until.min(Instant::now() + backoff.pause())) => {}
                () = handle.cancelled() => {}
            }
            if self.handle.is_cancelled() {
                return Err(CallFailure::Cancelled);
            }
            // Whoever had it may be well again.
            self.origin.tried.clear();
            match self.place().await {
                Ok(()) => {
                    self.ran_again();
                    return Ok(());
                }
                Err(failure) => refused = failure,
            }
        }
        Err(match refused.retry() {
            Retry::Safe => refused,
            _ => CallFailure::NotExecuted {
                reason: format!("its workers were lost ({refused})"),
            },
        })
    }
}
