//! The operators' port: liveness, readiness, status, metrics and the console.

mod answers;
mod console;
mod front;
mod refusal;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use shoal_edge::{Hosts, ambiguity};
use shoal_telemetry::metrics;

pub use answers::{EdgeReport, Readiness, StatusReport, StoreHealth, StoreReport};
pub use console::{ClientEndpoint, Console, OperatorCalls, OperatorEdge};
pub use front::Front;

/// Reports a node's state to operators.
pub trait Observed: Send + Sync + 'static {
    /// Returns whether the node wants traffic, or why it does not.
    fn readiness(&self) -> Readiness;
    /// Returns the node's current state.
    fn report(&self) -> StatusReport;
}

/// Builds the admin port's router. `listen` and `hosts` define the host names that requests may use.
pub fn router(
    observed: Arc<dyn Observed>,
    console: Option<Console>,
    listen: SocketAddr,
    hosts: &[String],
) -> Router {
    let own = Router::new()
        .route("/readyz", get(readyz))
        .route("/status", get(status))
        .with_state(observed)
        .merge(console.map_or_else(Router::new, Console::router));
    guarded(own, listen, hosts)
}

/// Adds `/livez`, `/metrics` and the checks of requests to `own` routes. [`router`] explains
/// `listen` and `hosts`.
pub fn guarded(own: Router, listen: SocketAddr, hosts: &[String]) -> Router {
    own.route("/livez", get(livez))
        .route("/metrics", get(numbers))
        .fallback(nothing_here)
        .layer(middleware::from_fn_with_state(access(listen, hosts), check))
        .layer(middleware::map_response(refusal::in_json))
}

async fn livez() -> Response {
    answer(StatusCode::OK, &serde_json::json!({ "status": "alive" }))
}

async fn readyz(State(observed): State<Arc<dyn Observed>>) -> Response {
    let readiness = observed.readiness();
    let status = if readiness.is_ready() {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    answer(status, &readiness)
}

async fn status(State(observed): State<Arc<dyn Observed>>) -> Response {
    answer(StatusCode::OK, &observed.report())
}

async fn numbers() -> Response {
    let text = tokio::task::spawn_blocking(metrics::prometheus_text).await;
    match text {
        Ok(text) if !text.is_empty() => {
            let kind = HeaderValue::from_static(metrics::PROMETHEUS_CONTENT_TYPE);
            let mut response = text.into_response();
            response.headers_mut().insert(header::CONTENT_TYPE, kind);
            uncached(response)
        }
        Ok(_) => refuse(
            StatusCode::NOT_FOUND,
            "metrics are off here: see telemetry.enabled and telemetry.metrics.prometheus",
        ),
        Err(_) => refuse(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the metrics could not be gathered",
        ),
    }
}

async fn nothing_here() -> Response {
    let paths = ["/livez", "/readyz", "/status", "/metrics", "/console/"];
    answer(
        StatusCode::NOT_FOUND,
        &serde_json::json!({ "error": "there is nothing here", "paths": paths }),
    )
}

/// Refuses ambiguous requests and unknown host names (DNS rebinding).
async fn check(State(access): State<Arc<Hosts>>, request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    if let Some(reason) = ambiguity(&head) {
        return refuse(StatusCode::BAD_REQUEST, &reason);
    }
    let host = head.headers.get(header::HOST);
    let host = host.map(|host| host.to_str().unwrap_or_default());
    let host = host.or_else(|| head.uri.authority().map(|authority| authority.as_str()));
    let host = host.unwrap_or_default();
    if access.admit(host).is_some() {
        return next.run(Request::from_parts(head, body)).await;
    }
    let reason = "this host is not served here; an operator may add it to server.admin_hosts";
    refuse(StatusCode::FORBIDDEN, reason)
}

fn access(listen: SocketAddr, hosts: &[String]) -> Arc<Hosts> {
    Arc::new(Hosts::new(hosts, !listen.ip().is_loopback()))
}

fn refuse(status: StatusCode, reason: &str) -> Response {
    answer(status, &serde_json::json!({ "error": reason }))
}

pub(crate) fn answer<T: Serialize>(status: StatusCode, body: &T) -> Response {
    uncached((status, Json(body)).into_response())
}

fn uncached(mut response: Response) -> Response {
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests;
