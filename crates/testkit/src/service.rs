//! A balancer that behaves as a Service of Kubernetes does: by connection, blind to what goes over it.
//!
//! A new connection goes to the next endpoint that is ready; it stays there until either side ends it,
//! whatever becomes of the endpoint. Nothing is tried elsewhere: where an endpoint refuses, the client is cut
//! off. An endpoint enters when its readiness probe has passed, and leaves when the probe fails often enough,
//! or some time after it was said to be terminating: news takes its time to every machine.

mod endpoint;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use self::endpoint::Endpoint;
use crate::round_robin::Edge;

/// How endpoints come and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probing {
    /// The time between two probes.
    pub period: Duration,
    /// Probes in a row that must pass until an endpoint is ready.
    pub successes: u32,
    /// Probes in a row that must fail until it is not.
    pub failures: u32,
    /// How long a terminating endpoint is still given connections.
    pub propagation: Duration,
}

impl Default for Probing {
    fn default() -> Self {
        Self {
            period: Duration::from_secs(1),
            successes: 1,
            failures: 3,
            propagation: Duration::from_secs(1),
        }
    }
}

/// The balancer. Dropped, it closes all connections.
#[derive(Debug)]
pub struct Service {
    address: SocketAddr,
    shared: Arc<Shared>,
    probing: Probing,
    closed: CancellationToken,
}

#[derive(Debug, Default)]
struct Shared {
    endpoints: Mutex<Vec<Arc<Endpoint>>>,
    next: AtomicUsize,
    accepted: AtomicU64,
    refused: AtomicU64,
}

impl Service {
    /// Starts one without endpoints, on a free port of loopback.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start(probing: Probing) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .context("cannot listen on loopback")?;
        let service = Self {
            address: listener.local_addr()?,
            shared: Arc::default(),
            probing,
            closed: CancellationToken::new(),
        };
        let serving = serve(listener, service.shared.clone(), service.closed.clone());
        tokio::spawn(service.closed.clone().run_until_cancelled_owned(serving));
        Ok(service)
    }

    /// Where clients connect.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Adds an endpoint, which is given connections as soon as its probe has passed.
    pub fn add(&self, edge: Edge) {
        let endpoint = Arc::new(Endpoint::new(edge));
        let probing = endpoint.clone().probe(self.probing);
        tokio::spawn(self.closed.clone().run_until_cancelled_owned(probing));
        self.shared.endpoints().push(endpoint);
    }

    /// Says that an endpoint is terminating. It is given connections until the news has arrived.
    pub fn terminate(&self, name: &str) {
        let shared = self.shared.clone();
        let (name, propagation) = (name.to_owned(), self.probing.propagation);
        let leaving = async move {
            tokio::time::sleep(propagation).await;
            shared.endpoints().retain(|endpoint| {
                let stays = endpoint.name() != name;
                if !stays {
                    endpoint.leave();
                }
                stays
            });
        };
        tokio::spawn(self.closed.clone().run_until_cancelled_owned(leaving));
    }

    /// How many endpoints are given connections now.
    #[must_use]
    pub fn ready(&self) -> usize {
        let endpoints = self.shared.endpoints();
        endpoints.iter().filter(|one| one.is_ready()).count()
    }

    /// Connections that clients made, so far.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.shared.accepted.load(Ordering::Relaxed)
    }

    /// Those of them that reached no endpoint.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.shared.refused.load(Ordering::Relaxed)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.closed.cancel();
    }
}

impl Shared {
    fn endpoints(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Endpoint>>> {
        self.endpoints
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The endpoint whose turn it is.
    fn next(&self) -> Option<Arc<Endpoint>> {
        let endpoints = self.endpoints();
        let ready: Vec<_> = endpoints.iter().filter(|one| one.is_ready()).collect();
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let next = ready.get(turn.checked_rem(ready.len())?)?;
        Some(Arc::clone(next))
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>, closed: CancellationToken) {
    loop {
        // Out of descriptors, for instance: the next one may work.
        let Ok((client, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        shared.accepted.fetch_add(1, Ordering::Relaxed);
        let connection = connection(client, shared.clone());
        tokio::spawn(closed.clone().run_until_cancelled_owned(connection));
    }
}

/// Carries a client's connection to the endpoint whose turn it is, until either side ends it.
async fn connection(mut client: TcpStream, shared: Arc<Shared>) {
    let _ = client.set_nodelay(true);
    let connected = match shared.next() {
        Some(endpoint) => TcpStream::connect(endpoint.address()).await.ok(),
        None => None,
    };
    let Some(mut server) = connected else {
        shared.refused.fetch_add(1, Ordering::Relaxed);
        // The client sees what a refused connection would show it: a reset.
        let _ = client.set_zero_linger();
        return;
    };
    let _ = server.set_nodelay(true);
    // An error is a break, on one side or the other; both ends know.
    let _ = copy_bidirectional(&mut client, &mut server).await;
}
