#![expect(
    missing_docs,
    reason = "`#[prompt]` makes public functions without documentation"
)]

use rmcp::{
    handler::server::wrapper::Parameters,
    model::{GetPromptResult, PromptMessage, Role},
    prompt, prompt_router,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::DemoServer;

#[derive(Deserialize, JsonSchema)]
struct GreetArguments {
    /// Whom to greet.
    name: String,
    /// In which language; English if left out.
    language: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct ReviewArguments {
    /// The code to review.
    code: String,
}

#[prompt_router(vis = "pub(super)")]
impl DemoServer {
    /// Greets somebody in a language of choice.
    #[prompt]
    fn greet(
        &self,
        Parameters(GreetArguments { name, language }): Parameters<GreetArguments>,
    ) -> GetPromptResult {
        let language = language.as_deref().unwrap_or("English");
        let text = format!("Greet {name} warmly, in {language}.");
        GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)])
            .with_description(format!("A greeting for {name}"))
    }

    /// Asks for a review of a piece of code.
    #[prompt]
    fn code_review(
        &self,
        Parameters(ReviewArguments { code }): Parameters<ReviewArguments>,
    ) -> GetPromptResult {
        let text = format!("Review this code for mistakes and for clarity:\n\n```\n{code}\n```");
        GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)])
            .with_description("A code review")
    }
}
