use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use shoal_ports::{ListScope, Worker};
use shoal_protocol::RpcError;
use tokio::runtime::Handle;
use tokio::sync::OwnedMutexGuard;
use tokio::time::timeout;

use super::{ResourceSubscription, Subscriptions};
use crate::pools::View;
use crate::shared::DispatchState;

/// Maximum time to unsubscribe. A new subscriber of the URI waits for this too.
const UNSUBSCRIBED_WITHIN: Duration = Duration::from_secs(5);

impl Subscriptions {
    /// Adds a subscriber of a URI. For the first one, the pool's workers subscribe. If the future is dropped, the
    /// subscriber does not count.
    ///
    /// # Errors
    /// All workers refused.
    pub(crate) async fn add(
        shared: &Arc<DispatchState>,
        pool: &Arc<str>,
        uri: &str,
    ) -> Result<(), RpcError> {
        let entry = SubscriptionEntry::new(shared, pool, uri);
        let _turn = entry.turn().await;
        let was_watched = entry.with(|subscription| {
            if !subscription.watched {
                subscription.pool = pool.clone();
            }
            // Set first, so that a worker that joins meanwhile subscribes.
            std::mem::replace(&mut subscription.watched, true)
        });
        if !was_watched && let Err(refused) = entry.subscribe().await {
            entry.with(|subscription| subscription.watched = false);
            return Err(refused);
        }
        entry.with(|subscription| subscription.subscribers += 1);
        Ok(())
    }

    /// Removes a subscriber. After the last one, the workers unsubscribe. Completes even if the future is dropped.
    pub(crate) async fn remove(shared: &Arc<DispatchState>, uri: &str) {
        if let Some(entry) = SubscriptionEntry::existing(shared, uri) {
            let _ = tokio::spawn(entry.leave()).await;
        }
    }

    /// Subscribes a worker that `appears`. Ends or renews the pool's subscriptions if its lists begin or cease to
    /// differ by caller.
    pub(crate) async fn follow(
        shared: &Arc<DispatchState>,
        pool: &str,
        worker: &dyn Worker,
        appears: bool,
    ) {
        let may_watch = may_watch(shared, pool);
        for uri in shared.subscriptions.of(pool, !may_watch) {
            if let Some(entry) = SubscriptionEntry::existing(shared, &uri) {
                tokio::spawn(entry.follow_scope());
            }
        }
        if appears && may_watch {
            shared.subscriptions.restore(pool, worker).await;
        }
    }

    async fn restore(&self, pool: &str, worker: &dyn Worker) {
        for uri in self.of(pool, true) {
            if let Err(error) = worker.subscribe(&uri).await {
                tracing::warn!(pool, uri, %error, "a worker refused a subscription");
            }
        }
    }
}

/// An operation on a subscription. The last operation's drop removes a subscription without subscribers.
struct SubscriptionEntry {
    shared: Arc<DispatchState>,
    uri: String,
}

impl SubscriptionEntry {
    fn new(shared: &Arc<DispatchState>, pool: &Arc<str>, uri: &str) -> Self {
        let mut by_uri = shared.subscriptions.by_uri.lock();
        let subscription = by_uri
            .entry(uri.to_owned())
            .or_insert_with(|| ResourceSubscription {
                pool: pool.clone(),
                subscribers: 0,
                watched: false,
                entries: 0,
                turn: Arc::default(),
            });
        Self::of(shared, uri, subscription)
    }

    fn existing(shared: &Arc<DispatchState>, uri: &str) -> Option<Self> {
        let mut by_uri = shared.subscriptions.by_uri.lock();
        let subscription = by_uri.get_mut(uri)?;
        Some(Self::of(shared, uri, subscription))
    }

    fn of(shared: &Arc<DispatchState>, uri: &str, subscription: &mut ResourceSubscription) -> Self {
        subscription.entries += 1;
        Self {
            shared: shared.clone(),
            uri: uri.to_owned(),
        }
    }

