//! Serves HTTP/1.1 and HTTP/2, with or without TLS, with limits and an orderly shutdown.
//!
//! Uses hyper directly, because `axum::serve` has no connection limit, header timeout or shutdown
//! deadline.

mod connection;
mod ending;
mod framing;
#[cfg(fuzzing)]
pub(crate) mod fuzz;
mod half_closed;
mod last_connections;
mod refusal;
mod secure;
mod socket;
mod stream;
mod streams;
mod upgraded;
mod wire;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use shoal_edge::EdgeService;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use connection::Protocols;
use ending::Ending;
use last_connections::LastConnections;
pub use secure::HttpTls;

const BACKLOG: u32 = 4096;
/// How long the last connections may take to send a request after the server has begun to close. Clients on busy
/// machines take some hundred milliseconds.
const LAST_REQUEST: Duration = Duration::from_secs(1);
/// Pause after `accept` ran out of file descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The limits of a server's connections.
#[derive(Clone, Debug)]
pub struct HttpLimits {
    /// Maximum open connections.
    pub connections: usize,
    /// Maximum concurrent requests on one HTTP/2 connection.
    pub requests_per_connection: u32,
    /// Maximum headers of one HTTP/1.1 request.
    pub headers: usize,
    /// Maximum bytes of the headers of one request.
    pub header_bytes: usize,
    /// Maximum time for a request's headers, from their first byte or the connection's start.
    pub header_timeout: Duration,
    /// Maximum idle time of an HTTP/1.1 connection between requests.
    pub idle_timeout: Duration,
    /// How long a client may read nothing before its connection closes or its stream is reset.
    pub write_timeout: Duration,
}

/// The service that answers requests.
pub trait RequestService: Clone + Send + Sync + 'static {
    /// Answers a request.
    fn answer(&self, request: Request) -> impl Future<Output = Response> + Send;
}

impl RequestService for EdgeService {
    fn answer(&self, request: Request) -> impl Future<Output = Response> + Send {
        Self::answer(self, request)
    }
}

impl RequestService for Router {
    async fn answer(&self, request: Request) -> Response {
        match self.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

/// A bound listener that does not serve yet.
#[derive(Debug)]
pub struct BoundHttp {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<HttpTls>,
}

impl BoundHttp {
    /// Binds an address; port 0 takes a free port.
    ///
    /// # Errors
    /// When the operating system cannot bind it.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = if address.is_ipv4() {
            TcpSocket::new_v4()?
        } else {
            TcpSocket::new_v6()?
        };
        // Without this option, a restart would have to wait for the previous process's connections.
        #[cfg(unix)]
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let listener = socket.listen(BACKLOG)?;
        let address = listener.local_addr()?;
        Ok(Self {
            listener,
            address,
            tls: None,
        })
    }

    /// Sets whether, and how, the listener uses TLS.
    #[must_use]
    pub fn over(self, tls: Option<HttpTls>) -> Self {
        Self { tls, ..self }
    }

    /// Returns the origin of the listener's URLs (scheme, host and port).
    pub fn origin(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Returns the bound address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves requests from now on.
    pub fn serve(self, service: impl RequestService, limits: &HttpLimits) -> HttpServer {
        let ending = Ending::default();
        let places = Arc::new(Semaphore::new(limits.connections));
        let connections = TaskTracker::new();
        let acceptor = Acceptor {
            listener: self.listener,
            protocols: Arc::new(Protocols::new(service, limits, self.tls)),
            places: Arc::clone(&places),
            connections: connections.clone(),
            ending: ending.clone(),
        };
        connections.spawn(acceptor.run());
        HttpServer {
            ending,
            places,
            limit: limits.connections,
            connections,
        }
    }
}

/// A running server.
#[derive(Debug)]
pub struct HttpServer {
    ending: Ending,
    places: Arc<Semaphore>,
    limit: usize,
    connections: TaskTracker,
}

impl HttpServer {
    /// Makes each answer the last on its connection (`Connection: close`, or `GOAWAY` over HTTP/2).
    /// Idle connections stay, because closing one could lose a request on its way.
    pub fn drain(&self) {
        self.ending.drain();
    }

    /// Waits until no connection is idle after [`drain`](Self::drain), for at most `within`. Returns how many
    /// are still idle. Cancellation safe.
    pub async fn let_idle_go(&self, within: Duration) -> usize {
        let _ = timeout(within, self.ending.until_none_idles()).await;
        self.ending.idle()
    }

    /// Stops accepting connections, and closes each one after its present request.
    pub fn begin_close(&self) {
        self.ending.close();
        self.connections.close();
    }

    /// Waits until all connections have ended after [`begin_close`](Self::begin_close). Cancellation safe.
    pub async fn closed(&self) {
        self.connections.wait().await;
    }

    /// Closes the server. Returns how many connections were busy at the deadline; they end with the
    /// process.
    pub async fn close(self, deadline: Duration) -> usize {
        self.begin_close();
        let closed = timeout(deadline, self.closed()).await;
        closed.map_or_else(|_| self.limit - self.places.available_permits(), |()| 0)
    }
}

struct Acceptor<S> {
    listener: TcpListener,
    protocols: Arc<Protocols<S>>,
    places: Arc<Semaphore>,
    connections: TaskTracker,
    ending: Ending,
}

impl<S: RequestService> Acceptor<S> {
    async fn run(self) {
        loop {
            let accepted = tokio::select! {
                () = self.ending.closing() => break self.serve_last_connections().await,
                accepted = self.accept() => accepted,
            };
            let Some((stream, place)) = accepted else {
                continue;
            };
            let protocols = Arc::clone(&self.protocols);
            let ending = self.ending.clone();
            self.connections.spawn(async move {
                protocols.serve(stream, ending).await;
                drop(place);
            });
        }
    }

    /// Accepts the connections that wait in the operating system's queue, even beyond the connection limit, and serves
    /// one request of each.
    async fn serve_last_connections(self) {
        let last = LastConnections::of(self.listener);
        last.each(|stream| {
            let protocols = Arc::clone(&self.protocols);
            self.connections.spawn(async move {
                let ending = Ending::default();
                ending.drain();
                let close = async {
                    tokio::time::sleep(LAST_REQUEST).await;
                    ending.close();
                    std::future::pending().await
                };
                tokio::select! {
                    () = protocols.serve(stream, ending.clone()) => {}
                    () = close => {}
                }
            });
        })
        .await;
    }

    async fn accept(&self) -> Option<(TcpStream, OwnedSemaphorePermit)> {
        let place = Arc::clone(&self.places).acquire_owned().await.ok()?;
        match self.listener.accept().await {
            Ok((stream, _)) => {
                // Answers are written whole, so waiting for more data before a packet is sent gains nothing.
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "could not turn Nagle's algorithm off");
                }
                Some((stream, place))
            }
            Err(error) if is_of_one_connection(&error) => None,
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections now");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                None
            }
        }
    }
}

fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
    )
}

#[cfg(test)]
mod tests;
