//! HTTP+SSE of 2024-11-05: one stream to the client, and its messages by POST.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use axum::body::Body as HttpBody;
use axum::response::Response;
use bytes::Bytes;
use futures::Stream;
use futures::future::BoxFuture;
use http::Method;
use http::request::Parts;
use shoal_ports::{AuthError, EventStream, OpenSession, SessionId, SessionTransport, StreamItem};
use shoal_telemetry::metrics::StreamKind;
use shoal_telemetry::trace::InSpan as _;
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::{OpenedSession, parse_session_id, to};
use crate::awaited_answers::AwaitedAnswers;
use crate::backlog::BacklogReader;
use crate::incoming::Incoming;
use crate::media::AnswerForm;
use crate::permit::RequestPermit;
use crate::refusal::Refusal;
use crate::refused::RefusedMessage;
use crate::single_streams::SingleStream;
use crate::state::EdgeState;
use crate::transport::{ClientTransport, Mount, is_at};
use crate::visit::Visit;
use crate::{media, sse};

/// Where a client opens its stream, and where it posts its messages.
pub const HTTP_SSE_PATHS: [&str; 2] = ["/sse", "/messages"];

const SESSION_PARAMETER: &str = "sessionId";

pub(crate) struct HttpSse;

impl ClientTransport for HttpSse {
    fn mount(edge: &EdgeState, head: &Parts) -> Option<Mount> {
        let [stream, messages] = HTTP_SSE_PATHS;
        let (route, allow) = match edge.config.endpoint.http_sse {
            true if is_at(head, stream) => (edge.routes.sse_stream, "GET, OPTIONS"),
            true if is_at(head, messages) => (edge.routes.sse_messages, "POST, OPTIONS"),
            _ => return None,
        };
        Some(Mount { route, allow })
    }

    async fn answer(visit: Visit<'_>, body: HttpBody) -> Result<Response, RefusedMessage> {
        match visit.head.method {
            Method::GET => Box::pin(open(&visit)).await,
            _ => Box::pin(deliver(visit, body)).await,
        }
    }
}

async fn open(visit: &Visit<'_>) -> Result<Response, RefusedMessage> {
    let edge = visit.edge;
    let permit = edge
        .load
        .admit_stream(&visit.principal, &edge.config.limits)?;
    let open = OpenSession {
        principal: visit.principal.clone(),
        transport: SessionTransport::SingleStream,
        initialize: None,
        trace: visit.trace.clone(),
    };
    let opened = edge.gateway.open(open).await?;
    let to = to(visit, opened.session);
    let session = OpenedSession::new(edge, to.clone());
    let events = edge.gateway.listen(&to, None).await?;
    let id = &to.session;
    let stream = edge.load.single_streams().begin(id, events.cursor);
    let frames = SingleStreamFrames {
        reader: visit.reader(),
        answers: edge.awaited_answers.clone(),
        endpoint: Some(endpoint(edge, id)),
        events,
        drained: Box::pin(stream.end().cancelled_owned()),
        revoked: visit.until_revoked(),
        stream,
        session,
        ending: None,
        reconnect_after: edge.reconnect_after(),
        ended: false,
    };
    let keep_alive = edge.config.streams.keep_alive.get();
    let held = (permit, edge.load.open(StreamKind::Session));
    Ok(sse::response(frames, keep_alive, held))
}

async fn deliver(mut visit: Visit<'_>, http_body: HttpBody) -> Result<Response, RefusedMessage> {
    let edge = visit.edge;
    let began = Instant::now();
    let limits = &edge.config.limits;
    let mut permit = RequestPermit::admit(&edge.load, &visit.principal, limits)?;
    permit.places[0] = std::mem::take(&mut visit.places);
    media::expect_json_body(&visit.head.headers)?;
    let session = session_of(visit.head.uri.query())?;
    let text = visit.read(http_body, &mut permit).await?;
    let (incoming, mut body) =
        Incoming::begin(&mut visit, began, &text, Some(&session), &mut permit)?;
    let delivering = async {
        visit.admit(&mut body, &mut permit).await?;
        super::deliver(&visit, session, body, AnswerForm::SessionStream, permit).await
    };
    incoming.end(delivering.in_trace(visit.trace.as_ref()).await)
}

