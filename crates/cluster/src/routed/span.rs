//! What traces say of a search for an owner.

use shoal_ports::{GatewayError, OpenSession, SessionRef};
use shoal_telemetry::trace::{self, Span, attributes, names};

use super::owner_route::OwnerRoute;
use super::retry_decision::Operation;

/// The span of a search on behalf of whoever asks; a message that finds its way at once has none.
pub(super) fn searching(to: &SessionRef, operation: Operation, committed: bool) -> Span {
    let Some(parent) = &to.trace else {
        return Span::none();
    };
    trace::internal(names::ROUTE)
        .parent(Some(parent))
        .start_with(|set| {
            set.set(attributes::MCP_SESSION_ID, to.session.as_str())
                .set(attributes::REASON, operation.as_str())
                .set(attributes::IS_REPEATED, committed);
        })
}

/// The span of finding a node for a new session.
pub(super) fn placing(open: &OpenSession) -> Span {
    match &open.trace {
        Some(parent) => trace::internal(names::ROUTE)
            .parent(Some(parent))
            .start_with(|set| {
                set.set(attributes::REASON, Operation::Open.as_str());
            }),
        None => Span::none(),
    }
}

/// An attempt failed, at the node that was asked if there was one.
pub(super) fn note(span: &mut Span, route: Option<&OwnerRoute>, error: &GatewayError) {
    span.add_event(FAILED, |set| {
        set.set(attributes::ERROR_TYPE, kind(error)).set_some(
            attributes::PEER_NODE,
            route.map(|route| route.asked.as_str()),
        );
    });
}

/// What is told on a search's span when an attempt fails.
const FAILED: &str = "attempt failed";

/// A failure's short name.
pub(super) fn kind(error: &GatewayError) -> &'static str {
    match error {
        GatewayError::NotFound => "not_found",
        GatewayError::Rejected(_) => "rejected",
        GatewayError::HistoryGone(_) => "history_gone",
        GatewayError::TooManySessions { .. } | GatewayError::TooManySessionsOfPrincipal { .. } => {
            "too_many_sessions"
        }
        GatewayError::TooManyBytesOfPrincipal { .. } => "too_many_bytes",
        GatewayError::Overloaded { .. } => "overloaded",
        GatewayError::Unavailable { .. } => "unavailable",
        GatewayError::Moved { .. } => "moved",
        GatewayError::Unreachable { .. } => "unreachable",
        GatewayError::Unsent { .. } => "unsent",
        GatewayError::WorkerAway { .. } => "worker_away",
        GatewayError::Internal(_) => "internal",
    }
}
