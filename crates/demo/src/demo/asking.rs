#![expect(
    deprecated,
    reason = "sampling and roots remain part of every revision"
)]

use std::sync::atomic::Ordering;

use rmcp::{
    RoleServer, elicit_safe,
    handler::server::wrapper::Parameters,
    model::{
        CreateMessageRequestParams, ElicitRequestParams, ElicitationAction, SamplingMessage,
        SamplingMessageContentBlock,
    },
    service::{ElicitationError, RequestContext},
    tool, tool_router,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::DemoServer;
use super::jobs::may_be_task;
use crate::ask::{AskRefusal, Need};

#[cfg(test)]
mod tests;

const MAX_GUESTS: i64 = 20;
const SUMMARY_TOKENS: u32 = 100;

#[derive(Deserialize, JsonSchema)]
struct TableArguments {
    /// Where to book.
    restaurant: String,
}

/// The form that the user fills in to book a table.
#[derive(Deserialize, JsonSchema)]
struct Booking {
    /// How many people are coming.
    #[schemars(range(min = 1, max = MAX_GUESTS))]
    guests: i64,
    /// On which day.
    date: String,
}

elicit_safe!(Booking);

#[derive(Deserialize, JsonSchema)]
struct AccountArguments {
    /// The service to connect: letters, digits, `-` and `_`.
    service: String,
}

#[derive(Deserialize, JsonSchema)]
struct SummaryArguments {
    /// The text to summarize.
    text: String,
}

#[tool_router(router = asking_tools, vis = "pub(super)")]
impl DemoServer {
    /// Books a table, after the user has filled in a form with the number of guests and the date.
    #[tool(meta = may_be_task(), annotations(
        read_only_hint = false,
        destructive_hint = false,
        idempotent_hint = false
    ))]
    async fn book_table(
        &self,
        Parameters(TableArguments { restaurant }): Parameters<TableArguments>,
        ctx: RequestContext<RoleServer>,
    ) -> Result<String, AskRefusal> {
        Need::Form.check(&ctx)?;
        let question = format!("When would you like to eat at {restaurant}, and with how many?");
        match ctx.peer.elicit::<Booking>(question).await {
            // A client might not enforce the schema.
            Ok(Some(Booking { guests, .. })) if !(1..=MAX_GUESTS).contains(&guests) => Err(
                AskRefusal::Told(format!("guests must be between 1 and {MAX_GUESTS}")),
            ),
            Ok(Some(Booking { guests, date })) => {
                Ok(format!("booked {restaurant} for {guests} on {date}"))
            }
            Ok(None) => Err(ElicitationError::NoContent.into()),
            Err(ElicitationError::UserDeclined) => Ok("not booked: declined".to_owned()),
            Err(ElicitationError::UserCancelled) => Ok("not booked: cancelled".to_owned()),
            Err(error) => Err(error.into()),
        }
    }

    /// Connects an account, after the user has agreed to open the service's sign-in page.
    #[tool(annotations(
        read_only_hint = false,
        destructive_hint = false,
        idempotent_hint = false
    ))]
    async fn connect_account(
        &self,
        Parameters(AccountArguments { service }): Parameters<AccountArguments>,
        ctx: RequestContext<RoleServer>,
    ) -> Result<String, AskRefusal> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if service.is_empty() || !service.chars().all(plain) {
            return Err(AskRefusal::Told(
                "service may have letters, digits, - and _ only".to_owned(),
            ));
        }
        Need::Url.check(&ctx)?;
        let number = self.state.connections.fetch_add(1, Ordering::Relaxed);
        let page = ElicitRequestParams::UrlElicitationParams {
            meta: None,
            message: format!("Sign in to {service} to connect your account."),
            url: format!("https://example.com/connect/{service}"),
            elicitation_id: format!("connect-{service}-{number}"),
        };
        Ok(match ctx.peer.create_elicitation(page).await?.action {
            ElicitationAction::Accept => format!("connected {service}"),
            ElicitationAction::Decline => "not connected: declined".to_owned(),
            _ => "not connected: cancelled".to_owned(),
        })
    }

    /// Summarizes a text with the client's own model.
    #[tool(annotations(read_only_hint = true))]
    async fn summarize(
        &self,
        Parameters(SummaryArguments { text }): Parameters<SummaryArguments>,
        ctx: RequestContext<RoleServer>,
    ) -> Result<String, AskRefusal> {
        Need::Sampling.check(&ctx)?;
        let prompt = SamplingMessage::user_text(format!("Summarize in one sentence:\n\n{text}"));
        let request = CreateMessageRequestParams::new(vec![prompt], SUMMARY_TOKENS);
        let sample = ctx.peer.create_message(request).await?;
        let summary: String = sample.message.content.iter().filter_map(text_of).collect();
        Ok(format!("summary: {summary}"))
    }

    /// Lists the roots that the client works in, one URI a line.
    #[tool(annotations(read_only_hint = true))]
    async fn list_roots(&self, ctx: RequestContext<RoleServer>) -> Result<String, AskRefusal> {
        Need::Roots.check(&ctx)?;
        let roots = ctx.peer.list_roots().await?.roots;
        let uris: Vec<String> = roots.into_iter().map(|root| root.uri).collect();
        Ok(uris.join("\n"))
    }
}

fn text_of(block: &SamplingMessageContentBlock) -> Option<&str> {
    match block {
        SamplingMessageContentBlock::Text(text) => Some(&text.text),
        _ => None,
    }
}
