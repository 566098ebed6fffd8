use tonic::Streaming;

use super::Joining;
use crate::LinkConfig;
use crate::error::LinkError;
use crate::link::LONGEST_MESSAGE;
use crate::link::handshake::{self, Welcomed};
use crate::link::inbox::Inbox;
use crate::link::versions;
use crate::proto::worker::v1::node_frame;
use crate::proto::worker::v1::worker_frame::Frame;
use crate::proto::worker::v1::worker_link_client::WorkerLinkClient;
use crate::proto::worker::v1::{Hello, NodeFrame, Welcome, WorkerFrame};

pub(super) type NodeInbox = Inbox<Streaming<NodeFrame>, NodeFrame, WorkerFrame>;

pub(super) type WelcomedWorker = Welcomed<NodeFrame, WorkerFrame, Welcome>;

pub(super) async fn connect(
    joining: &Joining,
    address: &str,
    config: &LinkConfig,
) -> Result<WelcomedWorker, LinkError> {
    let hello = Hello {
        versions: Some(versions::own(config)),
        worker: joining.id().to_string(),
        incarnation: joining.incarnation,
        limits: Some(versions::limits(config)),
        ledger: joining.worker.ledger().map(|ledger| ledger.number),
        presence: joining.presence.towards(address).await,
    };
    handshake::dial(
        address,
        config,
        Frame::Hello(hello),
        |channel, stream| async move {
            let client = WorkerLinkClient::new(channel);
            let mut client = client.max_decoding_message_size(LONGEST_MESSAGE);
            client.link(stream).await
        },
        |first: NodeFrame| match first.frame {
            Some(node_frame::Frame::Welcome(said)) => Some((said.version, said.limits, said)),
            _ => None,
        },
    )
    .await
}
