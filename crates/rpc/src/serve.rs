//! The session node's side of node links.
//!
//! | | |
//! |---|---|
//! | `service` | an edge says hello |
//! | `drive` | the frames that arrive on a link |
//! | `answering` | the answer to one request |
//! | `served_request` | the link's state of one request |

mod answering;
mod drive;
mod served_request;
mod service;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shoal_ports::{NodeId, SessionGateway};
use tokio_util::sync::CancellationToken;

use crate::LinkConfig;

/// The gateways behind node links.
#[derive(Clone)]
pub struct Gateways {
    /// Serves relayed requests, which are not relayed again.
    pub local: Arc<dyn SessionGateway>,
    /// Serves direct requests, which may be relayed to another node.
    pub routing: Arc<dyn SessionGateway>,
}

/// Accepts the links of edges and other nodes, through a [`ClusterServer`](crate::ClusterServer).
pub fn serve_gateway(node: NodeId, gateways: Gateways, config: LinkConfig) -> GatewayLinks {
    GatewayLinks {
        shared: Arc::new(GatewayLinksInner {
            node,
            gateways,
            config,
            connected: AtomicUsize::new(0),
            closing: CancellationToken::new(),
        }),
    }
}

/// A node's accepted links; a cheap handle.
#[derive(Clone)]
pub struct GatewayLinks {
    shared: Arc<GatewayLinksInner>,
}

struct GatewayLinksInner {
    node: NodeId,
    gateways: Gateways,
    config: LinkConfig,
    connected: AtomicUsize,
    closing: CancellationToken,
}

impl GatewayLinks {
    /// Returns the number of links.
    pub fn connected(&self) -> usize {
        self.shared.connected.load(Ordering::Relaxed)
    }

    /// Ends every link and accepts no more links. Running calls continue.
    pub fn close(&self) {
        self.shared.closing.cancel();
    }
}

impl Gateways {
    fn of(&self, relayed: bool) -> Arc<dyn SessionGateway> {
        Arc::clone(if relayed { &self.local } else { &self.routing })
    }
}
