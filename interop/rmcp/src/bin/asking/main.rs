//! A server on the official Rust SDK whose tools ask mid-call, in every way that the SDK has, work, and change a resource.
#![expect(
    deprecated,
    reason = "sampling and roots remain part of every revision, and sessions subscribe in earlier ones"
)]

mod changes;
mod work;

use std::sync::Arc;

use anyhow::Result;
use hyper::server::conn::http1;
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceError, ServiceExt,
    handler::server::{router::tool::ToolRouter, tool::InputResponses, wrapper::Parameters},
    model::{
        CallToolResponse, CallToolResult, ContentBlock, CreateMessageRequestParams, ElicitRequest,
        ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest, InputRequiredResult,
        ListResourcesResult, PaginatedRequestParams, ReadResourceRequestParams,
        ReadResourceResponse, ReadResourceResult, Resource, ResourceContents, SamplingMessage,
        SamplingMessageContentBlock, ServerCapabilities, ServerConfig, SubscribeRequestParams,
        SubscriptionFilter, UnsubscribeRequestParams,
    },
    schemars::{self, JsonSchema},
    service::{RequestContext, SubscriptionContext},
    tool, tool_handler, tool_router,
    transport::{
        stdio,
        streamable_http_server::{
            StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
        },
    },
};
use serde::Deserialize;
use serde_json::json;
use tokio::net::TcpListener;

use changes::{COUNTER, Changes, Following};
use work::Job;

#[derive(Deserialize, JsonSchema)]
struct Given {
    text: String,
}

struct Asking {
    tools: ToolRouter<Self>,
    changes: Arc<Changes>,
    following: Following,
}

#[tool_router(router = tools)]
impl Asking {
    /// Gives the text back.
    #[tool(annotations(read_only_hint = true))]
    async fn echo(&self, Parameters(Given { text }): Parameters<Given>) -> String {
        text
    }

    /// Asks for a name by a request of the server.
    #[tool]
    async fn greet(&self, ctx: RequestContext<RoleServer>) -> Result<String, ErrorData> {
        let answer = ctx.peer.create_elicitation(form()?).await;
        Ok(greeting(answer.map_err(refused)?))
    }

    /// Samples from the client's model by a request of the server.
    #[tool]
    async fn summarize(
        &self,
        Parameters(Given { text }): Parameters<Given>,
        ctx: RequestContext<RoleServer>,
    ) -> Result<String, ErrorData> {
        let params = CreateMessageRequestParams::new(vec![SamplingMessage::user_text(text)], 100);
        let answer = ctx.peer.create_message(params).await.map_err(refused)?;
        let texts = answer
            .message
            .content
            .iter()
            .filter_map(|block| match block {
                SamplingMessageContentBlock::Text(text) => Some(text.text.as_str()),
                _ => None,
            });
        Ok(format!("summary: {}", texts.collect::<String>()))
    }

    /// Lists the client's roots by a request of the server.
    #[tool]
    async fn list_roots(&self, ctx: RequestContext<RoleServer>) -> Result<String, ErrorData> {
        let roots = ctx.peer.list_roots().await.map_err(refused)?.roots;
        let uris: Vec<String> = roots.into_iter().map(|root| root.uri).collect();
        Ok(uris.join("\n"))
    }

    /// Takes a while, and says how far it is.
    #[tool]
    async fn work(
        &self,
        Parameters(job): Parameters<Job>,
        ctx: RequestContext<RoleServer>,
    ) -> Result<String, ErrorData> {
        work::run(job, ctx).await
    }

    /// The same, and it may be called again.
    #[tool(annotations(read_only_hint = true))]
    async fn work_safely(
        &self,
        Parameters(job): Parameters<Job>,
        ctx: RequestContext<RoleServer>,
    ) -> Result<String, ErrorData> {
        work::run(job, ctx).await
    }

    /// Changes the resource, and tells those who follow it.
    #[tool]
    async fn change(&self) -> String {
        self.changes.happen().to_string()
    }

    /// Asks for a name by its result.
    #[tool]
    async fn greet_required(
        &self,
        InputResponses(responses): InputResponses,
    ) -> Result<CallToolResponse, ErrorData> {
        let answer = responses.and_then(|mut responses| responses.remove("name"));
        let answer = answer.and_then(|answer| serde_json::from_value(answer).ok());
        if let Some(answer) = answer {
            let text = ContentBlock::text(greeting(answer));
            return Ok(CallToolResult::success(vec![text]).into());
        }
        let question = InputRequest::Elicitation(ElicitRequest::new(form()?));
        let questions = [("name".to_owned(), question)].into();
        Ok(InputRequiredResult::new(Some(questions), Some("asked".to_owned())).into())
    }
}

fn form() -> Result<ElicitRequestParams, ErrorData> {
    let schema = json!({
        "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"],
    });
    Ok(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: "Who are you?".to_owned(),
        requested_schema: serde_json::from_value(schema)
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))?,
    })
}

fn greeting(answer: ElicitResult) -> String {
    match answer.action {
        ElicitationAction::Accept => {
            let content = answer.content.unwrap_or_default();
            format!("hello {}", content["name"].as_str().unwrap_or_default())
        }
        ElicitationAction::Decline => "nobody: decline".to_owned(),
        _ => "nobody: cancel".to_owned(),
    }
}

fn refused(error: ServiceError) -> ErrorData {
    match error {
        ServiceError::McpError(error) => error,
        error => ErrorData::internal_error(error.to_string(), None),
    }
}

#[tool_handler(router = self.tools)]
impl ServerHandler for Asking {
    fn get_info(&self) -> ServerConfig {
        let can = ServerCapabilities::builder().enable_tools();
        ServerConfig::new(can.enable_resources().enable_resources_subscribe().build())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let counter = Resource::new(COUNTER, "counter");
        Ok(ListResourcesResult::with_all_items(vec![counter]))
    }

    async fn read_resource(
        &self,
        _: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let text = ResourceContents::text(self.changes.count().to_string(), COUNTER);
        Ok(ReadResourceResult::new(vec![text]).into())
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        ctx: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.following.begin(&self.changes, ctx.peer);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.following.end();
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.changes.tell(&context).await;
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let changes = Arc::new(Changes::default());
    let asking = move || Asking {
        tools: Asking::tools(),
        changes: Arc::clone(&changes),
        following: Following::default(),
    };
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, port] = &arguments[..]
        && flag == "--http"
    {
        return over_http(port.parse()?, asking).await;
    }
    asking().serve(stdio()).await?.waiting().await?;
    Ok(())
}

async fn over_http(
    port: u16,
    asking: impl Fn() -> Asking + Clone + Send + Sync + 'static,
) -> Result<()> {
    let sessions = Arc::new(LocalSessionManager::default());
    let config = StreamableHttpServerConfig::default();
    let service = StreamableHttpService::new(move || Ok(asking()), sessions, config);
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        let service = TowerToHyperService::new(service.clone());
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        // A client that disconnects is no error.
        tokio::spawn(async move { drop(connection.await) });
    }
}
