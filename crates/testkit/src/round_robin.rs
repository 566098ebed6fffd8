//! An HTTP reverse proxy that sends every request to the next edge. A break on one side breaks the other, and a
//! request goes to another edge only if connecting failed.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{HeaderMap, HeaderName, Request, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;

pub use crate::endpoints::Edge;
use crate::endpoints::{Endpoints, Probing};
use crate::relay::Relay;

/// The header that names a request for [`Break`]s. Servers ignore it.
pub const TAG: &str = "testkit-tag";

const PROBING: Probing = Probing {
    period: Duration::from_millis(100),
    failures: 1,
    propagation: Duration::ZERO,
};

const HOP_BY_HOP: [HeaderName; 6] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// A request that an edge did not answer completely.
#[derive(Clone, Debug)]
pub struct Break {
    /// The request's [`TAG`].
    pub tag: String,
    /// The edge's name.
    pub edge: String,
}

/// The proxy. Dropping it closes all connections.
#[derive(Debug)]
pub struct RoundRobin {
    relay: Relay,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    endpoints: Endpoints,
    breaks: Mutex<Vec<Break>>,
}

type Answer = Response<UnsyncBoxBody<Bytes, hyper::Error>>;

impl RoundRobin {
    /// Starts a proxy. Edges that are not ready get requests only if all others refuse.
    pub async fn start(listen: SocketAddr, edges: Vec<Edge>) -> anyhow::Result<Self> {
        let shared = Arc::<Shared>::default();
        for edge in edges {
            shared.endpoints.add(edge, PROBING);
        }
        let to = shared.clone();
        let carry = move |client, _| {
            let to = to.clone();
            let service = service_fn(move |request| forward(to.clone(), request));
            async move {
                // Both ends notice a broken connection themselves.
                let _ = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .serve_connection(TokioIo::new(client), service)
                    .await;
            }
        };
        let relay = Relay::start(listen, carry).await?;
        Ok(Self { relay, shared })
    }

    /// Returns the address for clients.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.relay.address
    }

    /// Returns the requests that edges have broken.
    #[must_use]
    pub fn breaks(&self) -> Vec<Break> {
        let breaks = self.shared.breaks.lock();
        breaks.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// An error breaks the client's connection too.
async fn forward(
    shared: Arc<Shared>,
    mut request: Request<Incoming>,
) -> Result<Answer, hyper::Error> {
    let tag = request.headers().get(TAG);
    let tag = tag.and_then(|tag| Some(tag.to_str().ok()?.to_owned()));
    strip(request.headers_mut());
    let Some((edge, mut sender, driver)) = connect(&shared).await else {
        let text = "no edge takes connections, so the request went nowhere\n";
        let body = Full::new(Bytes::from(text)).map_err(|never: Infallible| match never {});
        let mut answer = Response::new(body.boxed_unsync());
        *answer.status_mut() = StatusCode::BAD_GATEWAY;
        return Ok(answer);
    };
    let broke = move |cause| {
        if let Some(tag) = tag.clone() {
            let edge = edge.clone();
            let breaks = shared.breaks.lock();
            let mut breaks = breaks.unwrap_or_else(PoisonError::into_inner);
            breaks.push(Break { tag, edge });
        }
        cause
    };
    let answer = sender.send_request(request).await.map_err(&broke)?;
    let (mut head, body) = answer.into_parts();
    strip(&mut head.headers);
    let body = body.map_err(move |cause| {
        let _driver = &driver;
        broke(cause)
    });
    Ok(Response::from_parts(head, body.boxed_unsync()))
}

/// Connects to the next edge. Dropping the handle closes the connection.
async fn connect(
    shared: &Shared,
) -> Option<(String, SendRequest<Incoming>, AbortOnDropHandle<()>)> {
    let (ready, rest) = shared.endpoints.turn();
    for edge in ready.into_iter().chain(rest) {
        let Ok(stream) = TcpStream::connect(edge.address).await else {
            continue;
        };
        let _ = stream.set_nodelay(true);
        if let Ok((sender, connection)) = handshake(TokioIo::new(stream)).await {
            let driver = tokio::spawn(async move {
                // The reader of the answer sees an error too.
                let _ = connection.await;
            });
            return Some((edge.name, sender, AbortOnDropHandle::new(driver)));
        }
    }
    None
}

fn strip(headers: &mut HeaderMap) {
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
}
