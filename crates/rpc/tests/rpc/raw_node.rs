use std::collections::VecDeque;

use shoal_rpc::proto::types::v1::{Limits, Ping};
use shoal_rpc::proto::worker::v1::worker_link_server::{WorkerLink, WorkerLinkServer};
use shoal_rpc::proto::worker::v1::{
    Attach, Hello, NodeFrame, Start, Welcome, WorkerFrame, node_frame, worker_frame,
};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

use crate::probe::wire_call;

pub(crate) struct RawNode {
    pub(crate) address: String,
    links: mpsc::Receiver<RawLink>,
}

pub(crate) struct RawLink {
    say: mpsc::Sender<Result<NodeFrame, Status>>,
    heard: Streaming<WorkerFrame>,
    rest: VecDeque<WorkerFrame>,
}

struct Service(mpsc::Sender<RawLink>);

#[tonic::async_trait]
impl WorkerLink for Service {
    type LinkStream = ReceiverStream<Result<NodeFrame, Status>>;

    async fn link(
        &self,
        request: Request<Streaming<WorkerFrame>>,
    ) -> Result<Response<Self::LinkStream>, Status> {
        let (say, frames) = mpsc::channel(64);
        let link = RawLink {
            say,
            heard: request.into_inner(),
            rest: VecDeque::new(),
        };
        let _ = self.0.send(link).await;
        Ok(Response::new(ReceiverStream::new(frames)))
    }
}

impl RawNode {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (found, links) = mpsc::channel(4);
        let serving = Server::builder()
            .add_service(WorkerLinkServer::new(Service(found)))
            .serve_with_incoming(TcpIncoming::from(listener));
        tokio::spawn(serving);
        Self { address, links }
    }

    pub(crate) async fn link(&mut self) -> (RawLink, Hello) {
        let mut link = self.links.recv().await.unwrap();
        match link.hear().await {
            Some(worker_frame::Frame::Hello(hello)) => (link, hello),
            other => panic!("{other:?} is no hello"),
        }
    }

    pub(crate) async fn welcomed(&mut self, memory: u64) -> RawLink {
        self.limited(memory, Limits::default()).await
    }

    pub(crate) async fn limited(&mut self, memory: u64, limits: Limits) -> RawLink {
        let (link, _) = self.link().await;
        let welcome = Welcome {
            version: 3,
            node: "raw".to_owned(),
            memory,
            limits: Some(limits),
            ..Welcome::default()
        };
        link.say(node_frame::Frame::Welcome(welcome)).await;
        link
    }
}

impl RawLink {
    pub(crate) async fn say(&self, frame: node_frame::Frame) {
        let frame = NodeFrame { frame: Some(frame) };
        self.say.send(Ok(frame)).await.unwrap();
    }

    pub(crate) async fn start(&self, flight: u64, call: &shoal_ports::Call) {
        let call = Some(wire_call(call));
        self.say(node_frame::Frame::Start(Box::new(Start { flight, call })))
            .await;
    }

    pub(crate) async fn attach(&self, flight: u64, call: &shoal_ports::Call, after: u64) {
        let call = wire_call(call).id;
        let attach = Attach {
            flight,
            call,
            after,
            ..Attach::default()
        };
        self.say(node_frame::Frame::Attach(attach)).await;
    }

    pub(crate) async fn hear(&mut self) -> Option<worker_frame::Frame> {
        loop {
            let frame = match self.rest.pop_front() {
                Some(frame) => frame,
                None => self.heard.message().await.ok()??,
            };
            match frame.frame? {
                worker_frame::Frame::Batch(batch) => self.rest.extend(batch.frames),
                frame => return Some(frame),
            }
        }
    }

    pub(crate) async fn said(&mut self) -> Option<worker_frame::Frame> {
        use worker_frame::Frame::{Announce, Load, Ping, Pong};
        loop {
            match self.hear().await? {
                Announce(_) | Load(_) | Ping(_) | Pong(_) => {}
                frame => return Some(frame),
            }
        }
    }

    pub(crate) async fn so_far(&mut self) -> Vec<worker_frame::Frame> {
        use worker_frame::Frame::{Announce, Load, Pong};
        self.say(node_frame::Frame::Ping(Ping { nonce: 77 })).await;
        let mut said = Vec::new();
        loop {
            match self.hear().await.unwrap() {
                Announce(_) | Load(_) | worker_frame::Frame::Ping(_) => {}
                Pong(pong) if pong.nonce == 77 => return said,
                frame => said.push(frame),
            }
        }
    }
}
