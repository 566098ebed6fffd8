//! What an edge settles of a legacy request before that goes to its session.

use std::sync::Arc;

use futures::future::Either;
use shoal_ports::{
    Call, CallOutcome, Caller, DeliveryId, Durability, EdgePlan, Expected, LogFilter, Post,
    SessionId,
};
use shoal_protocol::{Body, Message, RawJson, Revision};
use tokio::time::Instant;

use crate::state::EdgeState;
use crate::visit::Visit;

/// Plans a single request that a backend runs. What must be waited for is left to the session's owner, where a cancellation
/// is heard meanwhile, and so is what nobody runs as far as this node sees: the owner may see more.
pub(super) fn plan(
    visit: &Visit<'_>,
    session: &SessionId,
    delivery: DeliveryId,
    body: &Body,
) -> Option<Arc<EdgePlan>> {
    let Body::Single(Message::Request(request)) = body else {
        return None;
    };
    if !request.method.runs_on_backend() {
        return None;
    }
    let edge = visit.edge;
    // Of its client, a plan needs no more: the session knows the rest.
    let caller = Caller {
        principal: visit.principal.clone(),
        session: Some(session.clone()),
        revision: Revision::LATEST_LEGACY,
        client_info: None,
        capabilities: RawJson::from_static("{}"),
    };
    let call = Call {
        id: delivery.into(),
        method: request.method.clone(),
        params: request.params.clone(),
        caller: Arc::new(caller),
        progress_token: None,
        log: LogFilter::Off,
        deadline: Instant::now() + edge.config.timing.call_deadline,
        durability: Durability::Journaled,
        trace: None,
        worker: None,
        ledger: None,
    };
    let Either::Left(planned) = edge.dispatcher.plan(call) else {
        return None;
    };
    let planned = match planned.into_inner() {
        Ok(plan) => Ok(plan.into_request()?),
        Err(CallOutcome::Failed(_)) => return None,
        Err(answer) => Err(answer),
    };
    Some(Arc::new(planned))
}

/// Counts a planned call at its worker, until that is known to have been busy with it.
pub(super) fn expect(edge: &EdgeState, post: &Post) -> Option<Expected> {
    let plan = post.plan.as_deref()?.as_ref().ok()?;
    edge.dispatcher.expect(&plan.worker.worker)
}
