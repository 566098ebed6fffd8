//! One message of a client by the OpenTelemetry conventions for MCP: its server span, and how long it took.

use std::net::SocketAddr;
use std::time::Duration;

use axum::extract::ConnectInfo;
use http::request::Parts;
use http::{HeaderMap, Version};
use shoal_ports::SessionId;
use shoal_protocol::{Method, RawJson, RawObject, RequestId, RequestMeta};
use shoal_telemetry::metrics::{Failure, HttpVersion, Operation as Served, metrics};
use shoal_telemetry::trace::{self, Attributes, Span, TraceContext, attributes as key, names};

use crate::names::PROTOCOL_VERSION;

/// A message that a client sent, until it is known what became of it.
pub(crate) struct Operation {
    span: Span,
    method: Method,
    target: Option<Target>,
    revision: Option<String>,
    http: HttpVersion,
}

/// What a message is about.
enum Target {
    Tool(String),
    Prompt(String),
    Resource(String),
}

/// A request or notification as it came.
pub(crate) struct Came<'a> {
    pub(crate) head: &'a Parts,
    pub(crate) method: &'a Method,
    pub(crate) params: Option<&'a RawJson>,
    pub(crate) id: Option<&'a RequestId>,
    pub(crate) session: Option<&'a SessionId>,
}

impl Operation {
    /// Begins the span: a child of what `_meta` names. What the HTTP headers name is linked, and the parent only where
    /// `_meta` names nothing: proxies put theirs there, unasked.
    pub(crate) fn begin(came: &Came<'_>) -> Self {
        let target = Target::of(came.method, came.params);
        let mut revision = text(&came.head.headers, PROTOCOL_VERSION.as_str());
        let mut span = Span::none();
        if trace::enabled() {
            let meta = RequestMeta::of(came.params);
            let client = (meta.traceparent.as_deref())
                .and_then(|parent| TraceContext::parse(parent, meta.tracestate.as_deref()));
            let http = in_headers(&came.head.headers);
            revision = revision.or(meta.protocol_version);
            let link = http.as_ref().filter(|_| client.is_some());
            let name = || names::mcp_name(came.method.as_str(), named(target.as_ref()));
            span = trace::server(name)
                .parent(client.as_ref().or(http.as_ref()))
                .link(link)
                .sampling_target(named(target.as_ref()).unwrap_or_default())
                .start_with(|set| describe(set, came, target.as_ref(), revision.as_deref()));
        }
        Self {
            span,
            method: came.method.clone(),
            target,
            revision,
            http: http_version(came.head.version),
        }
    }

    /// The parent of what is done for the message.
    pub(crate) fn context(&self) -> Option<&TraceContext> {
        self.span.context()
    }

    /// The message has had its answer; `failure` is what was wrong with it.
    pub(crate) fn end(mut self, took: Duration, failure: Option<Failure>) {
        if let Some(failure) = failure {
            if let Failure::Code(code) = failure {
                let code = code.to_string();
                self.span.set(key::RPC_RESPONSE_STATUS_CODE, code.as_str());
            }
            self.span.record_error(failure.error_type());
        }
        self.count(took, failure);
    }

    /// The client left before that.
    pub(crate) fn leave(mut self, took: Duration) {
        self.span.add_event("client disconnected", |_| ());
        self.count(took, Some(Failure::Other("client_disconnected")));
    }

    fn count(&self, took: Duration, failure: Option<Failure>) {
        let (tool, prompt) = match &self.target {
            Some(Target::Tool(name)) => (Some(name.as_str()), None),
            Some(Target::Prompt(name)) => (None, Some(name.as_str())),
            Some(Target::Resource(_)) | None => (None, None),
        };
        let served = Served {
            tool,
            prompt,
            failure,
            revision: self.revision.as_deref(),
            http: Some(self.http),
            ..Served::new(self.method.as_str())
        };
        metrics().mcp.served(took, &served);
    }
}

impl Target {
    fn of(method: &Method, params: Option<&RawJson>) -> Option<Self> {
        let wrap = match method {
            Method::ToolsCall => Self::Tool,
            Method::PromptsGet => Self::Prompt,
            Method::ResourcesRead | Method::ResourcesSubscribe | Method::ResourcesUnsubscribe => {
                Self::Resource
            }
            _ => return None,
        };
        let params = params.and_then(RawObject::of)?;
        let name = if matches!(method, Method::ToolsCall | Method::PromptsGet) {
            "name"
        } else {
            "uri"
        };
        params.get(name)?.string().map(wrap)
    }
}

/// The tool or prompt; resources are too many for names of spans.
fn named(target: Option<&Target>) -> Option<&str> {
    match target? {
        Target::Tool(name) | Target::Prompt(name) => Some(name),
        Target::Resource(_) => None,
    }
}

fn describe(
    set: &mut Attributes,
    came: &Came<'_>,
    target: Option<&Target>,
    revision: Option<&str>,
) {
    let id = came.id.map(ToString::to_string);
    // The text of a string, not its JSON.
    let id = id.as_deref().map(|id| id.trim_matches('"'));
    set.set(key::MCP_METHOD_NAME, came.method.as_str())
        .set_some(key::MCP_SESSION_ID, came.session.map(SessionId::as_str))
        .set_some(key::MCP_PROTOCOL_VERSION, revision)
        .set_some(key::JSONRPC_REQUEST_ID, id)
        .set(key::NETWORK_TRANSPORT, "tcp")
        .set(key::NETWORK_PROTOCOL_NAME, "http")
        .set(
            key::NETWORK_PROTOCOL_VERSION,
            http_version(came.head.version).as_str(),
        )
        .set(key::ROLE, "edge");
    match target {
        Some(Target::Tool(name)) => {
            set.set(key::GEN_AI_TOOL_NAME, name)
                .set(key::GEN_AI_OPERATION_NAME, "execute_tool");
        }
        Some(Target::Prompt(name)) => {
            set.set(key::GEN_AI_PROMPT_NAME, name);
        }
        Some(Target::Resource(uri)) => {
            set.set(key::MCP_RESOURCE_URI, uri);
        }
        None => {}
    }
    if let Some(ConnectInfo(peer)) = came.head.extensions.get::<ConnectInfo<SocketAddr>>() {
        set.set(key::CLIENT_ADDRESS, &peer.ip().to_string())
            .set(key::CLIENT_PORT, i64::from(peer.port()));
    }
}

fn in_headers(headers: &HeaderMap) -> Option<TraceContext> {
    let parent = headers.get("traceparent")?.to_str().ok()?;
    TraceContext::parse(parent, text(headers, "tracestate").as_deref())
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

fn http_version(version: Version) -> HttpVersion {
    match version {
        Version::HTTP_2 => HttpVersion::Http2,
        Version::HTTP_10 => HttpVersion::Http10,
        _ => HttpVersion::Http11,
    }
}
