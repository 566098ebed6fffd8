//! The names of spans, in one place for the reference page.

/// A span that Shoal records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanName {
    /// The name, with `{…}` for the parts that a function fills in.
    pub name: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// Where it is recorded.
    pub made: &'static str,
    /// The time that it covers.
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
        "a request or notification of a client, until the answer is sent; the target is a tool or a prompt of the catalog. Build the name with `mcp_name`.";
    HTTP_SERVER = "{http.request.method} {http.route}", "server", "edge",
        "an HTTP request that carries no MCP message, such as a GET that listens. Build the name with `http_name`.";
    SESSION_DELIVER = "session deliver", "internal", "session",
        "a message on its way through the session's state machine.";
    SESSION_CALL = "session call", "internal", "session",
        "a call of a session, from its entry to its result.";
    SESSION_TAKE_OVER = "session take over", "internal", "session",
        "a session whose owner is lost, until its running calls are resumed.";
    SESSION_RESUME_CALL = "session resume call", "internal", "session",
        "finding a running call at its worker again.";
    STREAM_RESUME = "stream resume", "internal", "session", "a client that comes back with a last event id.";
    MCP_CLIENT = "{mcp.method.name}", "client", "session",
        "a request to the client, such as `elicitation/create`, until its answer comes. Build the name with `mcp_name`.";
    JOURNAL_BEGIN = "journal begin", "client", "session", "writing a call down before it is dispatched.";
    EVENT_LOG_APPEND = "event log append", "client", "session", "writing events down before anybody reads them.";
    STORE = "redis {db.operation.name}", "client", "store-redis",
        "one operation of a storage port. Build the name with `store_name`.";
    ROUTE = "route session", "internal", "cluster", "finding the owner of a session.";
    DISPATCH = "dispatch", "internal", "dispatch", "choosing a pool and a worker for a call, with every attempt.";
    ATTEMPT = "dispatch attempt", "client", "dispatch", "one attempt at one worker.";
    WORKER_RUN = "worker run", "server", "worker", "a call at its worker.";
    WORKER_ATTACH = "worker attach", "server", "worker",
        "somebody else takes over the events of a call that runs already, which is linked.";
    WORKER_BACKEND = "{mcp.method.name} {target}", "client", "worker",
        "a request to the MCP server behind a pool. Build the name with `mcp_name`.";
}

/// Returns `{method} {target}`, or only the method. `target` must be a tool or prompt of the catalog, because
/// clients must not invent names.
#[must_use]
pub fn mcp_name(method: &str, target: Option<&str>) -> String {
    match target {
        Some(target) => format!("{method} {target}"),
        None => method.to_owned(),
    }
}

/// Returns the name of a span around an operation of a storage port.
#[must_use]
pub fn store_name(operation: &str) -> String {
    format!("redis {operation}")
}

/// Returns the name of a span around an HTTP request without an MCP message. `route` is a pattern.
#[must_use]
pub fn http_name(method: &str, route: &str) -> String {
    format!("{method} {route}")
}
