//! A stateful server: later calls of a session find its notes on every worker.
//!
//! `cargo run --example notes`

use std::process::ExitCode;
use std::time::Duration;

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{ServerCapabilities, ServerConfig};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use shoal::RequestContextExt as _;

#[derive(Deserialize, JsonSchema)]
struct Note {
    /// Key of the note.
    title: String,
    /// Text of the note.
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Title {
    /// Key of the note.
    title: String,
}

struct Notes {
    tools: ToolRouter<Self>,
}

#[tool_router(router = tools)]
impl Notes {
    /// Notes a text for the rest of the session.
    #[tool(annotations(idempotent_hint = true))]
    async fn note(
        &self,
        Parameters(Note { title, text }): Parameters<Note>,
        ctx: RequestContext<RoleServer>,
    ) -> Result<String, ErrorData> {
        ctx.session().set(&title, &text).await?;
        Ok(format!("noted {title}"))
    }

    /// Reads a note of this session.
    #[tool(annotations(read_only_hint = true))]
    async fn read(
        &self,
        Parameters(Title { title }): Parameters<Title>,
        ctx: RequestContext<RoleServer>,
    ) -> Result<String, ErrorData> {
        let text = ctx.session().get::<String>(&title).await?;
        text.ok_or_else(|| ErrorData::invalid_params(format!("there is no note {title:?}"), None))
    }

    /// Lists the titles of this session's notes.
    #[tool(annotations(read_only_hint = true))]
    async fn titles(&self, ctx: RequestContext<RoleServer>) -> Result<String, ErrorData> {
        Ok(ctx.session().keys().await?.join(", "))
    }
}

#[tool_handler(router = self.tools)]
impl ServerHandler for Notes {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

/// Runs when the process begins to serve. A server could connect to a database here.
async fn notes() -> Result<Notes, std::io::Error> {
    Ok(Notes {
        tools: Notes::tools(),
    })
}

fn main() -> ExitCode {
    shoal::server_with(notes)
        .name("notes")
        .version(env!("CARGO_PKG_VERSION"))
        .capacity(32)
        .drain(Duration::from_secs(20))
        .serve()
}
