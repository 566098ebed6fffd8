use std::sync::Arc;

use shoal_ports::WorkerId;
use tonic::{Request, Response, Status, Streaming};

use super::drive::{WorkerDrive, WorkerInbox};
use super::links::{WorkerLinks, WorkerLinksInner};
use crate::convert::node::node_out;
use crate::error::LinkError;
use crate::link::LONGEST_MESSAGE;
use crate::link::handshake;
use crate::link::inbox::Inbox;
use crate::link::outbox::{Outbox, ServerStream};
use crate::link::versions;
use crate::presence::PresenceProbe;
use crate::proto::worker::v1::worker_frame::Frame;
use crate::proto::worker::v1::worker_link_server::{WorkerLink, WorkerLinkServer};
use crate::proto::worker::v1::{Hello, NodeFrame, Welcome, WorkerFrame};
use crate::tls::{Standing, peer_address};

pub(crate) struct WorkerService(Arc<WorkerLinksInner>);

impl WorkerLinks {
    pub(crate) fn service(&self) -> WorkerLinkServer<WorkerService> {
        WorkerLinkServer::new(WorkerService(Arc::clone(&self.shared)))
            .max_decoding_message_size(LONGEST_MESSAGE)
    }
}

#[tonic::async_trait]
impl WorkerLink for WorkerService {
    type LinkStream = ServerStream<NodeFrame>;

    async fn link(
        &self,
        request: Request<Streaming<WorkerFrame>>,
    ) -> Result<Response<Self::LinkStream>, Status> {
        let (standing, address) = (Standing::of_request(&request), peer_address(&request));
        let shared = &self.0;
        let config = &shared.config;
        let (outbox, stream) = Outbox::new(config.max_queued);
        let mut inbox = Inbox::new(request.into_inner(), Arc::clone(&outbox), config.max_frame);
        let hello = handshake::hello(hello(&mut inbox), config, &shared.closing).await?;
        let agreed = handshake::accept(config, hello.versions, hello.limits, &mut inbox, &outbox)?;
        if hello.worker.is_empty() {
            return Err(Status::invalid_argument("the hello names no worker"));
        }
        let id = WorkerId::new(hello.worker);
        // A worker may take over another worker's id only if it may work for that worker's pool.
        if let Some(why) = shared.pool_of(&id).and_then(|pool| standing.refuses(&pool)) {
            tracing::warn!(worker = %id, why, "a worker was refused");
            return Err(Status::failed_precondition(why));
        }
        let mut nodes = shared.nodes.clone();
        let welcome = Welcome {
            version: agreed.version,
            node: shared.node.to_string(),
            nodes: nodes.borrow_and_update().iter().map(node_out).collect(),
            limits: Some(versions::limits(config)),
            ..Welcome::default()
        };
        let peer = shared.peer(&id, hello.incarnation);
        peer.counts(hello.ledger);
        let link = (peer.join(outbox, welcome))
            .ok_or_else(|| Status::unavailable("the worker was just given up"))?;
        let presence = PresenceProbe::begin(address, hello.presence, config.handshake_timeout);
        let drive = WorkerDrive::new(peer, link, inbox, nodes, shared.closing.clone());
        tokio::spawn(Arc::clone(shared).run(drive, standing, presence));
        Ok(Response::new(stream.into()))
    }
}

async fn hello(inbox: &mut WorkerInbox) -> Result<Hello, LinkError> {
    match inbox.next().await?.frame {
        Some(Frame::Hello(hello)) => Ok(hello),
        _ => Err(LinkError::protocol("the first frame is no hello")),
    }
}
