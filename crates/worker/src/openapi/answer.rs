mod fitted;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use reqwest::Response;
use serde_json::{Value, json};
use shoal_outbound::{Broken, collect};
use shoal_ports::{CallFailure, CallOutcome, Repeat};
use shoal_protocol::{RawJson, RawObject, RpcError};
use shoal_telemetry::metrics::metrics;

use self::fitted::{Fitted, fitted};
use super::document::beginning;
use super::media::{BodyKind, essence};
use super::operation::CompiledOperation;
use crate::http_client::{LATER, beginning_of, redirect_target, retry_after};

const REFUSAL: usize = 64 * 1024;
const SHOWN: usize = 8 * 1024;
const TOLD: [http::HeaderName; 5] = [
    header::CONTENT_TYPE,
    header::CONTENT_LENGTH,
    header::ETAG,
    header::LAST_MODIFIED,
    header::LOCATION,
];

const NOT_ACCEPTED: &str = ": the service does not accept the credentials that Shoal calls it with; its operator may set security or headers";

pub(super) async fn read(
    name: &str,
    operation: &CompiledOperation,
    answer: Response,
    limit: usize,
    repeat: Repeat,
) -> CallOutcome {
    let (status, headers) = (answer.status(), answer.headers().clone());
    match busy(status, &headers) {
        Some(failure) if repeat == Repeat::Safe => {
            return CallOutcome::Failed(failure);
        }
        // The call may not run twice, so only the client may decide to resend it.
        Some(failure) => return CallOutcome::Error(failure.to_rpc()),
        None => {}
    }
    if !status.is_success() {
        let target = redirect_target(&answer);
        let said = beginning_of(answer, REFUSAL).await;
        return CallOutcome::Result(refusal(status, &headers, &said, target));
    }
    let body = match collect(answer, limit).await {
        Ok(body) => body,
        Err(Broken::TooLarge) => {
            return CallOutcome::Error(RpcError::internal(format!(
                "the call has run, but the service's answer cannot be passed on: it is larger than {limit} bytes"
            )));
        }
        Err(Broken::Connection(reason)) => {
            return CallOutcome::Failed(CallFailure::OutcomeUnknown { reason });
        }
    };
    let success = success(name, operation, status, &headers, body);
    if success.is_unfit {
        metrics().workers.unfit_answer();
        tracing::debug!(target: "shoal::openapi", tool = name, "an answer does not fit the tool's outputSchema");
    }
    CallOutcome::Result(success.result.to_json())
}

/// An error result, which the model can act on.
pub(super) fn wrong(why: &str) -> RawJson {
    RawJson::of(&json!({ "content": [{ "type": "text", "text": why }], "isError": true }))
}

/// `None` if the service may have run the call, or will not run it later.
fn busy(status: StatusCode, headers: &HeaderMap) -> Option<CallFailure> {
    let later = retry_after(headers);
    let what = match status {
        StatusCode::TOO_MANY_REQUESTS => "takes no more requests",
        StatusCode::SERVICE_UNAVAILABLE if headers.contains_key(header::RETRY_AFTER) => {
            "is not available"
        }
        _ => return None,
    };
    let reason = format!("the service {what}");
    Some(CallFailure::overloaded(reason, later.unwrap_or(LATER)))
}

fn success(
    name: &str,
    operation: &CompiledOperation,
    status: StatusCode,
    headers: &HeaderMap,
    body: Bytes,
) -> Success {
    let promised = operation.output.as_ref();
    if body.is_empty() {
        let told = match operation.method {
            Method::HEAD => described(status, headers),
            _ => format!("{status}"),
        };
        return Success::text(&told).without_structure(promised);
    }
    let media = media_type(headers);
    let bare = essence(media);
    let is_json = BodyKind::of(&bare) == BodyKind::Json;
    if (is_json || bare.is_empty())
        && let Ok(json) = RawJson::parse_text(body.clone())
    {
        return Success::json(json, promised);
    }
    if is_json || is_text(&bare) || bare.is_empty() && std::str::from_utf8(&body).is_ok() {
        let text = decoded(media, &body);
        let structured = promised.and_then(|schema| structure(json!(text), schema, text.len()));
        return Success::text(&text).with(structured.map(|structured| (structured, true)));
    }
    let data = BASE64_STANDARD.encode(&body);
    let content = if bare.starts_with("image/") {
        json!({ "type": "image", "data": data, "mimeType": bare })
    } else if bare.starts_with("audio/") {
        json!({ "type": "audio", "data": data, "mimeType": bare })
    } else {
        let kind = if bare.is_empty() {
            "application/octet-stream"
        } else {
            &bare
        };
        // The request's URL would show the service's address and query.
        let resource = json!({ "uri": format!("openapi:{name}"), "mimeType": kind, "blob": data });
        json!({ "type": "resource", "resource": resource })
    };
    Success::content(content).without_structure(promised)
}

