//! Answers that speak for the whole catalog wait until the node knows all of it: lists, and what the server says of itself.

use std::time::Duration;

use shoal_ports::{CallFailure, SettledFacts};
use tokio::time::{Instant, timeout, timeout_at};

use crate::dispatch::Dispatch;
use crate::picture::{NOT_WHOLE, not_ready};

/// How long a request waits for pools that are on their way.
const PATIENCE: Duration = Duration::from_secs(5);

impl Dispatch {
    /// Waits until the lists hold every pool that can be known now, within
    /// [`settle_within`](crate::Config::settle_within). Cancellation safe.
    pub async fn settled(&self) {
        let mut changes = self.shared.changes();
        while let Some(wait) = self.shared.view().unsettled() {
            // Either way it is looked at again.
            let _ = timeout(wait, changes.changed()).await;
        }
    }

    /// Waits as [`settled`](Self::settled) does, but no longer than a request may.
    ///
    /// # Errors
    /// `NotReady` if a pool is still missing then.
    pub(crate) async fn settled_by(&self, deadline: Instant) -> Result<(), CallFailure> {
        let until = deadline.min(Instant::now() + PATIENCE);
        let settled = timeout_at(until, self.settled()).await;
        settled.map_err(|_| not_ready(NOT_WHOLE.to_owned()))
    }

    /// As [`Dispatcher::settled_facts`](shoal_ports::Dispatcher::settled_facts) says.
    pub(crate) async fn facts_in_time(&self) -> Result<SettledFacts, CallFailure> {
        let until = Instant::now() + PATIENCE;
        self.settled_by(until).await?;
        let mut changes = self.shared.changes();
        loop {
            let view = self.shared.view();
            let lacks = view.unannounced(self.shared.config.policies.is_some());
            match lacks {
                // An answer from an empty catalog is worse than a late one.
                Some(why) if view.catalog.is_empty() => {
                    let changed = timeout_at(until, changes.changed()).await;
                    // Either way it is looked at again.
                    let _ = changed.map_err(|_| why)?;
                }
                lacks => {
                    let facts = self.shared.facts.borrow().clone();
                    return Ok(SettledFacts { facts, lacks });
                }
            }
        }
    }
}
