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

fn split(message: &impl Serialize) -> Option<(Method, Option<RawJson>)> {
    let message = RawObject::of(&RawJson::of(message))?;
    let method = message.get("method")?.string()?;
    Some((Method::from_name(&method), message.get("params")))
}

/// Splits a notification into method and parameters. For frequent kinds, serializes only the parameters,
/// because rmcp builds a tree of values for a whole notification.
pub(super) fn split_notification(
    notification: &ServerNotification,
) -> Option<(Method, Option<RawJson>)> {
    use ServerNotification as N;
    match notification {
        N::ProgressNotification(it) if it.extensions.is_empty() => {
            Some((Method::Progress, Some(RawJson::of(&it.params))))
        }
        N::LoggingMessageNotification(it) if it.extensions.is_empty() => {
            Some((Method::LogMessage, Some(RawJson::of(&it.params))))
        }
        other => split(other),
    }
}

/// Splits a request into method and parameters. Drops rmcp's progress token: tokens are counted per peer, so
/// a client's calls would share them.
pub(super) fn split_request(request: &ServerRequest) -> Option<(Method, Option<RawJson>)> {
    let (method, params) = split(request)?;
    Some((
        method,
        params.map(|params| params.without_meta(PROGRESS_TOKEN)),
    ))
}

/// Leaves out the id of Shoal's own subscription.
pub(super) fn update(notification: &ServerNotification) -> Option<RawJson> {
    let (_, params) = split(notification)?;
    Some(params?.without_meta(SUBSCRIPTION_ID))
}

/// If the answer does not fit the request, rmcp reports a wrong type to the tool.
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

pub(super) fn rpc_error(error: ErrorData) -> RpcError {
    RpcError {
        code: error.code.0.into(),
        message: error.message.into_owned(),
        data: error.data.as_ref().map(RawJson::of),
    }
}

pub(super) fn error_data(error: RpcError) -> ErrorData {
    let known = i32::try_from(error.code).ok();
    let code = known.unwrap_or(code::INTERNAL_ERROR as i32);
    let data = error.data.and_then(|data| data.read().ok());
    ErrorData::new(ErrorCode(code), error.message, data)
}

#[cfg(test)]
mod tests {
    use rmcp::model::{
        LoggingLevel, LoggingMessageNotification, LoggingMessageNotificationParam,
        NotificationMetaObject, NumberOrString, ProgressNotification, ProgressNotificationParam,
        ProgressToken, ServerNotification,
    };
    use serde_json::{Value, json};
    use shoal_protocol::Method;

    fn split(notification: &ServerNotification) -> (Method, Value) {
        let (method, params) = super::split_notification(notification).unwrap();
        let theirs = serde_json::to_value(notification).unwrap();
        let params = params.unwrap().read::<Value>().unwrap();
        assert_eq!(theirs["method"], method.as_str());
        assert_eq!(theirs["params"], params, "as rmcp would write it");
        (method, params)
    }

    #[test]
    fn what_is_written_directly_is_what_rmcp_would_write() {
        let token = ProgressToken(NumberOrString::Number(7));
        let params = ProgressNotificationParam::new(token, 1.0).with_message("half\n");
        let mut progress = ProgressNotification::new(params);
        let (method, params) = split(&ServerNotification::ProgressNotification(progress.clone()));
        assert_eq!(method, Method::Progress);
        assert_eq!(
            params,
            json!({"progressToken": 7, "progress": 1.0, "message": "half\n"})
        );
        let mut meta = NotificationMetaObject::new();
        meta.insert("io.shoal/a".to_owned(), json!(1));
        progress.params.meta = Some(meta.clone());
        let (_, params) = split(&ServerNotification::ProgressNotification(progress.clone()));
        assert_eq!(params["_meta"], json!({"io.shoal/a": 1}));
        progress.params.meta = None;
        progress.extensions.insert(meta);
        let (_, params) = split(&ServerNotification::ProgressNotification(progress));
        assert_eq!(
            params["_meta"],
            json!({"io.shoal/a": 1}),
            "beside the params"
        );

        let params = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!("text"));
        let log = LoggingMessageNotification::new(params);
        let (method, params) = split(&ServerNotification::LoggingMessageNotification(log));
        assert_eq!(method, Method::LogMessage);
        assert_eq!(params, json!({"level": "info", "data": "text"}));
    }
}
