//! `server/discover` (2026-07-28, Discovery).

use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use shoal_ports::SettledFacts;
use shoal_protocol::task::with_tasks;
use shoal_protocol::{RawJson, RequestId, SERVER_INFO, response};

use super::check::supported_versions;
use crate::answer as http_answer;
use crate::refusal::Refusal;
use crate::state::EdgeState;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DiscoverResult<'a> {
    result_type: &'static str,
    supported_versions: [&'static str; supported_count()],
    capabilities: &'a RawJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
    ttl_ms: u64,
    cache_scope: &'static str,
    #[serde(rename = "_meta")]
    meta: serde_json::Value,
}

const fn supported_count() -> usize {
    shoal_protocol::Revision::ALL.len()
}

/// All callers get the same description. Fails if this node does not know all pools yet.
pub(super) async fn answer(edge: &EdgeState, id: &RequestId) -> Result<Response, Refusal> {
    let settled = edge.dispatcher.settled_facts().await;
    let SettledFacts { facts, lacks } = settled.map_err(Refusal::NotReady)?;
    let kept = edge.config.catalog.discover_ttl.get();
    // If pools may still join, the client caches the answer for a shorter time.
    let again = lacks.map_or(kept, |why| why.retry_after().unwrap_or_default());
    let ttl = kept.min(again).as_millis();
    let capabilities = match edge.config.tasks.enabled {
        true => with_tasks(&facts.capabilities),
        false => facts.capabilities.clone(),
    };
    let result = DiscoverResult {
        result_type: "complete",
        supported_versions: supported_versions(),
        capabilities: &capabilities,
        instructions: facts.instructions.as_deref(),
        ttl_ms: u64::try_from(ttl).unwrap_or(u64::MAX),
        cache_scope: "public",
        meta: serde_json::json!({ SERVER_INFO: facts.server_info }),
    };
    let text = response(id, &RawJson::of(&result));
    Ok(http_answer::json(StatusCode::OK, text))
}
