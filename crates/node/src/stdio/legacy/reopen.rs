//! Reopens a session that the server has lost, because most stdio clients do not initialize twice. Restores
//! capabilities, log level and subscriptions. State that tools kept for the session is lost.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method as HttpMethod};
use shoal_protocol::{MCP_SESSION_ID, Message, Outcome};

use super::super::exchange::{Outgoing, collect, is_event_stream, send_patiently};
use super::super::sse::Events;
use super::super::wire::post_headers;
use super::LegacyHalf;

impl LegacyHalf {
    pub(super) async fn reopen(self: &Arc<Self>, lost: Option<HeaderValue>) -> bool {
        let _one_at_a_time = self.reopening.lock().await;
        if self.session.key() != lost {
            return true;
        }
        let Some((opening, initialized, changes)) = self.session.script() else {
            return false;
        };
        let Some(id) = self.initialize_again(opening).await else {
            tracing::warn!("the server lost the session, and would not open another");
            return false;
        };
        tracing::warn!("the server lost the session; another was opened in its place");
        self.session.replace(id);
        if initialized {
            let ready = shoal_protocol::notification("notifications/initialized", None);
            self.hand_over(ready).await;
            self.wire.begin(Arc::clone(self).listen()).await;
        }
        for change in changes {
            self.hand_over(change).await;
        }
        true
    }

    /// `None` if the server refuses. A server may give no id.
    async fn initialize_again(&self, opening: Bytes) -> Option<Option<HeaderValue>> {
        let outgoing = Outgoing {
            method: HttpMethod::POST,
            headers: post_headers(),
            body: opening,
        };
        let reply = send_patiently(&*self.wire.exchange, outgoing, |_| {})
            .await
            .ok()?;
        if !reply.status().is_success() {
            return None;
        }
        let id = reply.headers().get(MCP_SESSION_ID).cloned();
        let text = if is_event_stream(&reply) {
            let mut events = Events::of(reply.into_body());
            loop {
                if let Some(text) = events.next().await?.ok()?.data {
                    break text;
                }
            }
        } else {
            collect(reply.into_body()).await.ok()?
        };
        match Message::parse(&text).ok()? {
            Message::Response(response) => match response.outcome {
                Outcome::Result(_) => Some(id),
                Outcome::Error(_) => None,
            },
            Message::Request(_) | Message::Notification(_) => None,
        }
    }
}
