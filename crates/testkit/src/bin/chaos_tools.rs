//! An MCP server over stdio for chaos runs, written with rmcp only, as by a tool author.
//!
//! Each tool answers with the nonce of its call. Tools that must not be repeated first append the
//! nonce to a ledger, the file named by `CHAOS_LEDGER`. With `--asking`, the server speaks
//! 2025-11-25 and has one tool, which asks the user mid-call.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt as _, elicit_safe,
    handler::server::{router::tool::ToolRouter, wrapper::Parameters},
    model::{
        Implementation, MetaObject, ProgressNotificationParam, ProtocolVersion, ServerCapabilities,
        ServerConfig, object,
    },
    service::RequestContext,
    tool, tool_handler, tool_router,
    transport::io::stdio_pipes,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::time::sleep;

const LEDGER: &str = "CHAOS_LEDGER";

#[derive(Clone)]
struct ChaosTools {
    // By default, rmcp builds the router on every request.
    tools: Arc<ToolRouter<Self>>,
    asking: bool,
    ledger: Arc<File>,
}

#[derive(Deserialize, JsonSchema)]
struct Work {
    /// Text that the answer repeats and the ledger records.
    nonce: String,
    /// How many steps to report.
    #[serde(default)]
    count: u32,
    /// Duration of each step, or of the call, in milliseconds.
    #[serde(default)]
    ms: u64,
}

/// Question to the user.
#[derive(Deserialize, JsonSchema)]
struct Reply {
    /// Anything.
    text: String,
}

elicit_safe!(Reply);

#[tool_router(router = working_tools)]
impl ChaosTools {
    /// Answers at once.
    #[tool(annotations(read_only_hint = true))]
    async fn echo(&self, Parameters(work): Parameters<Work>) -> String {
        work.nonce
    }

    /// Notes its execution, works, and answers.
    #[tool(
        meta = may_be_task(),
        annotations(read_only_hint = false, idempotent_hint = false)
    )]
    async fn record(&self, Parameters(work): Parameters<Work>) -> Result<String, ErrorData> {
        self.note(&work.nonce)?;
        sleep(Duration::from_millis(work.ms)).await;
        Ok(work.nonce)
    }

    /// The same, for work of several seconds.
    #[tool(annotations(read_only_hint = false, idempotent_hint = false))]
    async fn long(&self, work: Parameters<Work>) -> Result<String, ErrorData> {
        self.record(work).await
    }

    /// Reports step by step, then answers.
    #[tool(annotations(read_only_hint = true))]
    async fn steps(
        &self,
        Parameters(steps): Parameters<Work>,
        ctx: RequestContext<RoleServer>,
    ) -> String {
        report(steps, &ctx).await
    }

    /// The same, but noted, and not safe to repeat.
    #[tool(annotations(read_only_hint = false, idempotent_hint = false))]
    async fn steps_once(
        &self,
        Parameters(steps): Parameters<Work>,
        ctx: RequestContext<RoleServer>,
    ) -> Result<String, ErrorData> {
        self.note(&steps.nonce)?;
        Ok(report(steps, &ctx).await)
    }
}

fn may_be_task() -> MetaObject {
    MetaObject(object(json!({ "shoal/taskSupport": "optional" })))
}

#[tool_router(router = asking_tools)]
impl ChaosTools {
    /// Notes its execution, asks the user, and answers with nonce and reply, a space between.
    #[tool(
        meta = may_be_task(),
        annotations(read_only_hint = false, idempotent_hint = false)
    )]
    async fn ask(
        &self,
        Parameters(Work { nonce, .. }): Parameters<Work>,
        ctx: RequestContext<RoleServer>,
    ) -> Result<String, ErrorData> {
        self.note(&nonce)?;
        let reply = ctx.peer.elicit::<Reply>(nonce.clone()).await;
        match reply {
            Ok(Some(reply)) => Ok(format!("{nonce} {}", reply.text)),
            Ok(None) => Err(failed("the user said nothing")),
            Err(error) => Err(failed(&error.to_string())),
        }
    }
}

impl ChaosTools {
    fn new(ledger: File, asking: bool) -> Self {
        let tools = if asking {
            Self::asking_tools()
        } else {
            Self::working_tools()
        };
        Self {
            tools: Arc::new(tools),
            asking,
            ledger: Arc::new(ledger),
        }
    }

    /// One write for each line, so that lines of several processes cannot mix.
    fn note(&self, nonce: &str) -> Result<(), ErrorData> {
        let line = format!("{nonce}\n");
        let mut ledger = &*self.ledger;
        ledger
            .write_all(line.as_bytes())
            .map_err(|error| failed(&error.to_string()))
    }
}

async fn report(steps: Work, ctx: &RequestContext<RoleServer>) -> String {
    let token = ctx.meta.get_progress_token();
    for step in 1..=steps.count {
        if let Some(token) = &token {
            let progress = ProgressNotificationParam::new(token.clone(), f64::from(step))
                .with_total(f64::from(steps.count));
            // The tool finishes its work even if its client is gone.
            ctx.peer.notify_progress(progress).await.ok();
        }
        sleep(Duration::from_millis(steps.ms)).await;
    }
    steps.nonce
}

fn failed(why: &str) -> ErrorData {
    ErrorData::internal_error(why.to_owned(), None)
}

#[tool_handler(router = self.tools)]
impl ServerHandler for ChaosTools {
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        if self.asking {
            Cow::Borrowed(ProtocolVersion::known_up_to(&ProtocolVersion::V_2025_11_25))
        } else {
            Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS)
        }
    }

    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new(
            "chaos-tools",
            env!("CARGO_PKG_VERSION"),
        ))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let path = std::env::var_os(LEDGER).with_context(|| format!("{LEDGER} names no file"))?;
    let ledger = OpenOptions::new().create(true).append(true).open(&path);
    let ledger = ledger.with_context(|| format!("cannot write {}", path.display()))?;
    let asking = std::env::args().any(|argument| argument == "--asking");
    let running = ChaosTools::new(ledger, asking).serve(stdio_pipes()).await?;
    running.waiting().await?;
    // Exits at once, which also ends calls that are still running.
    std::process::exit(0)
}
