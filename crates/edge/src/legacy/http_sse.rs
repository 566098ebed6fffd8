//! HTTP+SSE of 2024-11-05: everything for the client on one stream, its messages by POST.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use axum::body::Body as HttpBody;
use axum::response::Response;
use bytes::Bytes;
use futures::Stream;
use shoal_ports::{
    EventStream, OpenSession, SessionGateway, SessionId, SessionRef, SessionTransport, StreamItem,
};
use shoal_telemetry::metrics::StreamKind;
use shoal_telemetry::trace::InSpan as _;
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::{is_session_id, to};
use crate::backlog::Reader;
use crate::permit::RequestPermit;
use crate::recorder::Posted;
use crate::refusal::Refusal;
use crate::refused::Refused;
use crate::single_streams::SingleStream;
use crate::state::EdgeState;
use crate::visit::{Visit, request_id};
use crate::{media, sse};

const SESSION_PARAMETER: &str = "sessionId";

/// Opens a session that lives as long as the stream.
pub(crate) async fn open(visit: &Visit<'_>) -> Result<Response, Refused> {
    let edge = visit.edge;
    media::expect_event_stream(&visit.head.headers)?;
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
    let session = OpenedSession {
        gateway: Arc::clone(&edge.gateway),
        session: to(visit, opened.session),
    };
    let events = edge.gateway.listen(&session.session, None).await?;
    let id = &session.session.session;
    let stream = edge.load.single_streams().begin(id, events.cursor);
    let frames = SingleStreamFrames {
        reader: visit.reader(),
        endpoint: Some(endpoint(edge, id)),
        events,
        drained: Box::pin(stream.end().cancelled_owned()),
        stream,
        reconnect_after: edge.reconnect_after(),
        ended: false,
    };
    let keep_alive = edge.config.timing.keep_alive;
    let held = (permit, edge.load.open(StreamKind::Session), session);
    Ok(sse::response(frames, keep_alive, held))
}

/// Takes a message of the client; the answer goes to the stream.
pub(crate) async fn deliver(
    mut visit: Visit<'_>,
    http_body: HttpBody,
) -> Result<Response, Refused> {
    let edge = visit.edge;
    let began = Instant::now();
    let limits = &edge.config.limits;
    let mut permit = RequestPermit::admit(&edge.load, &visit.principal, limits)?;
    media::expect_json_body(&visit.head.headers)?;
    let session = session_of(visit.head.uri.query())?;
    let text = visit.read(http_body, &mut permit).await?;
    let body = visit.parse(&text)?;
    let id = request_id(&body);
    let posted = Posted::begin(&edge.recorder, began, visit.head, &body, Some(&session));
    visit.trace = posted.trace();
    let record = posted.record.clone();
    permit.record.clone_from(&record);
    let delivering = super::deliver(&visit, session, body, permit);
    let answer = delivering.in_trace(visit.trace.as_ref()).await;
    posted.answered(answer.as_ref().err().map(|refused| &*refused.why));
    answer.map_err(|refused| Refused {
        id,
        record,
        ..refused
    })
}

/// The message URL, relative, so that it holds behind any scheme and host.
fn endpoint(edge: &EdgeState, session: &SessionId) -> Bytes {
    let paths = edge.config.http_sse.clone().unwrap_or_default();
    let base = paths.public_base.trim_end_matches('/');
    let url = format!("{base}{}?{SESSION_PARAMETER}={session}", paths.messages);
    sse::typed("endpoint", url.as_bytes())
}

fn session_of(query: Option<&str>) -> Result<SessionId, Refusal> {
    let session = query
        .unwrap_or_default()
        .split('&')
        .find_map(|pair| pair.strip_prefix(SESSION_PARAMETER)?.strip_prefix('='))
        .ok_or(Refusal::SessionParameterMissing)?;
    if is_session_id(session) {
        Ok(SessionId::new(session))
    } else {
        Err(Refusal::InvalidSessionId)
    }
}

/// The session's end is the stream's end.
struct OpenedSession {
    gateway: Arc<dyn SessionGateway>,
    session: SessionRef,
}

impl Drop for OpenedSession {
    fn drop(&mut self) {
        // Without a runtime the process is ending, and the session expires by itself.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let gateway = Arc::clone(&self.gateway);
        let session = self.session.clone();
        runtime.spawn(async move {
            if let Err(error) = gateway.close(&session).await {
                tracing::debug!(%error, "could not close the session of an HTTP+SSE stream");
            }
        });
    }
}

struct SingleStreamFrames {
    reader: Reader,
    endpoint: Option<Bytes>,
    events: EventStream,
    stream: SingleStream,
    /// Ready when the node drains, and nothing is under way that the client waits for.
    drained: Pin<Box<WaitForCancellationFutureOwned>>,
    reconnect_after: Duration,
    ended: bool,
}

impl SingleStreamFrames {
    /// What finds no room is lost with the connection: there is nothing to resume.
    fn frame(&mut self, data: &[u8]) -> Option<Bytes> {
        let frame = self.reader.keep(sse::typed("message", data));
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
        while let Poll::Ready(item) = self.events.items.poll_recv(cx) {
            match item {
                // This transport knows no ids to resume from.
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
                None | Some(StreamItem::Moved) => return Poll::Ready(None),
            }
        }
        ready!(self.drained.as_mut().poll(cx));
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
