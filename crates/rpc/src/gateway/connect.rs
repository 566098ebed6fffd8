use std::sync::Arc;

use shoal_ports::NodeId;

use super::drive;
use super::link::GatewayLink;
use crate::LinkConfig;
use crate::error::LinkError;
use crate::link::LONGEST_MESSAGE;
use crate::link::handshake::{self, Welcomed};
use crate::link::versions;
use crate::proto::node::v1::edge_frame::Frame;
use crate::proto::node::v1::node_link_client::NodeLinkClient;
use crate::proto::node::v1::{EdgeFrame, Hello, SessionFrame, Welcome, session_frame};

pub(super) async fn connect(
    from: &NodeId,
    node: Option<&NodeId>,
    address: &str,
    config: &LinkConfig,
) -> Result<Arc<GatewayLink>, LinkError> {
    let welcomed = greet(from, node, address, config).await?;
    let (inbox, version) = (welcomed.inbox, welcomed.peer.version);
    let link = GatewayLink::new(welcomed.outbox, config.clone(), version);
    tokio::spawn(drive::drive(Arc::clone(&link), inbox, address.to_owned()));
    Ok(link)
}

/// Without `node`, accepts any node.
pub(super) async fn greet(
    from: &NodeId,
    node: Option<&NodeId>,
    address: &str,
    config: &LinkConfig,
) -> Result<Welcomed<SessionFrame, EdgeFrame, Welcome>, LinkError> {
    let hello = Hello {
        versions: Some(versions::own(config)),
        from: from.to_string(),
        to: node.map(ToString::to_string).unwrap_or_default(),
        limits: Some(versions::limits(config)),
    };
    handshake::dial(
        address,
        config,
        Frame::Hello(hello),
        |channel, stream| async move {
            let client = NodeLinkClient::new(channel);
            let mut client = client.max_decoding_message_size(LONGEST_MESSAGE);
            client.link(stream).await
        },
        |first: SessionFrame| match first.frame {
            Some(session_frame::Frame::Welcome(said)) => Some((said.version, said.limits, said)),
            _ => None,
        },
    )
    .await
}
