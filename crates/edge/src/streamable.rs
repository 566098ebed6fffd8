//! Streamable HTTP: messages by POST, a session's streams by GET, its end by DELETE.

use std::time::Instant;

use axum::body::Body as HttpBody;
use axum::response::Response;
use http::Method;
use http::request::Parts;
use shoal_telemetry::trace::InSpan as _;

use crate::era::{self, Selected, VersionHeader};
use crate::incoming::Incoming;
use crate::permit::RequestPermit;
use crate::refused::RefusedMessage;
use crate::state::EdgeState;
use crate::transport::{ClientTransport, Mount, is_at};
use crate::visit::Visit;
use crate::{legacy, media, modern};

pub(crate) struct Streamable;

impl ClientTransport for Streamable {
    fn mount(edge: &EdgeState, head: &Parts) -> Option<Mount> {
        is_at(head, &edge.config.endpoint.path).then_some(Mount {
            route: edge.routes.mcp,
            allow: "GET, POST, DELETE, OPTIONS",
        })
    }

    async fn answer(visit: Visit<'_>, body: HttpBody) -> Result<Response, RefusedMessage> {
        match visit.head.method {
            Method::POST => post(visit, body).await,
            Method::GET => legacy::listen(&visit).await,
            _ => legacy::close(&visit).await,
        }
    }
}

async fn post(mut visit: Visit<'_>, http_body: HttpBody) -> Result<Response, RefusedMessage> {
    let edge = visit.edge;
    let headers = &visit.head.headers;
    let began = Instant::now();
    let limits = &edge.config.limits;
    let mut permit = RequestPermit::admit(&edge.load, &visit.principal, limits)?;
    permit.places[0] = std::mem::take(&mut visit.places);
    media::expect_json_body(headers)?;
    let form = media::answer_form(headers, edge.config.endpoint.json_response)?;
    let version = VersionHeader::of(headers);
    let session = legacy::session_id(headers)?;
    let text = visit.read(http_body, &mut permit).await?;
    let (incoming, mut message) =
        Incoming::begin(&mut visit, began, &text, session.as_ref(), &mut permit)?;
    let selected = era::select(version, session.is_some(), &message);
    let serving = async {
        visit.admit(&mut message, &mut permit).await?;
        match selected {
            Ok(Selected::Legacy) => {
                Box::pin(legacy::post(&visit, session, message, form, permit)).await
            }
            Ok(Selected::Modern(meta)) => {
                Box::pin(modern::serve(&visit, version, meta, message, form, permit)).await
            }
            Err(refusal) => Err(refusal.into()),
        }
    };
    incoming.end(serving.in_trace(visit.trace.as_ref()).await)
}
