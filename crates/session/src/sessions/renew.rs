//! Subscriptions that a node has yet to ask its backends for, because their session came from elsewhere.
//!
//! The client was told that it is subscribed, and no message of the protocol takes that back. So a refusal is not the end
//! of it: the backend is asked again for as long as the session is here and wants it. What may have changed meanwhile
//! the client is told when it is subscribed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use shoal_ports::Backoff;
use shoal_protocol::RawJson;
use tokio::time::{sleep, timeout};

use super::Node;
use crate::live::LiveSession;
use crate::state::Input;

/// The pause before a backend that has refused is asked again, at most; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

impl Node {
    /// Subscribes at the backends for a session that is new here. Its client is told of updates when it listens again.
    pub(super) fn subscribe_again(
        self: &Arc<Self>,
        live: &Arc<LiveSession>,
        mut missing: BTreeSet<String>,
    ) {
        if missing.is_empty() {
            return;
        }
        for uri in &missing {
            self.subscribers.add(uri, &live.id);
        }
        // Nobody else has a new session's turn.
        let turn = live.changing.clone().try_lock_owned();
        let (node, live) = (self.clone(), live.clone());
        tokio::spawn(async move {
            node.renew(&live, &mut missing).await;
            drop(turn);
            let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
            while !missing.is_empty() {
                tokio::select! {
                    () = sleep(backoff.pause()) => {}
                    () = live.until_over() => return,
                }
                node.renew_missing(&live, &mut missing).await;
            }
        });
    }

    /// Asks once more for what is still wanted, and tells the client of what it gets.
    async fn renew_missing(&self, live: &Arc<LiveSession>, missing: &mut BTreeSet<String>) {
        let _turn = live.changing.lock().await;
        let wanted = self.subscriptions(live).await;
        missing.retain(|uri| wanted.contains(uri) && !self.subscribers.has(uri, &live.id));
        for uri in &*missing {
            self.subscribers.add(uri, &live.id);
        }
        let before = missing.clone();
        self.renew(live, missing).await;
        for uri in before.difference(missing) {
            let params = RawJson::of(&serde_json::json!({ "uri": uri }));
            let uri = uri.clone();
            self.tell(live, Input::ResourceUpdated { uri, params })
                .await;
        }
    }

    /// Asks the backends for each of these, in the session's turn; what is refused is left.
    async fn renew(&self, live: &LiveSession, missing: &mut BTreeSet<String>) {
        let limit = self.config.call_timeout;
        let mut refused = BTreeSet::new();
        for uri in std::mem::take(missing) {
            let renewed = tokio::select! {
                renewed = timeout(limit, self.driver.dispatcher.subscribe(&uri)) => renewed,
                () = live.until_over() => {
                    self.subscribers.remove(&uri, &live.id);
                    continue;
                }
            };
            let refusal = match renewed {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => error.to_string(),
                Err(elapsed) => elapsed.to_string(),
            };
            self.subscribers.remove(&uri, &live.id);
            tracing::warn!(session = %live.id, %uri, error = refusal, "could not renew a subscription; trying again");
            refused.insert(uri);
        }
        *missing = refused;
    }
}
