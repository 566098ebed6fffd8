//! Between rmcp's typed messages and Shoal's raw ones.
#![expect(
    deprecated,
    reason = "sampling and roots remain part of every revision"
)]

use rmcp::ErrorData;
use rmcp::model::{
    ClientResult, CreateMessageResult, CustomResult, ElicitResult, ErrorCode, ListRootsResult,
    ServerNotification, ServerRequest,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use shoal_protocol::{Method, PROGRESS_TOKEN, RawJson, RawObject, RpcError, SUBSCRIPTION_ID, code};

/// Method and parameters of a request or notification.
pub(super) fn split(message: &impl Serialize) -> Option<(Method, Option<RawJson>)> {
    let message = RawObject::of(&RawJson::of(message))?;
    let method = message.get("method")?.string()?;
    Some((Method::from_name(&method), message.get("params")))
}

/// Method and parameters of a request to the client.
///
/// rmcp gives every request a progress token, counted per peer. Nobody reports progress to a tool, and
/// to the client the tokens of its calls would be the same.
pub(super) fn split_request(request: &ServerRequest) -> Option<(Method, Option<RawJson>)> {
    let (method, params) = split(request)?;
    Some((
        method,
        params.map(|params| without_meta(params, PROGRESS_TOKEN)),
    ))
}

/// The parameters of `notifications/resources/updated`.
///
/// They may name the subscription that Shoal holds at the handler, which is none of its clients'.
pub(super) fn update(notification: &ServerNotification) -> Option<RawJson> {
    let (_, params) = split(notification)?;
    Some(without_meta(params?, SUBSCRIPTION_ID))
}

fn without_meta(params: RawJson, key: &str) -> RawJson {
    let Some(mut object) = RawObject::of(&params) else {
        return params;
    };
    let Some(mut meta) = object.get("_meta").as_ref().and_then(RawObject::of) else {
        return params;
    };
    if meta.remove(key).is_none() {
        return params;
    }
    if meta.is_empty() {
        object.remove("_meta");
    } else {
        object.set("_meta", meta.to_json());
    }
    object.to_json()
}

/// A client's answer to `request`. One that does not fit the request reaches the tool as the wrong type,
/// which rmcp reports to it.
pub(super) fn answer(request: &ServerRequest, answer: &RawJson) -> ClientResult {
    fn fitting<T: DeserializeOwned + Into<ClientResult>>(answer: &RawJson) -> Option<ClientResult> {
        answer.read::<T>().ok().map(Into::into)
    }
    let fitting = match request {
        ServerRequest::ElicitRequest(_) => fitting::<ElicitResult>(answer),
        ServerRequest::CreateMessageRequest(_) => fitting::<CreateMessageResult>(answer),
        ServerRequest::ListRootsRequest(_) => fitting::<ListRootsResult>(answer),
        _ => None,
    };
    fitting.unwrap_or_else(|| CustomResult::new(answer.read().unwrap_or_default()).into())
}

/// An error of the handler, as it is.
pub(super) fn rpc_error(error: ErrorData) -> RpcError {
    RpcError {
        code: error.code.0.into(),
        message: error.message.into_owned(),
        data: error.data.as_ref().map(RawJson::of),
    }
}

/// An error for the handler.
pub(super) fn error_data(error: RpcError) -> ErrorData {
    let known = i32::try_from(error.code).ok();
    let code = known.unwrap_or(code::INTERNAL_ERROR as i32);
    let data = error.data.and_then(|data| data.read().ok());
    ErrorData::new(ErrorCode(code), error.message, data)
}
