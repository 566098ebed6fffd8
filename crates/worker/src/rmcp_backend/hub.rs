//! What a handler announces to everybody: changed lists and updated resources.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;
use shoal_ports::ResourceUpdated;
use shoal_protocol::RawJson;
use tokio::sync::{Notify, broadcast};

/// Updates that a subscriber may be behind before it is told that it missed some.
const BACKLOG: usize = 1024;

/// A list that can change. The numbers are those of
/// [`PoolCatalog::generations`](shoal_ports::PoolCatalog::generations).
#[derive(Clone, Copy)]
pub(super) enum List {
    Tools = 0,
    /// With the templates.
    Resources = 1,
    Prompts = 2,
}

impl List {
    /// The capability of handlers that have the list.
    pub(super) fn capability(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Prompts => "prompts",
        }
    }
}

/// Collects the announcements of all peers of one handler.
pub(super) struct Hub {
    announced: [AtomicU64; 3],
    changed: Notify,
    subscribed: RwLock<HashSet<String>>,
    updates: broadcast::Sender<ResourceUpdated>,
}

impl Hub {
    pub(super) fn new() -> Self {
        Self {
            announced: Default::default(),
            changed: Notify::new(),
            subscribed: RwLock::default(),
            updates: broadcast::Sender::new(BACKLOG),
        }
    }

    /// A list has changed.
    pub(super) fn list_changed(&self, list: List) {
        self.announced[list as usize].fetch_add(1, Ordering::AcqRel);
        self.changed.notify_one();
    }

    /// How often each list was said to have changed.
    pub(super) fn announced(&self) -> [u64; 3] {
        self.announced
            .each_ref()
            .map(|it| it.load(Ordering::Acquire))
    }

    /// Returns when a list has changed since the last return.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// A resource has changed; tells those who want to know.
    pub(super) fn resource_updated(&self, uri: String, params: RawJson) {
        if self.is_subscribed(&uri) {
            // Without receivers nobody wants to know.
            let _ = self.updates.send(ResourceUpdated { uri, params });
        }
    }

    pub(super) fn resource_updates(&self) -> broadcast::Receiver<ResourceUpdated> {
        self.updates.subscribe()
    }

    pub(super) fn is_subscribed(&self, uri: &str) -> bool {
        self.subscribed.read().contains(uri)
    }

    /// Notes that updates of a resource are wanted; whether they were not before.
    pub(super) fn subscribe(&self, uri: &str) -> bool {
        self.subscribed.write().insert(uri.to_owned())
    }

    /// Notes that updates of a resource are not wanted any more; whether they were.
    pub(super) fn unsubscribe(&self, uri: &str) -> bool {
        self.subscribed.write().remove(uri)
    }
}
