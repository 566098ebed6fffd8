//! `subscriptions/listen`: a stream of change notifications (2026-07-28, Subscriptions).

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::response::Response;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt as _, Stream};
use shoal_ports::{AuthError, Caller, ServerFacts, SettledFacts};
use shoal_protocol::{
    Method, RawJson, RawObject, Request, RequestId, SERVER_INFO, SUBSCRIPTION_ID, notification,
    response,
};
use shoal_telemetry::metrics::StreamKind;

use crate::backlog::BacklogReader;
use crate::refusal::Refusal;
use crate::refused::RefusedMessage;
use crate::sse;
use crate::subscriptions::{ListenerNews, Subscription, SubscriptionFilter};
use crate::tasks::TaskWatch;
use crate::visit::Visit;

/// The first message acknowledges the honoured filter.
pub(super) async fn serve(
    visit: &Visit<'_>,
    caller: &Caller,
    request: Request,
) -> Result<Response, RefusedMessage> {
    let edge = visit.edge;
    let limits = &edge.config.limits;
    let asked = SubscriptionFilter::of(request.params.as_ref(), limits.resources_per_listener)
        .map_err(Refusal::Modern)?;
    let permit = edge.load.admit_stream(&visit.principal, limits)?;
    let reader = visit.reader();
    let kept = match asked.bytes() {
        0 => None,
        bytes => Some(reader.hold(bytes).map_err(Refusal::AnswerNotKept)?),
    };
    let settled = edge.dispatcher.settled_facts().await;
    let SettledFacts { facts, lacks } = settled.map_err(Refusal::NotReady)?;
    // While pools may still join, honours lists that this node does not offer yet: a change is
    // announced when the lists appear.
    let mut honoured = match &lacks {
        Some(_) => asked,
        None => asked.supported_by(&facts.capabilities),
    };
    let resources = honoured.resource_subscriptions.len();
    if !edge.config.tasks.enabled {
        honoured.task_ids.clear();
    }
    let max_updates = limits.updates_per_listener;
    let subscription = edge.hub.join(caller, &mut honoured, max_updates).await;
    if let Some(why) = lacks
        && honoured.resource_subscriptions.len() < resources
    {
        return Err(Refusal::NotReady(why).into());
    }
    let tasks = TaskWatch::begin(visit, &mut honoured.task_ids).await;
    let frames = ListenFrames {
        reader,
        tasks,
        acknowledgement: Some(acknowledgement(&request.id, &honoured)),
        id: request.id,
        subscription,
        facts,
        over: visit.until_over(),
        drained: edge.drain.clone().cancelled_owned().boxed(),
        ended: false,
    };
    let held = (permit, kept, edge.load.open(StreamKind::Subscription));
    Ok(sse::response(
        frames,
        edge.config.streams.keep_alive.get(),
        held,
    ))
}

struct ListenFrames {
    reader: BacklogReader,
    id: RequestId,
    acknowledgement: Option<Bytes>,
    subscription: Subscription,
    tasks: TaskWatch,
    facts: Arc<ServerFacts>,
    over: BoxFuture<'static, AuthError>,
    drained: BoxFuture<'static, ()>,
    ended: bool,
}

impl Stream for ListenFrames {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.ended {
            return Poll::Ready(None);
        }
        if let Some(acknowledgement) = self.acknowledgement.take() {
            return Poll::Ready(self.frame(&acknowledgement));
        }
        if self.over.as_mut().poll(cx).is_ready() {
            return self.close();
        }
        if let Poll::Ready(news) = self.subscription.listener.poll_news(cx) {
            let text = match news {
                Some(ListenerNews::List(method)) => {
                    Some(notify(&method, RawObject::default(), &self.id))
                }
                Some(ListenerNews::Resource(uri, params)) => {
                    Some(updated(&self.id, &uri, params.as_ref()))
                }
                None => None,
            };
            return Poll::Ready(text.and_then(|text| self.frame(&text)));
        }
        if let Poll::Ready(task) = self.tasks.poll_told(cx) {
            let mut params = RawObject::of(&task.to_result()).unwrap_or_default();
            params.remove("resultType");
            let text = notify(&Method::TaskChanged, params, &self.id);
            return Poll::Ready(self.frame(&text));
        }
        ready!(self.drained.as_mut().poll(cx));
        self.close()
    }
}

impl ListenFrames {
    fn close(&mut self) -> Poll<Option<Bytes>> {
        self.ended = true;
        Poll::Ready(Some(sse::message(&closed(&self.id, &self.facts))))
    }

    /// Without backlog room, the stream ends and its client subscribes again.
    fn frame(&mut self, text: &Bytes) -> Option<Bytes> {
        let frame = self.reader.keep(sse::message(text)).ok();
        self.ended = frame.is_none();
        frame
    }
}

fn acknowledgement(id: &RequestId, honoured: &SubscriptionFilter) -> Bytes {
    let mut params = RawObject::default();
    params.set("notifications", RawJson::of(honoured));
    notify(&Method::SubscriptionsAcknowledged, params, id)
}

fn updated(id: &RequestId, uri: &str, params: Option<&RawJson>) -> Bytes {
    let mut params = params.and_then(RawObject::of).unwrap_or_default();
    if !params.has("uri") {
        params.set("uri", RawJson::of(uri));
    }
    notify(&Method::ResourceUpdated, params, id)
}

fn notify(method: &Method, mut params: RawObject, id: &RequestId) -> Bytes {
    let mut meta = params
        .get("_meta")
        .and_then(|meta| RawObject::of(&meta))
        .unwrap_or_default();
    meta.set(SUBSCRIPTION_ID, id.to_json());
    params.set("_meta", meta.to_json());
    notification(method.as_str(), Some(&params.to_json()))
}

/// The result marks an orderly end.
fn closed(id: &RequestId, facts: &ServerFacts) -> Bytes {
    let mut meta = RawObject::default();
    meta.set(SUBSCRIPTION_ID, id.to_json());
    meta.set(SERVER_INFO, facts.server_info.clone());
    let mut result = RawObject::default();
    result.set("resultType", RawJson::from_static(r#""complete""#));
    result.set("_meta", meta.to_json());
    response(id, &result.to_json())
}
