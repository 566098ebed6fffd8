use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::model::{
    ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, SubscriptionFilter,
    Tool,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext, SubscriptionSink};
use rmcp::{ErrorData, ServerHandler};

use serde_json::{Value, json};
use shoal_demo::DemoServer;
use shoal_ports::{CallFailure, PoolCatalog, ResourceUpdated, Worker};

use super::client::{Client, ended, text, until};
use super::probe::Probe;

fn tools(catalog: &PoolCatalog) -> Vec<String> {
    let name = |tool: Value| tool["name"].as_str().map(str::to_owned);
    let tools = catalog.tools.iter();
    tools
        .map(|tool| name(tool.read().unwrap()).unwrap())
        .collect()
}

#[tokio::test]
async fn everything_is_listed() {
    let client = Client::of(DemoServer::new()).await;
    let catalog = client.catalog();
    let info: Value = catalog.server_info.as_ref().unwrap().read().unwrap();
    assert_eq!(info["name"], "shoal-demo");
    assert!(catalog.instructions.is_some());
    assert!(catalog.declares("tools") && catalog.declares("completions"));
    assert!(tools(&catalog).contains(&"echo".to_owned()));
    assert!(!catalog.resources.is_empty());
    assert!(!catalog.resource_templates.is_empty());
    assert!(!catalog.prompts.is_empty());
    assert_eq!(catalog.generations, [0, 0, 0]);
    let kept = [Some(0), Some(60_000), Some(60_000), None];
    assert_eq!(catalog.ttl_ms, kept);
}

#[tokio::test]
async fn pages_are_followed() {
    let client = Client::of(Probe::default()).await;
    let listed = tools(&client.catalog());
    assert_eq!(listed, ["keep_peer", "panic", "stop", "roots", "whoami"]);
}

