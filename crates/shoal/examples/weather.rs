//! A server with a tool that answers at once, and one that reports progress and can be cancelled.
//!
//! `cargo run --example weather` serves clients at http://127.0.0.1:8080/mcp. With `-- stdio`, the program serves the
//! client that starts it.

use std::process::ExitCode;
use std::time::Duration;

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{Implementation, ServerCapabilities, ServerConfig};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use shoal::RequestContextExt as _;
use tokio::time::{Instant, sleep};

/// How long a day's forecast takes.
const DAY: Duration = Duration::from_millis(20);

#[derive(Deserialize, JsonSchema)]
struct Place {
    /// The city.
    city: String,
}

#[derive(Deserialize, JsonSchema)]
struct Days {
    /// The city.
    city: String,
    /// How many days.
    #[schemars(range(min = 1, max = 1_000_000))]
    days: u32,
}

struct Weather {
    tools: ToolRouter<Self>,
}

#[tool_router(router = tools)]
impl Weather {
    /// Tells how the weather is now.
    #[tool(annotations(read_only_hint = true))]
    async fn now(&self, Parameters(Place { city }): Parameters<Place>) -> String {
        format!("{city}: 21 degrees, no clouds")
    }

    /// Computes a forecast, day by day.
    #[tool(annotations(read_only_hint = true))]
    async fn forecast(
        &self,
        Parameters(Days { city, days }): Parameters<Days>,
        ctx: RequestContext<RoleServer>,
    ) -> Result<String, ErrorData> {
        let needed = Instant::now() + DAY * days;
        if ctx.deadline().is_some_and(|deadline| deadline < needed) {
            let text = "there is not enough time for so many days";
            return Err(ErrorData::invalid_params(text, None));
        }
        for day in 1..=days {
            tokio::select! {
                () = sleep(DAY) => {}
                () = ctx.ct.cancelled() => {
                    return Err(ErrorData::internal_error("cancelled", None));
                }
            }
            let message = format!("day {day}");
            ctx.report_progress(day.into(), Some(days.into()), Some(&message))
                .await;
        }
        Ok(format!("{city}: {days} days without clouds"))
    }

    /// Tells who is calling.
    #[tool(annotations(read_only_hint = true))]
    async fn whoami(&self, ctx: RequestContext<RoleServer>) -> String {
        ctx.principal().unwrap_or("nobody that I know").to_owned()
    }
}

#[tool_handler(router = self.tools)]
impl ServerHandler for Weather {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("weather", env!("CARGO_PKG_VERSION")))
    }
}

fn main() -> ExitCode {
    shoal::serve(Weather {
        tools: Weather::tools(),
    })
}
