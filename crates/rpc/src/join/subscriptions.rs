use std::collections::HashMap;
use std::sync::Arc;

use shoal_ports::Worker;
use shoal_protocol::RpcError;
use tokio::sync::Mutex;

/// For all links together, the worker gets at most one for each resource.
#[derive(Default)]
pub(super) struct SubscriptionCounts {
    // Locked during a request to the worker, so that changes stay in order.
    counts: Mutex<HashMap<String, usize>>,
}

impl SubscriptionCounts {
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
