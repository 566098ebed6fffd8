mod authority;
mod files;
mod mixed;
mod peers;
mod pools;
mod renewal;

use shoal_ports::{GatewayError, NodeId, SessionGateway as _};
use shoal_rpc::{LinkConfig, RemoteGateway};

use crate::gateway::{ping, session};
use crate::setting::Node;

async fn reached(node: &Node, config: LinkConfig) -> Result<(), String> {
    let address = node.address.to_string();
    let edge = RemoteGateway::new(NodeId::new("edge-1"), None, &address, config);
    match edge.deliver(&session(), ping()).await {
        Err(GatewayError::NotFound) => Ok(()),
        Err(GatewayError::Unsent { reason }) => Err(reason),
        other => panic!("{other:?}"),
    }
}
