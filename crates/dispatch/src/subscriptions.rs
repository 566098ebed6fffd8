//! Resource subscriptions: counted per URI, kept at every worker of the pool.

use std::collections::HashMap;
use std::sync::Arc;

use futures::future::join_all;
use parking_lot::Mutex;
use shoal_ports::Worker;
use shoal_protocol::RpcError;

use crate::pools::View;

/// Which resources somebody wants to hear of.
#[derive(Default)]
pub(crate) struct Subscriptions {
    by_uri: Mutex<HashMap<String, Arc<Subscription>>>,
}

struct Subscription {
    pool: Arc<str>,
    /// Held while workers are asked, so that a first and a last subscriber of one URI do not cross.
    count: tokio::sync::Mutex<usize>,
}

impl Subscriptions {
    /// Counts one subscriber; the first makes every worker of the pool subscribe.
    ///
    /// # Errors
    /// When no worker could.
    pub(crate) async fn add(
        &self,
        view: &View,
        pool: &Arc<str>,
        uri: &str,
    ) -> Result<(), RpcError> {
        let subscription = self
            .by_uri
            .lock()
            .entry(uri.to_owned())
            .or_insert_with(|| {
                Arc::new(Subscription {
                    pool: pool.clone(),
                    count: Default::default(),
                })
            })
            .clone();
        let mut count = subscription.count.lock().await;
        if *count == 0 {
            let workers = ready(view, &subscription.pool);
            let answers = join_all(workers.iter().map(|worker| worker.subscribe(uri))).await;
            let accepted = answers.iter().any(Result::is_ok);
            let refused = answers.into_iter().find_map(Result::err);
            if let (false, Some(error)) = (accepted, refused) {
                drop(count);
                self.forget(uri, &subscription);
                return Err(error);
            }
            // Without a ready worker the subscription waits for one to appear.
        }
        *count += 1;
        Ok(())
    }

    /// Takes one subscriber back; the last makes every worker unsubscribe.
    pub(crate) async fn remove(&self, view: &View, uri: &str) {
        let Some(subscription) = self.by_uri.lock().get(uri).cloned() else {
            return;
        };
        let mut count = subscription.count.lock().await;
        if *count == 0 {
            return;
        }
        *count -= 1;
        if *count == 0 {
            let workers = ready(view, &subscription.pool);
            join_all(workers.iter().map(|worker| worker.unsubscribe(uri))).await;
            drop(count);
            self.forget(uri, &subscription);
        }
    }

    /// Subscribes a worker that has (re)appeared to everything its pool is watched for.
    pub(crate) async fn restore(&self, pool: &str, worker: &dyn Worker) {
        let wanted: Vec<String> = self
            .by_uri
            .lock()
            .iter()
            .filter(|(_, subscription)| subscription.pool.as_ref() == pool)
            .map(|(uri, _)| uri.clone())
            .collect();
        for uri in wanted {
            if let Err(error) = worker.subscribe(&uri).await {
                tracing::warn!(pool, uri, %error, "a worker refused a subscription");
            }
        }
    }

    /// How many URIs are subscribed to.
    pub(crate) fn len(&self) -> usize {
        self.by_uri.lock().len()
    }

    /// Drops the entry unless somebody else is about to use it.
    fn forget(&self, uri: &str, subscription: &Arc<Subscription>) {
        let mut by_uri = self.by_uri.lock();
        // The map's own and the caller's; new ones are only made under this lock.
        if Arc::strong_count(subscription) == 2 {
            by_uri.remove(uri);
        }
    }
}

fn ready(view: &View, pool: &str) -> Vec<Arc<dyn Worker>> {
    let members = view.pools.get(pool).map(|pool| pool.ready.as_slice());
    members
        .unwrap_or_default()
        .iter()
        .map(|member| member.worker.clone())
        .collect()
}
