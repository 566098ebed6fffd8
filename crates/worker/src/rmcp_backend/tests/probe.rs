//! Faulty tools, and tools that the demo lacks.
#![expect(deprecated, reason = "roots remain part of every revision")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomNotification,
    ListRootsRequest, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
    ProgressToken, RequestId, ServerCapabilities, ServerConfig, ServerNotification, ServerRequest,
    Tool,
};
use rmcp::service::{NotificationContext, Peer, PeerRequestOptions, RequestContext, RoleServer};
use rmcp::{ErrorData, ServerHandler};
use serde_json::json;
use shoal_protocol::TraceContext;
use tokio::time::Instant;

use crate::RequestContextExt as _;

const PAGE: usize = 2;

#[derive(Clone, Default)]
pub(super) struct Probe {
    pub(super) state: Arc<State>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) kept: Mutex<Option<Peer<RoleServer>>>,
    pub(super) host: Mutex<Option<Peer<RoleServer>>>,
    pub(super) stopped: AtomicUsize,
    pub(super) unlisted: AtomicBool,
}

impl ServerHandler for Probe {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_instructions("probe")
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        *self.state.host.lock() = Some(context.peer);
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _ctx: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if self.state.unlisted.load(Ordering::SeqCst) {
            return Err(ErrorData::internal_error("not today", None));
        }
        let from: usize = request
            .and_then(|page| page.cursor)
            .map_or(0, |cursor| cursor.parse().expect("one of our cursors"));
        let names = ["keep_peer", "panic", "stop", "roots", "whoami"];
        let page = names.iter().skip(from).take(PAGE);
        let tools = page
            .map(|name| Tool::new(*name, "", Arc::default()))
            .collect();
        let mut result = ListToolsResult::with_all_items(tools);
        result.next_cursor = (from + PAGE < names.len()).then(|| (from + PAGE).to_string());
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        ctx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let text = match &*request.name {
            "keep_peer" => {
                *self.state.kept.lock() = Some(ctx.peer.clone());
                "kept".to_owned()
            }
            "panic" => panic!("a bug in a tool"),
            "stop" => {
                ctx.ct.cancelled().await;
                self.state.stopped.fetch_add(1, Ordering::SeqCst);
                "stopped".to_owned()
            }
            "hang" => std::future::pending().await,
            "roots" => match ctx.peer.list_roots().await {
                Ok(roots) => format!("{} roots", roots.roots.len()),
                Err(error) => error.to_string(),
            },
            "impatient" => impatient(&ctx.peer).await,
            "progress" => {
                for step in 1..=3 {
                    ctx.peer.notify_progress(progress(step)).await.ok();
                }
                "done".to_owned()
            }
            "custom" => {
                let custom = CustomNotification::new("io.example/custom", Some(json!({ "a": 1 })));
                let custom = ServerNotification::CustomNotification(custom);
                ctx.peer.send_notification(custom).await.ok();
                "sent".to_owned()
            }
            "whoami" => whoami(&ctx),
            "known" => known(&ctx).await?,
            other => return Err(ErrorData::invalid_params(format!("no tool {other}"), None)),
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

pub(super) fn progress(step: u32) -> ProgressNotificationParam {
    let token = ProgressToken(RequestId::String("t".into()));
    ProgressNotificationParam::new(token, f64::from(step))
}

async fn impatient(peer: &Peer<RoleServer>) -> String {
    let request = ServerRequest::ListRootsRequest(ListRootsRequest {
        method: Default::default(),
        extensions: Default::default(),
    });
    let options = PeerRequestOptions::with_timeout(Duration::from_millis(5));
    let asked = peer.send_request_with_option(request, options).await;
    let answered = asked.expect("the peer is open").await_response().await;
    answered.expect_err("nobody answers").to_string()
}

fn whoami(ctx: &RequestContext<RoleServer>) -> String {
    let principal = ctx.principal().expect("who calls");
    let info = ctx.client_info().expect("the client named itself");
    let version = ctx.protocol_version().expect("there is a version");
    format!("{principal} with {} on {version}", info.name)
}

async fn known(ctx: &RequestContext<RoleServer>) -> Result<String, ErrorData> {
    ctx.report_progress(1.0, Some(2.0), Some("half")).await;
    let left = ctx.deadline().expect("there is one") - Instant::now();
    let trace = ctx.trace_context().map(TraceContext::to_traceparent);
    let session = ctx.session();
    let count = session.get::<u64>("count").await?.unwrap_or(0);
    session.set("count", &(count + 1)).await?;
    Ok(format!("{} s left, {trace:?}, {count}", left.as_secs()))
}
