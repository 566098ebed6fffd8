use axum::response::Response;
use http::StatusCode;
use shoal_ports::{Delivered, GatewayError, Post, SessionId, SessionRef};
use shoal_protocol::task::no_such_task;
use shoal_protocol::{Body, Message, RawJson, Request, RpcError};

use crate::answer;
use crate::permit::RequestPermit;
use crate::refusal::Refusal;
use crate::refused::Refused;
use crate::tasks::task_of;
use crate::visit::Visit;

pub(super) async fn serve(
    visit: &Visit<'_>,
    request: Request,
    permit: RequestPermit,
) -> Result<Response, Refused> {
    let edge = visit.edge;
    let to = SessionRef {
        trace: visit.trace.clone(),
        ..SessionRef::new(named(&request)?, visit.principal.clone())
    };
    let post = Post::new(Body::Single(Message::Request(request)));
    let delivered = edge.gateway.deliver(&to, post).await;
    let text = match delivered.map_err(refusal)? {
        Delivered::Json(text) => text,
        Delivered::Accepted | Delivered::Stream(_) => {
            let odd = "the owner of a task did not answer a request about it";
            return Err(GatewayError::Internal(odd.to_owned()).into());
        }
    };
    if let Some(record) = &permit.record {
        record.answered(&text);
    }
    if let Some(error) = RawJson::from_valid(text.clone()).member("error") {
        return Err(Refusal::Modern(RpcError::from_json(&error)).into());
    }
    let text = visit.reader().keep(text).map_err(Refusal::AnswerNotKept)?;
    Ok(answer::json(StatusCode::OK, text))
}

fn named(request: &Request) -> Result<SessionId, Refusal> {
    let id = request
        .params
        .as_ref()
        .and_then(|params| params.member("taskId")?.string());
    let id = id.ok_or_else(|| {
        Refusal::Modern(RpcError::invalid_params("params.taskId must be a string"))
    })?;
    task_of(id).ok_or_else(|| Refusal::Modern(no_such_task()))
}

fn refusal(error: GatewayError) -> Refusal {
    match error {
        GatewayError::NotFound => Refusal::Modern(no_such_task()),
        error => error.into(),
    }
}
