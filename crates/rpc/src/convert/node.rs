use shoal_ports::{NodeId, NodeInfo};

use crate::proto::types::v1::Node;

pub(crate) fn node_out(node: &NodeInfo) -> Node {
    Node {
        id: node.id.to_string(),
        address: node.address.clone(),
        session: node.session,
        edge: node.edge,
        draining: node.draining,
        sessions: node.sessions,
        in_flight: node.in_flight,
        version: node.version.clone(),
    }
}

pub(crate) fn node_in(node: Node) -> NodeInfo {
    NodeInfo {
        id: NodeId::new(node.id),
        address: node.address,
        session: node.session,
        edge: node.edge,
        draining: node.draining,
        starting: false,
        pools: Vec::new(),
        sessions: node.sessions,
        in_flight: node.in_flight,
        version: node.version,
    }
}
