//! Ways to other nodes over their cluster listeners.

use std::sync::Arc;

use shoal_ports::{NodeId, NodeInfo};
use shoal_rpc::{LinkConfig, RemoteGateway};

use crate::peers::{PeerGateways, Peers};

/// Links to other nodes, made when they are first used.
///
/// The other side serves them with [`Gateways`](shoal_rpc::Gateways): its own sessions as `local`, and
/// [`RoutedGateway::relay`](crate::RoutedGateway::relay) as `routing`.
#[derive(Clone, Debug)]
pub struct RpcPeers {
    me: NodeId,
    config: LinkConfig,
}

impl RpcPeers {
    /// Links from the node `me`.
    pub fn new(me: NodeId, config: LinkConfig) -> Self {
        Self { me, config }
    }
}

impl Peers for RpcPeers {
    fn connect(&self, node: &NodeInfo) -> PeerGateways {
        let (me, config) = (self.me.clone(), self.config.clone());
        let relay = RemoteGateway::new(me, Some(node.id.clone()), &node.address, config);
        PeerGateways {
            // What says that it has come by another node goes no further than the sessions there.
            own: Arc::new(relay.relayed()),
            relay: Arc::new(relay),
        }
    }
}