#[tokio::test]
async fn changed_list_is_read_again() {
    let client = Client::of(DemoServer::new()).await;
    client.text("toggle_bonus_tool", json!({})).await;
    let catalog = client.catalog_with(|it| it.generations == [1, 0, 0]).await;
    assert!(tools(&catalog).contains(&"bonus".to_owned()));
    client.text("toggle_bonus_tool", json!({})).await;
    let catalog = client.catalog_with(|it| it.generations == [2, 0, 0]).await;
    assert!(!tools(&catalog).contains(&"bonus".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn handler_that_cannot_list_is_not_ready_and_asked_again() {
    let probe = Probe::default();
    probe.state.unlisted.store(true, Ordering::SeqCst);
    let client = Client::of(probe.clone()).await;
    let announced = client.worker.announcement().borrow().clone();
    assert!(announced.catalog.is_none());
    assert!(announced.detail.unwrap().contains("not today"));
    let refused = client
        .worker
        .start(client.tool("whoami", json!({})), None)
        .await;
    assert!(matches!(
        refused.err(),
        Some(CallFailure::NotExecuted { .. })
    ));

    probe.state.unlisted.store(false, Ordering::SeqCst);
    client.catalog_with(|it| it.tools.len() == 5).await;
    assert!(client.worker.announcement().borrow().detail.is_none());
}

struct Refusing {
    declares: ServerCapabilities,
    with: ErrorData,
}

impl Refusing {
    fn answer<T>(&self) -> Result<T, ErrorData> {
        Err(self.with.clone())
    }
}

impl ServerHandler for Refusing {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(self.declares.clone())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _ctx: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tool = Tool::new("only", "", Arc::default());
        Ok(ListToolsResult::with_all_items(vec![tool]))
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _ctx: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.answer()
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _ctx: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        self.answer()
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _ctx: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.answer()
    }
}

#[tokio::test]
async fn what_is_not_declared_is_not_listed() {
    let handler = Refusing {
        declares: ServerCapabilities::builder().enable_tools().build(),
        with: ErrorData::internal_error("there are none", None),
    };
    let client = Client::of(handler).await;
    assert_eq!(tools(&client.catalog()), ["only"]);
}

#[tokio::test]
async fn declared_list_that_is_not_implemented_is_empty() {
    let everything = ServerCapabilities::builder()
        .enable_tools()
        .enable_resources()
        .enable_prompts()
        .build();
    let handler = Refusing {
        declares: everything,
        with: ErrorData::method_not_found::<ListPromptsRequestMethod>(),
    };
    let client = Client::of(handler).await;
    let catalog = client.catalog();
    assert_eq!(tools(&catalog), ["only"]);
    assert!(catalog.resources.is_empty() && catalog.prompts.is_empty());
}

#[tokio::test]
async fn updates_are_told_of_subscribed_resources_only() {
    let client = Client::of(DemoServer::new()).await;
    let mut updates = client.worker.resource_updates();
    client.text("increment_counter", json!({})).await;
    client.worker.subscribe("demo://counter").await.unwrap();
    client.worker.subscribe("demo://counter").await.unwrap();
    client.text("increment_counter", json!({})).await;

    let told = tokio::time::timeout(Duration::from_secs(10), updates.recv()).await;
    let ResourceUpdated { uri, params } = told.unwrap().unwrap();
    assert_eq!(uri, "demo://counter");
    assert_eq!(params.as_str(), r#"{"uri":"demo://counter"}"#);

    client.worker.unsubscribe("demo://counter").await;
    client.text("increment_counter", json!({})).await;
    assert!(
        updates.try_recv().is_err(),
        "told once, of the second change"
    );
}

#[tokio::test]
async fn refused_subscription_is_none() {
    let client = Client::of(Probe::default()).await;
    let refused = client.worker.subscribe("probe://x").await;
    assert!(refused.is_err());
    assert!(
        client.worker.subscribe("probe://x").await.is_err(),
        "asked again"
    );
}

#[tokio::test]
async fn backend_that_is_shut_down_ends_its_loops() {
    let client = Client::of(DemoServer::new()).await;
    let mut running = client
        .start(client.tool("echo", json!({ "text": "x" })))
        .await;
    assert_eq!(text(&ended(&mut running).await), "x");
    client
        .worker
        .shutdown(tokio::time::Instant::now() + Duration::from_secs(5))
        .await;
    assert_eq!(client.backend.peers.kept(), (0, 0));
    until(|| client.backend.host.context().peer.is_transport_closed()).await;
}

#[derive(Clone, Default)]
struct Announcer {
    listeners: Arc<Mutex<Vec<SubscriptionSink>>>,
}

impl Announcer {
    async fn listener(&self, wanted: fn(&SubscriptionFilter) -> bool) -> SubscriptionSink {
        let find = || {
            let listeners = self.listeners.lock();
            listeners.iter().find(|it| wanted(it.accepted())).cloned()
        };
        until(|| find().is_some()).await;
        find().expect("just seen")
    }
}

impl ServerHandler for Announcer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .build();
        ServerConfig::new(capabilities)
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.listeners.lock().push(context.sink().clone());
        context.cancelled().await;
        self.listeners
            .lock()
            .retain(|it| it.id() != context.sink().id());
        Ok(())
    }
}

#[tokio::test]
async fn handler_that_wants_to_be_listened_to_is() {
    let announcer = Announcer::default();
    let client = Client::of(announcer.clone()).await;
    let lists = announcer
        .listener(|it| it.tools_list_changed == Some(true))
        .await;
    lists.notify_tool_list_changed().await.unwrap();
    client.catalog_with(|it| it.generations == [1, 0, 0]).await;

    let mut told = client.worker.resource_updates();
    client.worker.subscribe("x://y").await.unwrap();
    let updates = announcer
        .listener(|it| it.resource_subscriptions.is_some())
        .await;
    updates.notify_resource_updated("x://y").await.unwrap();
    let ResourceUpdated { params, .. } = told.recv().await.unwrap();
    assert_eq!(params.as_str(), r#"{"uri":"x://y"}"#);

    client.worker.unsubscribe("x://y").await;
    until(|| announcer.listeners.lock().len() == 1).await;
}
