//! Log notifications that respect what the request asked for.
#![expect(deprecated, reason = "logging remains part of every revision")]

use rmcp::{
    RoleServer,
    model::{LoggingLevel, LoggingMessageNotificationParam, ProtocolVersion},
    service::RequestContext,
};
use serde_json::Value;

/// Sends `data` to the client as a log message, if the request may have it.
///
/// Since 2026-07-28 a request names the level that it wants in `_meta`, and gets nothing if it names
/// none. Before that the level belongs to the session, so whoever holds the session filters.
pub(crate) async fn log(
    ctx: &RequestContext<RoleServer>,
    logger: &'static str,
    level: LoggingLevel,
    data: impl Into<Value>,
) {
    let per_request = ctx.protocol_version() >= Some(ProtocolVersion::V_2026_07_28);
    let wanted = ctx
        .meta
        .log_level()
        .map_or(!per_request, |least| level as u8 >= least as u8);
    if wanted {
        let message = LoggingMessageNotificationParam::new(level, data.into()).with_logger(logger);
        // A log line that cannot be delivered is no reason to fail the tool.
        ctx.peer.notify_logging_message(message).await.ok();
    }
}
