use std::sync::Arc;

use tonic::{Request, Response, Status, Streaming};

use super::drive::{EdgeInbox, ServeDrive};
use super::{GatewayLinks, GatewayLinksInner};
use crate::error::LinkError;
use crate::link::LONGEST_MESSAGE;
use crate::link::handshake;
use crate::link::inbox::Inbox;
use crate::link::outbox::{Outbox, ServerStream};
use crate::link::versions;
use crate::proto::node::v1::edge_frame::Frame;
use crate::proto::node::v1::node_link_server::{NodeLink, NodeLinkServer};
use crate::proto::node::v1::{EdgeFrame, Hello, SessionFrame, Welcome, session_frame};
use crate::tls::Standing;

pub(crate) struct NodeService(Arc<GatewayLinksInner>);

impl GatewayLinks {
    pub(crate) fn service(&self) -> NodeLinkServer<NodeService> {
        NodeLinkServer::new(NodeService(Arc::clone(&self.shared)))
            .max_decoding_message_size(LONGEST_MESSAGE)
    }
}

#[tonic::async_trait]
impl NodeLink for NodeService {
    type LinkStream = ServerStream<SessionFrame>;

    async fn link(
        &self,
        request: Request<Streaming<EdgeFrame>>,
    ) -> Result<Response<Self::LinkStream>, Status> {
        Standing::of_request(&request).expect_node("sessions")?;
        let shared = &self.0;
        let config = &shared.config;
        let (outbox, stream) = Outbox::new(config.max_queued);
        let mut inbox = Inbox::new(request.into_inner(), Arc::clone(&outbox), config.max_frame);
        let hello = handshake::hello(hello(&mut inbox), config, &shared.closing).await?;
        if !hello.to.is_empty() && hello.to != shared.node.as_str() {
            let text = format!("this is the node {}, not {}", shared.node, hello.to);
            return Err(Status::failed_precondition(text));
        }
        let offered = hello.versions.map(versions::without_plans);
        let peer = handshake::accept(config, offered, hello.limits, &mut inbox, &outbox)?;
        outbox.push_now(session_frame::Frame::Welcome(Welcome {
            version: peer.version,
            node: shared.node.to_string(),
            limits: Some(versions::limits(config)),
        }));
        let drive = ServeDrive::new(Arc::clone(shared), hello.from, &peer, outbox);
        tokio::spawn(drive.run(inbox));
        Ok(Response::new(stream.into()))
    }
}

async fn hello(inbox: &mut EdgeInbox) -> Result<Hello, LinkError> {
    match inbox.next().await?.frame {
        Some(Frame::Hello(hello)) => Ok(hello),
        _ => Err(LinkError::protocol("the first frame is no hello")),
    }
}
