//! Serves requests on a socket: HTTP/1.1 and HTTP/2, with TLS or without, bounded, with an orderly end.
//!
//! hyper is driven directly: `axum::serve` has no limit on connections, no time limit on headers and
//! no end with a deadline.

mod connection;
mod ending;
mod framing;
#[cfg(fuzzing)]
pub(crate) mod fuzz;
mod half_closed;
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
pub use secure::HttpTls;

/// Connections that the operating system holds until they are accepted.
const BACKLOG: u32 = 4096;
/// How long a connection that came just before the end has for its request.
const LAST_REQUEST: Duration = Duration::from_millis(250);
/// How long to leave a listener alone that has run out of file descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Bounds of a server's connections.
#[derive(Clone, Debug)]
pub struct HttpLimits {
    /// Connections open at once.
    pub connections: usize,
    /// Requests open at once on one HTTP/2 connection.
    pub requests_per_connection: u32,
    /// Headers of one HTTP/1 request.
    pub headers: usize,
    /// Bytes of the headers of one request.
    pub header_bytes: usize,
    /// How long a connection may take to send the headers of a request, from their first byte; a new one, from its start.
    pub header_timeout: Duration,
    /// How long a connection of HTTP/1.1 may idle between two requests.
    pub idle_timeout: Duration,
    /// How long a client may take nothing of what waits for it before its connection is closed, or its stream reset.
    pub write_timeout: Duration,
}

/// Answers the requests of a server.
pub trait RequestService: Clone + Send + Sync + 'static {
    /// Answers one.
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

/// A listener that is bound and not yet served: its address is known before anything is announced.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<HttpTls>,
}

impl Bound {
    /// Binds an address; port 0 takes a free port.
    ///
    /// # Errors
    /// The operating system's.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = if address.is_ipv4() {
            TcpSocket::new_v4()?
        } else {
            TcpSocket::new_v6()?
        };
        // A restart must not wait for the connections of the process before.
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

    /// With TLS, if there is to be any.
    #[must_use]
    pub fn over(self, tls: Option<HttpTls>) -> Self {
        Self { tls, ..self }
    }

    /// Where it listens, as the beginning of a URL.
    pub fn origin(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Where it listens.
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

/// A server at work.
#[derive(Debug)]
pub struct HttpServer {
    ending: Ending,
    places: Arc<Semaphore>,
    limit: usize,
    /// Those that are open, and who accepts them.
    connections: TaskTracker,
}

impl HttpServer {
    /// Sends clients elsewhere: from now on each answer is the last one on its connection, and says so
    /// (`Connection: close`; over HTTP/2, `GOAWAY`). New connections are still taken, and those that idle
    /// stay: closed now, they could break a request that is on its way to them.
    pub fn drain(&self) {
        self.ending.drain();
    }

    /// Waits until no connection idles any more after [`drain`](Self::drain), at most for so long; returns
    /// how many still do. Cancellation safe.
    pub async fn let_idle_go(&self, within: Duration) -> usize {
        let _ = timeout(within, self.ending.until_none_idles()).await;
        self.ending.idle()
    }

    /// Stops accepting, closes connections that idle, and lets the others finish the requests that they have begun.
    pub fn begin_close(&self) {
        self.ending.close();
        self.connections.close();
    }

    /// Waits until every connection has ended after [`begin_close`](Self::begin_close). Cancellation safe.
    pub async fn closed(&self) {
        self.connections.wait().await;
    }

    /// Closes the server. Returns how many connections were still busy at the deadline; they end with the process.
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
    /// Accepts until it is told to stop.
    async fn run(self) {
        loop {
            let accepted = tokio::select! {
                () = self.ending.closing() => break self.serve_backlog(),
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

    /// Serves one request of each connection that the operating system has accepted already: it would reset them with the
    /// listener, and their clients could not know that nothing was done. They take no places, as those may all be taken.
    fn serve_backlog(self) {
        let listener = match self.listener.into_std() {
            Ok(listener) => listener,
            Err(error) => return tracing::debug!(%error, "could not look for waiting connections"),
        };
        for _ in 0..BACKLOG {
            let Ok((stream, _)) = listener.accept() else {
                return;
            };
            let stream = stream.set_nonblocking(true).map(|()| stream);
            let Ok(stream) = stream.and_then(TcpStream::from_std) else {
                continue;
            };
            let protocols = Arc::clone(&self.protocols);
            self.connections.spawn(async move {
                let ending = Ending::default();
                ending.drain();
                let close = async {
                    tokio::time::sleep(LAST_REQUEST).await;
                    ending.close();
                };
                tokio::join!(protocols.serve(stream, ending.clone()), close);
            });
        }
    }

    /// The next connection with its place; `None` when it failed on the way.
    async fn accept(&self) -> Option<(TcpStream, OwnedSemaphorePermit)> {
        let place = Arc::clone(&self.places).acquire_owned().await.ok()?;
        match self.listener.accept().await {
            Ok((stream, _)) => {
                // Answers are written whole; waiting for more to send would only delay them.
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

/// Whether the error concerns the connection that came, not the listener.
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
