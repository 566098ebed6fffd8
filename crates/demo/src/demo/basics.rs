use std::time::Duration;

use rmcp::{
    Json,
    handler::server::wrapper::Parameters,
    model::{CallToolResult, ContentBlock},
    tool, tool_router,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DemoServer;

/// Longer than Shoal holds a call by default before it journals the call.
const SLOWLY: Duration = Duration::from_millis(20);

#[derive(Deserialize, JsonSchema)]
struct EchoArguments {
    /// The text to return.
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct AddArguments {
    /// The first number.
    a: f64,
    /// The second number.
    b: f64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    /// `a + b`.
    sum: f64,
}

#[derive(Deserialize, JsonSchema)]
struct FailArguments {
    /// Text of the error.
    message: String,
}

#[tool_router(router = basic_tools, vis = "pub(super)")]
impl DemoServer {
    // For measuring the overhead of a tool call.
    /// Returns its argument.
    #[tool(annotations(read_only_hint = true, idempotent_hint = true, open_world_hint = false))]
    fn echo(&self, Parameters(EchoArguments { text }): Parameters<EchoArguments>) -> String {
        text
    }

    // Like `echo`, but not declared safe to repeat.
    /// Returns its argument, but asks not to be called twice.
    #[tool(annotations(
        read_only_hint = false,
        idempotent_hint = false,
        destructive_hint = false,
        open_world_hint = false
    ))]
    fn echo_once(&self, Parameters(EchoArguments { text }): Parameters<EchoArguments>) -> String {
        text
    }

    // Without hints, like most tools, so Shoal treats it as unsafe to repeat.
    /// Returns its argument after 20 milliseconds.
    #[tool]
    async fn echo_slowly(
        &self,
        Parameters(EchoArguments { text }): Parameters<EchoArguments>,
    ) -> String {
        tokio::time::sleep(SLOWLY).await;
        text
    }

    /// Adds two numbers.
    #[tool(annotations(read_only_hint = true, idempotent_hint = true, open_world_hint = false))]
    fn add(
        &self,
        Parameters(AddArguments { a, b }): Parameters<AddArguments>,
    ) -> Result<Json<Sum>, String> {
        let sum = a + b;
        // JSON cannot represent infinity.
        if sum.is_finite() {
            Ok(Json(Sum { sum }))
        } else {
            Err("the sum is too large".to_owned())
        }
    }

    /// Fails with the given message.
    #[tool(annotations(read_only_hint = true, idempotent_hint = true, open_world_hint = false))]
    fn fail(
        &self,
        Parameters(FailArguments { message }): Parameters<FailArguments>,
    ) -> CallToolResult {
        CallToolResult::error(vec![ContentBlock::text(message)])
    }
}
