use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use shoal_cluster::{PeerGateways, Peers, Sight};
use shoal_ports::{
    AdoptCall, Delivered, EventStream, GatewayError, LazySender, NodeId, NodeInfo, OpenSession,
    Opened, Post, SessionGateway, SessionId, SessionRef, SessionTasks, StreamItem, StreamItems,
    TaskRequest, lazy_channel,
};
use shoal_protocol::task::Task;
use shoal_protocol::{EventId, RequestId};
use shoal_session::Sessions;
use tokio_util::sync::CancellationToken;

pub(crate) struct Links(pub(crate) HashMap<NodeId, Arc<Link>>);

/// When the link is cut, requests end with `Unreachable` and streams with `Moved`, as with any
/// transport.
pub(crate) struct Link {
    far: Sessions,
    cut: CancellationToken,
    swallows: AtomicBool,
}

#[async_trait]
impl Peers for Links {
    fn connect(&self, node: &NodeInfo) -> PeerGateways {
        let link = &self.0[&node.id];
        PeerGateways {
            own: link.clone(),
            relay: link.clone(),
        }
    }

    /// Reports no evidence, because a cut link says nothing about the node.
    async fn look_for(&self, _: &NodeInfo) -> Sight {
        Sight::Unknown
    }
}

impl Link {
    pub(crate) fn to(far: Sessions) -> Arc<Self> {
        Arc::new(Self {
            far,
            cut: CancellationToken::new(),
            swallows: AtomicBool::new(false),
        })
    }

    pub(crate) fn cut(&self) {
        self.cut.cancel();
    }

    /// Holds back answers until the link is cut.
    pub(crate) fn swallow_answers(&self) {
        self.swallows.store(true, Ordering::Relaxed);
    }

    async fn answer<T>(
        &self,
        answer: impl Future<Output = Result<T, GatewayError>>,
    ) -> Result<T, GatewayError> {
        tokio::select! {
            biased;
            () = self.cut.cancelled() => Err(GatewayError::Unreachable {
                reason: "the way is cut".to_owned(),
            }),
            answer = answer => answer,
        }
    }

    fn carry(&self, stream: EventStream) -> EventStream {
        let EventStream { items, cursor } = stream;
        let (near, carried) = lazy_channel(1);
        tokio::spawn(forward(items, near, self.cut.clone()));
        EventStream {
            items: carried.into(),
            cursor,
        }
    }
}

async fn forward(mut items: StreamItems, near: LazySender<StreamItem>, cut: CancellationToken) {
    loop {
        let item = tokio::select! {
            biased;
            () = cut.cancelled() => Some(StreamItem::Moved),
            () = near.closed() => None,
            item = items.recv() => item,
        };
        let Some(item) = item else { return };
        let is_last = matches!(item, StreamItem::Moved);
        if near.send(item).await.is_err() || is_last {
            return;
        }
    }
}

#[async_trait]
impl SessionGateway for Link {
    async fn open(&self, open: OpenSession) -> Result<Opened, GatewayError> {
        self.answer(self.far.open(open)).await
    }

    async fn deliver(&self, to: &SessionRef, post: Post) -> Result<Delivered, GatewayError> {
        let delivering = async {
            let delivered = self.far.deliver(to, post).await;
            if self.swallows.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
            delivered
        };
        Ok(match self.answer(delivering).await? {
            Delivered::Stream(stream) => Delivered::Stream(self.carry(stream)),
            answer => answer,
        })
    }

    async fn listen(
        &self,
        to: &SessionRef,
        cursor: Option<EventId>,
    ) -> Result<EventStream, GatewayError> {
        let stream = self.answer(self.far.listen(to, cursor)).await?;
        Ok(self.carry(stream))
    }

    async fn close(&self, to: &SessionRef) -> Result<(), GatewayError> {
        self.answer(self.far.close(to)).await
    }

    fn new_task(&self) -> Result<SessionId, GatewayError> {
        self.far.new_task()
    }

    async fn adopt(&self, to: &SessionRef, call: AdoptCall) -> Result<Task, GatewayError> {
        self.answer(self.far.adopt(to, call)).await
    }

    async fn ask_task(&self, to: &SessionRef, request: TaskRequest) -> Result<Task, GatewayError> {
        self.answer(self.far.ask_task(to, request)).await
    }

    async fn until_over(
        &self,
        to: &SessionRef,
        requests: Option<&[RequestId]>,
    ) -> Result<(), GatewayError> {
        self.answer(self.far.until_over(to, requests)).await
    }

    async fn tasks_of(&self, session: &SessionRef) -> Result<Option<SessionTasks>, GatewayError> {
        self.answer(self.far.tasks_of(session)).await
    }
}
