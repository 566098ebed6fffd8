//! The names of spans, in one place for the reference page.

/// A span that Shoal records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanName {
    /// The name, with `{…}` for the parts that a function fills in.
    pub name: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// Which part of Shoal records the span.
    pub made: &'static str,
    /// The time that the span covers.
    pub covers: &'static str,
}

macro_rules! names {
    ($($constant:ident = $name:literal, $kind:literal, $made:literal, $covers:literal;)+) => {
        $(
            #[doc = concat!("`", $name, "` (", $kind, ", ", $made, "): ", $covers)]
            pub const $constant: &str = $name;
        )+

        /// Every span, in the order of a call.
        pub const ALL: &[SpanName] = &[$(SpanName {
            name: $name,
            kind: $kind,
            made: $made,
            covers: $covers,
        }),+];
    };
}

names! {
    MCP_SERVER = "{mcp.method.name} {target}", "server", "edge",
        "A client's request or notification, until the answer. Targets are tools and prompts.";
    HTTP_SERVER = "{http.request.method} {http.route}", "server", "edge",
        "An HTTP request without an MCP message, such as a listening GET.";
    SESSION_DELIVER = "session deliver", "internal", "session",
        "The session handles one message.";
    SESSION_CALL = "session call", "internal", "session",
        "A call of a session, until its result.";
    SESSION_TAKE_OVER = "session take over", "internal", "session",
        "Takeover of a lost node's session.";
    SESSION_RESUME_CALL = "session resume call", "internal", "session",
        "The new owner reattaches to a running call.";
    STREAM_RESUME = "stream resume", "internal", "session", "A client resumes a stream.";
    MCP_CLIENT = "{mcp.method.name}", "client", "session",
        "A request to the client, such as `elicitation/create`, until its answer.";
    JOURNAL_BEGIN = "journal begin", "client", "session", "A journal write, after the hold.";
    EVENT_LOG_APPEND = "event log append", "client", "session", "A write to the event log.";
    STORE = "redis {db.operation.name}", "client", "store-redis",
        "A store operation.";
    ROUTE = "route session", "internal", "cluster", "Lookup of a session's owner.";
    DISPATCH = "dispatch", "internal", "dispatch", "A call's way to a worker, with all attempts.";
    ATTEMPT = "dispatch attempt", "client", "dispatch", "One attempt at one worker.";
    WORKER_RUN = "worker run", "server", "worker", "A call runs at its worker.";
    WORKER_ATTACH = "worker attach", "server", "worker",
        "Another reader takes over a running call's events.";
    WORKER_BACKEND = "{mcp.method.name} {target}", "client", "worker",
        "A request to an MCP server.";
}

/// Returns `{method} {target}`, or only the method. `target` must be a tool or prompt of the catalog, because clients
/// must not invent names.
#[must_use]
pub fn mcp_name(method: &str, target: Option<&str>) -> String {
    match target {
        Some(target) => format!("{method} {target}"),
        None => method.to_owned(),
    }
}

/// Returns the name of a storage operation's span.
#[must_use]
pub fn store_name(operation: &str) -> String {
    format!("redis {operation}")
}

/// Returns the span name of an HTTP request without an MCP message. `route` is a pattern.
#[must_use]
pub fn http_name(method: &str, route: &str) -> String {
    format!("{method} {route}")
}
