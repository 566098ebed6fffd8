mod become_task;
mod call;
mod check;
mod discover;
mod listen;
mod run;
mod task;

use axum::response::Response;
use http::StatusCode;
use shoal_protocol::task::missing_tasks;
use shoal_protocol::{
    Body, Era, Message, Method, RawJson, Request, RequestMeta, Revision, RpcError, code, shown,
};

use self::check::supported_versions;

use crate::answer;
use crate::era::VersionHeader;
use crate::extension;
use crate::media::{self, AnswerForm};
use crate::permit::RequestPermit;
use crate::refusal::Refusal;
use crate::refused::RefusedMessage;
use crate::visit::Visit;

pub(crate) async fn serve(
    visit: &Visit<'_>,
    version: VersionHeader<'_>,
    meta: RequestMeta,
    body: Body,
    form: AnswerForm,
    permit: RequestPermit,
) -> Result<Response, RefusedMessage> {
    let refuse = |what: &str| Refusal::Modern(RpcError::invalid_request(what));
    match body {
        Body::Single(Message::Request(request)) => {
            serve_request(visit, version, meta, request, form, permit).await
        }
        // The protocol defines no notifications to a server, but clients post them and ignore
        // errors.
        Body::Single(Message::Notification(said)) => {
            let revision = check::notification_version(version, &meta)?;
            if let Some(request) = extension::as_request(said) {
                let checked = check::of_notification(revision, &meta);
                let caller = call::caller(visit, &meta, &checked);
                let form = AnswerForm::Json;
                call::serve(visit, meta, checked, caller, request, form, permit).await;
            }
            Ok(answer::empty(StatusCode::ACCEPTED))
        }
        Body::Single(Message::Response(_)) => Err(refuse(
            "a client posts no responses in 2026-07-28; answer an input_required result by \
             sending the request again with inputResponses",
        )
        .into()),
        Body::Batch(_) => {
            Err(refuse("batches are not part of 2026-07-28; post each message by itself").into())
        }
    }
}

/// A modern request over WebSocket would have no session to resume.
pub(crate) fn not_by_websocket(meta: &RequestMeta) -> RpcError {
    let supported: Vec<&str> = supported_versions()
        .into_iter()
        .filter(|version| {
            version
                .parse::<Revision>()
                .is_ok_and(|version| version.era() == Era::Legacy)
        })
        .collect();
    let requested = shown(meta.protocol_version.as_deref().unwrap_or_default(), 64);
    let message = format!(
        "protocol version {requested:?} is served by POST and not over WebSocket; post the request, or initialize a session \
         of one of data.supported"
    );
    let data = serde_json::json!({ "supported": supported, "requested": requested });
    RpcError::new(code::UNSUPPORTED_VERSION, message).with_data(RawJson::of(&data))
}

async fn serve_request(
    visit: &Visit<'_>,
    version: VersionHeader<'_>,
    meta: RequestMeta,
    request: Request,
    form: AnswerForm,
    permit: RequestPermit,
) -> Result<Response, RefusedMessage> {
    let headers = &visit.head.headers;
    let dispatcher = &*visit.edge.dispatcher;
    let tasks = visit.edge.config.tasks.enabled;
    let checked =
        check::request(headers, version, &meta, &request, tasks).map_err(Refusal::Modern)?;
    let caller = call::caller(visit, &meta, &checked);
    check::arguments(headers, &caller, &request, dispatcher).map_err(Refusal::Modern)?;
    if tasks && !checked.tasks && check::needs_tasks(&caller, &request, dispatcher) {
        return Err(Refusal::Modern(missing_tasks()).into());
    }
    match request.method {
        Method::Discover => {
            let answer = discover::answer(visit.edge, &request.id).await?;
            if let Some(record) = &permit.record {
                record.answered(b"");
            }
            Ok(answer)
        }
        Method::Listen => {
            media::expect_event_stream(headers)?;
            // A subscription counts as an open stream, not as a running request.
            let record = permit.record.clone();
            drop(permit);
            let listening = listen::serve(visit, &caller, request).await?;
            if let Some(record) = record {
                record.answered(b"");
            }
            Ok(listening)
        }
        _ if request.method.is_of_task() => task::serve(visit, request, permit).await,
        _ => Ok(call::serve(visit, meta, checked, caller, request, form, permit).await),
    }
}
