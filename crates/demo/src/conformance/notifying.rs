#![expect(deprecated, reason = "logging remains part of every revision")]

use std::{sync::atomic::Ordering, time::Duration};

use rmcp::{
    RoleServer,
    model::{CustomNotification, LoggingLevel, ProgressNotificationParam, ServerNotification},
    service::RequestContext,
    tool, tool_router,
};
use serde_json::json;
use tokio::time::sleep;

use super::ConformanceServer;
use crate::log::log;

const LOGGER: &str = "conformance";

/// Makes notifications arrive separately.
const PAUSE: Duration = Duration::from_millis(50);

/// Asks the host to close the call's event stream.
const CLOSE_STREAM: &str = "io.shoal/close_stream";
/// When the client should reconnect.
const RETRY_MS: u64 = 200;
/// How long the tool works after the close: long enough for the client to notice the close, and short enough to end
/// soon after the client reconnects.
const WORK_AFTER_CLOSE: Duration = Duration::from_millis(300);

#[tool_router(router = notifying_tools, vis = "pub(super)")]
impl ConformanceServer {
    /// Logs three messages while it works.
    #[tool]
    async fn test_tool_with_logging(&self, ctx: RequestContext<RoleServer>) -> String {
        log(&ctx, LOGGER, LoggingLevel::Info, "Tool execution started").await;
        sleep(PAUSE).await;
        log(&ctx, LOGGER, LoggingLevel::Info, "Tool processing data").await;
        sleep(PAUSE).await;
        log(&ctx, LOGGER, LoggingLevel::Info, "Tool execution completed").await;
        "Tool with logging executed successfully".to_owned()
    }

    /// Logs one message if the request asks for log messages.
    #[tool]
    async fn test_logging_tool(&self, ctx: RequestContext<RoleServer>) -> String {
        log(
            &ctx,
            LOGGER,
            LoggingLevel::Info,
            "This request asked for log messages",
        )
        .await;
        "Logging tool executed".to_owned()
    }

    /// Reports progress three times, if the request carries a progress token.
    #[tool]
    async fn test_tool_with_progress(&self, ctx: RequestContext<RoleServer>) -> String {
        let token = ctx.meta.get_progress_token();
        for percent in [0.0, 50.0, 100.0] {
            if let Some(token) = &token {
                let progress =
                    ProgressNotificationParam::new(token.clone(), percent).with_total(100.0);
                ctx.peer.notify_progress(progress).await.ok();
            }
            sleep(PAUSE).await;
        }
        "Tool with progress executed successfully".to_owned()
    }

    /// Has its event stream closed in the middle of the call (SEP-1699).
    #[tool]
    async fn test_reconnection(&self, ctx: RequestContext<RoleServer>) -> String {
        let close = CustomNotification::new(CLOSE_STREAM, Some(json!({ "retryMs": RETRY_MS })));
        ctx.peer
            .send_notification(ServerNotification::CustomNotification(close))
            .await
            .ok();
        sleep(WORK_AFTER_CLOSE).await;
        "Reconnection test completed successfully".to_owned()
    }

    /// Adds a tool to the list, or removes it.
    #[tool]
    async fn test_trigger_tool_change(&self, ctx: RequestContext<RoleServer>) -> String {
        self.state.extra_tool.fetch_not(Ordering::AcqRel);
        ctx.peer.notify_tool_list_changed().await.ok();
        "Tool list changed".to_owned()
    }

    /// Adds a prompt to the list, or removes it.
    #[tool]
    async fn test_trigger_prompt_change(&self, ctx: RequestContext<RoleServer>) -> String {
        self.state.extra_prompt.fetch_not(Ordering::AcqRel);
        ctx.peer.notify_prompt_list_changed().await.ok();
        "Prompt list changed".to_owned()
    }

    /// Comes and goes with `test_trigger_tool_change`.
    #[tool]
    fn test_extra_tool(&self) -> String {
        "This tool comes and goes.".to_owned()
    }
}
