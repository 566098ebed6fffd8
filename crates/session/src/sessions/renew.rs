//! Renews subscriptions of a session that was restored or taken over. The protocol cannot withdraw a granted
//! subscription, so the node retries after a refusal.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use shoal_ports::Backoff;
use shoal_protocol::RawJson;
use tokio::time::sleep;

use super::Node;
use crate::actor::{SessionMsg, SubscriptionRenewal};
use crate::live::LiveSession;
use crate::state::Input;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

impl Node {
    pub(super) fn subscribe_again(&self, live: &Arc<LiveSession>, missing: BTreeSet<String>) {
        if missing.is_empty() {
            return;
        }
        for uri in &missing {
            self.subscribers.add(uri, &live.id);
        }
        let pauses = None;
        live.tell(SessionMsg::Renew(SubscriptionRenewal { missing, pauses }));
    }

    pub(crate) async fn renew(&self, live: &Arc<LiveSession>, renewal: SubscriptionRenewal) {
        let SubscriptionRenewal {
            mut missing,
            pauses,
        } = renewal;
        if pauses.is_some() {
            let wanted = live.subscriptions();
            missing.retain(|uri| wanted.contains(uri) && !self.subscribers.has(uri, &live.id));
        }
        let mut refused = BTreeSet::new();
        for uri in missing {
            match self.ask_backend(live, None, &uri).await {
                Some(Ok(())) if pauses.is_some() => {
                    let params = RawJson::of(&serde_json::json!({ "uri": uri }));
                    let updated = Input::ResourceUpdated { uri, params };
                    let _ = self.tell(live, updated).await;
                }
                Some(Err(error)) => {
                    tracing::warn!(session = %live.id, %uri, %error, "cannot renew a subscription; retrying");
                    refused.insert(uri);
                }
                Some(Ok(())) | None => {}
            }
        }
        if refused.is_empty() {
            return;
        }
        let mut pauses = pauses.unwrap_or_else(|| Backoff::new(FIRST_PAUSE, LONGEST_PAUSE));
        let live = live.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = sleep(pauses.pause()) => {}
                () = live.until_over() => return,
            }
            let (missing, pauses) = (refused, Some(pauses));
            live.tell(SessionMsg::Renew(SubscriptionRenewal { missing, pauses }));
        });
    }
}
