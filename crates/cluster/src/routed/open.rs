use shoal_ports::{GatewayError, NodeId, OpenSession, Opened, SessionId};

use super::owner_route::OwnerRoute;
use super::patience::RoutingPatience;
use super::retry_decision::{AttemptContext, Operation, RetryDecision, decide};
use super::search::FULL_NODES;
use super::{Routes, span};
use shoal_telemetry::trace::{Span, attributes};

use crate::placement;
use crate::view::Node;

impl Routes {
    pub(super) async fn open(&self, open: OpenSession) -> Result<Opened, GatewayError> {
        let mut span = span::placing(&open);
        let mut patience = RoutingPatience::new(&self.config, self.config.open_within);
        let error = loop {
            let error = match self.open_somewhere(&open, &mut span).await {
                Ok(opened) => return Ok(opened),
                Err(error) => error,
            };
            if !error.passes() || patience.is_over() {
                break self.not_opened(error);
            }
            patience.pause(&self.members).await;
        };
        span.record_error(span::kind(&error));
        Err(error)
    }

    /// The ID names a node with room.
    pub(super) fn new_task(&self) -> Result<SessionId, GatewayError> {
        let route = self
            .room(&[])
            .ok_or_else(|| self.not_opened(NotOpened::NoNode))?;
        // Count the task before the node makes it, for the reason given in `open_somewhere`.
        route.placed();
        Ok(SessionId::of_task_opened_by(&route.owner))
    }

    async fn open_somewhere(
        &self,
        open: &OpenSession,
        span: &mut Span,
    ) -> Result<Opened, NotOpened> {
        let mut tried = Vec::new();
        let mut full = 0;
        let mut last = NotOpened::NoNode;
        while tried.len() < self.config.open_attempts && full < FULL_NODES {
            let Some(route) = self.room(&tried) else {
                break;
            };
            // Count the session before the answer, or a burst of sessions would choose one node.
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
            span::note(span, Some(&route), &error);
            match decide(Operation::Open, AttemptContext::default(), &error) {
                RetryDecision::Repeat => route.broke(),
                RetryDecision::Final | RetryDecision::Done => {
                    return Err(NotOpened::Refused(error));
                }
                RetryDecision::Elsewhere | RetryDecision::Later => route.worked(),
            }
            full += u32::from(matches!(error, GatewayError::TooManySessions { .. }));
            tracing::debug!(node = %route.asked, %error, "a node did not open a session");
            tried.push(route.asked);
            last = NotOpened::Refused(error);
        }
        Err(last)
    }

    /// Prefers nodes that have not failed recently.
    fn room(&self, tried: &[NodeId]) -> Option<OwnerRoute> {
        let view = self.members.view();
        let rng = &mut rand::rng();
        let untried = |node: &Node| !tried.contains(&node.info().id);
        let node = placement::choose(&view, |node| untried(node) && !self.is_suspect(node), rng)
            .or_else(|| placement::choose(&view, untried, rng))?;
        self.straight(node)
    }

    fn not_opened(&self, why: NotOpened) -> GatewayError {
        let reason = match why {
            NotOpened::NoNode => "no session node takes new sessions now".to_owned(),
            NotOpened::Refused(GatewayError::Moved { .. }) => {
                "the session nodes are leaving, or are not ready yet".to_owned()
            }
            NotOpened::Refused(
                GatewayError::Unreachable { reason } | GatewayError::Unsent { reason },
            ) => format!("no session node can be reached to open a session ({reason})"),
            NotOpened::Refused(refusal) => return refusal,
        };
        self.unavailable(reason)
    }
}

enum NotOpened {
    NoNode,
    Refused(GatewayError),
}

impl NotOpened {
    /// Waiting does not help if all nodes are full.
    fn passes(&self) -> bool {
        match self {
            Self::NoNode => true,
            Self::Refused(error) => matches!(
                error,
                GatewayError::Moved { .. }
                    | GatewayError::Unreachable { .. }
                    | GatewayError::Unsent { .. }
            ),
        }
    }
}