/// A relative URL works behind any scheme and host.
fn endpoint(edge: &EdgeState, session: &SessionId) -> Bytes {
    let base = edge.config.endpoint.public_base.trim_end_matches('/');
    let [_, messages] = HTTP_SSE_PATHS;
    let url = format!("{base}{messages}?{SESSION_PARAMETER}={session}");
    sse::endpoint(&url)
}

fn session_of(query: Option<&str>) -> Result<SessionId, Refusal> {
    let session = query
        .unwrap_or_default()
        .split('&')
        .find_map(|pair| pair.strip_prefix(SESSION_PARAMETER)?.strip_prefix('='))
        .ok_or(Refusal::SessionParameterMissing)?;
    parse_session_id(session)
}

struct SingleStreamFrames {
    reader: BacklogReader,
    answers: AwaitedAnswers,
    endpoint: Option<Bytes>,
    events: EventStream,
    stream: SingleStream,
    session: OpenedSession,
    ending: Option<BoxFuture<'static, ()>>,
    drained: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Expiry does not count, because each posted message shows a token.
    revoked: BoxFuture<'static, AuthError>,
    reconnect_after: Duration,
    ended: bool,
}

impl SingleStreamFrames {
    /// If the backlog has no room, the message is lost and the stream ends, because this transport cannot resume.
    fn frame(&mut self, data: &Bytes) -> Option<Bytes> {
        self.answers.passed(self.session.id(), data);
        let frame = self.reader.keep(sse::message(data));
        self.ended = frame.is_err();
        frame.ok()
    }
}

impl Stream for SingleStreamFrames {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.ended {
            return Poll::Ready(None);
        }
        if let Some(endpoint) = self.endpoint.take() {
            return Poll::Ready(Some(endpoint));
        }
        if self.revoked.as_mut().poll(cx).is_ready() {
            self.ended = true;
            return Poll::Ready(None);
        }
        let mut over = false;
        while let Poll::Ready(item) = self.events.items.poll_recv(cx) {
            match item {
                Some(StreamItem::Event { id, data }) => {
                    let frame = self.frame(&data);
                    self.stream.passed(id);
                    return Poll::Ready(frame);
                }
                Some(StreamItem::Passing { data }) => return Poll::Ready(self.frame(&data)),
                Some(StreamItem::Prime { .. }) => {}
                Some(StreamItem::Retry(after)) => {
                    self.ended = true;
                    return Poll::Ready(Some(sse::retry(after)));
                }
                None if self.ending.is_some() => {
                    over = true;
                    break;
                }
                None | Some(StreamItem::Moved) => return Poll::Ready(None),
            }
        }
        if self.ending.is_none() {
            ready!(self.drained.as_mut().poll(cx));
            self.ending = Some(self.session.end());
        }
        if let Some(ending) = &mut self.ending
            && !over
        {
            ready!(ending.as_mut().poll(cx));
        }
        self.ended = true;
        Poll::Ready(Some(sse::retry(self.reconnect_after)))
    }
}

#[cfg(test)]
mod tests {
    use super::session_of;

    #[test]
    fn the_session_is_read_from_the_query() {
        let session = |query| session_of(query).map(|session| session.as_str().to_owned());
        assert_eq!(session(Some("sessionId=abc")).unwrap(), "abc");
        assert_eq!(session(Some("a=b&sessionId=abc&c")).unwrap(), "abc");
        for query in [
            None,
            Some(""),
            Some("sessionId="),
            Some("mySessionId=a"),
            Some("sessionId"),
        ] {
            assert!(session(query).is_err(), "{query:?}");
        }
    }
}
