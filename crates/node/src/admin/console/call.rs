//! Calls a tool for an operator by a 2026-07-28 request to this process's own edge.

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use serde::Deserialize;
use serde_json::{Value, json};
use shoal_edge::Trusted;
use shoal_ports::{Principal, ToolDetail};
use shoal_protocol::{
    CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, MCP_METHOD, MCP_NAME, MCP_PROTOCOL_VERSION,
    PROGRESS_TOKEN, PROTOCOL_VERSION, ParamHeaders, RawJson, RawObject, RequestId, Revision,
    encode_value, request,
};
use tower::ServiceExt as _;

use super::super::refuse;

const CALL: &str = "tools/call";
const REVISION: &str = Revision::LATEST.as_str();
const HOST: HeaderValue = HeaderValue::from_static("localhost");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EITHER: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// This process's edge, for operators' calls.
#[derive(Clone)]
pub struct OperatorEdge {
    router: Router,
    path: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ToolCall {
    arguments: RawJson,
    input_responses: Option<RawJson>,
    request_state: Option<String>,
}

impl OperatorEdge {
    /// Calls tools at the edge behind `router`, which serves MCP at `path`.
    pub fn new(router: Router, path: &str) -> Self {
        Self {
            router,
            path: path.to_owned(),
        }
    }

    /// `known` is the tool's description, if a node knows the tool.
    pub(super) async fn call(
        &self,
        name: &str,
        call: &ToolCall,
        known: Option<&ToolDetail>,
    ) -> Response {
        let id = RequestId::from_number(1);
        let text = request(&id, CALL, Some(&params(name, call)));
        let mut request = Request::new(Body::from(text));
        let Ok(path) = self.path.parse() else {
            return refuse(StatusCode::INTERNAL_SERVER_ERROR, "server.path is no path");
        };
        *request.uri_mut() = path;
        *request.method_mut() = Method::POST;
        *request.headers_mut() = headers(name, &call.arguments, known);
        request
            .extensions_mut()
            .insert(Trusted(Principal::console()));
        match self.router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

fn params(name: &str, call: &ToolCall) -> RawJson {
    let version = env!("CARGO_PKG_VERSION");
    let meta = json!({
        PROTOCOL_VERSION: REVISION,
        CLIENT_CAPABILITIES: { "elicitation": { "form": {} } },
        CLIENT_INFO: { "name": Principal::console().as_str(), "version": version },
        LOG_LEVEL: "info",
        PROGRESS_TOKEN: 1,
    });
    let mut params = RawObject::default();
    params.set("name", RawJson::of(name));
    params.set("arguments", call.arguments.clone());
    if let Some(responses) = &call.input_responses {
        params.set("inputResponses", responses.clone());
    }
    if let Some(state) = &call.request_state {
        params.set("requestState", RawJson::of(state));
    }
    params.set("_meta", RawJson::of(&meta));
    params.to_json()
}

fn headers(name: &str, arguments: &RawJson, known: Option<&ToolDetail>) -> HeaderMap {
    let mut headers = HeaderMap::from_iter([
        (header::HOST, HOST),
        (header::CONTENT_TYPE, JSON),
        (header::ACCEPT, EITHER),
    ]);
    let schema = known.and_then(|tool| tool.definition.member("inputSchema"));
    let schema: Value = schema.and_then(|it| it.read().ok()).unwrap_or_default();
    let mirrored = ParamHeaders::of_schema(&schema).unwrap_or_default();
    let arguments: Value = arguments.read().unwrap_or_default();
    let said = [
        (MCP_PROTOCOL_VERSION, REVISION.to_owned()),
        (MCP_METHOD, CALL.to_owned()),
        (MCP_NAME, encode_value(name)),
    ];
    let said = said.map(|(name, value)| (name.to_owned(), value));
    for (name, value) in said.into_iter().chain(mirrored.of_call(&arguments)) {
        // If a value cannot be a header, the edge reports the missing header.
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.insert(name, value);
        }
    }
    headers
}
