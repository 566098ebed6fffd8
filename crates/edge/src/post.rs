//! A message posted to the MCP endpoint: read, parsed once, and handed to its era.

use std::time::Instant;

use axum::body::Body as HttpBody;
use axum::response::Response;
use bytes::Bytes;
use shoal_ports::SessionId;
use shoal_protocol::{Body, Message, RequestId};
use shoal_telemetry::metrics::Failure;

use crate::era::{self, Selected, VersionHeader};
use crate::front::Visit;
use crate::recorder::{Came, Operation, RequestRecord};
use crate::refusal::{Refusal, Refused};
use crate::{body, legacy, media, modern};

/// Answers a POST.
pub(crate) async fn serve(visit: &Visit<'_>, http_body: HttpBody) -> Result<Response, Refused> {
    let edge = visit.edge;
    let headers = &visit.head.headers;
    let began = Instant::now();
    let mut permit = edge.load.admit_request(&edge.config.limits)?;
    media::expect_json_body(headers)?;
    media::expect_both(headers)?;
    let version = VersionHeader::of(headers)?;
    let session = legacy::session_id(headers)?;
    let text = read(visit, http_body).await?;
    let message = parse(visit, &text)?;
    let id = request_id(&message);
    let head = visit.head;
    let record = RequestRecord::of(&edge.recorder, began, head, &message, session.as_ref());
    permit.trace = record.as_ref().and_then(RequestRecord::trace);
    permit.record.clone_from(&record);
    let told = told(visit, &message, session.as_ref());
    if let Some(told) = &told {
        permit.trace = told.context().cloned();
    }
    let selected = era::select(version, session.is_some(), &message);
    let answer = match selected {
        Ok(Selected::Legacy) => legacy::post(visit, session, message, permit).await,
        Ok(Selected::Modern(meta)) => modern::serve(visit, version, meta, message, permit).await,
        Err(refusal) => Err(refusal.into()),
    };
    if let Some(told) = told {
        let refused = answer
            .as_ref()
            .err()
            .map(|refused| refused.why.error().code);
        told.end(began.elapsed(), refused.map(Failure::Code));
    }
    // Whatever refused it, a request is told by its id.
    answer.map_err(|refused| Refused {
        id: refused.id.or(id),
        record: refused.record.or(record),
        ..refused
    })
}

/// The operation of a body that only tells something.
fn told(visit: &Visit<'_>, body: &Body, session: Option<&SessionId>) -> Option<Operation> {
    let Body::Single(Message::Notification(said)) = body else {
        return None;
    };
    Some(Operation::begin(&Came {
        head: visit.head,
        method: &said.method,
        params: said.params.as_ref(),
        id: None,
        session,
    }))
}

/// Reads the body within the limits.
pub(crate) async fn read(visit: &Visit<'_>, http_body: HttpBody) -> Result<Bytes, Refusal> {
    let config = &visit.edge.config;
    let limit = config.limits.body_bytes;
    body::read(&visit.head.headers, http_body, limit, config.timing.body).await
}

/// Parses the body within the limits.
pub(crate) fn parse(visit: &Visit<'_>, text: &Bytes) -> Result<Body, Refused> {
    Body::parse(text, visit.edge.config.limits.nesting)
        .map_err(|invalid| Refused::of(invalid.id.clone(), invalid))
}

/// The id of the request in a body that holds just one.
pub(crate) fn request_id(body: &Body) -> Option<RequestId> {
    match body {
        Body::Single(Message::Request(request)) => Some(request.id.clone()),
        _ => None,
    }
}
