//! An HTTP reverse proxy that sends every request to the next edge. A break on one side breaks the other, and a
//! request goes to another edge only if connecting failed.

mod forward;
mod rotation;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Bytes;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::rotation::Rotation;
use crate::admin::Admin;

/// The header that names a request for [`Break`]s. Servers ignore it.
pub const TAG: &str = "testkit-tag";

/// An edge behind the proxy.
#[derive(Clone, Debug)]
pub struct Edge {
    /// The edge's name.
    pub name: String,
    /// The address of the edge's MCP endpoint.
    pub address: SocketAddr,
    /// The admin port to poll for readiness. Without it, the edge counts as ready.
    pub admin: Option<Admin>,
}

/// A request that an edge did not answer completely.
#[derive(Clone, Debug)]
pub struct Break {
    /// The request's [`TAG`].
    pub tag: String,
    /// The edge's name.
    pub edge: String,
    /// When the request broke.
    pub at: Instant,
    /// Why the request broke.
    pub cause: String,
}

/// The proxy. Dropping it closes all connections.
#[derive(Debug)]
pub struct RoundRobin {
    address: SocketAddr,
    shared: Arc<Shared>,
    closed: CancellationToken,
}

#[derive(Debug)]
struct Shared {
    rotation: Rotation,
    breaks: Mutex<Vec<Break>>,
}

type ResponseBody = UnsyncBoxBody<Bytes, hyper::Error>;

impl RoundRobin {
    /// Starts a proxy. Edges that are not ready leave the rotation.
    pub async fn start(listen: SocketAddr, edges: Vec<Edge>) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(listen)
            .await
            .with_context(|| format!("cannot listen on {listen}"))?;
        let proxy = Self {
            address: listener.local_addr()?,
            shared: Arc::new(Shared {
                rotation: Rotation::new(edges),
                breaks: Mutex::default(),
            }),
            closed: CancellationToken::new(),
        };
        let (shared, closed) = (&proxy.shared, &proxy.closed);
        let serve = serve(listener, shared.clone(), closed.clone());
        tokio::spawn(closed.clone().run_until_cancelled_owned(serve));
        let shared = shared.clone();
        let watch = async move { shared.rotation.watch().await };
        tokio::spawn(closed.clone().run_until_cancelled_owned(watch));
        Ok(proxy)
    }

    /// Returns the address for clients.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the requests that edges have broken.
    #[must_use]
    pub fn breaks(&self) -> Vec<Break> {
        self.shared.breaks().clone()
    }
}

impl Drop for RoundRobin {
    fn drop(&mut self) {
        self.closed.cancel();
    }
}

impl Shared {
    fn breaks(&self) -> std::sync::MutexGuard<'_, Vec<Break>> {
        self.breaks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn broke(&self, tag: &str, edge: &str, cause: &dyn std::fmt::Display) {
        self.breaks().push(Break {
            tag: tag.to_owned(),
            edge: edge.to_owned(),
            at: Instant::now(),
            cause: cause.to_string(),
        });
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>, closed: CancellationToken) {
    loop {
        // This process may run out of descriptors for a while.
        let Ok((client, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let connection = connection(client, shared.clone());
        tokio::spawn(closed.clone().run_until_cancelled_owned(connection));
    }
}

async fn connection(client: TcpStream, shared: Arc<Shared>) {
    let _ = client.set_nodelay(true);
    let service = service_fn(move |request| forward::forward(shared.clone(), request));
    // Both ends notice a broken connection themselves.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(client), service)
        .await;
}

fn own_answer(status: http::StatusCode, text: String) -> http::Response<ResponseBody> {
    use http_body_util::BodyExt as _;
    let body = http_body_util::Full::new(Bytes::from(text))
        .map_err(|never: Infallible| match never {})
        .boxed_unsync();
    let mut response = http::Response::new(body);
    *response.status_mut() = status;
    response
}
