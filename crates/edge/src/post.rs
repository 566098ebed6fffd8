//! A message posted to the MCP endpoint: read, parsed once, and handed to its era.

use std::time::Instant;

use axum::body::Body as HttpBody;
use axum::response::Response;
use bytes::Bytes;
use shoal_protocol::{Body, Message, RequestId};
use shoal_telemetry::metrics::{self, Direction, metrics};
use shoal_telemetry::trace::InSpan as _;

use crate::body::Bounds;
use crate::era::{self, Selected, VersionHeader};
use crate::front::Visit;
use crate::load::RequestPermit;
use crate::recorder::Posted;
use crate::refusal::{Refusal, Refused};
use crate::{body, legacy, media, modern};

/// Answers a POST.
pub(crate) async fn serve(mut visit: Visit<'_>, http_body: HttpBody) -> Result<Response, Refused> {
    let edge = visit.edge;
    let headers = &visit.head.headers;
    let began = Instant::now();
    let limits = &edge.config.limits;
    let mut permit = edge.load.admit_request(&visit.principal, limits)?;
    media::expect_json_body(headers)?;
    media::expect_both(headers)?;
    let version = VersionHeader::of(headers);
    let session = legacy::session_id(headers)?;
    let text = read(&visit, http_body, &mut permit).await?;
    let message = parse(&visit, &text)?;
    let id = request_id(&message);
    let head = visit.head;
    let posted = Posted::begin(&edge.recorder, began, head, &message, session.as_ref());
    visit.trace = posted.trace();
    let record = posted.record.clone();
    permit.record.clone_from(&record);
    let selected = era::select(version, session.is_some(), &message);
    let serving = async {
        match selected {
            Ok(Selected::Legacy) => legacy::post(&visit, session, message, permit).await,
            Ok(Selected::Modern(meta)) => {
                modern::serve(&visit, version, meta, message, permit).await
            }
            Err(refusal) => Err(refusal.into()),
        }
    };
    let answer = serving.in_trace(visit.trace.as_ref()).await;
    posted.answered(&answer);
    // Whatever refused it, a request is told by its id.
    answer.map_err(|refused| Refused {
        id: refused.id.or(id),
        record: refused.record.or(record),
        ..refused
    })
}

/// Reads the body within the limits. Where it takes room, the permit holds that.
pub(crate) async fn read(
    visit: &Visit<'_>,
    http_body: HttpBody,
    permit: &mut RequestPermit,
) -> Result<Bytes, Refusal> {
    let config = &visit.edge.config;
    let bounds = Bounds {
        bytes: config.limits.body_bytes,
        within: config.timing.body,
        room: &visit.edge.room,
        principal: &visit.principal,
    };
    let (text, room) = body::read(&visit.head.headers, http_body, bounds).await?;
    permit.room = room;
    let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
    metrics()
        .http
        .bytes(Direction::In, metrics::Body::Plain, bytes);
    Ok(text)
}

/// Parses the body within the limits.
pub(crate) fn parse(visit: &Visit<'_>, text: &Bytes) -> Result<Body, Refused> {
    Body::parse(text, visit.edge.config.limits.nesting)
        .and_then(Body::within_lengths)
        .map_err(|invalid| Refused::of(invalid.id.clone(), invalid))
}

/// The id of the request in a body that holds just one.
pub(crate) fn request_id(body: &Body) -> Option<RequestId> {
    match body {
        Body::Single(Message::Request(request)) => Some(request.id.clone()),
        _ => None,
    }
}
