//! New sessions, on the nodes that have room.

use shoal_ports::{GatewayError, NodeId, OpenSession, Opened};

use super::owner_route::OwnerRoute;
use super::retry_decision::{AttemptContext, Operation, RetryDecision, decide};
use super::search::FULL_NODES;
use super::{Routes, span};
use shoal_telemetry::trace::attributes;

use crate::placement;
use crate::view::Node;

impl Routes {
    /// Opens a session on some node.
    pub(super) async fn open(&self, open: OpenSession) -> Result<Opened, GatewayError> {
        let mut span = span::placing(&open);
        let mut tried = Vec::new();
        let mut full = 0;
        let mut last = None;
        while tried.len() < self.config.open_attempts && full < FULL_NODES {
            let Some(route) = self.room(&tried) else {
                break;
            };
            // Before the answer: else a crowd that comes at once would all go to the same node.
            route.placed();
            let error = match route.gateway.open(open.clone()).await {
                Ok(opened) => {
                    route.worked();
                    span.set(attributes::PEER_NODE, route.owner.as_str());
                    self.cache.insert(&opened.session, route.owner);
                    return Ok(opened);
                }
                Err(error) => error,
            };
            span::note(&mut span, Some(&route), &error);
            match decide(Operation::Open, AttemptContext::default(), &error) {
                RetryDecision::Repeat => route.broke(),
                RetryDecision::Final | RetryDecision::Done => {
                    span.record_error(span::kind(&error));
                    return Err(error);
                }
                RetryDecision::Elsewhere | RetryDecision::Later => route.worked(),
            }
            full += u32::from(matches!(error, GatewayError::TooManySessions { .. }));
            tracing::debug!(node = %route.asked, %error, "a node did not open a session");
            tried.push(route.asked);
            last = Some(error);
        }
        let error = self.not_opened(last);
        span.record_error(span::kind(&error));
        Err(error)
    }

    /// Where there may be room; nodes that failed just now only if there are no others.
    fn room(&self, tried: &[NodeId]) -> Option<OwnerRoute> {
        let view = self.members.view();
        let rng = &mut rand::rng();
        let untried = |node: &Node| !tried.contains(&node.info().id);
        let node = placement::choose(&view, |node| untried(node) && !self.is_suspect(node), rng)
            .or_else(|| placement::choose(&view, untried, rng))?;
        self.straight(node)
    }

    fn not_opened(&self, last: Option<GatewayError>) -> GatewayError {
        let reason = match last {
            None => "no node takes sessions now".to_owned(),
            Some(GatewayError::Moved { .. }) => "the nodes are leaving".to_owned(),
            // A session that was opened all the same idles out.
            Some(GatewayError::Unreachable { reason } | GatewayError::Unsent { reason }) => {
                format!("its node broke off: {reason}")
            }
            Some(refusal) => return refusal,
        };
        self.unavailable(reason)
    }
}
