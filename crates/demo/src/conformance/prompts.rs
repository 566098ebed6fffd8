//! Prompts of each kind, and the completion of their arguments.
#![expect(
    missing_docs,
    reason = "`#[prompt]` makes public functions without documentation"
)]

use std::sync::atomic::Ordering;

use rmcp::{
    ErrorData, RoleServer,
    handler::server::wrapper::Parameters,
    model::{
        CompleteRequestParams, CompleteResult, CompletionInfo, ContentBlock, GetPromptResponse,
        GetPromptResult, InputResponses, PromptMessage, Reference, ResourceContents, Role,
    },
    prompt, prompt_router,
    service::RequestContext,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    ConformanceServer,
    input::{Answers, form, require},
};
use crate::{ask::Need, media};

pub(super) const ASKING_PROMPT: &str = "test_input_required_result_prompt";

const SUGGESTIONS: &[&str] = &["paris", "park", "party", "testValue1", "testValue2"];

#[derive(Deserialize, JsonSchema)]
struct TwoArguments {
    /// First test argument.
    arg1: String,
    /// Second test argument.
    arg2: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ResourceArguments {
    /// URI of the resource to embed.
    resource_uri: String,
}

#[prompt_router(vis = "pub(super)")]
impl ConformanceServer {
    /// A prompt without arguments.
    #[prompt]
    fn test_simple_prompt(&self) -> Vec<PromptMessage> {
        vec![user(ContentBlock::text(
            "This is a simple prompt for testing.",
        ))]
    }

    /// A prompt with arguments.
    #[prompt]
    fn test_prompt_with_arguments(
        &self,
        Parameters(TwoArguments { arg1, arg2 }): Parameters<TwoArguments>,
    ) -> Vec<PromptMessage> {
        let text = format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'");
        vec![user(ContentBlock::text(text))]
    }

    /// A prompt with an embedded resource.
    #[prompt]
    fn test_prompt_with_embedded_resource(
        &self,
        Parameters(ResourceArguments { resource_uri }): Parameters<ResourceArguments>,
    ) -> Vec<PromptMessage> {
        let text = "Embedded resource content for testing.";
        vec![
            user(ContentBlock::resource(ResourceContents::text(
                text,
                resource_uri,
            ))),
            user(ContentBlock::text(
                "Please process the embedded resource above.",
            )),
        ]
    }

    /// A prompt with an image.
    #[prompt]
    fn test_prompt_with_image(&self) -> Vec<PromptMessage> {
        vec![
            user(ContentBlock::image(media::png(), media::PNG_TYPE)),
            user(ContentBlock::text("Please analyze the image above.")),
        ]
    }

    /// A prompt that needs input from the user.
    #[prompt]
    fn test_input_required_result_prompt(&self) -> Result<GetPromptResult, ErrorData> {
        // `ask_for_context` serves this prompt, which the router only lists.
        Err(ErrorData::internal_error(
            "this prompt is not served by the router",
            None,
        ))
    }

    /// Comes and goes with `test_trigger_prompt_change`.
    #[prompt]
    fn test_extra_prompt(&self) -> Result<Vec<PromptMessage>, ErrorData> {
        if self.state.extra_prompt.load(Ordering::Acquire) {
            Ok(vec![user(ContentBlock::text(
                "This prompt comes and goes.",
            ))])
        } else {
            Err(ErrorData::invalid_params("prompt not found", None))
        }
    }
}

pub(super) fn ask_for_context(
    ctx: &RequestContext<RoleServer>,
    responses: Option<&InputResponses>,
) -> Result<GetPromptResponse, ErrorData> {
    Need::Form.check(ctx)?;
    let text = match Answers::new(responses).field::<String>("user_context", "context") {
        Some(Ok(context)) => format!("Use this context: {context}"),
        Some(Err(how)) => format!("Go without context, it was {how}."),
        None => {
            let question = form("What context should the prompt use?", "context", "string")?;
            return Ok(require([("user_context", question)], None)?.into());
        }
    };
    Ok(GetPromptResult::new(vec![user(ContentBlock::text(text))]).into())
}

pub(super) fn complete(request: &CompleteRequestParams) -> Result<CompleteResult, ErrorData> {
    let known = match &request.r#ref {
        Reference::Prompt(prompt) if prompt.name == "test_prompt_with_arguments" => SUGGESTIONS,
        _ => &[],
    };
    let values = known
        .iter()
        .filter(|value| value.starts_with(&request.argument.value));
    CompletionInfo::with_all_values(values.map(ToString::to_string).collect())
        .map(CompleteResult::new)
        .map_err(|error| ErrorData::internal_error(error, None))
}

fn user(content: ContentBlock) -> PromptMessage {
    PromptMessage::new(Role::User, content)
}
