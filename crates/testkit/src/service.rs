//! A balancer of connections that behaves like a Kubernetes Service.
//!
//! A new connection goes to the next ready endpoint. If the endpoint refuses, the balancer resets the client. An
//! endpoint joins when its readiness probe passes, and leaves when the probe fails often enough, or some time after
//! its termination.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;

pub use crate::endpoints::Probing;
use crate::endpoints::{Edge, Endpoints};
use crate::relay::Relay;

/// The balancer. Dropping it closes all connections.
#[derive(Debug)]
pub struct Service {
    relay: Relay,
    shared: Arc<Shared>,
    probing: Probing,
}

#[derive(Debug, Default)]
struct Shared {
    endpoints: Endpoints,
    refused: AtomicU64,
}

impl Service {
    /// Starts a balancer without endpoints.
    pub async fn start(probing: Probing) -> anyhow::Result<Self> {
        let shared = Arc::<Shared>::default();
        let to = shared.clone();
        let carry = move |client, _| carry(client, to.clone());
        Ok(Self {
            relay: Relay::start((Ipv4Addr::LOCALHOST, 0).into(), carry).await?,
            shared,
            probing,
        })
    }

    /// Returns the address for clients.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.relay.address
    }

    /// Adds an endpoint, which receives connections after its probe has passed.
    pub fn add(&self, edge: Edge) {
        self.shared.endpoints.add(edge, self.probing);
    }

    /// Marks an endpoint as terminating. It receives connections until the news has propagated.
    pub fn terminate(&self, name: &str) {
        let (shared, name, time) = (
            self.shared.clone(),
            name.to_owned(),
            self.probing.propagation,
        );
        tokio::spawn(async move {
            tokio::time::sleep(time).await;
            shared.endpoints.remove(&name);
        });
    }

    /// Returns the number of endpoints that receive connections.
    #[must_use]
    pub fn ready(&self) -> usize {
        self.shared.endpoints.ready()
    }

    /// Returns the number of connections that reached no endpoint.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.shared.refused.load(Ordering::Relaxed)
    }
}

async fn carry(mut client: TcpStream, shared: Arc<Shared>) {
    let (ready, _) = shared.endpoints.turn();
    let connected = match ready.first() {
        Some(edge) => TcpStream::connect(edge.address).await.ok(),
        None => None,
    };
    let Some(mut server) = connected else {
        shared.refused.fetch_add(1, Ordering::Relaxed);
        let _ = client.set_zero_linger();
        return;
    };
    let _ = server.set_nodelay(true);
    // Both ends notice a broken connection themselves.
    let _ = copy_bidirectional(&mut client, &mut server).await;
}
