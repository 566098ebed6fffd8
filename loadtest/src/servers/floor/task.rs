use serde::Serialize;

use super::{EchoResult, TextContent};
use crate::load::call::POLL_INTERVAL_MS;

const ID: &str = "task-";

const WHEN: &str = "2026-07-28T00:00:00.000Z";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Task<'a> {
    result_type: &'static str,
    task_id: String,
    status: &'static str,
    created_at: &'static str,
    last_updated_at: &'static str,
    ttl_ms: u64,
    poll_interval_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<EchoResult<'a>>,
}

pub(super) fn created(text: &str) -> Task<'_> {
    task(text, "task", "working", None)
}

pub(super) fn ended(id: &str) -> Task<'_> {
    let text = id.strip_prefix(ID).unwrap_or_default();
    let result = EchoResult {
        content: [TextContent {
            r#type: "text",
            text,
        }],
        is_error: false,
    };
    task(text, "complete", "completed", Some(result))
}

fn task<'a>(
    text: &str,
    result_type: &'static str,
    status: &'static str,
    result: Option<EchoResult<'a>>,
) -> Task<'a> {
    Task {
        result_type,
        task_id: format!("{ID}{text}"),
        status,
        created_at: WHEN,
        last_updated_at: WHEN,
        ttl_ms: 1000,
        poll_interval_ms: POLL_INTERVAL_MS,
        result,
    }
}
