//! Plans a legacy request at the edge.

use std::sync::Arc;

use shoal_ports::{
    Call, CallPlan, Caller, Delivered, DeliveryId, EdgePlan, Expected, ForwardedHeaders,
    GatewayError, LogFilter, Post, Repeat, RequestPlan, SessionId, SessionRef, WorkerId,
};
use shoal_protocol::{Body, Message, RawJson, Request, Revision};
use tokio::time::Instant;

use crate::state::EdgeState;
use crate::visit::Visit;

/// Plans a single request. If planning must wait or finds no worker, leaves the plan to the session's owner,
/// which hears cancellations and may know more workers.
pub(super) fn plan(
    visit: &Visit<'_>,
    to: &SessionRef,
    delivery: DeliveryId,
    body: &Body,
) -> Option<Arc<EdgePlan>> {
    let Body::Single(Message::Request(request)) = body else {
        return None;
    };
    if !request.method.runs_on_backend() {
        return None;
    }
    // Only the session knows the client's capabilities.
    if visit.edge.dispatcher.asks_of_clients() {
        return None;
    }
    let call = call_of(visit, to, delivery, request);
    visit.edge.dispatcher.plan_ahead(call).map(Arc::new)
}

/// Builds the call of a request. The session's owner adds what it knows about the client.
fn call_of(visit: &Visit<'_>, to: &SessionRef, delivery: DeliveryId, request: &Request) -> Call {
    Call {
        id: delivery.into(),
        method: request.method.clone(),
        params: request.params.clone(),
        caller: Arc::new(Caller {
            headers: to.headers.clone(),
            ..caller(visit, &to.session)
        }),
        progress_token: None,
        log: LogFilter::Off,
        deadline: Instant::now() + visit.edge.config.timing.call_deadline,
        repeat: Repeat::Never,
        trace: None,
        worker: None,
        ledger: None,
        attach_only: false,
        asks_first: false,
        epoch: None,
    }
}

pub(super) fn caller(visit: &Visit<'_>, session: &SessionId) -> Caller {
    Caller {
        principal: visit.principal.clone(),
        session: Some(session.clone()),
        revision: Revision::LATEST_LEGACY,
        client_info: None,
        capabilities: RawJson::from_static("{}"),
        headers: ForwardedHeaders::default(),
        grant: visit.grant.clone(),
    }
}

/// Delivers a request that is bound to a worker. If the session's node cannot reach that worker and has not
/// sent the request, the edge binds the request to another worker. If there is no other worker, the session's
/// owner waits for one and journals the call first.
pub(super) async fn deliver_bound(
    visit: &Visit<'_>,
    to: &SessionRef,
    mut post: Post,
) -> Result<Delivered, GatewayError> {
    let edge = visit.edge;
    let mut tried = Vec::new();
    loop {
        let delivered = {
            let _expected = expect(edge, &post);
            edge.gateway.deliver(to, post.clone()).await
        };
        match (delivered, &post.plan) {
            (Err(GatewayError::WorkerAway { reason }), Some(plan)) => {
                tracing::debug!(session = %to.session, reason, "binds a call again");
                post.plan = bind_anew(visit, to, &post, plan, &mut tried);
            }
            (delivered, plan) => {
                // Sessions acknowledge the calls of streams, and a task's session the call of its task. The
                // edge acknowledges only a JSON answer.
                if let (Ok(Delivered::Json(_)), Some(Ok(plan))) = (&delivered, plan.as_deref())
                    && !may_be_task(edge, &post.body)
                {
                    let worker = &plan.worker.worker;
                    edge.dispatcher.acknowledge(worker, post.delivery.into());
                }
                return delivered;
            }
        }
    }
}

pub(crate) fn may_be_task(edge: &EdgeState, body: &Body) -> bool {
    let Body::Single(Message::Request(request)) = body else {
        return false;
    };
    let task = request.params.as_ref();
    let begins = task.and_then(|params| params.member_begins("task"));
    edge.config.tasks.enabled && begins.is_some_and(|begins| begins != b'n')
}

fn bind_anew(
    visit: &Visit<'_>,
    to: &SessionRef,
    post: &Post,
    plan: &EdgePlan,
    tried: &mut Vec<WorkerId>,
) -> Option<Arc<EdgePlan>> {
    let (Body::Single(Message::Request(request)), Ok(plan)) = (&post.body, plan) else {
        return None;
    };
    tried.push(plan.worker.worker.clone());
    let call = CallPlan {
        call: call_of(visit, to, post.delivery, request),
        route: Some(plan.route.clone()),
        worker: None,
    };
    let worker = visit.edge.dispatcher.replan(&call, tried);
    let worker = worker.filter(|worker| worker.ledger.is_some())?;
    Some(Arc::new(Ok(RequestPlan {
        worker,
        ..plan.clone()
    })))
}

/// Counts a planned call at its worker until the load that the worker reports includes the call.
pub(super) fn expect(edge: &EdgeState, post: &Post) -> Option<Expected> {
    let plan = post.plan.as_deref()?.as_ref().ok()?;
    edge.dispatcher.expect(&plan.worker.worker)
}
