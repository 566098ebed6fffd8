//! The watched resources.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use shoal_ports::ResourceUpdated;
use shoal_protocol::{RawJson, RawObject, SUBSCRIPTION_ID};
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

const BACKLOG: usize = 1024;

/// Changes of one resource within this time are reported once, because several connections may hear
/// of each.
const AS_ONE: Duration = Duration::from_millis(50);

pub(crate) struct ServerSubscriptions {
    uris: watch::Sender<BTreeSet<String>>,
    updates: broadcast::Sender<ResourceUpdated>,
    told: Mutex<HashMap<String, ToldUpdate>>,
}

struct ToldUpdate {
    at: Instant,
    next: Option<RawJson>,
}

impl ServerSubscriptions {
    pub(crate) fn new() -> Self {
        Self {
            uris: watch::Sender::new(BTreeSet::new()),
            updates: broadcast::Sender::new(BACKLOG),
            told: Mutex::default(),
        }
    }

    pub(crate) fn resource_updates(&self) -> broadcast::Receiver<ResourceUpdated> {
        self.updates.subscribe()
    }

    pub(super) fn wanted(&self) -> watch::Receiver<BTreeSet<String>> {
        self.uris.subscribe()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.uris.borrow().is_empty()
    }

    pub(super) fn among(&self, uris: &BTreeSet<String>) -> BTreeSet<String> {
        &*self.uris.borrow() & uris
    }

    pub(crate) fn contains(&self, uri: &str) -> bool {
        self.uris.borrow().contains(uri)
    }

    pub(crate) fn add(&self, uri: &str) {
        self.uris
            .send_if_modified(|uris| uris.insert(uri.to_owned()));
    }

    pub(crate) fn remove(&self, uri: &str) {
        self.uris.send_if_modified(|uris| uris.remove(uri));
        self.told.lock().remove(uri);
    }

    pub(crate) fn report(self: &Arc<Self>, params: Option<&RawJson>) {
        let Some(params) = params else { return };
        let uri = RawObject::of(params).and_then(|params| params.get("uri")?.string());
        if let Some(uri) = uri.filter(|uri| self.contains(uri)) {
            self.tell(uri, params.clone().without_meta(SUBSCRIPTION_ID));
        }
    }

    fn tell(self: &Arc<Self>, uri: String, params: RawJson) {
        let now = Instant::now();
        let mut told = self.told.lock();
        match told.get_mut(&uri) {
            Some(last) if now < last.at + AS_ONE => {
                if last.next.replace(params).is_none() {
                    tokio::spawn(self.clone().tell_later(uri, last.at + AS_ONE));
                }
            }
            _ => {
                let last = ToldUpdate {
                    at: now,
                    next: None,
                };
                told.insert(uri.clone(), last);
                self.send(uri, params);
            }
        }
    }

    async fn tell_later(self: Arc<Self>, uri: String, at: Instant) {
        tokio::time::sleep_until(at).await;
        let next = self.told.lock().get_mut(&uri).and_then(|last| {
            last.at = Instant::now();
            last.next.take()
        });
        if let Some(params) = next {
            self.send(uri, params);
        }
    }

    fn send(&self, uri: String, params: RawJson) {
        let _ = self.updates.send(ResourceUpdated { uri, params });
    }
}
