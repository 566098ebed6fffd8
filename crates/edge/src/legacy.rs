mod agent;
mod bind;
mod handed_over;
pub(crate) mod http_sse;
mod opened;
mod stream;
mod task;
mod task_result;
mod whole;

use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use shoal_ports::{
    CallFailure, Delivered, EventStream, GatewayError, OpenSession, Post, SessionId, SessionRef,
    SessionTransport,
};
use shoal_protocol::{
    Body, EventId, Message, Method, Request, RequestId, StreamId, error_response, response,
};
use shoal_telemetry::metrics::StreamKind;

pub(crate) use self::handed_over::hand_over_held;
pub(crate) use self::opened::OpenedSession;
use self::stream::StreamFrames;
use self::whole::Whole;
use crate::era::VersionHeader;
use crate::held_places::SessionPlaces;
use crate::media::AnswerForm;
use crate::permit::RequestPermit;
use crate::refusal::Refusal;
use crate::refused::RefusedMessage;
use crate::visit::Visit;
use crate::{answer, extension, media, names, sse};

/// Maximum characters of a session id. Longer ids are not Shoal's.
const MAX_SESSION_ID: usize = 128;

/// Clients without a session may send an empty header.
pub(crate) fn session_id(headers: &HeaderMap) -> Result<Option<SessionId>, Refusal> {
    said(headers, &names::SESSION_ID)
        .map(|value| parse_session_id(value.to_str().unwrap_or_default()))
        .transpose()
}

fn said<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    headers.get(name).filter(|value| !value.is_empty())
}

/// Hides a task's session from legacy clients.
pub(crate) fn parse_session_id(text: &str) -> Result<SessionId, Refusal> {
    if !is_session_id(text) {
        return Err(Refusal::InvalidSessionId);
    }
    let session = SessionId::new(text);
    match session.is_task() {
        true => Err(GatewayError::NotFound.into()),
        false => Ok(session),
    }
}

pub(crate) fn is_session_id(text: &str) -> bool {
    (1..=MAX_SESSION_ID).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic())
}

pub(crate) async fn post(
    visit: &Visit<'_>,
    session: Option<SessionId>,
    body: Body,
    form: AnswerForm,
    permit: RequestPermit,
) -> Result<Response, RefusedMessage> {
    match session {
        Some(session) => deliver(visit, session, body, form, permit).await,
        None => {
            let initialize = initialize_of(body).ok_or(Refusal::SessionMissing)?;
            open(visit, initialize, &permit).await
        }
    }
}

pub(crate) fn initialize_of(body: Body) -> Option<Request> {
    match body {
        Body::Single(Message::Request(request)) if request.method == Method::Initialize => {
            Some(request)
        }
        _ => None,
    }
}

async fn open(
    visit: &Visit<'_>,
    initialize: Request,
    permit: &RequestPermit,
) -> Result<Response, RefusedMessage> {
    let transport = SessionTransport::Streamable;
    let (session, response) = open_session(visit, initialize, transport, permit).await?;
    let session = HeaderValue::from_str(session.as_str())
        .map_err(|_| internal("the new session's id does not fit into a header"))?;
    let mut response = answer::json(StatusCode::OK, response);
    response
        .headers_mut()
        .insert(names::SESSION_ID.clone(), session);
    Ok(response)
}

pub(crate) async fn open_session(
    visit: &Visit<'_>,
    initialize: Request,
    transport: SessionTransport,
    permit: &RequestPermit,
) -> Result<(SessionId, Bytes), RefusedMessage> {
    let open = OpenSession {
        principal: visit.principal.clone(),
        transport,
        initialize: Some(initialize),
        trace: visit.trace.clone(),
    };
    let opened = visit.edge.gateway.open(open).await?;
    let response = opened
        .response
        .ok_or_else(|| internal("the new session did not answer initialize"))?;
    if let Some(record) = &permit.record {
        record.opened(&opened.session, opened.revision);
        record.answered(&response);
    }
    Ok((opened.session, response))
}

fn internal(what: &str) -> GatewayError {
    GatewayError::Internal(what.to_owned())
}

