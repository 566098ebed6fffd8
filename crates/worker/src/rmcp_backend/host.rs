use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientCapabilities, ClientNotification,
    ClientRequest, ErrorCode, Implementation, InitializeRequestParams, InitializedNotification,
    JsonRpcMessage, ProtocolVersion, RequestId, RequestMetaObject, SubscribeRequestParams,
    SubscriptionFilter, SubscriptionsListenRequest, SubscriptionsListenRequestParams,
    UnsubscribeRequestParams,
};
use rmcp::service::{Peer, RequestContext, RoleServer, RunningService, serve_directly};
use rmcp::{ErrorData, ServerHandler};
use shoal_protocol::RpcError;

use super::client_end::{ClientEnd, InProcessPeer};
use super::hub::HandlerHub;
use super::{guarded, wire};

/// The id of the listen request for lists. For a resource, the id is its URI, whose scheme prevents
/// a clash.
const LISTS: &str = "lists";

/// Shoal as a permanent client of the handler.
///
/// Handlers announce changes at any time through any peer (up to 2025-11-25), or while their
/// `subscriptions/listen` runs (since 2026-07-28). Shoal accepts both.
pub(super) struct Host<H: ServerHandler> {
    handler: Arc<H>,
    hub: Arc<HandlerHub>,
    client_end: Arc<ClientEnd>,
    peer: Peer<RoleServer>,
    service: Mutex<Option<RunningService<RoleServer, Arc<H>>>>,
    // Resources with a running `listen`. Locked during each subscription, to order the handler's
    // calls.
    listened: tokio::sync::Mutex<HashSet<String>>,
}

impl<H: ServerHandler> Host<H> {
    /// Requires a tokio runtime.
    pub(super) fn start(handler: Arc<H>, hub: Arc<HandlerHub>) -> Self {
        let client_end = ClientEnd::new(Arc::clone(&hub));
        let initialized = InitializedNotification::default();
        client_end.push(JsonRpcMessage::notification(
            ClientNotification::InitializedNotification(initialized),
        ));
        let transport = InProcessPeer(Arc::clone(&client_end));
        let service = serve_directly(Arc::clone(&handler), transport, Some(introduction()));
        let host = Self {
            handler,
            hub,
            client_end,
            peer: service.peer().clone(),
            service: Mutex::new(Some(service)),
            listened: tokio::sync::Mutex::default(),
        };
        let lists = SubscriptionFilter::builder()
            .tools_list_changed()
            .resources_list_changed()
            .prompts_list_changed()
            .build();
        if host.would_report(&lists) {
            host.listen(LISTS, lists);
        }
        host
    }

    pub(super) fn context(&self) -> RequestContext<RoleServer> {
        RequestContext::new(RequestId::Number(0), self.peer.clone())
    }

    pub(super) async fn subscribe(&self, uri: &str) -> Result<(), RpcError> {
        let mut listened = self.listened.lock().await;
        // Recorded first, so that an update right after the answer is not missed.
        if !self.hub.subscribe(uri) {
            return Ok(());
        }
        let mut subscribed = self.ask_to_subscribe(uri).await;
        if let Err(error) = &subscribed
            && error.code == ErrorCode::METHOD_NOT_FOUND
        {
            let resource = SubscriptionFilter::builder()
                .resource_subscriptions(vec![uri.to_owned()])
                .build();
            if self.would_report(&resource) {
                self.listen(uri, resource);
                listened.insert(uri.to_owned());
                subscribed = Ok(());
            }
        }
        if subscribed.is_err() {
            self.hub.unsubscribe(uri);
        }
        subscribed.map_err(wire::rpc_error)
    }

    #[expect(deprecated, reason = "what subscribing was called until 2025-11-25")]
    async fn ask_to_subscribe(&self, uri: &str) -> Result<(), ErrorData> {
        let request = SubscribeRequestParams::new(uri);
        guarded(self.handler.subscribe(request, self.context()))
            .await
            .unwrap_or_else(|_| Err(ErrorData::internal_error("the handler panicked", None)))
    }

    #[expect(deprecated, reason = "what unsubscribing was called until 2025-11-25")]
    pub(super) async fn unsubscribe(&self, uri: &str) {
        let mut listened = self.listened.lock().await;
        if !self.hub.unsubscribe(uri) {
            return;
        }
        if listened.remove(uri) {
            self.listen_no_more(uri);
            return;
        }
        let request = UnsubscribeRequestParams::new(uri);
        let done = guarded(self.handler.unsubscribe(request, self.context())).await;
        if let Ok(Err(error)) = done {
            tracing::debug!(uri, %error, "the handler did not unsubscribe");
        }
    }

    pub(super) fn close(&self) {
        drop(self.service.lock().take());
    }

    fn would_report(&self, wanted: &SubscriptionFilter) -> bool {
        let capabilities = self.handler.get_info().capabilities;
        let accepted = self.handler.accepted_subscription_filter(wanted);
        accepted.is_some_and(|accepted| {
            let reported = wanted.intersection(&accepted).supported_by(&capabilities);
            reported != SubscriptionFilter::default()
        })
    }

    fn listen(&self, id: &str, wanted: SubscriptionFilter) {
        let mut meta = RequestMetaObject::new();
        meta.set_protocol_version(ProtocolVersion::V_2026_07_28);
        meta.set_client_info(introduction().client_info);
        meta.set_client_capabilities(ClientCapabilities::default());
        let params = SubscriptionsListenRequestParams::new(wanted);
        let mut request = SubscriptionsListenRequest::new(params);
        request.extensions.insert(meta);
        let request = ClientRequest::SubscriptionsListenRequest(request);
        self.client_end.push(JsonRpcMessage::request(
            request,
            RequestId::String(id.into()),
        ));
    }

    fn listen_no_more(&self, id: &str) {
        let id = RequestId::String(id.into());
        let cancelled = CancelledNotification::new(CancelledNotificationParam::new(Some(id), None));
        self.client_end.push(JsonRpcMessage::notification(
            ClientNotification::CancelledNotification(cancelled),
        ));
    }
}

fn introduction() -> InitializeRequestParams {
    let info = Implementation::new("shoal", env!("CARGO_PKG_VERSION"));
    InitializeRequestParams::new(ClientCapabilities::default(), info)
        .with_protocol_version(ProtocolVersion::V_2025_11_25)
}
