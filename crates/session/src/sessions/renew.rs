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
use tokio::time::sleep;

use super::Node;
use crate::actor::{Renewal, SessionMsg};
use crate::live::LiveSession;
use crate::state::Input;

/// The pause before a backend that has refused is asked again, at most; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

impl Node {
    /// Has the actor of a session that is new here ask the backends. Its client is told of updates when it listens again.
    pub(super) fn subscribe_again(&self, live: &Arc<LiveSession>, missing: BTreeSet<String>) {
        if missing.is_empty() {
            return;
        }
        for uri in &missing {
            self.subscribers.add(uri, &live.id);
        }
        let pauses = None;
        live.tell(SessionMsg::Renew(Renewal { missing, pauses }));
    }

    /// Asks the backends for what is still wanted, and tells the client of what it gets late. What is refused is asked for
    /// once more after a pause. In the session's actor.
    pub(crate) async fn renew(&self, live: &Arc<LiveSession>, renewal: Renewal) {
        let Renewal {
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
                    // One that has gone meanwhile needs no news.
                    let _ = self.tell(live, updated).await;
                }
                Some(Err(error)) => {
                    tracing::warn!(session = %live.id, %uri, %error, "could not renew a subscription; trying again");
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
            live.tell(SessionMsg::Renew(Renewal { missing, pauses }));
        });
    }
}
