use std::time::Duration;

use super::area::{Label, area};
use super::definition::{Attribute, MCP_SECONDS};
use super::known::{Known, NameKind};
use super::labels::{PROTOCOL_VERSION, Pair, TRANSPORT, label};

mod bounds;
mod operation;

use bounds::{CODE_TEXTS, METHODS, REVISIONS, code_text, one_of};
pub use operation::{Failure, HttpVersion, Operation, Transport};

const METHOD: &str = "mcp.method.name";
const TOOL: &str = "gen_ai.tool.name";
const PROMPT: &str = "gen_ai.prompt.name";
const GEN_AI_OPERATION: &str = "gen_ai.operation.name";
const ERROR: &str = "error.type";
const STATUS: &str = "rpc.response.status_code";
const REVISION: &str = "mcp.protocol.version";
const PROTOCOL: &str = "network.protocol.name";

const FAILURE: Attribute = Attribute::code(
    ERROR,
    "only for failures: the JSON-RPC code, `tool_error`, or a short name, such as `stream_cut`",
);

const OPERATION_ATTRIBUTES: &[Attribute] = &[
    Attribute::one_or_other(METHOD, METHODS),
    Attribute::configured(TOOL, "tools of the catalog"),
    Attribute::configured(PROMPT, "prompts of the catalog"),
    Attribute::one_of(GEN_AI_OPERATION, &["execute_tool"]),
    FAILURE,
    Attribute::one_or_other(STATUS, CODE_TEXTS),
    Attribute::one_or_other(REVISION, REVISIONS),
    Transport::ATTRIBUTE,
    Attribute::one_of(PROTOCOL, &["http"]),
    Attribute::one_of(PROTOCOL_VERSION, HttpVersion::VALUES),
];

const SESSION_ATTRIBUTES: &[Attribute] = &[
    FAILURE,
    Attribute::one_or_other(REVISION, REVISIONS),
    Transport::ATTRIBUTE,
    Attribute::one_of(PROTOCOL, &["http"]),
    Attribute::one_of(PROTOCOL_VERSION, HttpVersion::VALUES),
];

area! {
    /// The metrics of the MCP conventions.
    McpMetrics {
        server_operation: Histogram(MCP_SECONDS) [in OPERATION_ATTRIBUTES]
            = "mcp.server.operation.duration", "s",
            "Time of clients' requests and notifications, from arrival to result.";
        server_session: Histogram(MCP_SECONDS) [in SESSION_ATTRIBUTES]
            = "mcp.server.session.duration", "s", "Life of sessions, from `initialize`.";
        client_operation: Histogram(MCP_SECONDS) [in OPERATION_ATTRIBUTES]
            = "mcp.client.operation.duration", "s",
            "Time of Shoal's requests to MCP servers, until the result.";
    }
}

impl McpMetrics {
    /// Records the end of a client's request or notification.
    pub fn served(&self, duration: Duration, operation: &Operation<'_>) {
        (self.server_operation).record(duration, || attributes(operation));
    }

    /// Records the end of a request to a pool's MCP server.
    pub fn asked(&self, duration: Duration, operation: &Operation<'_>) {
        (self.client_operation).record(duration, || attributes(operation));
    }

    /// Records the end of a session. `failure` is a short name if it ended badly.
    pub fn session_ended(
        &self,
        duration: Duration,
        revision: Option<&str>,
        transport: Transport,
        failure: Option<&'static str>,
    ) {
        self.server_session.record(duration, || {
            let mut attributes = Vec::with_capacity(4);
            attributes.extend(failure.map(|failure| label(ERROR, failure)));
            attributes.extend(revision.map(|text| label(REVISION, one_of(REVISIONS, text))));
            attributes.push(label(TRANSPORT, transport.as_str()));
            if transport == Transport::Tcp {
                attributes.push(label(PROTOCOL, "http"));
            }
            attributes
        });
    }
}

fn attributes(operation: &Operation<'_>) -> Vec<Pair> {
    let mut attributes = Vec::with_capacity(10);
    attributes.push(label(METHOD, one_of(METHODS, operation.method)));
    if let Some(tool) = operation.tool {
        attributes.push(Known::label(NameKind::Tool, TOOL, tool));
        attributes.push(label(GEN_AI_OPERATION, "execute_tool"));
    }
    if let Some(prompt) = operation.prompt {
        attributes.push(Known::label(NameKind::Prompt, PROMPT, prompt));
    }
    if let Some(failure) = operation.failure {
        attributes.push(label(ERROR, failure.error_type()));
        if let Failure::Code(code) = failure {
            attributes.push(label(STATUS, code_text(code)));
        }
    }
    if let Some(revision) = operation.revision {
        attributes.push(label(REVISION, one_of(REVISIONS, revision)));
    }
    attributes.push(label(TRANSPORT, operation.transport.as_str()));
    if let Some(version) = operation.http {
        attributes.push(label(PROTOCOL, "http"));
        attributes.push(label(PROTOCOL_VERSION, version.as_str()));
    }
    attributes
}
