use http::HeaderName;

pub(crate) static PROTOCOL_VERSION: HeaderName =
    HeaderName::from_static(shoal_protocol::MCP_PROTOCOL_VERSION);
pub(crate) static SESSION_ID: HeaderName = HeaderName::from_static(shoal_protocol::MCP_SESSION_ID);
pub(crate) static METHOD: HeaderName = HeaderName::from_static(shoal_protocol::MCP_METHOD);
pub(crate) static NAME: HeaderName = HeaderName::from_static(shoal_protocol::MCP_NAME);
pub(crate) static LAST_EVENT_ID: HeaderName =
    HeaderName::from_static(shoal_protocol::LAST_EVENT_ID);
/// The proof of possession (RFC 9449).
pub(crate) static DPOP: HeaderName = HeaderName::from_static("dpop");
pub(crate) static TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
pub(crate) static TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
/// Keeps nginx and similar proxies from buffering.
pub(crate) static ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
