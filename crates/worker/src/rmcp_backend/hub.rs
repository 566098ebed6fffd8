use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;
use shoal_ports::ResourceUpdated;
use shoal_protocol::RawJson;
use tokio::sync::{Notify, broadcast};

const BACKLOG: usize = 1024;

/// Indexes into [`PoolCatalog::generations`](shoal_ports::PoolCatalog::generations).
#[derive(Clone, Copy)]
pub(super) enum HandlerList {
    Tools = 0,
    /// Resources and resource templates.
    Resources = 1,
    Prompts = 2,
}

impl HandlerList {
    pub(super) fn capability(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Prompts => "prompts",
        }
    }
}

pub(super) struct HandlerHub {
    announced: [AtomicU64; 3],
    changed: Notify,
    subscribed: RwLock<HashSet<String>>,
    updates: broadcast::Sender<ResourceUpdated>,
}

impl HandlerHub {
    pub(super) fn new() -> Self {
        Self {
            announced: Default::default(),
            changed: Notify::new(),
            subscribed: RwLock::default(),
            updates: broadcast::Sender::new(BACKLOG),
        }
    }

    pub(super) fn list_changed(&self, list: HandlerList) {
        self.announced[list as usize].fetch_add(1, Ordering::AcqRel);
        self.changed.notify_one();
    }

    pub(super) fn announced(&self) -> [u64; 3] {
        self.announced
            .each_ref()
            .map(|it| it.load(Ordering::Acquire))
    }

    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    pub(super) fn resource_updated(&self, uri: String, params: RawJson) {
        if self.is_subscribed(&uri) {
            let _ = self.updates.send(ResourceUpdated { uri, params });
        }
    }

    pub(super) fn resource_updates(&self) -> broadcast::Receiver<ResourceUpdated> {
        self.updates.subscribe()
    }

    pub(super) fn is_subscribed(&self, uri: &str) -> bool {
        self.subscribed.read().contains(uri)
    }

    pub(super) fn subscribe(&self, uri: &str) -> bool {
        self.subscribed.write().insert(uri.to_owned())
    }

    pub(super) fn unsubscribe(&self, uri: &str) -> bool {
        self.subscribed.write().remove(uri)
    }
}
