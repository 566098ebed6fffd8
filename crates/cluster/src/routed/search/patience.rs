use shoal_ports::GatewayError;

use super::Search;
use crate::routed::retry_decision::Operation;

impl Search<'_> {
    /// Fails if the request's patience is over.
    pub(super) async fn pause(&mut self) -> Result<(), GatewayError> {
        // A call that cannot become a task at once stays a plain call.
        let is_new = self.operation == Operation::Adopt && !self.committed;
        if is_new || self.patience.is_over() {
            return Err(self.give_up());
        }
        self.waited = true;
        self.tried.clear();
        self.is_owned = false;
        self.patience.pause(&self.routes.members).await;
        Ok(())
    }

    /// A message that may have been carried out gets `Unreachable`, because `Unavailable` tells a client that a retry
    /// is safe. Listening, closing and asking may always be repeated.
    fn give_up(&mut self) -> GatewayError {
        self.routes.counters.given_up.add();
        let patience = self.routes.config.cluster.patience.get();
        let has_effect = matches!(self.operation, Operation::Deliver | Operation::Adopt);
        if self.committed && has_effect {
            let reason = format!(
                "no other node took over within {patience:?}, and the message may have been carried out: repeat it only if a second execution is harmless"
            );
            return GatewayError::Unreachable { reason };
        }
        let refusal = self.refusal.take().filter(|_| !self.committed);
        refusal.unwrap_or_else(|| {
            let reason =
                format!("no node took the session over within {patience:?}; it is safe to repeat");
            self.routes.unavailable(reason)
        })
    }
}
