//! The console's API. Every answer is bounded and uncached.

use std::str::FromStr as _;
use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Extension, Router};
use http::StatusCode;
use serde::Deserialize;
use shoal_cluster::Fleet;
use shoal_ports::{CallId, InspectError, NodeId, SessionId, shown};

use super::super::{answer, refuse};
use super::connect::{self, ClientEndpoint};
use super::guard::{By, OperatorGuard, around_api};
use super::list_query::ListQuery;
use super::tools::{self, OperatorCalls};

const LONGEST_ID: usize = 128;
const LONGEST_REASON: usize = 200;
const LONGEST_BODY: usize = 4 * 1024;
const REASON: &str = "cancelled by an operator";

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Cancel {
    reason: String,
}

pub(super) fn router(
    fleet: Arc<Fleet>,
    operator: OperatorCalls,
    endpoint: ClientEndpoint,
    guard: &Arc<OperatorGuard>,
) -> Router {
    let tools = tools::router(fleet.clone(), operator);
    Router::new()
        .route("/overview", get(overview))
        .route("/sessions", get(sessions))
        .route("/sessions/{id}", get(session))
        .route("/sessions/{id}/end", post(end_session))
        .route("/calls", get(calls))
        .route("/calls/{id}/cancel", post(cancel_call))
        .route("/errors", get(errors))
        .with_state(fleet)
        .merge(tools)
        .merge(connect::router(endpoint))
        .fallback(nothing_here)
        .layer(DefaultBodyLimit::max(LONGEST_BODY))
        .layer(axum::middleware::from_fn_with_state(
            guard.clone(),
            around_api,
        ))
}

async fn overview(State(fleet): State<Arc<Fleet>>) -> Response {
    answer(StatusCode::OK, &fleet.overview().await)
}

async fn sessions(State(fleet): State<Arc<Fleet>>, Query(asked): Query<ListQuery>) -> Response {
    if let Some(refusal) = asked.refusal() {
        return refusal;
    }
    let found = fleet.sessions(&asked.filter, asked.limit()).await;
    answer(StatusCode::OK, &found)
}

async fn session(State(fleet): State<Arc<Fleet>>, Path(id): Path<String>) -> Response {
    let Some(session) = session_id(&id) else {
        return no_session();
    };
    match fleet.session(&session).await {
        Some(found) => answer(StatusCode::OK, &found),
        None => no_session(),
    }
}

async fn calls(State(fleet): State<Arc<Fleet>>, Query(asked): Query<ListQuery>) -> Response {
    answer(StatusCode::OK, &fleet.calls(asked.limit()).await)
}

async fn errors(State(fleet): State<Arc<Fleet>>, Query(asked): Query<ListQuery>) -> Response {
    answer(StatusCode::OK, &fleet.errors(asked.limit()).await)
}

async fn end_session(
    State(fleet): State<Arc<Fleet>>,
    Extension(by): Extension<By>,
    Path(id): Path<String>,
) -> Response {
    let Some(session) = session_id(&id) else {
        return no_session();
    };
    let ended = fleet.end_session(&session).await;
    tracing::info!(%session, by = &*by.name, outcome = ?ended, "console: end a session");
    acted(ended, no_session)
}

async fn cancel_call(
    State(fleet): State<Arc<Fleet>>,
    Extension(by): Extension<By>,
    Path(id): Path<String>,
    body: String,
) -> Response {
    let Ok(call) = CallId::from_str(&id) else {
        return no_call();
    };
    let cancel = match body.trim() {
        "" => Cancel::default(),
        text => match serde_json::from_str(text) {
            Ok(cancel) => cancel,
            Err(error) => {
                let reason = format!("the body is to be {{\"reason\": \"…\"}}, or empty: {error}");
                return refuse(StatusCode::BAD_REQUEST, &reason);
            }
        },
    };
    let reason = match shown(cancel.reason.trim(), LONGEST_REASON) {
        given if given.is_empty() => REASON.to_owned(),
        given => format!("{REASON}: {given}"),
    };
    let cancelled = fleet.cancel_call(call, &reason).await;
    tracing::info!(%call, by = &*by.name, reason, outcome = ?cancelled, "console: cancel a call");
    acted(cancelled, no_call)
}

async fn nothing_here() -> Response {
    refuse(StatusCode::NOT_FOUND, "there is nothing here")
}

fn acted(done: Result<Option<NodeId>, InspectError>, nothing: fn() -> Response) -> Response {
    match done {
        Ok(Some(node)) => {
            let node = node.as_str();
            answer(StatusCode::OK, &serde_json::json!({ "node": node }))
        }
        Ok(None) => nothing(),
        Err(error) => {
            let reason = format!("not found where nodes answer, and one did not: {error}");
            refuse(StatusCode::BAD_GATEWAY, &reason)
        }
    }
}

fn no_session() -> Response {
    let reason = "no node that answers owns this session: it has ended, or it moves just now";
    refuse(StatusCode::NOT_FOUND, reason)
}

fn no_call() -> Response {
    refuse(
        StatusCode::NOT_FOUND,
        "no node that answers runs this call: it has ended",
    )
}

fn session_id(id: &str) -> Option<SessionId> {
    let fit = (1..=LONGEST_ID).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_graphic());
    fit.then(|| SessionId::new(id))
}
