//! Which resources of a worker its nodes want to hear of.

use std::collections::HashMap;
use std::sync::Arc;

use shoal_ports::Worker;
use shoal_protocol::RpcError;
use tokio::sync::Mutex;

/// Counts subscriptions over all links of a worker, which itself knows only whether there is one.
#[derive(Default)]
pub(super) struct Subscriptions {
    // Held while the worker is asked, so that an end and a new beginning do not overtake one another.
    counts: Mutex<HashMap<String, usize>>,
}

impl Subscriptions {
    /// One more link wants to hear of a resource.
    ///
    /// # Errors
    /// The worker's refusal; then nothing is counted.
    pub(super) async fn add(&self, worker: &Arc<dyn Worker>, uri: &str) -> Result<(), RpcError> {
        let mut counts = self.counts.lock().await;
        worker.subscribe(uri).await?;
        *counts.entry(uri.to_owned()).or_default() += 1;
        Ok(())
    }

    /// A link that wanted to hear of a resource does not any more.
    pub(super) async fn remove(&self, worker: &Arc<dyn Worker>, uri: &str) {
        let mut counts = self.counts.lock().await;
        if let Some(count) = counts.get_mut(uri) {
            *count -= 1;
            if *count == 0 {
                counts.remove(uri);
                worker.unsubscribe(uri).await;
            }
        }
    }
}
