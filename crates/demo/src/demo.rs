//! A small MCP server, as a tool author would write it.
#![expect(
    deprecated,
    reason = "logging/setLevel and resources/subscribe serve older clients"
)]

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicI64, AtomicU64},
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    handler::server::router::{prompt::PromptRouter, tool::ToolRouter},
    model::{
        CacheScope, CompleteRequestParams, CompleteResult, Implementation,
        ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
        ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
        SetLevelRequestParams, SubscribeRequestParams, UnsubscribeRequestParams,
    },
    prompt_handler,
    service::RequestContext,
    tool_handler,
};

mod asking;
mod basics;
mod changing;
mod completions;
mod jobs;
mod keeping;
mod prompts;
mod resources;
#[cfg(test)]
mod tests;

/// Cache time of constant contents.
const UNCHANGING_TTL_MS: u64 = 60_000;

const INSTRUCTIONS: &str = "Tools for trying out a client: `echo` and `add` answer at once, `echo_slowly` after a moment, `long_job` reports \
     progress, `book_table`, `connect_account`, `summarize` and `list_roots` ask the client \
     something on the way, `remember`, `recall` and `count_up` keep something for the session, and \
     `increment_counter` and `toggle_bonus_tool` change what others see.";

/// The demo server. Clones share their state.
#[derive(Clone)]
pub struct DemoServer {
    // By default rmcp builds routers and schemas on every request.
    tools: Arc<ToolRouter<Self>>,
    prompts: Arc<PromptRouter<Self>>,
    state: Arc<DemoState>,
}

#[derive(Debug, Default)]
struct DemoState {
    counter: AtomicI64,
    bonus_tool: AtomicBool,
    connections: AtomicU64,
}

impl DemoServer {
    /// Creates a server with a counter of zero and without the bonus tool.
    #[must_use]
    pub fn new() -> Self {
        Self {
            tools: Arc::new(
                Self::basic_tools()
                    + Self::job_tools()
                    + Self::asking_tools()
                    + Self::keeping_tools()
                    + Self::changing_tools(),
            ),
            prompts: Arc::new(Self::prompt_router()),
            state: Arc::default(),
        }
    }
}

impl Default for DemoServer {
    fn default() -> Self {
        Self::new()
    }
}

#[tool_handler(router = self.tools)]
#[prompt_handler(router = self.prompts)]
impl ServerHandler for DemoServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_completions()
            .enable_logging()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(
                Implementation::new("shoal-demo", env!("CARGO_PKG_VERSION"))
                    .with_title("Shoal demo"),
            )
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _ctx: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut tools = self.tools.list_all();
        tools.retain(|tool| self.offers(&tool.name));
        Ok(ListToolsResult::with_all_items(tools)
            .with_ttl_ms(0)
            .with_cache_scope(CacheScope::Public))
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _ctx: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(resources::list())
            .with_ttl_ms(UNCHANGING_TTL_MS)
            .with_cache_scope(CacheScope::Public))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _ctx: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(
            ListResourceTemplatesResult::with_all_items(resources::templates())
                .with_ttl_ms(UNCHANGING_TTL_MS)
                .with_cache_scope(CacheScope::Public),
        )
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _ctx: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.read(&request.uri).map(Into::into)
    }

    // The host forwards updates to subscribers.
    async fn subscribe(
        &self,
        _request: SubscribeRequestParams,
        _ctx: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _request: UnsubscribeRequestParams,
        _ctx: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _ctx: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        completions::complete(&request)
    }

    // The host filters by the session's level, which this shared instance does not know.
    async fn set_level(
        &self,
        _request: SetLevelRequestParams,
        _ctx: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }
}