struct Success {
    result: RawObject,
    is_unfit: bool,
}

impl Success {
    fn content(content: Value) -> Self {
        let mut result = RawObject::default();
        result.set("content", RawJson::of(&json!([content])));
        Self {
            result,
            is_unfit: false,
        }
    }

    fn text(text: &str) -> Self {
        Self::content(json!({ "type": "text", "text": text }))
    }

    fn json(json: RawJson, promised: Option<&RawJson>) -> Self {
        let success = Self::text(json.as_str());
        let Some(schema) = promised else {
            return match json.is_object() {
                true => success.with(Some((json, false))),
                false => success,
            };
        };
        let answer = json.read().unwrap_or_default();
        match structure(answer, schema, json.len()) {
            Some(structured) => success.with(Some((structured, true))),
            // The original text keeps all digits.
            None => success.with(Some((json, false))),
        }
    }

    fn without_structure(self, promised: Option<&RawJson>) -> Self {
        self.with(promised.map(|_| (RawJson::from_static("{}"), true)))
    }

    fn with(mut self, structured: Option<(RawJson, bool)>) -> Self {
        if let Some((structured, is_unfit)) = structured {
            self.result.set("structuredContent", structured);
            self.is_unfit = is_unfit;
        }
        self
    }
}

/// Returns what fits the schema; `None` if all of the answer fits.
fn structure(answer: Value, schema: &RawJson, bytes: usize) -> Option<RawJson> {
    let schema: Value = schema.read().unwrap_or_default();
    match fitted(answer, &schema, bytes) {
        Fitted::Whole => None,
        Fitted::Partly(answer) => Some(RawJson::of(&answer)),
    }
}

/// Returns the result, and the service's text for the operator alone.
pub(super) async fn unauthorized(answer: Response) -> (RawJson, String) {
    let (status, headers) = (answer.status(), answer.headers().clone());
    let body = beginning_of(answer, REFUSAL).await;
    let told = wrong(&format!("{status}{NOT_ACCEPTED}"));
    (told, words(&headers, &body))
}

fn refusal(
    status: StatusCode,
    headers: &HeaderMap,
    body: &Bytes,
    target: Option<String>,
) -> RawJson {
    let why = match (status, target) {
        (StatusCode::UNAUTHORIZED, _) => NOT_ACCEPTED.to_owned(),
        (_, Some(target)) => {
            format!(": the service answers with a redirect to {target}, which is not followed")
        }
        _ => String::new(),
    };
    let said = words(headers, body);
    let between = if said.is_empty() { "" } else { "\n" };
    wrong(&format!("{status}{why}{between}{said}"))
}

fn words(headers: &HeaderMap, body: &Bytes) -> String {
    let media = media_type(headers);
    let bare = essence(media);
    let is_readable = bare.is_empty() || is_text(&bare) || BodyKind::of(&bare) == BodyKind::Json;
    match is_readable {
        true => beginning(decoded(media, body).trim(), SHOWN),
        false => format!("({} bytes of {bare})", body.len()),
    }
}

fn media_type(headers: &HeaderMap) -> &str {
    let media = headers.get(header::CONTENT_TYPE);
    media
        .and_then(|media| media.to_str().ok())
        .unwrap_or_default()
}

fn is_text(media: &str) -> bool {
    matches!(BodyKind::of(media), BodyKind::Text | BodyKind::Form)
        || matches!(
            media,
            "application/javascript"
                | "application/yaml"
                | "application/x-ndjson"
                | "application/x-yaml"
        )
}

fn decoded(media: &str, body: &Bytes) -> String {
    let latin = media.to_ascii_lowercase().contains("charset=iso-8859-1");
    match latin {
        true => body.iter().map(|&byte| char::from(byte)).collect(),
        false => String::from_utf8_lossy(body).into_owned(),
    }
}

fn described(status: StatusCode, headers: &HeaderMap) -> String {
    let mut told = status.to_string();
    for name in &TOLD {
        if let Some(value) = headers.get(name).and_then(|value| value.to_str().ok()) {
            told.push_str(&format!("\n{name}: {value}"));
        }
    }
    told
}
