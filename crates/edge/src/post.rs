//! A message posted to the MCP endpoint: read, parsed once, and handed to its era.

use std::time::Instant;

use axum::body::Body as HttpBody;
use axum::response::Response;
use shoal_telemetry::trace::InSpan as _;

use crate::era::{self, Selected, VersionHeader};
use crate::permit::RequestPermit;
use crate::recorder::Posted;
use crate::refused::Refused;
use crate::visit::{Visit, request_id};
use crate::{legacy, media, modern};

/// Answers a POST.
pub(crate) async fn serve(mut visit: Visit<'_>, http_body: HttpBody) -> Result<Response, Refused> {
    let edge = visit.edge;
    let headers = &visit.head.headers;
    let began = Instant::now();
    let limits = &edge.config.limits;
    let mut permit = RequestPermit::admit(&edge.load, &visit.principal, limits)?;
    media::expect_json_body(headers)?;
    media::expect_both(headers)?;
    let version = VersionHeader::of(headers);
    let session = legacy::session_id(headers)?;
    let text = visit.read(http_body, &mut permit).await?;
    let message = visit.parse(&text)?;
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
    posted.answered(answer.as_ref().err().map(|refused| &*refused.why));
    // Whatever refused it, a request is told by its id.
    answer.map_err(|refused| Refused {
        id: refused.id.or(id),
        record: refused.record.or(record),
        ..refused
    })
}
