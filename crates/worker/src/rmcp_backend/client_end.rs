//! The client's end of an rmcp peer, which routes messages to its call or to everyone.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use rmcp::model::{
    ClientResult, CustomNotification, JsonRpcMessage, RequestId, ServerNotification, ServerRequest,
};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use shoal_protocol::{Outcome, RawJson, RpcError};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::hub::{HandlerHub, HandlerList};
use super::wire;
use crate::CallContext;

const CLOSE_STREAM: &str = "io.shoal/close_stream";

pub(super) struct ClientEnd {
    hub: Arc<HandlerHub>,
    call: Mutex<Option<CallContext>>,
    incoming: Mutex<VecDeque<RxJsonRpcMessage<RoleServer>>>,
    arrived: Notify,
    asks: Mutex<Vec<(RequestId, CancellationToken)>>,
    used_up: AtomicBool,
}

type Later = BoxFuture<'static, ()>;

pub(super) struct InProcessPeer(pub(super) Arc<ClientEnd>);

impl ClientEnd {
    pub(super) fn new(hub: Arc<HandlerHub>) -> Arc<Self> {
        Arc::new(Self {
            hub,
            call: Mutex::new(None),
            incoming: Mutex::default(),
            arrived: Notify::new(),
            asks: Mutex::default(),
            used_up: AtomicBool::new(false),
        })
    }

    pub(super) fn serve(&self, call: CallContext) {
        *self.call.lock() = Some(call);
    }

    pub(super) fn leave(&self) {
        *self.call.lock() = None;
    }

    /// Whether the peer must not serve another call: after a question, because rmcp keeps a
    /// question's state beyond the answer, or after a message between calls, because a tool kept a
    /// clone.
    pub(super) fn is_used_up(&self) -> bool {
        self.used_up.load(Ordering::Acquire)
    }

    pub(super) fn push(&self, message: RxJsonRpcMessage<RoleServer>) {
        self.incoming.lock().push_back(message);
        self.arrived.notify_one();
    }

    async fn next(&self) -> RxJsonRpcMessage<RoleServer> {
        loop {
            if let Some(message) = self.incoming.lock().pop_front() {
                return message;
            }
            self.arrived.notified().await;
        }
    }

    /// Returns the rest of the work if the call has no room.
    fn notified(
        &self,
        notification: ServerNotification,
        call: Option<CallContext>,
    ) -> Option<Later> {
        use ServerNotification as N;
        match notification {
            N::ToolListChangedNotification(_) => self.hub.list_changed(HandlerList::Tools),
            N::ResourceListChangedNotification(_) => self.hub.list_changed(HandlerList::Resources),
            N::PromptListChangedNotification(_) => self.hub.list_changed(HandlerList::Prompts),
            N::ResourceUpdatedNotification(ref updated) => {
                if self.hub.is_subscribed(&updated.params.uri)
                    && let Some(params) = wire::update(&notification)
                {
                    self.hub
                        .resource_updated(updated.params.uri.clone(), params);
                }
            }
            N::CancelledNotification(cancelled) => {
                if let Some(id) = cancelled.params.request_id {
                    self.give_up(&id);
                }
            }
            // These concern Shoal's own subscriptions and tasks, not the call's client.
            N::SubscriptionsAcknowledgedNotification(_) | N::TaskStatusNotification(_) => {}
            for_the_caller => {
                if let Some(call) = call {
                    return tell(call, for_the_caller);
                }
                tracing::debug!("a notification of a call that has ended is dropped");
            }
        }
        None
    }

    async fn requested(&self, id: RequestId, request: ServerRequest, call: Option<CallContext>) {
        let answer = match (&request, wire::split_request(&request), call) {
            // A ping needs no client here, because both ends are in this process.
            (ServerRequest::PingRequest(_), ..) => Ok(ClientResult::empty(())),
            (_, Some((method, params)), Some(call)) => {
                let given_up = CancellationToken::new();
                self.asks.lock().push((id.clone(), given_up.clone()));
                let answer = tokio::select! {
                    answer = call.ask(method, params) => answer,
                    () = given_up.cancelled() => return,
                };
                self.asks.lock().retain(|(open, _)| *open != id);
                match answer {
                    Outcome::Result(result) => Ok(wire::answer(&request, &result)),
                    Outcome::Error(error) => Err(error),
                }
            }
            _ => Err(RpcError::invalid_request(
                "there is no call whose client could be asked",
            )),
        };
        self.push(match answer {
            Ok(result) => JsonRpcMessage::response(result, id),
            Err(error) => JsonRpcMessage::error(wire::error_data(error), Some(id)),
        });
    }

    fn give_up(&self, id: &RequestId) {
        let mut asks = self.asks.lock();
        if let Some(at) = asks.iter().position(|(open, _)| open == id) {
            asks.swap_remove(at).1.cancel();
        }
    }
}

fn tell(call: CallContext, notification: ServerNotification) -> Option<Later> {
    match notification {
        ServerNotification::CustomNotification(CustomNotification { method, params, .. })
            if method == CLOSE_STREAM =>
        {
            let retry = params.and_then(|params| params.get("retryMs")?.as_u64());
            let retry = Duration::from_millis(retry.unwrap_or(0));
            Some(Box::pin(async move { call.close_stream(retry).await }))
        }
        other => {
            let (method, params) = wire::split_notification(&other)?;
            let params = params.or(Some(RawJson::from_static("{}")));
            let (method, params) = call.notify_now(method, params).err()?;
            Some(Box::pin(async move { call.notify(method, params).await }))
        }
    }
}

impl Transport<RoleServer> for InProcessPeer {
    type Error = Infallible;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        let end = Arc::clone(&self.0);
        // Reads the call now, because the returned future runs in another task. rmcp spawns a task
        // for each message, so the future should be small; most have nothing left to do.
        let call = end.call.lock().clone();
        if call.is_none() || matches!(message, JsonRpcMessage::Request(_)) {
            end.used_up.store(true, Ordering::Release);
        }
        let later: Option<Later> = match message {
            JsonRpcMessage::Notification(it) => end.notified(it.notification, call),
            JsonRpcMessage::Request(it) => Some(Box::pin(async move {
                end.requested(it.id, it.request, call).await;
            })),
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => None,
        };
        async move {
            if let Some(later) = later {
                later.await;
            }
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        Some(self.0.next().await)
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}
