//! Clients that do not come back for the answer of a call whose stream ends in order.

use http::{HeaderMap, header};

/// Products in `User-Agent` of clients on which every version of the Java SDK so far runs, over `HttpClient` and over Spring's
/// `WebClient`. Both wait out the call.
const NEVER_RESUME: [&str; 2] = ["Java-http-client/", "ReactorNetty/"];

/// Whether a client with these headers resumes a call's stream.
pub(super) fn resumes_calls(headers: &HeaderMap) -> bool {
    let agent = headers.get(header::USER_AGENT);
    let Some(agent) = agent.and_then(|agent| agent.to_str().ok()) else {
        return true;
    };
    !NEVER_RESUME
        .iter()
        .any(|product| agent.starts_with(product))
}
