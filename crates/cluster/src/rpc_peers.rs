use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use shoal_ports::{NodeId, NodeInfo};
use shoal_rpc::{LinkConfig, RemoteGateway, Sight};
use tokio::time::timeout;

use crate::peers::{PeerGateways, Peers};

/// Short, because clients wait for the result. A refused dial ends the probe sooner.
const LOOKED_FOR_WITHIN: Duration = Duration::from_millis(250);

/// Links to other nodes, dialled on first use. The others serve them with [`Gateways`](shoal_rpc::Gateways): their own
/// sessions as `local`, and [`RoutedGateway::relay`](crate::RoutedGateway::relay) as `routing`.
#[derive(Clone, Debug)]
pub struct RpcPeers {
    me: NodeId,
    config: LinkConfig,
}

impl RpcPeers {
    /// Creates links from the node `me`.
    pub fn new(me: NodeId, config: LinkConfig) -> Self {
        Self { me, config }
    }
}

#[async_trait]
impl Peers for RpcPeers {
    fn connect(&self, node: &NodeInfo) -> PeerGateways {
        let (me, config) = (self.me.clone(), self.config.clone());
        let relay = RemoteGateway::new(me, Some(node.id.clone()), &node.address, config);
        PeerGateways {
            own: Arc::new(relay.relayed()),
            relay: Arc::new(relay),
        }
    }

    async fn look_for(&self, node: &NodeInfo) -> Sight {
        let looking = shoal_rpc::look_for(&self.me, &node.id, &node.address, &self.config);
        timeout(LOOKED_FOR_WITHIN, looking)
            .await
            .unwrap_or(Sight::Unknown)
    }
}
