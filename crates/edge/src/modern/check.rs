use http::{HeaderMap, HeaderName, HeaderValue};
use shoal_ports::{Caller, Dispatcher, LogFilter};
use shoal_protocol::task::declares_tasks;
use shoal_protocol::{
    CLIENT_CAPABILITIES, Era, MCP_PARAM_PREFIX, Method, PROTOCOL_VERSION, RawJson, Request,
    RequestMeta, Revision, RpcError, code, expect_equal, expect_plain, shown,
};

use crate::era::VersionHeader;
use crate::names;
use crate::refusal::Refusal;

pub(super) struct CheckedMeta {
    pub(super) revision: Revision,
    pub(super) capabilities: RawJson,
    pub(super) log: LogFilter,
    pub(super) tasks: bool,
}

/// Checks a request (2026-07-28, Overview, `_meta`; Streamable HTTP, Server Validation).
///
/// # Errors
/// The first error of -32602, -32020, -32022 and -32601 that applies.
pub(super) fn request(
    headers: &HeaderMap,
    version: VersionHeader<'_>,
    meta: &RequestMeta,
    request: &Request,
    offers_tasks: bool,
) -> Result<CheckedMeta, RpcError> {
    let revision = protocol_version(version, meta)?;
    let capabilities = meta
        .client_capabilities
        .clone()
        .ok_or_else(|| missing(CLIENT_CAPABILITIES, "an object, {} if there are none"))?;
    let method = request.method.as_str();
    expect_plain("Mcp-Method", sent(headers, &names::METHOD), method)?;
    let of_task = offers_tasks && request.method.is_of_task();
    let is_known = of_task || request.method.is_request_of(revision);
    if !is_known || request.method.is_notification() {
        return Err(RpcError::method_not_found(method));
    }
    let params = request.params.as_ref();
    if let Some(named) = request.method.named()
        && let Some(name) = params.and_then(|params| params.member_text(named.as_str()))
    {
        expect_equal("Mcp-Name", sent(headers, &names::NAME), &name)?;
    }
    let log = meta.log_level()?;
    let tasks = offers_tasks && declares_tasks(&capabilities);
    Ok(CheckedMeta {
        revision,
        tasks,
        capabilities,
        log: log.map_or(LogFilter::Off, LogFilter::AtLeast),
    })
}

pub(super) fn needs_tasks(caller: &Caller, request: &Request, dispatcher: &dyn Dispatcher) -> bool {
    let params = request.params.as_ref();
    match request.method {
        Method::ToolsCall => dispatcher.requires_task(caller, params),
        Method::Listen => {
            let asked = params.and_then(|params| params.member("notifications"));
            asked.is_some_and(|asked| asked.member("taskIds").is_some())
        }
        _ => request.method.is_of_task(),
    }
}

/// Fails with -32020 if a header and its argument differ.
pub(super) fn arguments(
    headers: &HeaderMap,
    caller: &Caller,
    request: &Request,
    dispatcher: &dyn Dispatcher,
) -> Result<(), RpcError> {
    if request.method != Method::ToolsCall {
        return Ok(());
    }
    let params = request.params.as_ref();
    dispatcher.check_param_headers(caller, params, &|name| mirrored(headers, name))
}

/// The specification requires no other check of a notification.
pub(super) fn notification_version(
    version: VersionHeader<'_>,
    meta: &RequestMeta,
) -> Result<Revision, Refusal> {
    if meta.protocol_version.is_none() {
        version.expect_known()?;
        return Ok(Revision::LATEST);
    }
    protocol_version(version, meta).map_err(Refusal::Modern)
}

pub(super) fn of_notification(revision: Revision, meta: &RequestMeta) -> CheckedMeta {
    let nothing = RawJson::from_static("{}");
    CheckedMeta {
        revision,
        capabilities: meta.client_capabilities.clone().unwrap_or(nothing),
        log: LogFilter::Off,
        tasks: false,
    }
}

/// Header and body must both name the revision.
fn protocol_version(header: VersionHeader<'_>, meta: &RequestMeta) -> Result<Revision, RpcError> {
    let body = meta
        .protocol_version
        .as_deref()
        .ok_or_else(|| missing(PROTOCOL_VERSION, "a string such as \"2026-07-28\""))?;
    let header = header.as_str().map(str::as_bytes);
    expect_plain("MCP-Protocol-Version", header, body)?;
    match body.parse::<Revision>() {
        Ok(revision) if revision.era() == Era::Modern => Ok(revision),
        Ok(_) => Err(unsupported(
            body,
            "opens with initialize and a session, not with per-request _meta",
        )),
        Err(_) => Err(unsupported(body, "is not supported")),
    }
}

fn missing(key: &str, what: &str) -> RpcError {
    RpcError::invalid_params(format!("params._meta must hold {key:?}: {what}"))
}

/// Lists every revision, newest first, so that a client can fall back to `initialize`.
fn unsupported(requested: &str, why: &str) -> RpcError {
    let requested = shown(requested, 64);
    let data = serde_json::json!({ "supported": supported_versions(), "requested": requested });
    let message = format!("protocol version {requested:?} {why}; choose one of data.supported");
    RpcError::new(code::UNSUPPORTED_VERSION, message).with_data(RawJson::of(&data))
}

pub(super) fn supported_versions() -> [&'static str; Revision::ALL.len()] {
    let mut versions = Revision::ALL.map(Revision::as_str);
    versions.reverse();
    versions
}

fn sent<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h [u8]> {
    headers.get(name).map(HeaderValue::as_bytes)
}

fn mirrored(headers: &HeaderMap, name: &str) -> Option<Vec<u8>> {
    let name = format!("{MCP_PARAM_PREFIX}{name}");
    headers.get(name).map(|value| value.as_bytes().to_vec())
}
