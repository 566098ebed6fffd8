#![expect(deprecated, reason = "logging remains part of every revision")]

use rmcp::{
    RoleServer,
    model::{LoggingLevel, LoggingMessageNotificationParam, ProtocolVersion},
    service::RequestContext,
};
use serde_json::Value;

/// Sends `data` as a log message, if the request accepts it.
///
/// Since 2026-07-28, a request names its level in `_meta`. Before, the level belongs to the session, and the host
/// filters.
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
        // A lost log message does not fail the tool.
        ctx.peer.notify_logging_message(message).await.ok();
    }
}
