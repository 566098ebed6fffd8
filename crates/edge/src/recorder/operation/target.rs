use shoal_ports::SessionId;
use shoal_protocol::{Method, RawJson};
use shoal_telemetry::metrics::{NameKind, OTHER, metrics};
use shoal_telemetry::trace::{Attributes, attributes as key, names};

use crate::measure;
use crate::recorder::arrival::MessageArrival;

pub(super) enum OperationTarget {
    Tool(String),
    Prompt(String),
    Resource(String),
}

impl OperationTarget {
    pub(super) fn of(method: &Method, params: Option<&RawJson>) -> Option<Self> {
        let wrap = match method {
            Method::ToolsCall => Self::Tool,
            Method::PromptsGet => Self::Prompt,
            Method::ResourcesRead | Method::ResourcesSubscribe | Method::ResourcesUnsubscribe => {
                Self::Resource
            }
            _ => return None,
        };
        let name = if matches!(method, Method::ToolsCall | Method::PromptsGet) {
            "name"
        } else {
            "uri"
        };
        params?.member(name)?.string().map(wrap)
    }
}

/// A span's name contains only names that the catalog knows, because a client can make up names.
pub(super) fn name(method: &Method, target: Option<&OperationTarget>) -> String {
    let kind = match (method, target) {
        (Method::Other(_), _) => return OTHER.to_owned(),
        (_, Some(OperationTarget::Tool(_))) => NameKind::Tool,
        _ => NameKind::Prompt,
    };
    let known = named(target).filter(|name| metrics().known.has(kind, name));
    names::mcp_name(method.as_str(), known)
}

/// Resources are too many for span names.
pub(super) fn named(target: Option<&OperationTarget>) -> Option<&str> {
    match target? {
        OperationTarget::Tool(name) | OperationTarget::Prompt(name) => Some(name),
        OperationTarget::Resource(_) => None,
    }
}

pub(super) fn describe(
    set: &mut Attributes,
    arrival: &MessageArrival<'_>,
    target: Option<&OperationTarget>,
    revision: Option<&str>,
) {
    let id = arrival.id.map(ToString::to_string);
    let id = id.as_deref().map(|id| id.trim_matches('"'));
    set.set(key::MCP_METHOD_NAME, arrival.method.as_str())
        .set_some(key::MCP_SESSION_ID, arrival.session.map(SessionId::as_str))
        .set_some(key::MCP_PROTOCOL_VERSION, revision)
        .set_some(key::JSONRPC_REQUEST_ID, id);
    measure::set_connection(set, arrival.head);
    match target {
        Some(OperationTarget::Tool(name)) => {
            set.set(key::GEN_AI_TOOL_NAME, name)
                .set(key::GEN_AI_OPERATION_NAME, "execute_tool");
        }
        Some(OperationTarget::Prompt(name)) => {
            set.set(key::GEN_AI_PROMPT_NAME, name);
        }
        Some(OperationTarget::Resource(uri)) => {
            set.set(key::MCP_RESOURCE_URI, uri);
        }
        None => {}
    }
}
