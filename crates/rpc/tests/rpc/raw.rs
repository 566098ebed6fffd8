use shoal_rpc::proto::types::v1::{Limits, Versions};
use shoal_rpc::proto::worker::v1::worker_frame::Frame;
use shoal_rpc::proto::worker::v1::worker_link_client::WorkerLinkClient;
use shoal_rpc::proto::worker::v1::worker_link_server::WorkerLink;
use shoal_rpc::proto::worker::v1::{Announce, Catalog, Hello, NodeFrame, WorkerFrame, node_frame};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Endpoint;
use tonic::{Request, Response, Status, Streaming};

use crate::setting::Node;

pub(crate) fn frame(frame: Frame) -> WorkerFrame {
    WorkerFrame { frame: Some(frame) }
}

pub(crate) fn hello(lowest: u32, highest: u32) -> WorkerFrame {
    frame(Frame::Hello(Hello {
        versions: Some(Versions { lowest, highest }),
        worker: "raw".to_owned(),
        incarnation: 1,
        limits: Some(Limits::default()),
        ..Hello::default()
    }))
}

pub(crate) fn announce() -> WorkerFrame {
    frame(Frame::Announce(Announce {
        pool: "tools".to_owned(),
        catalog: Some(Catalog::default()),
        ..Announce::default()
    }))
}

pub(crate) struct Raw {
    pub(crate) send: mpsc::Sender<WorkerFrame>,
    heard: Streaming<NodeFrame>,
}

impl Raw {
    pub(crate) async fn dial(node: &Node, first: WorkerFrame) -> Result<Self, Status> {
        let (send, frames) = mpsc::channel(16);
        send.send(first).await.unwrap();
        let address = format!("http://{}", node.address);
        let channel = Endpoint::from_shared(address)
            .unwrap()
            .connect()
            .await
            .unwrap();
        let mut client = WorkerLinkClient::new(channel);
        let heard = client.link(ReceiverStream::new(frames)).await?;
        Ok(Self {
            send,
            heard: heard.into_inner(),
        })
    }

    pub(crate) async fn hear(&mut self) -> Option<node_frame::Frame> {
        self.heard.message().await.ok()??.frame
    }

    pub(crate) async fn bye(self) -> Option<node_frame::Frame> {
        let Self { send, mut heard } = self;
        drop(send);
        heard.message().await.ok()??.frame
    }

    pub(crate) async fn reason(mut self) -> String {
        loop {
            match self.hear().await.expect("the link ended without a reason") {
                node_frame::Frame::Close(close) => return close.reason,
                node_frame::Frame::Batch(batch) => {
                    for frame in batch.frames {
                        if let Some(node_frame::Frame::Close(close)) = frame.frame {
                            return close.reason;
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

pub(crate) struct RawNode(pub(crate) Vec<node_frame::Frame>);

#[tonic::async_trait]
impl WorkerLink for RawNode {
    type LinkStream = ReceiverStream<Result<NodeFrame, Status>>;

    async fn link(
        &self,
        _: Request<Streaming<WorkerFrame>>,
    ) -> Result<Response<Self::LinkStream>, Status> {
        let (send, frames) = mpsc::channel(16);
        for frame in self.0.clone() {
            let frame = NodeFrame { frame: Some(frame) };
            send.send(Ok(frame)).await.unwrap();
        }
        tokio::spawn(async move { send.closed().await });
        Ok(Response::new(ReceiverStream::new(frames)))
    }
}
