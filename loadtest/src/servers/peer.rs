use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{ProgressNotificationParam, RequestMetaObject, ServerCapabilities, ServerConfig};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{RoleServer, ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;

/// With `stateful`, the server keeps sessions; otherwise every request stands alone, and `json` makes it answer with
/// JSON.
pub(crate) async fn serve(listen: SocketAddr, stateful: bool, json: bool) -> anyhow::Result<()> {
    // Shared, because the SDK asks for a service for each session or stateless request.
    let tools = Arc::new(Tools {
        tool_router: Tools::tool_router(),
    });
    let service = StreamableHttpService::new(
        move || Ok(Arc::clone(&tools)),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default()
            .with_legacy_session_mode(stateful)
            .with_json_response(json),
    );
    let router = Router::new().route_service(super::PATH, service);
    super::serve(router, listen).await
}

#[derive(Deserialize, JsonSchema)]
struct EchoArguments {
    /// The text to give back.
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct LongJobArguments {
    /// How many progress notifications to send.
    steps: u32,
    /// The time before each of them, in milliseconds.
    interval_ms: u64,
}

struct Tools {
    tool_router: ToolRouter<Self>,
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

#[tool_router]
impl Tools {
    /// Gives the text back.
    #[tool(annotations(read_only_hint = true))]
    async fn echo(&self, Parameters(arguments): Parameters<EchoArguments>) -> String {
        arguments.text
    }

    /// Reports progress step by step, then says that it is done.
    #[tool]
    async fn long_job(
        &self,
        Parameters(arguments): Parameters<LongJobArguments>,
        meta: RequestMetaObject,
        client: rmcp::Peer<RoleServer>,
    ) -> String {
        for step in 1..=arguments.steps {
            if arguments.interval_ms == 0 {
                // A timer would round this up to a millisecond.
                tokio::task::yield_now().await;
            } else {
                tokio::time::sleep(Duration::from_millis(arguments.interval_ms)).await;
            }
            if let Some(token) = meta.get_progress_token() {
                let progress = ProgressNotificationParam::new(token, f64::from(step))
                    .with_total(f64::from(arguments.steps));
                let _ = client.notify_progress(progress).await;
            }
        }
        format!("done after {} steps", arguments.steps)
    }
}
