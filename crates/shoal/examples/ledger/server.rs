//! A server that records its tool runs in a ledger, for `interop/composed`. `interop/rmcp/src/bin/ledger.rs` serves the
//! same file over stdio without Shoal.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{ServerCapabilities, ServerConfig};
use rmcp::{ErrorData, ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;

const POLL: Duration = Duration::from_millis(10);

#[derive(Deserialize, JsonSchema)]
struct Entry {
    /// Name of the run in the ledger.
    key: u64,
    /// Whether it goes on only when the gate is open.
    #[serde(default)]
    gated: bool,
}

pub(crate) struct Ledger {
    tools: ToolRouter<Self>,
}

impl Ledger {
    pub(crate) fn new() -> Self {
        Self {
            tools: Self::tools(),
        }
    }
}

#[tool_router(router = tools)]
impl Ledger {
    /// Is safe to repeat.
    #[tool(annotations(read_only_hint = true))]
    async fn look(&self, Parameters(entry): Parameters<Entry>) -> Result<String, ErrorData> {
        let Entry { key, gated } = entry;
        write_down(key)?;
        gate(gated).await?;
        Ok(format!("looked {key}"))
    }

    /// Must not run twice.
    #[tool]
    async fn book(&self, Parameters(entry): Parameters<Entry>) -> Result<String, ErrorData> {
        let Entry { key, gated } = entry;
        write_down(key)?;
        gate(gated).await?;
        Ok(format!("booked {key}"))
    }
}

#[tool_handler(router = self.tools)]
impl ServerHandler for Ledger {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

fn write_down(key: u64) -> Result<(), ErrorData> {
    let line = format!(
        "{key} {} {}\n",
        std::process::id(),
        std::os::unix::process::parent_id()
    );
    let ledger = OpenOptions::new()
        .append(true)
        .create(true)
        .open(named("LEDGER")?);
    let written = ledger.and_then(|mut ledger| ledger.write_all(line.as_bytes()));
    written.map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

async fn gate(gated: bool) -> Result<(), ErrorData> {
    let open = named("GATE")?;
    while gated && !Path::new(&open).exists() {
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the server knows nothing of Shoal's configuration"
)]
fn named(variable: &str) -> Result<String, ErrorData> {
    std::env::var(variable)
        .map_err(|_| ErrorData::internal_error(format!("{variable} is not set"), None))
}
