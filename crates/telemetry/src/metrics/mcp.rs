//! Requests and sessions by the OpenTelemetry conventions for MCP.

use std::time::Duration;

use opentelemetry::KeyValue;

use super::definition::{Attribute, Kind, MCP_SECONDS};
use super::instrument::{Factory, Histogram};
use super::known::{Known, NameKind, OTHER};
use super::labels::{label, labels};

const METHOD: &str = "mcp.method.name";
const TOOL: &str = "gen_ai.tool.name";
const PROMPT: &str = "gen_ai.prompt.name";
const GEN_AI_OPERATION: &str = "gen_ai.operation.name";
const ERROR: &str = "error.type";
const STATUS: &str = "rpc.response.status_code";
const REVISION: &str = "mcp.protocol.version";
const TRANSPORT: &str = "network.transport";
const PROTOCOL: &str = "network.protocol.name";
const PROTOCOL_VERSION: &str = "network.protocol.version";

/// Methods that are recorded by name.
const METHODS: &[&str] = &[
    "completion/complete",
    "elicitation/create",
    "initialize",
    "logging/setLevel",
    "notifications/cancelled",
    "notifications/elicitation/complete",
    "notifications/initialized",
    "notifications/message",
    "notifications/progress",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
    "notifications/roots/list_changed",
    "notifications/subscriptions/acknowledged",
    "notifications/tasks/status",
    "notifications/tools/list_changed",
    "ping",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/templates/list",
    "resources/unsubscribe",
    "roots/list",
    "sampling/createMessage",
    "server/discover",
    "subscriptions/listen",
    "tasks/cancel",
    "tasks/get",
    "tasks/list",
    "tasks/result",
    "tasks/update",
    "tools/call",
    "tools/list",
];

/// Protocol revisions that are recorded by name.
const REVISIONS: &[&str] = &[
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    "2026-07-28",
];

/// JSON-RPC codes that are recorded by number: those of the standard, of MCP and of Shoal.
const CODES: &[(i64, &str)] = &[
    (-32_700, "-32700"),
    (-32_600, "-32600"),
    (-32_601, "-32601"),
    (-32_602, "-32602"),
    (-32_603, "-32603"),
    (-32_000, "-32000"),
    (-32_001, "-32001"),
    (-32_002, "-32002"),
    (-32_020, "-32020"),
    (-32_021, "-32021"),
    (-32_022, "-32022"),
    (-32_042, "-32042"),
    (-32_800, "-32800"),
    (50_002, "50002"),
    (50_300, "50300"),
    (50_301, "50301"),
    (50_400, "50400"),
    (50_410, "50410"),
];

const CODE_TEXTS: &[&str] = &{
    let mut texts = [""; CODES.len()];
    let mut at = 0;
    while at < CODES.len() {
        texts[at] = CODES[at].1;
        at += 1;
    }
    texts
};

const OPERATION_ATTRIBUTES: &[Attribute] = &[
    Attribute::one_or_other(METHOD, METHODS),
    Attribute::configured(TOOL, "the tools of the catalog; tool calls only"),
    Attribute::configured(PROMPT, "the prompts of the catalog; `prompts/get` only"),
    Attribute::one_of(GEN_AI_OPERATION, &["execute_tool"]),
    Attribute::code(
        ERROR,
        "the JSON-RPC code, `tool_error`, or a short name; failures only",
    ),
    Attribute::one_or_other(STATUS, CODE_TEXTS),
    Attribute::one_or_other(REVISION, REVISIONS),
    Attribute::one_of(TRANSPORT, Transport::VALUES),
    Attribute::one_of(PROTOCOL, &["http"]),
    Attribute::one_of(PROTOCOL_VERSION, HttpVersion::VALUES),
];

const SESSION_ATTRIBUTES: &[Attribute] = &[
    Attribute::code(ERROR, "a short name; sessions that ended in failure only"),
    Attribute::one_or_other(REVISION, REVISIONS),
    Attribute::one_of(TRANSPORT, Transport::VALUES),
    Attribute::one_of(PROTOCOL, &["http"]),
    Attribute::one_of(PROTOCOL_VERSION, HttpVersion::VALUES),
];

pub(super) static DEFINITIONS: &[&super::Definition] =
    &[&SERVER_OPERATION, &SERVER_SESSION, &CLIENT_OPERATION];

