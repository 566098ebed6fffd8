//! Waiting for an owner, and giving up.

use std::time::Duration;

use shoal_ports::GatewayError;

use super::Search;
use crate::routed::SPREAD;
use crate::routed::retry_decision::Operation;

impl Search<'_> {
    /// Waits until looking again may help: for a while, or until nodes come or go.
    ///
    /// # Errors
    /// When patience is over.
    pub(super) async fn pause(&mut self) -> Result<(), GatewayError> {
        let left = self
            .routes
            .config
            .patience
            .saturating_sub(self.begun.elapsed());
        if left.is_zero() {
            return Err(self.give_up());
        }
        self.waited = true;
        self.tried.clear();
        self.is_owned = false;
        let pause = self.backoff.pause().min(left);
        let _closely = self.routes.members.wait();
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.nodes_change() => {
                // Somebody may take the session over from now on, and long pauses were for before.
                self.backoff.reset();
                self.spread(left).await;
            }
        }
        Ok(())
    }

    async fn nodes_change(&self) {
        let mut views = self.routes.members.watch();
        let before = views.borrow_and_update().generation();
        // The sender lives as long as `members` does.
        while views.changed().await.is_ok() {
            if views.borrow_and_update().generation() != before {
                return;
            }
        }
    }

    /// Those who wait for the same node must not all ask the store at the same moment.
    async fn spread(&self, left: Duration) {
        let most = SPREAD.min(left);
        tokio::time::sleep(most.mul_f64(rand::random::<f64>())).await;
    }

    /// The answer when patience is over. `Unavailable` tells a client that it is safe to try again, so a
    /// message that may have been carried out is `Unreachable`. Listening and closing can be repeated.
    fn give_up(&mut self) -> GatewayError {
        self.routes.counters.given_up.add();
        let patience = self.routes.config.patience;
        if self.committed && self.operation == Operation::Deliver {
            let reason = format!(
                "no other took over within {patience:?}, and the message may have been carried out: \
                 repeat it only if that does no harm"
            );
            return GatewayError::Unreachable { reason };
        }
        let refusal = self.refusal.take().filter(|_| !self.committed);
        refusal.unwrap_or_else(|| {
            let reason = format!("no node took it over within {patience:?}; it is safe to repeat");
            self.routes.unavailable(reason)
        })
    }
}
