#![expect(deprecated, reason = "logging remains part of every revision")]

use std::sync::atomic::Ordering;

use rmcp::{
    ErrorData, RoleServer,
    handler::server::wrapper::Parameters,
    model::{LoggingLevel, ResourceUpdatedNotificationParam},
    service::RequestContext,
    tool, tool_router,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{DemoServer, resources::COUNTER};
use crate::log::log;

const BONUS: &str = "bonus";

#[derive(Deserialize, JsonSchema)]
struct IncrementArguments {
    /// How much to add; 1 if left out.
    by: Option<i64>,
}

#[derive(Deserialize, JsonSchema)]
struct LogArguments {
    /// Severity of the message.
    level: LoggingLevel,
    /// Text of the message.
    message: String,
}

impl DemoServer {
    pub(super) fn offers(&self, tool: &str) -> bool {
        tool != BONUS || self.state.bonus_tool.load(Ordering::Acquire)
    }
}

#[tool_router(router = changing_tools, vis = "pub(super)")]
impl DemoServer {
    /// Adds to the counter behind `demo://counter` and returns its new value.
    #[tool(annotations(
        read_only_hint = false,
        destructive_hint = false,
        idempotent_hint = false,
        open_world_hint = false
    ))]
    async fn increment_counter(
        &self,
        Parameters(IncrementArguments { by }): Parameters<IncrementArguments>,
        ctx: RequestContext<RoleServer>,
    ) -> String {
        let by = by.unwrap_or(1);
        let value = self
            .state
            .counter
            .fetch_add(by, Ordering::AcqRel)
            .wrapping_add(by);
        // The counter has changed even if the notification fails.
        ctx.peer
            .notify_resource_updated(ResourceUpdatedNotificationParam::new(COUNTER))
            .await
            .ok();
        value.to_string()
    }

    /// Adds the tool `bonus`, or removes it if it is there.
    #[tool(annotations(
        read_only_hint = false,
        destructive_hint = false,
        idempotent_hint = false,
        open_world_hint = false
    ))]
    async fn toggle_bonus_tool(&self, ctx: RequestContext<RoleServer>) -> String {
        let was_there = self.state.bonus_tool.fetch_not(Ordering::AcqRel);
        ctx.peer.notify_tool_list_changed().await.ok();
        if was_there {
            "bonus tool removed".to_owned()
        } else {
            "bonus tool added".to_owned()
        }
    }

    /// Is only there when `toggle_bonus_tool` has added it.
    #[tool(annotations(read_only_hint = true, idempotent_hint = true, open_world_hint = false))]
    fn bonus(&self) -> Result<String, ErrorData> {
        if self.offers(BONUS) {
            Ok("you found the bonus tool".to_owned())
        } else {
            // The router's answer for an unknown tool.
            Err(ErrorData::invalid_params("tool not found", None))
        }
    }

    /// Sends a log message to the client.
    #[tool(annotations(
        read_only_hint = false,
        destructive_hint = false,
        idempotent_hint = false,
        open_world_hint = false
    ))]
    async fn write_log(
        &self,
        Parameters(LogArguments { level, message }): Parameters<LogArguments>,
        ctx: RequestContext<RoleServer>,
    ) -> String {
        log(&ctx, "demo", level, message).await;
        "logged".to_owned()
    }
}
