//! An HTTP reverse proxy that sends every request to the next edge.
//!
//! Requests, not connections: a client that keeps one connection meets another edge each time. It is as
//! plain as a balancer can be, so that nothing of what a client sees is its doing: bodies stream both ways,
//! whichever side breaks is broken off on the other, and a request goes to another edge only where
//! connecting failed, so that no edge has seen anything of it.

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

/// The header by which a client names a request, to find it among the [`Break`]s. It is passed on; no
/// server looks at it.
pub const TAG: &str = "testkit-tag";

/// One edge behind the proxy.
#[derive(Clone, Debug)]
pub struct Edge {
    /// What it is called.
    pub name: String,
    /// Where it serves MCP.
    pub address: SocketAddr,
    /// Where it says whether it is ready; without, it always counts as such.
    pub admin: Option<Admin>,
}

/// A request that an edge had and did not answer to the end.
#[derive(Clone, Debug)]
pub struct Break {
    /// What the client called it, by the header [`TAG`].
    pub tag: String,
    /// The edge.
    pub edge: String,
    /// When.
    pub at: Instant,
    /// What went wrong.
    pub cause: String,
}

/// The proxy. Dropped, it closes all connections.
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

/// What goes back to clients.
type ResponseBody = UnsyncBoxBody<Bytes, hyper::Error>;

impl RoundRobin {
    /// Starts one. Edges leave the rotation while they say that they are not ready, as with any balancer.
    ///
    /// # Errors
    /// When the address cannot be had.
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

    /// Where clients connect.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Requests that edges broke off, so far.
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
        // Out of descriptors, for instance: the next one may work.
        let Ok((client, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let connection = connection(client, shared.clone());
        tokio::spawn(closed.clone().run_until_cancelled_owned(connection));
    }
}

/// Serves one client's connection, until either side breaks.
async fn connection(client: TcpStream, shared: Arc<Shared>) {
    let _ = client.set_nodelay(true);
    let service = service_fn(move |request| forward::forward(shared.clone(), request));
    // An error is a break, on one side or the other; both ends know.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(client), service)
        .await;
}

/// An answer of the proxy's own.
fn own_answer(status: http::StatusCode, text: String) -> http::Response<ResponseBody> {
    use http_body_util::BodyExt as _;
    let body = http_body_util::Full::new(Bytes::from(text))
        .map_err(|never: Infallible| match never {})
        .boxed_unsync();
    let mut response = http::Response::new(body);
    *response.status_mut() = status;
    response
}
