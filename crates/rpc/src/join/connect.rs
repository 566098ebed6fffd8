//! How a link to a node begins.

use std::sync::Arc;

use tokio::time::timeout;
use tonic::Streaming;

use super::Joining;
use crate::LinkConfig;
use crate::error::LinkError;
use crate::link::inbox::Inbox;
use crate::link::outbox::Outbox;
use crate::link::versions::{self, Peer};
use crate::link::{LONGEST_MESSAGE, dial};
use crate::proto::worker::v1::node_frame;
use crate::proto::worker::v1::worker_frame::Frame;
use crate::proto::worker::v1::worker_link_client::WorkerLinkClient;
use crate::proto::worker::v1::{Hello, NodeFrame, Welcome, WorkerFrame};

pub(super) type NodeInbox = Inbox<Streaming<NodeFrame>, NodeFrame, WorkerFrame>;

/// A link that a node has welcomed.
pub(super) struct Connected {
    pub(super) welcome: Welcome,
    pub(super) peer: Peer,
    pub(super) inbox: NodeInbox,
    pub(super) outbox: Arc<Outbox<WorkerFrame>>,
}

/// Dials a node and says hello.
///
/// # Errors
/// Why there is no link.
pub(super) async fn connect(
    joining: &Joining,
    address: &str,
    config: &LinkConfig,
) -> Result<Connected, LinkError> {
    let hello = Hello {
        versions: Some(versions::own(config)),
        worker: joining.id().to_string(),
        incarnation: joining.incarnation,
        limits: Some(versions::limits(config)),
        ledger: joining.worker.ledger().map(|ledger| ledger.number),
    };
    let connecting = async {
        let channel = dial::connect(address, config).await?;
        let (outbox, stream) = Outbox::new(config.max_queued);
        outbox.push_now(Frame::Hello(hello));
        let mut client = WorkerLinkClient::new(channel).max_decoding_message_size(LONGEST_MESSAGE);
        let response = client.link(stream).await;
        let response = response.map_err(|status| LinkError::of_status(&status))?;
        let mut inbox = Inbox::new(response.into_inner(), Arc::clone(&outbox), config.max_frame);
        let welcome = match inbox.next().await?.frame {
            Some(node_frame::Frame::Welcome(welcome)) => welcome,
            _ => return Err(LinkError::protocol("the first frame is no welcome")),
        };
        if !versions::is_offered(config, welcome.version) {
            return Err(LinkError::protocol("a version that was not offered"));
        }
        let peer = Peer::new(welcome.version, welcome.limits);
        outbox.open(&peer);
        inbox.open(peer.version);
        Ok(Connected {
            welcome,
            peer,
            inbox,
            outbox,
        })
    };
    timeout(config.handshake_timeout, connecting)
        .await
        .unwrap_or(Err(LinkError::Silent))
}
