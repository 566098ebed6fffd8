//! A server that asks the user during a call, for clients of every protocol revision.
//!
//! `cargo run --example booking -- serve`, and then: `shoal call book '{"restaurant":"Pesto"}'`

use std::process::ExitCode;

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{ServerCapabilities, ServerConfig};
use rmcp::service::{ElicitationError, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler, elicit_safe, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Restaurant {
    /// Where to book.
    restaurant: String,
}

/// The form.
#[derive(Deserialize, JsonSchema)]
struct Table {
    /// How many people are coming.
    #[schemars(range(min = 1, max = 20))]
    guests: u32,
    /// On which day.
    date: String,
}

elicit_safe!(Table);

struct Booking {
    tools: ToolRouter<Self>,
}

#[tool_router(router = tools)]
impl Booking {
    /// Books a table, after the user has filled in a form.
    #[tool(annotations(read_only_hint = false))]
    async fn book(
        &self,
        Parameters(Restaurant { restaurant }): Parameters<Restaurant>,
        ctx: RequestContext<RoleServer>,
    ) -> Result<String, ErrorData> {
        let question = format!("When would you like to eat at {restaurant}?");
        match ctx.peer.elicit::<Table>(question).await {
            Ok(Some(Table { guests, date })) => {
                Ok(format!("booked {restaurant} for {guests} on {date}"))
            }
            Ok(None) | Err(ElicitationError::UserDeclined | ElicitationError::UserCancelled) => {
                Ok("not booked".to_owned())
            }
            Err(error) => Err(ErrorData::invalid_request(error.to_string(), None)),
        }
    }
}

#[tool_handler(router = self.tools)]
impl ServerHandler for Booking {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

fn main() -> ExitCode {
    shoal::serve(Booking {
        tools: Booking::tools(),
    })
}