    fn with<T>(&self, change: impl FnOnce(&mut ResourceSubscription) -> T) -> T {
        let mut by_uri = self.shared.subscriptions.by_uri.lock();
        let subscription = by_uri.get_mut(&self.uri);
        change(subscription.expect("a subscription is there while somebody has an entry of it"))
    }

    async fn turn(&self) -> OwnedMutexGuard<()> {
        let turn = self.with(|subscription| subscription.turn.clone());
        turn.lock_owned().await
    }

    fn workers(&self) -> Vec<Arc<dyn Worker>> {
        let pool = self.with(|subscription| subscription.pool.clone());
        ready(&self.shared.view(), &pool)
    }

    /// Subscribes at the pool's ready workers. If there is none, the next ready worker subscribes.
    async fn subscribe(&self) -> Result<(), RpcError> {
        let mut asked = UnsubscribeGuard {
            entry: self,
            answered: false,
        };
        let workers = self.workers();
        let answers = join_all(workers.iter().map(|worker| worker.subscribe(&self.uri))).await;
        asked.answered = true;
        let accepted = answers.iter().any(Result::is_ok);
        match answers.into_iter().find_map(Result::err) {
            Some(refused) if !accepted => Err(refused),
            _ => Ok(()),
        }
    }

    async fn leave(self) {
        let _turn = self.turn().await;
        self.with(|it| it.subscribers = it.subscribers.saturating_sub(1));
        self.unsubscribe_if(|it| it.subscribers == 0).await;
    }

    async fn settle(self) {
        let _turn = self.turn().await;
        self.unsubscribe_if(|it| it.subscribers == 0).await;
    }

    async fn follow_scope(self) {
        let _turn = self.turn().await;
        let pool = self.with(|it| it.pool.clone());
        if !may_watch(&self.shared, &pool) {
            self.unsubscribe_if(|_| true).await;
        } else if self.with(|it| it.subscribers > 0 && !std::mem::replace(&mut it.watched, true))
            && let Err(error) = self.subscribe().await
        {
            tracing::warn!(%pool, uri = self.uri, %error, "cannot renew a subscription at any worker");
        }
    }

    async fn unsubscribe_if(&self, is_over: impl FnOnce(&ResourceSubscription) -> bool) {
        let is_over = self.with(|it| {
            let is_over = is_over(it);
            it.watched &= !is_over;
            is_over
        });
        if !is_over {
            return;
        }
        let workers = self.workers();
        let told = join_all(workers.iter().map(|worker| worker.unsubscribe(&self.uri)));
        if timeout(UNSUBSCRIBED_WITHIN, told).await.is_err() {
            tracing::warn!(uri = self.uri, "cannot end a subscription at a worker");
        }
    }
}

impl Drop for SubscriptionEntry {
    fn drop(&mut self) {
        let mut by_uri = self.shared.subscriptions.by_uri.lock();
        if let Some(subscription) = by_uri.get_mut(&self.uri) {
            subscription.entries -= 1;
            if subscription.entries == 0 && subscription.subscribers == 0 {
                by_uri.remove(&self.uri);
            }
        }
    }
}

/// Unsubscribes the workers if the future that subscribes them is dropped.
struct UnsubscribeGuard<'e> {
    entry: &'e SubscriptionEntry,
    answered: bool,
}

impl Drop for UnsubscribeGuard<'_> {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        let SubscriptionEntry { shared, uri } = self.entry;
        if let (Some(entry), Ok(runtime)) = (
            SubscriptionEntry::existing(shared, uri),
            Handle::try_current(),
        ) {
            runtime.spawn(entry.settle());
        }
    }
}

fn may_watch(shared: &DispatchState, pool: &str) -> bool {
    shared.view().own.scope(pool) != ListScope::Principal
}

fn ready(view: &View, pool: &str) -> Vec<Arc<dyn Worker>> {
    let members = view.pools.get(pool).map(|pool| pool.ready.as_slice());
    members
        .unwrap_or_default()
        .iter()
        .map(|member| member.worker.clone())
        .collect()
}
