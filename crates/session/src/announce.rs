//! Tells this node's sessions about changed lists and resources.

use std::sync::Arc;

use shoal_ports::{ResourceUpdated, ServerFacts, SessionId};
use shoal_protocol::RawJson;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use crate::live::LiveSession;
use crate::sessions::{ATTEMPTS, Node, Passive};
use crate::state::Input;

pub(crate) fn announce(node: Arc<Node>, stop: CancellationToken) -> impl Future<Output = ()> {
    // Subscribed here, because sessions may be opened before the future's first poll.
    let updates = node.driver.dispatcher.resource_updates();
    let facts = node.driver.dispatcher.facts();
    tell_all(node, updates, facts, stop)
}

async fn tell_all(
    node: Arc<Node>,
    mut updates: broadcast::Receiver<ResourceUpdated>,
    mut facts: watch::Receiver<Arc<ServerFacts>>,
    stop: CancellationToken,
) {
    let mut known = facts.borrow().clone();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            update = updates.recv() => match update {
                Ok(ResourceUpdated { uri, params }) => {
                    node.resource_updated(&uri, &params).await;
                }
                Err(RecvError::Lagged(_)) => {
                    for uri in node.subscribers.all_uris() {
                        let params = RawJson::of(&serde_json::json!({ "uri": uri }));
                        node.resource_updated(&uri, &params).await;
                    }
                }
                Err(RecvError::Closed) => return,
            },
            changed = facts.changed() => {
                if changed.is_err() {
                    return;
                }
                let before = std::mem::replace(&mut known, facts.borrow_and_update().clone());
                for live in node.all_live() {
                    let of = |facts: &ServerFacts| facts.versions_of(Some(&live.id), &live.principal);
                    if of(&before) == of(&known) {
                        continue;
                    }
                    // Sessions that are not live or have no listener compare list versions when a client listens.
                    let _ = node.tell(&live, Input::ListsChanged).await;
                }
            }
        }
    }
}

impl Node {
    async fn resource_updated(self: &Arc<Self>, uri: &str, params: &RawJson) {
        for session in self.subscribers.of(uri) {
            if let Some(falling_asleep) = self.tell_updated(&session, uri, params).await {
                let (node, uri, params) = (self.clone(), uri.to_owned(), params.clone());
                tokio::spawn(async move {
                    let mut falling_asleep = Some(falling_asleep);
                    for _ in 0..ATTEMPTS {
                        let Some(live) = falling_asleep else { return };
                        node.forget_dead(&live).await;
                        falling_asleep = node.tell_updated(&session, &uri, &params).await;
                    }
                });
            }
        }
    }

    /// Returns the session if it is falling asleep and must be told again.
    async fn tell_updated(
        &self,
        session: &SessionId,
        uri: &str,
        params: &RawJson,
    ) -> Option<Arc<LiveSession>> {
        let Some(live) = self.live(session) else {
            let updated = |passive: &mut Passive| passive.updated.insert(uri.to_owned());
            let _ = self.table.passive(session, updated);
            return None;
        };
        let input = Input::ResourceUpdated {
            uri: uri.to_owned(),
            params: params.clone(),
        };
        self.tell(&live, input).await.is_err().then_some(live)
    }
}
