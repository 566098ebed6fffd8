//! The server for the official conformance suite.
#![expect(
    deprecated,
    reason = "logging/setLevel and resources/subscribe serve older clients"
)]

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    handler::server::{
        prompt::PromptContext,
        router::{prompt::PromptRouter, tool::ToolRouter},
    },
    model::{
        CacheScope, CompleteRequestParams, CompleteResult, GetPromptRequestParams,
        GetPromptResponse, Implementation, ListPromptsResult, ListResourceTemplatesResult,
        ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
        ReadResourceResponse, ServerCapabilities, ServerConfig, SetLevelRequestParams,
        SubscribeRequestParams, UnsubscribeRequestParams,
    },
    service::RequestContext,
    tool_handler,
};

mod asking;
mod content;
mod input;
mod input_tools;
mod notifying;
mod prompts;
mod resources;
mod schemas;
mod task_tools;
#[cfg(test)]
mod tests;

const EXTRA_TOOL: &str = "test_extra_tool";
const EXTRA_PROMPT: &str = "test_extra_prompt";

/// Cache time of constant lists.
const UNCHANGING_TTL_MS: u64 = 60_000;

/// Fixtures of `@modelcontextprotocol/conformance`, whose scenarios document names and contents. Clones share
/// their state.
#[derive(Clone)]
pub struct ConformanceServer {
    tools: Arc<ToolRouter<Self>>,
    prompts: Arc<PromptRouter<Self>>,
    state: Arc<ExtrasShown>,
}

#[derive(Debug, Default)]
struct ExtrasShown {
    extra_tool: AtomicBool,
    extra_prompt: AtomicBool,
}

impl ConformanceServer {
    /// Creates a server without the optional tool and prompt.
    #[must_use]
    pub fn new() -> Self {
        Self {
            tools: Arc::new(
                Self::content_tools()
                    + Self::notifying_tools()
                    + Self::asking_tools()
                    + Self::schema_tools()
                    + Self::input_tools()
                    + Self::task_tools(),
            ),
            prompts: Arc::new(Self::prompt_router()),
            state: Arc::default(),
        }
    }
}

impl Default for ConformanceServer {
    fn default() -> Self {
        Self::new()
    }
}

#[tool_handler(router = self.tools)]
impl ServerHandler for ConformanceServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_completions()
            .enable_logging()
            .build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new(
            "shoal-conformance",
            env!("CARGO_PKG_VERSION"),
        ))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _ctx: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut tools = self.tools.list_all();
        let extra = self.state.extra_tool.load(Ordering::Acquire);
        tools.retain(|tool| extra || tool.name != EXTRA_TOOL);
        Ok(ListToolsResult::with_all_items(tools)
            .with_ttl_ms(0)
            .with_cache_scope(CacheScope::Public))
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _ctx: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let mut prompts = self.prompts.list_all();
        let extra = self.state.extra_prompt.load(Ordering::Acquire);
        prompts.retain(|prompt| extra || prompt.name != EXTRA_PROMPT);
        Ok(ListPromptsResult::with_all_items(prompts)
            .with_ttl_ms(0)
            .with_cache_scope(CacheScope::Public))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        ctx: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        // rmcp's router drops the answers to an earlier round's questions.
        if request.name == prompts::ASKING_PROMPT {
            return prompts::ask_for_context(&ctx, request.input_responses.as_ref());
        }
        let call = PromptContext::new(self, request.name, request.arguments, ctx);
        self.prompts.get_prompt(call).await
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
        resources::read(&request.uri).map(Into::into)
    }

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
        prompts::complete(&request)
    }

    async fn set_level(
        &self,
        _request: SetLevelRequestParams,
        _ctx: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }
}
