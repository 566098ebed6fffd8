//! Fixtures that ask in the middle of a call.
#![expect(deprecated, reason = "sampling remains part of every revision")]

use rmcp::{
    ErrorData, RoleServer,
    handler::server::wrapper::Parameters,
    model::{
        CreateMessageRequestParams, ElicitRequestParams, ElicitResult, ElicitationAction,
        ElicitationSchema, SamplingMessage, SamplingMessageContentBlock, object,
    },
    service::RequestContext,
    tool, tool_router,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::ConformanceServer;
use crate::ask::{AskRefusal, Need};

#[derive(Deserialize, JsonSchema)]
struct SamplingArguments {
    /// The prompt to send to the model.
    prompt: String,
}

#[derive(Deserialize, JsonSchema)]
struct ElicitationArguments {
    /// The message to show to the user.
    message: String,
}

#[tool_router(router = asking_tools, vis = "pub(super)")]
impl ConformanceServer {
    /// Samples from the client's model.
    #[tool]
    async fn test_sampling(
        &self,
        Parameters(SamplingArguments { prompt }): Parameters<SamplingArguments>,
        ctx: RequestContext<RoleServer>,
    ) -> Result<String, AskRefusal> {
        Need::Sampling.check(&ctx)?;
        let request =
            CreateMessageRequestParams::new(vec![SamplingMessage::user_text(prompt)], 100);
        let sample = ctx.peer.create_message(request).await?;
        let text = sample.message.content.iter().find_map(|block| match block {
            SamplingMessageContentBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        Ok(format!("LLM response: {}", text.unwrap_or_default()))
    }

    /// Asks the user to fill in a form.
    #[tool]
    async fn test_elicitation(
        &self,
        Parameters(ElicitationArguments { message }): Parameters<ElicitationArguments>,
        ctx: RequestContext<RoleServer>,
    ) -> Result<String, AskRefusal> {
        let properties = json!({
            "username": { "type": "string", "description": "User's response" },
            "email": { "type": "string", "description": "User's email address" }
        });
        let answer = elicit(&ctx, message, properties, &["username", "email"]).await?;
        Ok(format!("User response: {}", describe(&answer)))
    }

    /// Asks with a form that has a default for every primitive type (SEP-1034).
    #[tool]
    async fn test_elicitation_sep1034_defaults(
        &self,
        ctx: RequestContext<RoleServer>,
    ) -> Result<String, AskRefusal> {
        let properties = json!({
            "name": { "type": "string", "description": "User name", "default": "John Doe" },
            "age": { "type": "integer", "description": "User age", "default": 30 },
            "score": { "type": "number", "description": "User score", "default": 95.5 },
            "status": {
                "type": "string",
                "description": "User status",
                "enum": ["active", "inactive", "pending"],
                "default": "active"
            },
            "verified": { "type": "boolean", "description": "Verified", "default": true }
        });
        let message = "Please review the form and change what is wrong".to_owned();
        let answer = elicit(&ctx, message, properties, &[]).await?;
        Ok(format!("Elicitation completed: {}", describe(&answer)))
    }

    /// Asks with a form that has every kind of choice (SEP-1330).
    #[tool]
    async fn test_elicitation_sep1330_enums(
        &self,
        ctx: RequestContext<RoleServer>,
    ) -> Result<String, AskRefusal> {
        let titled = json!([
            { "const": "value1", "title": "First Option" },
            { "const": "value2", "title": "Second Option" },
            { "const": "value3", "title": "Third Option" }
        ]);
        let untitled = json!(["option1", "option2", "option3"]);
        let properties = json!({
            "untitledSingle": { "type": "string", "enum": untitled },
            "titledSingle": { "type": "string", "oneOf": titled },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"]
            },
            "untitledMulti": { "type": "array", "items": { "type": "string", "enum": untitled } },
            "titledMulti": { "type": "array", "items": { "anyOf": titled } }
        });
        let answer = elicit(&ctx, "Please choose".to_owned(), properties, &[]).await?;
        Ok(format!("Elicitation completed: {}", describe(&answer)))
    }

    /// Needs a client that can sample, and says so to any other.
    #[tool]
    async fn test_missing_capability(
        &self,
        ctx: RequestContext<RoleServer>,
    ) -> Result<String, AskRefusal> {
        Need::Sampling.check(&ctx)?;
        Ok("This client can sample.".to_owned())
    }
}

pub(super) async fn elicit(
    ctx: &RequestContext<RoleServer>,
    message: String,
    properties: Value,
    required: &[&str],
) -> Result<ElicitResult, AskRefusal> {
    Need::Form.check(ctx)?;
    let requested_schema = form_schema(properties, required)?;
    let form = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema,
    };
    Ok(ctx.peer.create_elicitation(form).await?)
}

pub(super) fn form_schema(
    properties: Value,
    required: &[&str],
) -> Result<ElicitationSchema, ErrorData> {
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    ElicitationSchema::from_json_schema(object(schema))
        .map_err(|error| ErrorData::internal_error(format!("invalid form: {error}"), None))
}

fn describe(answer: &ElicitResult) -> String {
    let action = match answer.action {
        ElicitationAction::Accept => "accept",
        ElicitationAction::Decline => "decline",
        _ => "cancel",
    };
    let content = answer
        .content
        .as_ref()
        .map_or_else(|| "{}".to_owned(), Value::to_string);
    format!("action={action}, content={content}")
}
