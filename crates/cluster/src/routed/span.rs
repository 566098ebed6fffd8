use shoal_ports::{GatewayError, OpenSession, SessionRef};
use shoal_telemetry::trace::{self, Span, attributes, names};

use super::owner_route::OwnerRoute;
use super::retry_decision::Operation;

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

pub(super) fn note(span: &mut Span, route: Option<&OwnerRoute>, error: &GatewayError) {
    span.add_event(FAILED, |set| {
        set.set(attributes::ERROR_TYPE, kind(error)).set_some(
            attributes::PEER_NODE,
            route.map(|route| route.asked.as_str()),
        );
    });
}

const FAILED: &str = "attempt failed";

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
