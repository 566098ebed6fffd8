use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Extension, Router};
use http::StatusCode;
use serde::Serialize;
use shoal_cluster::{Fleet, ToolsSeen};
use shoal_ports::shown;

use super::super::{answer, refuse};
use super::call::{OperatorEdge, ToolCall};
use super::guard::By;
use super::list_query::ListQuery;

const LONGEST_CALL: usize = 1024 * 1024;
const LONGEST_NAME: usize = 512;
const SHOWN_NAME: usize = 160;

/// The edge for operators' calls, or why there is none.
pub type OperatorCalls = Result<OperatorEdge, &'static str>;

struct ToolRoutes {
    fleet: Arc<Fleet>,
    calls: OperatorCalls,
}

#[derive(Serialize)]
struct ToolsPage {
    #[serde(flatten)]
    tools: ToolsSeen,
    calls_off: Option<&'static str>,
}

pub(super) fn router(fleet: Arc<Fleet>, calls: OperatorCalls) -> Router {
    let call = post(call).layer(DefaultBodyLimit::max(LONGEST_CALL));
    Router::new()
        .route("/tools", get(list))
        .route("/tools/{name}", get(tool))
        .route("/tools/{name}/call", call)
        .with_state(Arc::new(ToolRoutes { fleet, calls }))
}

async fn list(State(tools): State<Arc<ToolRoutes>>, Query(asked): Query<ListQuery>) -> Response {
    if let Some(refusal) = asked.refusal() {
        return refusal;
    }
    let listed = ToolsPage {
        tools: tools.fleet.tools(&asked.filter, asked.limit()).await,
        calls_off: tools.calls.as_ref().err().copied(),
    };
    answer(StatusCode::OK, &listed)
}

async fn tool(State(tools): State<Arc<ToolRoutes>>, Path(name): Path<String>) -> Response {
    match tools.fleet.tool(&name).await {
        Some(tool) => answer(StatusCode::OK, &tool),
        None => refuse(StatusCode::NOT_FOUND, "no node that answers has this tool"),
    }
}

async fn call(
    State(tools): State<Arc<ToolRoutes>>,
    Extension(by): Extension<By>,
    Path(name): Path<String>,
    body: Bytes,
) -> Response {
    let edge = match &tools.calls {
        Ok(edge) => edge,
        Err(why) => return refuse(StatusCode::FORBIDDEN, why),
    };
    let call: ToolCall = match serde_json::from_slice(&body) {
        Ok(call) if name.len() <= LONGEST_NAME => call,
        Ok(_) => return refuse(StatusCode::BAD_REQUEST, "the tool's name is too long"),
        Err(error) => {
            let reason = format!(
                "the body is to be {{\"arguments\": {{…}}, \"inputResponses\": {{…}}, \"requestState\": \"…\"}}; \
                 the last two may be left out: {error}"
            );
            return refuse(StatusCode::BAD_REQUEST, &reason);
        }
    };
    let known = tools.fleet.tool(&name).await;
    // Log before the call, because the tool may run even if its answer is lost.
    tracing::info!(
        tool = shown(&name, SHOWN_NAME),
        by = &*by.name,
        "console: call a tool"
    );
    edge.call(&name, &call, known.as_ref()).await
}