static SERVER_OPERATION: super::Definition = super::Definition::new(
    "mcp.server.operation.duration",
    "s",
    "Requests and notifications of clients, from arrival until the result or acknowledgement is sent.",
    Kind::Histogram(MCP_SECONDS),
    OPERATION_ATTRIBUTES,
);
static SERVER_SESSION: super::Definition = super::Definition::new(
    "mcp.server.session.duration",
    "s",
    "Sessions, from initialize until they ended.",
    Kind::Histogram(MCP_SECONDS),
    SESSION_ATTRIBUTES,
);
static CLIENT_OPERATION: super::Definition = super::Definition::new(
    "mcp.client.operation.duration",
    "s",
    "Requests that Shoal sent to the MCP servers behind its pools, until the result or acknowledgement came.",
    Kind::Histogram(MCP_SECONDS),
    OPERATION_ATTRIBUTES,
);

labels! {
    /// What carries the messages.
    Transport {
        /// HTTP/1.1 and HTTP/2.
        Tcp = "tcp",
        /// Standard input and output.
        Pipe = "pipe",
        /// A Unix domain socket.
        Unix = "unix",
        /// HTTP/3.
        Quic = "quic",
    }
}

labels! {
    /// The version of HTTP.
    HttpVersion {
        /// HTTP/1.0.
        Http10 = "1.0",
        /// HTTP/1.1.
        Http11 = "1.1",
        /// HTTP/2.
        Http2 = "2",
    }
}

/// How an operation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The answer is a JSON-RPC error of this code.
    Code(i64),
    /// The answer is a tool's result with `isError`.
    Tool,
    /// There was no answer; a short name says why, such as `cancelled` or `connection_lost`.
    Other(&'static str),
}

impl Failure {
    /// The value of `error.type`, for spans as well: a code that is not known is `_OTHER`.
    #[must_use]
    pub fn error_type(self) -> &'static str {
        match self {
            Self::Code(code) => code_text(code),
            Self::Tool => "tool_error",
            Self::Other(kind) => kind,
        }
    }
}

/// A request or notification that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation<'a> {
    /// Its method.
    pub method: &'a str,
    /// The tool of `tools/call`.
    pub tool: Option<&'a str>,
    /// The prompt of `prompts/get`.
    pub prompt: Option<&'a str>,
    /// How it failed, if it did.
    pub failure: Option<Failure>,
    /// The protocol revision.
    pub revision: Option<&'a str>,
    /// What carried it.
    pub transport: Transport,
    /// The version of HTTP, if it was HTTP.
    pub http: Option<HttpVersion>,
}

impl<'a> Operation<'a> {
    /// A successful operation over HTTP/1.1, to change from there.
    #[must_use]
    pub const fn new(method: &'a str) -> Self {
        Self {
            method,
            tool: None,
            prompt: None,
            failure: None,
            revision: None,
            transport: Transport::Tcp,
            http: Some(HttpVersion::Http11),
        }
    }
}

/// Requests and sessions by the conventions.
#[derive(Debug)]
pub struct McpMetrics {
    server_operation: Histogram,
    server_session: Histogram,
    client_operation: Histogram,
    known: Known,
}

impl McpMetrics {
    pub(super) fn new(factory: &Factory, known: &Known) -> Self {
        Self {
            server_operation: factory.histogram(&SERVER_OPERATION),
            server_session: factory.histogram(&SERVER_SESSION),
            client_operation: factory.histogram(&CLIENT_OPERATION),
            known: known.clone(),
        }
    }

    /// A client's request or notification is over.
    pub fn served(&self, duration: Duration, operation: &Operation<'_>) {
        (self.server_operation).record(duration, || self.attributes(operation));
    }

    /// A request to the MCP server behind a pool is over.
    pub fn asked(&self, duration: Duration, operation: &Operation<'_>) {
        (self.client_operation).record(duration, || self.attributes(operation));
    }

    /// A session is over; `failure` is a short name when it ended badly.
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
            if matches!(transport, Transport::Tcp | Transport::Quic) {
                attributes.push(label(PROTOCOL, "http"));
            }
            attributes
        });
    }

    fn attributes(&self, operation: &Operation<'_>) -> Vec<KeyValue> {
        let mut attributes = Vec::with_capacity(10);
        attributes.push(label(METHOD, one_of(METHODS, operation.method)));
        if let Some(tool) = operation.tool {
            attributes.push(self.known.label(NameKind::Tool, TOOL, tool));
            attributes.push(label(GEN_AI_OPERATION, "execute_tool"));
        }
        if let Some(prompt) = operation.prompt {
            attributes.push(self.known.label(NameKind::Prompt, PROMPT, prompt));
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
}

fn one_of(values: &'static [&'static str], text: &str) -> &'static str {
    (values.iter().find(|value| **value == text)).map_or(OTHER, |value| value)
}

fn code_text(code: i64) -> &'static str {
    (CODES.iter().find(|(known, _)| *known == code)).map_or(OTHER, |(_, text)| text)
}
