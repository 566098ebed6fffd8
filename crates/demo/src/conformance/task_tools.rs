//! Fixtures that become tasks (SEP-2663).

use std::time::Duration;

use rmcp::{
    ErrorData, RoleServer,
    handler::server::{tool::InputResponses, wrapper::Parameters},
    model::{CallToolResponse, CallToolResult, ContentBlock, MetaObject, object},
    service::RequestContext,
    tool, tool_router,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::time::sleep;

use super::ConformanceServer;
use super::asking::elicit;
use super::input::Answers;
use super::input_tools::ask_who;
use crate::ask::{AskRefusal, Need};

const LONG: Duration = Duration::from_millis(1000);

#[derive(Deserialize, JsonSchema)]
struct GreetArguments {
    /// Whom to greet.
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct ComputeArguments {
    /// How long it takes.
    seconds: f64,
    /// Named in the result.
    #[serde(default)]
    label: String,
}

#[derive(Deserialize, JsonSchema)]
struct DeleteArguments {
    /// Name of the file to delete.
    filename: String,
}

#[tool_router(router = task_tools, vis = "pub(super)")]
impl ConformanceServer {
    /// Greets at once.
    #[tool]
    fn greet(&self, Parameters(GreetArguments { name }): Parameters<GreetArguments>) -> String {
        format!("Hello, {name}!")
    }

    /// Takes as long as it is told.
    #[tool]
    async fn slow_compute(
        &self,
        Parameters(ComputeArguments { seconds, label }): Parameters<ComputeArguments>,
        ctx: RequestContext<RoleServer>,
    ) -> Result<String, ErrorData> {
        let time = Duration::try_from_secs_f64(seconds)
            .map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
        tokio::select! {
            () = sleep(time) => Ok(format!("Computed {label:?} in {seconds} s.")),
            () = ctx.ct.cancelled() => Err(ErrorData::internal_error("cancelled", None)),
        }
    }

    /// Fails after a while, and says so in its result.
    #[tool(meta = required())]
    async fn failing_job(&self) -> CallToolResult {
        sleep(LONG).await;
        CallToolResult::error(vec![ContentBlock::text("The job failed.")])
    }

    /// Fails after a while with an error of the protocol.
    #[tool]
    async fn protocol_error_job(&self) -> Result<String, ErrorData> {
        sleep(LONG).await;
        Err(ErrorData::internal_error("The job is broken.", None))
    }

    /// Works for a while, then asks before it deletes.
    #[tool(meta = optional())]
    async fn confirm_delete(
        &self,
        Parameters(DeleteArguments { filename }): Parameters<DeleteArguments>,
        ctx: RequestContext<RoleServer>,
    ) -> Result<String, AskRefusal> {
        sleep(LONG).await;
        let message = format!("Delete {filename}?");
        let properties = json!({ "confirm": { "type": "boolean" } });
        let answer = elicit(&ctx, message, properties, &["confirm"]).await?;
        let confirmed = answer
            .content
            .is_some_and(|content| content["confirm"] == true);
        Ok(match confirmed {
            true => format!("Deleted {filename}."),
            false => format!("Kept {filename}."),
        })
    }

    /// Works for a while, then asks two questions at once.
    #[tool(meta = optional())]
    async fn multi_input(&self, ctx: RequestContext<RoleServer>) -> Result<String, AskRefusal> {
        sleep(LONG).await;
        let name = json!({ "name": { "type": "string" } });
        let confirm = json!({ "confirm": { "type": "boolean" } });
        let (name, confirm) = tokio::try_join!(
            elicit(&ctx, "What is your name?".to_owned(), name, &["name"]),
            elicit(&ctx, "Go on?".to_owned(), confirm, &["confirm"]),
        )?;
        let given = [name, confirm]
            .iter()
            .filter(|answer| answer.content.is_some())
            .count();
        Ok(format!("{given} of 2 questions were answered."))
    }

    /// Asks for a name by its result, and then works for a while.
    #[tool(meta = required())]
    async fn test_tool_with_task(
        &self,
        InputResponses(responses): InputResponses,
        ctx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, AskRefusal> {
        Need::Form.check(&ctx)?;
        match Answers::new(responses.as_ref()).field::<String>("user_name", "name") {
            None => Ok(ask_who()?.into()),
            Some(name) => {
                sleep(LONG).await;
                let text = format!("Worked for {}.", name.unwrap_or_default());
                Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
            }
        }
    }
}

/// Clients of 2025-11-25 may call a tool as a task only with this mark.
fn optional() -> MetaObject {
    MetaObject(object(json!({ "shoal/taskSupport": "optional" })))
}

fn required() -> MetaObject {
    MetaObject(object(json!({ "shoal/taskSupport": "required" })))
}
