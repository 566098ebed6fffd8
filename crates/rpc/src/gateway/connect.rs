//! How a link to a session node begins.

use std::sync::Arc;

use shoal_ports::NodeId;
use tokio::time::timeout;
use tonic::Streaming;

use super::drive;
use super::link::Link;
use crate::LinkConfig;
use crate::error::LinkError;
use crate::link::inbox::Inbox;
use crate::link::outbox::Outbox;
use crate::link::versions::{self, Peer};
use crate::link::{LONGEST_MESSAGE, dial};
use crate::proto::node::v1::edge_frame::Frame;
use crate::proto::node::v1::node_link_client::NodeLinkClient;
use crate::proto::node::v1::{EdgeFrame, Hello, SessionFrame, session_frame};

/// A node that has said welcome.
pub(super) struct Welcomed {
    /// What it is called.
    pub(super) node: String,
    version: u32,
    inbox: Inbox<Streaming<SessionFrame>, SessionFrame, EdgeFrame>,
    outbox: Arc<Outbox<EdgeFrame>>,
}

/// Dials a node, says hello, and drives the link from then on.
///
/// # Errors
/// Why there is no link.
pub(super) async fn connect(
    from: &NodeId,
    node: Option<&NodeId>,
    address: &str,
    config: &LinkConfig,
) -> Result<Arc<Link>, LinkError> {
    let welcomed = greet(from, node, address, config).await?;
    let Welcomed {
        version,
        inbox,
        outbox,
        ..
    } = welcomed;
    let link = Link::new(outbox, config.clone(), version);
    tokio::spawn(drive::drive(Arc::clone(&link), inbox, address.to_owned()));
    Ok(link)
}

/// Dials a node and says hello; whoever is there answers if no node is named.
///
/// # Errors
/// Why there is no welcome.
pub(super) async fn greet(
    from: &NodeId,
    node: Option<&NodeId>,
    address: &str,
    config: &LinkConfig,
) -> Result<Welcomed, LinkError> {
    let hello = Hello {
        versions: Some(versions::own(config)),
        from: from.to_string(),
        to: node.map(ToString::to_string).unwrap_or_default(),
        limits: Some(versions::limits(config)),
    };
    let greeting = async {
        let channel = dial::connect(address, config).await?;
        let (outbox, stream) = Outbox::new(config.max_queued);
        outbox.push_now(Frame::Hello(hello));
        let mut client = NodeLinkClient::new(channel).max_decoding_message_size(LONGEST_MESSAGE);
        let response = client.link(stream).await;
        let response = response.map_err(|status| LinkError::of_status(&status))?;
        let mut inbox = Inbox::new(response.into_inner(), Arc::clone(&outbox), config.max_frame);
        let welcome = match inbox.next().await?.frame {
            Some(session_frame::Frame::Welcome(welcome)) => welcome,
            _ => return Err(LinkError::protocol("the first frame is no welcome")),
        };
        if !versions::is_offered(config, welcome.version) {
            return Err(LinkError::protocol("a version that was not offered"));
        }
        let peer = Peer::new(welcome.version, welcome.limits);
        outbox.open(&peer);
        inbox.open(peer.version);
        Ok(Welcomed {
            node: welcome.node,
            version: peer.version,
            inbox,
            outbox,
        })
    };
    timeout(config.handshake_timeout, greeting)
        .await
        .unwrap_or(Err(LinkError::Silent))
}
