//! Recognizes clients that do not come back after their stream ends cleanly.

use http::{HeaderMap, header};

/// User agents of the Java SDK, over `HttpClient` and Spring's `WebClient`. All versions of the SDK wait for the call's
/// end on one connection.
const NEVER_RESUME: [&str; 2] = ["Java-http-client/", "ReactorNetty/"];

pub(super) fn resumes_calls(headers: &HeaderMap) -> bool {
    let agent = headers.get(header::USER_AGENT);
    let Some(agent) = agent.and_then(|agent| agent.to_str().ok()) else {
        return true;
    };
    !NEVER_RESUME
        .iter()
        .any(|product| agent.starts_with(product))
}
