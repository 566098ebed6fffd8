//! Binds a legacy request to the worker that runs it. The session's owner plans the call.

use shoal_ports::{Delivered, Drawn, Expected, GatewayError, Post, Repeat, SessionRef, WorkerId};
use shoal_protocol::{Body, Message};

use crate::state::EdgeState;
use crate::visit::Visit;

/// Binds a single request that must run once.
pub(super) fn bind(visit: &Visit<'_>, to: &SessionRef, post: &mut Post, tried: &[WorkerId]) {
    post.binding = None;
    let Body::Single(Message::Request(request)) = &post.body else {
        return;
    };
    match visit.edge.dispatcher.draw(to, request, tried) {
        Drawn::Bound(binding) => post.binding = Some(binding),
        Drawn::Repeatable => post.repeat = Repeat::Safe,
        Drawn::Nothing => {}
    }
}

/// Delivers a request that is bound to a worker. If the session's node has not sent the request to that worker, binds
/// the request to another worker. Without another, the session's owner waits for one and journals the call first.
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
        match (delivered, &post.binding) {
            (Err(GatewayError::WorkerAway { reason }), Some(binding)) => {
                tracing::debug!(session = %to.session, reason, "binds a call again");
                tried.push(binding.worker.clone());
                bind(visit, to, &mut post, &tried);
            }
            (delivered, binding) => {
                // Sessions acknowledge the calls of their streams and tasks.
                if let (Ok(Delivered::Json(_)), Some(binding)) = (&delivered, binding) {
                    edge.dispatcher
                        .acknowledge(&binding.worker, post.delivery.into());
                }
                return delivered;
            }
        }
    }
}

/// Adds a bound call to its worker's load, because the worker reports the call later.
fn expect(edge: &EdgeState, post: &Post) -> Option<Expected> {
    edge.dispatcher.expect(&post.binding.as_ref()?.worker)
}