pub(crate) struct HandedOverMessage {
    id: Option<RequestId>,
    ids_of_batch: Vec<RequestId>,
    once: bool,
}

impl HandedOverMessage {
    fn nothing() -> Self {
        Self {
            id: None,
            ids_of_batch: Vec::new(),
            once: false,
        }
    }

    fn of(post: &Post) -> Self {
        let ids_of_batch = match &post.body {
            Body::Single(_) => Vec::new(),
            Body::Batch(members) => {
                let requests = members.iter().flatten().filter_map(|member| match member {
                    Message::Request(request) => Some(request.id.clone()),
                    _ => None,
                });
                requests.collect()
            }
        };
        Self {
            id: post.body.request_id(),
            once: post.takes_effect(),
            ids_of_batch,
        }
    }

    /// Returns errors for the open requests of a client that cannot resume.
    fn answers_of_drain(&self) -> impl Iterator<Item = Bytes> {
        let why = "its edge was shut down before it ended";
        let failure = match self.once {
            true => {
                let why = format!("{why}, and its answer cannot be fetched from another node");
                CallFailure::outcome_unknown(why)
            }
            false => CallFailure::not_executed(why),
        };
        let error = failure.to_rpc();
        let ids = self.id.iter().chain(&self.ids_of_batch);
        ids.map(move |id| error_response(id, &error))
    }

    /// Writes the answer to a request that runs as a task.
    pub(crate) fn write(&self, delivered: Delivered) -> WrittenAnswer {
        match (delivered, &self.id) {
            (Delivered::Accepted, _) | (Delivered::Task(_), None) => WrittenAnswer::Nothing,
            (Delivered::Json(text), _) => WrittenAnswer::Text(text),
            (Delivered::Stream(stream), _) => WrittenAnswer::Stream(stream),
            (Delivered::Task(task), Some(id)) => {
                WrittenAnswer::Text(response(id, &task.to_legacy_created()))
            }
        }
    }

    pub(crate) fn keep(&self, visit: &Visit<'_>, text: Bytes) -> Result<Bytes, Refusal> {
        match (visit.reader().keep(text), &self.id) {
            (Err(full), Some(id)) if self.once => Ok(error_response(id, &full.after_effect())),
            (kept, _) => kept.map_err(Refusal::AnswerNotKept),
        }
    }
}

pub(crate) enum WrittenAnswer {
    Nothing,
    Text(Bytes),
    Stream(EventStream),
}

pub(crate) async fn hand_over(
    visit: &Visit<'_>,
    session: SessionId,
    body: Body,
) -> Result<(HandedOverMessage, Delivered), GatewayError> {
    let to = SessionRef {
        headers: visit.forwarded(),
        ..to(visit, session)
    };
    let body = match task::asked(visit, body) {
        Ok(request) => match visit.edge.gateway.tasks_of(&to).await? {
            Some(own) => {
                let id = Some(request.id.clone());
                let delivered = Box::pin(task::serve(visit, own, request)).await?;
                let handed = HandedOverMessage {
                    id,
                    ..HandedOverMessage::nothing()
                };
                return Ok((handed, delivered));
            }
            // The client cannot have tasks, so the session refuses the request.
            None => Body::Single(Message::Request(request)),
        },
        Err(body) => body,
    };
    let mut post = Post::new(body);
    bind::bind(visit, &to, &mut post, &[]);
    let handed = HandedOverMessage::of(&post);
    let delivered = match post.is_bound() {
        true => bind::deliver_bound(visit, &to, post).await?,
        false => visit.edge.gateway.deliver(&to, post).await?,
    };
    Ok((handed, delivered))
}

async fn pass(
    visit: &Visit<'_>,
    session: SessionId,
    body: Body,
    permit: Option<(&mut RequestPermit, AnswerForm)>,
) -> Result<(HandedOverMessage, Delivered, Option<SessionPlaces>), GatewayError> {
    match (task::answered(visit, body), permit) {
        (Ok(answer), _) => {
            let delivered = Box::pin(task::answer(visit, &to(visit, session), answer)).await?;
            Ok((HandedOverMessage::nothing(), delivered, None))
        }
        (Err(body), Some((permit, form))) => {
            hand_over_held(visit, session, body, permit, form).await
        }
        (Err(body), None) => {
            let (handed, delivered) = hand_over(visit, session, body).await?;
            Ok((handed, delivered, None))
        }
    }
}

