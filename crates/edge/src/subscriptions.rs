mod filter;
mod listener;

use std::collections::HashMap;
use std::sync::Arc;

use futures::future::join_all;
use parking_lot::Mutex;
use shoal_ports::{Caller, Dispatcher, ResourceUpdated, ServerFacts};
use shoal_protocol::RawJson;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Notify, broadcast, watch};

pub(crate) use self::filter::SubscriptionFilter;
pub(crate) use self::listener::{ListenerNews, SubscriptionListener};

/// This edge's listeners. One Tokio task tells all of them about changes, and runs only while there
/// are listeners.
pub(crate) struct Hub {
    dispatcher: Arc<dyn Dispatcher>,
    listeners: Mutex<Listeners>,
    deserted: Notify,
}

#[derive(Default)]
struct Listeners {
    watched: bool,
    next: u64,
    all: HashMap<u64, Arc<SubscriptionListener>>,
    by_uri: HashMap<Arc<str>, Vec<u64>>,
}

pub(crate) struct Subscription {
    hub: Arc<Hub>,
    id: u64,
    pub(crate) listener: Arc<SubscriptionListener>,
    uris: Vec<WatchedResource>,
}

struct WatchedResource {
    dispatcher: Arc<dyn Dispatcher>,
    uri: Arc<str>,
}

impl Hub {
    pub(crate) fn new(dispatcher: Arc<dyn Dispatcher>) -> Arc<Self> {
        Arc::new(Self {
            dispatcher,
            listeners: Mutex::default(),
            deserted: Notify::new(),
        })
    }

    /// Removes URIs from `filter` that cannot be watched or are forbidden. Cancel safe.
    pub(crate) async fn join(
        self: &Arc<Self>,
        caller: &Caller,
        filter: &mut SubscriptionFilter,
        max_updates: usize,
    ) -> Subscription {
        let asked = filter.resource_subscriptions.iter().map(|uri| async move {
            let watched = self.dispatcher.subscribe(Some(caller), uri).await;
            if let Err(error) = &watched {
                tracing::debug!(%uri, %error, "left a resource out of a subscription");
            }
            watched.is_ok().then(|| WatchedResource {
                dispatcher: Arc::clone(&self.dispatcher),
                uri: Arc::from(uri.as_str()),
            })
        });
        let watched = join_all(asked).await;
        let watched: Vec<WatchedResource> = watched.into_iter().flatten().collect();
        let uris: Vec<Arc<str>> = watched.iter().map(|it| Arc::clone(&it.uri)).collect();
        filter.resource_subscriptions = uris.iter().map(ToString::to_string).collect();
        let principal = caller.principal.clone();
        let listener = SubscriptionListener::new(principal, filter, uris.clone(), max_updates);
        let listener = Arc::new(listener);
        let mut listeners = self.listeners.lock();
        if !listeners.watched {
            listeners.watched = true;
            self.watch();
        }
        let id = listeners.next;
        listeners.next += 1;
        listeners.all.insert(id, Arc::clone(&listener));
        for uri in &uris {
            let by_uri = &mut listeners.by_uri;
            by_uri.entry(Arc::clone(uri)).or_default().push(id);
        }
        drop(listeners);
        Subscription {
            hub: Arc::clone(self),
            id,
            listener,
            uris: watched,
        }
    }

    fn watch(self: &Arc<Self>) {
        let updates = self.dispatcher.resource_updates();
        let mut facts = self.dispatcher.facts();
        let known = facts.borrow_and_update().clone();
        tokio::spawn(Arc::clone(self).hear(updates, facts, known));
    }

    async fn hear(
        self: Arc<Self>,
        mut updates: broadcast::Receiver<ResourceUpdated>,
        mut facts: watch::Receiver<Arc<ServerFacts>>,
        mut known: Arc<ServerFacts>,
    ) {
        loop {
            tokio::select! {
                update = updates.recv() => match update {
                    Ok(ResourceUpdated { uri, params }) => self.resource_updated(&uri, &params),
                    Err(RecvError::Lagged(_)) => self.any_resource_updated(),
                    Err(RecvError::Closed) => return self.cut_all("the dispatcher has closed"),
                },
                changed = facts.changed() => {
                    if changed.is_err() {
                        return self.cut_all("the catalog has closed");
                    }
                    let before = std::mem::replace(&mut known, facts.borrow_and_update().clone());
                    self.lists_changed(&before, &known);
                }
                () = self.deserted.notified() => {
                    let mut listeners = self.listeners.lock();
                    if listeners.all.is_empty() {
                        listeners.watched = false;
                        return;
                    }
                }
            }
        }
    }

    fn lists_changed(&self, before: &ServerFacts, now: &ServerFacts) {
        for listener in self.listeners.lock().all.values() {
            let [before, now] = [before, now].map(|it| it.versions_of(None, listener.principal()));
            if before != now {
                listener.lists_changed(std::array::from_fn(|list| before[list] != now[list]));
            }
        }
    }

    fn resource_updated(&self, uri: &str, params: &RawJson) {
        let listeners = self.listeners.lock();
        for id in listeners.by_uri.get(uri).into_iter().flatten() {
            if let Some(listener) = listeners.all.get(id) {
                listener.resource_updated(uri, Some(params));
            }
        }
    }

    fn any_resource_updated(&self) {
        for listener in self.listeners.lock().all.values() {
            for uri in listener.uris() {
                listener.resource_updated(uri, None);
            }
        }
    }

    /// Ends every listener's stream without a result, so that clients subscribe again.
    fn cut_all(&self, why: &str) {
        let mut listeners = self.listeners.lock();
        if !listeners.all.is_empty() {
            tracing::warn!(listeners = listeners.all.len(), "cut subscriptions: {why}");
        }
        listeners.watched = false;
        for listener in listeners.all.values() {
            listener.cut();
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut listeners = self.hub.listeners.lock();
        listeners.all.remove(&self.id);
        for WatchedResource { uri, .. } in &self.uris {
            leave(&mut listeners.by_uri, uri, self.id);
        }
        if listeners.all.is_empty() {
            self.hub.deserted.notify_one();
        }
    }
}

fn leave(by_name: &mut HashMap<Arc<str>, Vec<u64>>, name: &str, listener: u64) {
    if let Some(ids) = by_name.get_mut(name) {
        ids.retain(|id| *id != listener);
        if ids.is_empty() {
            by_name.remove(name);
        }
    }
}

impl Drop for WatchedResource {
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let (dispatcher, uri) = (Arc::clone(&self.dispatcher), Arc::clone(&self.uri));
        runtime.spawn(async move { dispatcher.unsubscribe(&uri).await });
    }
}
