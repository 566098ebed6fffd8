use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::{HeaderMap, HeaderName, Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;

use super::{ResponseBody, Shared, TAG, own_answer};

const HOP_BY_HOP: [HeaderName; 6] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// An error breaks the client's connection too.
pub(super) async fn forward(
    shared: Arc<Shared>,
    mut request: Request<Incoming>,
) -> Result<Response<ResponseBody>, hyper::Error> {
    let tag = tag(request.headers());
    strip(request.headers_mut());
    let Some((edge, mut sender, driver)) = connect(&shared).await else {
        let text = "no edge takes connections, so the request went nowhere\n";
        return Ok(own_answer(StatusCode::BAD_GATEWAY, text.to_owned()));
    };
    let report = Report { shared, tag, edge };
    let answer = sender.send_request(request).await;
    let (mut head, body) = answer
        .inspect_err(|cause| report.broke(cause))?
        .into_parts();
    strip(&mut head.headers);
    let body = Carried {
        body,
        report,
        _driver: driver,
    };
    Ok(Response::from_parts(head, body.boxed_unsync()))
}

/// Connects to the next edge. Dropping the handle closes the connection.
async fn connect(
    shared: &Shared,
) -> Option<(String, SendRequest<Incoming>, AbortOnDropHandle<()>)> {
    for edge in shared.rotation.turn() {
        let Ok(stream) = TcpStream::connect(edge.address).await else {
            continue;
        };
        let _ = stream.set_nodelay(true);
        if let Ok((sender, connection)) = handshake(TokioIo::new(stream)).await {
            let driver = tokio::spawn(async move {
                // The reader of the answer sees an error too.
                let _ = connection.await;
            });
            return Some((edge.name.clone(), sender, AbortOnDropHandle::new(driver)));
        }
    }
    None
}

fn tag(headers: &HeaderMap) -> Option<String> {
    Some(headers.get(TAG)?.to_str().ok()?.to_owned())
}

fn strip(headers: &mut HeaderMap) {
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
}

struct Report {
    shared: Arc<Shared>,
    tag: Option<String>,
    edge: String,
}

impl Report {
    fn broke(&self, cause: &hyper::Error) {
        if let Some(tag) = &self.tag {
            self.shared.broke(tag, &self.edge, cause);
        }
    }
}

struct Carried {
    body: Incoming,
    report: Report,
    _driver: AbortOnDropHandle<()>,
}

impl Body for Carried {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(Err(cause)) = &frame {
            self.report.broke(cause);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
