//! Subscribes in the session's actor, which keeps the record, the node's subscribers and the backend consistent.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use shoal_ports::{CallFailure, Caller, GatewayError, Grant, SessionId, StoreError};
use shoal_protocol::{RequestId, RpcError, error_response};
use tokio::time::{sleep, timeout};

use super::Node;
use crate::actor::record::RecordStep;
use crate::live::LiveSession;
use crate::state::{Input, empty_result};

const UNSUBSCRIBED_WITHIN: Duration = Duration::from_secs(5);

impl Node {
    pub(super) async fn subscribe(
        &self,
        live: &Arc<LiveSession>,
        grant: Option<&Arc<Grant>>,
        request: &RequestId,
        uri: String,
    ) -> Result<Bytes, GatewayError> {
        let granted = match live.caller() {
            Some(mut caller) => {
                if let Some(grant) = grant {
                    Arc::make_mut(&mut caller).grant = Some(Arc::clone(grant));
                }
                self.ask_backend(live, Some(&caller), &uri).await
            }
            None => None,
        };
        if granted != Some(Ok(())) {
            live.note(Input::SubscriptionFailed(uri));
        }
        match granted {
            Some(Ok(())) => {}
            Some(Err(error)) => return Ok(error_response(request, &error)),
            None => return Err(GatewayError::Moved { owner: None }),
        }
        match live.write_record(RecordStep::Save).await {
            Err(StoreError::Stale) => return Err(GatewayError::Moved { owner: None }),
            Err(error) => {
                tracing::warn!(session = %live.id, %error, "cannot store a subscription");
            }
            Ok(()) => {}
        }
        Ok(empty_result(request))
    }

    /// `None` if the session ends first, because its end waits for the actor.
    pub(super) async fn ask_backend(
        &self,
        live: &LiveSession,
        caller: Option<&Caller>,
        uri: &str,
    ) -> Option<Result<(), RpcError>> {
        // Added before the backend subscribes, so as not to miss an update.
        self.subscribers.add(uri, &live.id);
        let limit = self.config.calls.timeout.get();
        let granted = tokio::select! {
            granted = self.driver.dispatcher.subscribe(caller, uri) => Some(granted),
            () = live.until_over() => None,
            () = sleep(limit) => Some(Err(CallFailure::DeadlineExceeded { limit }.to_rpc())),
        };
        if granted != Some(Ok(())) {
            self.subscribers.remove(uri, &live.id);
        }
        granted
    }

    pub(super) async fn unsubscribe(&self, session: &SessionId, uri: &str) {
        if self.subscribers.remove(uri, session) {
            let unsubscribed = self.driver.dispatcher.unsubscribe(uri);
            if timeout(UNSUBSCRIBED_WITHIN, unsubscribed).await.is_err() {
                tracing::warn!(%session, %uri, "cannot end a subscription at a backend");
            }
        }
    }

    pub(super) async fn unsubscribe_from(&self, session: &SessionId, uris: BTreeSet<String>) {
        for uri in uris {
            self.unsubscribe(session, &uri).await;
        }
    }
}
