//! Subscriptions of nodes to a worker's resources.

use std::collections::HashMap;
use std::sync::Arc;

use shoal_ports::Worker;
use shoal_protocol::RpcError;
use tokio::sync::Mutex;

/// Counts subscriptions over all links, because the worker itself has at most one for each
/// resource.
#[derive(Default)]
pub(super) struct Subscriptions {
    // Locked while the worker is asked, to keep the order of changes.
    counts: Mutex<HashMap<String, usize>>,
}

impl Subscriptions {
    /// A refused subscription is not counted.
    pub(super) async fn add(&self, worker: &Arc<dyn Worker>, uri: &str) -> Result<(), RpcError> {
        let mut counts = self.counts.lock().await;
        worker.subscribe(uri).await?;
        *counts.entry(uri.to_owned()).or_default() += 1;
        Ok(())
    }

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