async fn deliver(
    visit: &Visit<'_>,
    session: SessionId,
    body: Body,
    form: AnswerForm,
    mut permit: RequestPermit,
) -> Result<Response, RefusedMessage> {
    let edge = visit.edge;
    if let Some(refusal) = extension::refusal(&body) {
        if let Some(record) = &permit.record {
            record.answered(&refusal);
        }
        return Ok(answer::json(StatusCode::OK, refusal));
    }
    let (body, told) = extension::carried(body);
    let whole = (form == AnswerForm::Json)
        .then(|| Whole::new(visit, session.clone(), matches!(body, Body::Batch(_))));
    let (handed, delivered, mut places) =
        pass(visit, session, body, Some((&mut permit, form))).await?;
    let mut written = handed.write(delivered);
    if let Some(whole) = whole
        && let WrittenAnswer::Stream(stream) = written
    {
        let text = Box::pin(whole.read(stream, &handed)).await?;
        if let Some(places) = &mut places {
            places.answered(&text);
        }
        written = WrittenAnswer::Text(text);
    }
    if told {
        written = WrittenAnswer::Nothing;
    }
    Ok(match written {
        WrittenAnswer::Nothing => {
            if let Some(record) = &permit.record {
                record.answered(b"");
            }
            answer::empty(StatusCode::ACCEPTED)
        }
        WrittenAnswer::Text(text) => {
            if let Some(record) = &permit.record {
                record.answered(&text);
            }
            answer::json(StatusCode::OK, handed.keep(visit, text)?)
        }
        WrittenAnswer::Stream(stream) => {
            let record = permit.record.clone();
            let frames = StreamFrames::of_post(stream, visit, record, (handed, places));
            let held = (permit, edge.load.open(StreamKind::Call));
            sse::response(frames, edge.config.streams.keep_alive.get(), held)
        }
    })
}

pub(crate) async fn listen(visit: &Visit<'_>) -> Result<Response, RefusedMessage> {
    let edge = visit.edge;
    let session = addressed(visit)?;
    media::expect_event_stream(&visit.head.headers)?;
    let cursor = cursor(&visit.head.headers).unwrap_or_default();
    let permit = edge
        .load
        .admit_stream(&visit.principal, &edge.config.limits)?;
    let stream = edge.gateway.listen(&to(visit, session), cursor).await?;
    let kind = match stream.cursor.stream {
        StreamId::STANDALONE => StreamKind::Session,
        _ => StreamKind::Call,
    };
    let frames = StreamFrames::of_get(stream, kind, visit);
    let held = (permit, edge.load.open(kind));
    Ok(sse::response(
        frames,
        edge.config.streams.keep_alive.get(),
        held,
    ))
}

pub(crate) async fn close(visit: &Visit<'_>) -> Result<Response, RefusedMessage> {
    let session = addressed(visit)?;
    visit.edge.gateway.close(&to(visit, session)).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// The request is legacy, because the modern era has only POST.
fn addressed(visit: &Visit<'_>) -> Result<SessionId, Refusal> {
    let headers = &visit.head.headers;
    let version = VersionHeader::of(headers);
    if version.is_modern() {
        return Err(Refusal::MethodNotAllowed {
            allow: "POST, OPTIONS",
        });
    }
    version.expect_known()?;
    session_id(headers)?.ok_or(Refusal::SessionMissing)
}

pub(crate) fn cursor(headers: &HeaderMap) -> Result<Option<EventId>, Refusal> {
    said(headers, &names::LAST_EVENT_ID)
        .map(|value| Ok(value.to_str().unwrap_or("(not ASCII)").parse::<EventId>()?))
        .transpose()
}

pub(crate) fn to(visit: &Visit<'_>, session: SessionId) -> SessionRef {
    let asks = visit.edge.dispatcher.asks_of_grants();
    SessionRef {
        trace: visit.trace.clone(),
        grant: visit.grant.clone().filter(|_| asks),
        ..SessionRef::new(session, visit.principal.clone())
    }
}
