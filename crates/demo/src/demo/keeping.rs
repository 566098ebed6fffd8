use rmcp::{
    RoleServer, handler::server::wrapper::Parameters, service::RequestContext, tool, tool_router,
};
use schemars::JsonSchema;
use serde::Deserialize;
use shoal_ports::SessionState;

use super::DemoServer;

const COUNT: &str = "count_up";

#[derive(Deserialize, JsonSchema)]
struct RememberArguments {
    /// Key of the note.
    key: String,
    /// Text to remember.
    value: String,
}

#[derive(Deserialize, JsonSchema)]
struct RecallArguments {
    /// Key of the note.
    key: String,
}

#[tool_router(router = keeping_tools, vis = "pub(super)")]
impl DemoServer {
    /// Remembers a value for the rest of the session.
    #[tool(annotations(
        read_only_hint = false,
        destructive_hint = true,
        idempotent_hint = true,
        open_world_hint = false
    ))]
    async fn remember(
        &self,
        Parameters(RememberArguments { key, value }): Parameters<RememberArguments>,
        ctx: RequestContext<RoleServer>,
    ) -> Result<String, String> {
        let kept = state(&ctx)?.set(&key, &value).await;
        kept.map_err(|error| error.message)?;
        Ok(format!("remembered {key}"))
    }

    // Not atomic: concurrent calls of one session may overwrite one another's count.
    /// Counts the calls of this tool in this session, and returns how many there have been.
    #[tool(annotations(
        read_only_hint = false,
        destructive_hint = false,
        idempotent_hint = false,
        open_world_hint = false
    ))]
    async fn count_up(&self, ctx: RequestContext<RoleServer>) -> Result<String, String> {
        let state = state(&ctx)?;
        let before = state.get::<u64>(COUNT).await;
        let count = before.map_err(|error| error.message)?.unwrap_or(0) + 1;
        let kept = state.set(COUNT, &count).await;
        kept.map_err(|error| error.message)?;
        Ok(count.to_string())
    }

    /// Returns what `remember` was given in this session.
    #[tool(annotations(read_only_hint = true, idempotent_hint = true, open_world_hint = false))]
    async fn recall(
        &self,
        Parameters(RecallArguments { key }): Parameters<RecallArguments>,
        ctx: RequestContext<RoleServer>,
    ) -> Result<String, String> {
        let value = state(&ctx)?.get::<String>(&key).await;
        value
            .map_err(|error| error.message)?
            .ok_or_else(|| format!("nothing is remembered by {key}"))
    }
}

fn state(ctx: &RequestContext<RoleServer>) -> Result<SessionState, String> {
    let state = ctx.extensions.get::<SessionState>();
    state
        .cloned()
        .ok_or_else(|| "there is no session state here: Shoal does not run this server".to_owned())
}
