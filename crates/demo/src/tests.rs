#![expect(
    deprecated,
    reason = "sampling, roots and logging remain part of every revision"
)]

use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, Peer, RoleClient, RoleServer,
    ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientConfig,
        CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult,
        ElicitationAction, ElicitationCapability, FormElicitationCapability, Implementation,
        ListRootsResult, LoggingMessageNotificationParam, NumberOrString,
        ProgressNotificationParam, ProtocolVersion, RequestMetaObject,
        ResourceUpdatedNotificationParam, Root, RootsCapabilities, SamplingCapability,
        SamplingMessage, UrlElicitationCapability, object,
    },
    service::{NotificationContext, RequestContext, RunningService},
};
use serde_json::Value;
use tokio::{
    io::duplex,
    join,
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
};

#[derive(Debug, PartialEq)]
pub(crate) enum Told {
    Progress(ProgressNotificationParam),
    Logged(LoggingMessageNotificationParam),
    Updated(String),
    ToolsChanged,
    PromptsChanged,
    Other(String, Option<Value>),
}

#[derive(Clone)]
pub(crate) struct Client {
    capabilities: ClientCapabilities,
    elicited: ElicitResult,
    told: Option<UnboundedSender<Told>>,
}

impl Client {
    pub(crate) fn plain() -> Self {
        Self {
            capabilities: ClientCapabilities::default(),
            elicited: ElicitResult::new(ElicitationAction::Cancel),
            told: None,
        }
    }

    pub(crate) fn able(elicited: ElicitResult) -> Self {
        let modes = ElicitationCapability::new()
            .with_form(FormElicitationCapability::new())
            .with_url(UrlElicitationCapability::new());
        let mut client = Self::plain();
        client.capabilities.elicitation = Some(modes);
        client.capabilities.sampling = Some(SamplingCapability::default());
        client.capabilities.roots = Some(RootsCapabilities::default());
        client.elicited = elicited;
        client
    }

    /// Connects with the handshake of clients up to 2025-11-25.
    pub(crate) async fn connect<H: ServerHandler>(self, server: H) -> Session<H> {
        self.connect_as(server, ClientLifecycleMode::Initialize)
            .await
    }

    /// Connects as clients since 2026-07-28 do.
    pub(crate) async fn connect_modern<H: ServerHandler>(self, server: H) -> Session<H> {
        let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
        self.connect_as(server, ClientLifecycleMode::Discover { preferred_versions })
            .await
    }

    async fn connect_as<H: ServerHandler>(
        mut self,
        server: H,
        lifecycle: ClientLifecycleMode,
    ) -> Session<H> {
        let (client_end, server_end) = duplex(64 * 1024);
        let (sender, told) = unbounded_channel();
        self.told = Some(sender);
        let client = async {
            let client = self
                .serve_with_lifecycle(client_end, lifecycle)
                .await
                .expect("connects");
            client.list_tools(None).await.expect("lists tools");
            client
        };
        let (client, server) = join!(client, server.serve(server_end));
        Session {
            client,
            server: server.expect("serves"),
            told,
        }
    }

    fn note(&self, told: Told) {
        if let Some(sender) = &self.told {
            sender.send(told).ok();
        }
    }
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(self.capabilities.clone(), Implementation::new("test", "1"))
    }

    async fn create_elicitation(
        &self,
        _request: ElicitRequestParams,
        _ctx: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(self.elicited.clone())
    }

    async fn create_message(
        &self,
        request: CreateMessageRequestParams,
        _ctx: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let text = format!("a sample of {} tokens", request.max_tokens);
        Ok(CreateMessageResult::new(
            SamplingMessage::assistant_text(text),
            "model".to_owned(),
        ))
    }

    async fn list_roots(
        &self,
        _ctx: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(vec![
            Root::new("file:///one"),
            Root::new("file:///two"),
        ]))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _ctx: NotificationContext<RoleClient>,
    ) {
        self.note(Told::Progress(params));
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _ctx: NotificationContext<RoleClient>,
    ) {
        self.note(Told::Logged(params));
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _ctx: NotificationContext<RoleClient>,
    ) {
        self.note(Told::Updated(params.uri));
    }

    async fn on_tool_list_changed(&self, _ctx: NotificationContext<RoleClient>) {
        self.note(Told::ToolsChanged);
    }

    async fn on_prompt_list_changed(&self, _ctx: NotificationContext<RoleClient>) {
        self.note(Told::PromptsChanged);
    }

    async fn on_custom_notification(
        &self,
        notification: rmcp::model::CustomNotification,
        _ctx: NotificationContext<RoleClient>,
    ) {
        self.note(Told::Other(notification.method, notification.params));
    }
}

pub(crate) struct Session<H: ServerHandler> {
    pub(crate) client: RunningService<RoleClient, Client>,
    server: RunningService<RoleServer, H>,
    told: UnboundedReceiver<Told>,
}

impl<H: ServerHandler> Session<H> {
    pub(crate) async fn call(&self, tool: &'static str, arguments: Value) -> CallToolResult {
        self.client
            .call_tool(params(tool, arguments))
            .await
            .expect("the call has a result")
    }

    pub(crate) async fn text(&self, tool: &'static str, arguments: Value) -> String {
        text(&self.call(tool, arguments).await)
    }

    pub(crate) async fn told(&mut self) -> Told {
        self.told.recv().await.expect("the client is connected")
    }

    pub(crate) fn context(&self, meta: RequestMetaObject) -> RequestContext<RoleServer> {
        let peer: Peer<RoleServer> = self.server.peer().clone();
        let mut context = RequestContext::new(NumberOrString::Number(7), peer);
        context.meta = meta;
        context
    }

    pub(crate) async fn call_directly(
        &self,
        tool: &'static str,
        arguments: Value,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let handler = self.server.service();
        match handler.call_tool(params(tool, arguments), context).await? {
            CallToolResponse::Complete(result) => Ok(result),
            other => panic!("expected a complete result, got {other:?}"),
        }
    }
}

pub(crate) fn modern_meta(capabilities: ClientCapabilities) -> RequestMetaObject {
    let mut meta = RequestMetaObject::new();
    meta.set_protocol_version(ProtocolVersion::V_2026_07_28);
    meta.set_client_capabilities(capabilities);
    meta
}

pub(crate) fn capabilities_of(client: &Client) -> ClientCapabilities {
    client.capabilities.clone()
}

pub(crate) fn params(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    CallToolRequestParams::new(tool).with_arguments(object(arguments))
}

pub(crate) fn text(result: &CallToolResult) -> String {
    result
        .content
        .iter()
        .filter_map(|block| block.as_text())
        .map(|text| text.text.as_str())
        .collect()
}
