//! The tools of chaos runs in this process. The test controls how far they run.

use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{ProgressNotificationParam, ServerCapabilities, ServerConfig};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, elicit_safe, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use shoal_testkit::check::Ledger;
use tokio::sync::watch;

#[derive(Default)]
pub(crate) struct Stage {
    executed: Mutex<Vec<String>>,
    allowed: watch::Sender<u32>,
}

impl Stage {
    pub(crate) fn let_go(&self, steps: u32) {
        self.allowed.send_replace(steps);
    }

    pub(crate) fn finish(&self) {
        self.let_go(u32::MAX);
    }

    pub(crate) fn executions(&self) -> usize {
        self.executed.lock().len()
    }

    pub(crate) fn ledger(&self) -> Ledger {
        self.executed.lock().iter().map(String::as_str).collect()
    }

    fn note(&self, nonce: &str) {
        self.executed.lock().push(nonce.to_owned());
    }

    async fn reaches(&self, step: u32) {
        let mut allowed = self.allowed.subscribe();
        let reached = allowed.wait_for(|allowed| *allowed >= step).await;
        reached.expect("the stage outlives its tools");
    }
}

#[derive(Clone)]
pub(crate) struct StagedTools {
    tools: Arc<ToolRouter<Self>>,
    stage: Arc<Stage>,
}

#[derive(Deserialize, JsonSchema)]
struct Nonce {
    /// Text that the answer repeats.
    nonce: String,
}

#[derive(Deserialize, JsonSchema)]
struct Steps {
    /// Text that the answer repeats.
    nonce: String,
    /// How many steps to report.
    count: u32,
}

/// Question to the user.
#[derive(Deserialize, JsonSchema)]
struct Reply {
    /// Anything.
    text: String,
}

elicit_safe!(Reply);

#[tool_router]
impl StagedTools {
    pub(crate) fn new(stage: Arc<Stage>) -> Self {
        Self {
            tools: Arc::new(Self::tool_router()),
            stage,
        }
    }

    /// Answers at once.
    #[tool(annotations(read_only_hint = true))]
    async fn echo(&self, Parameters(Nonce { nonce }): Parameters<Nonce>) -> String {
        nonce
    }

    /// Notes its execution, and answers when it may.
    #[tool(annotations(read_only_hint = false, idempotent_hint = false))]
    async fn record(&self, Parameters(Nonce { nonce }): Parameters<Nonce>) -> String {
        self.stage.note(&nonce);
        self.stage.reaches(u32::MAX).await;
        nonce
    }

    /// Reports step by step, then answers.
    #[tool(annotations(read_only_hint = true))]
    async fn steps(
        &self,
        Parameters(steps): Parameters<Steps>,
        ctx: RequestContext<RoleServer>,
    ) -> String {
        self.report(steps, &ctx).await
    }

    /// The same, but noted, and not safe to repeat.
    #[tool(annotations(read_only_hint = false, idempotent_hint = false))]
    async fn steps_once(
        &self,
        Parameters(steps): Parameters<Steps>,
        ctx: RequestContext<RoleServer>,
    ) -> String {
        self.stage.note(&steps.nonce);
        self.report(steps, &ctx).await
    }

    /// Notes its execution, asks the user, and answers with nonce and reply when it may.
    #[tool(annotations(read_only_hint = false, idempotent_hint = false))]
    async fn ask(
        &self,
        Parameters(Nonce { nonce }): Parameters<Nonce>,
        ctx: RequestContext<RoleServer>,
    ) -> Result<String, ErrorData> {
        self.stage.note(&nonce);
        let reply = ctx.peer.elicit::<Reply>(nonce.clone()).await;
        let failed = |why: String| ErrorData::internal_error(why, None);
        let reply = reply
            .map_err(|error| failed(error.to_string()))?
            .ok_or_else(|| failed("the user said nothing".to_owned()))?;
        self.stage.reaches(u32::MAX).await;
        Ok(format!("{nonce} {}", reply.text))
    }
}

impl StagedTools {
    async fn report(&self, steps: Steps, ctx: &RequestContext<RoleServer>) -> String {
        let token = ctx.meta.get_progress_token();
        for step in 1..=steps.count {
            self.stage.reaches(step).await;
            if let Some(token) = &token {
                let progress = ProgressNotificationParam::new(token.clone(), f64::from(step));
                ctx.peer.notify_progress(progress).await.ok();
            }
        }
        self.stage.reaches(u32::MAX).await;
        steps.nonce
    }
}

#[tool_handler(router = self.tools)]
impl ServerHandler for StagedTools {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}
