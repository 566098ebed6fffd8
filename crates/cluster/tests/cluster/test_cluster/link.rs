use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use shoal_cluster::{PeerGateways, Peers, Sight};
use shoal_ports::{
    AdoptCall, Delivered, EventStream, GatewayError, NodeId, NodeInfo, OpenSession, Opened, Post,
    SessionGateway, SessionId, SessionRef, SessionTasks, TaskRequest,
};
use shoal_protocol::task::Task;
use shoal_protocol::{EventId, RequestId};

use super::node::Death;
use super::{ScriptedNode, TestCluster};

const DIALLED_FOR: Duration = Duration::from_secs(3);
const LOOKED_FOR: Duration = Duration::from_millis(250);

pub(crate) struct ScriptedPeers {
    pub(super) from: NodeId,
    pub(super) cluster: TestCluster,
}

struct Link {
    from: NodeId,
    to: NodeId,
    relay: bool,
    cluster: TestCluster,
}

#[async_trait]
impl Peers for ScriptedPeers {
    fn connect(&self, node: &NodeInfo) -> PeerGateways {
        let link = |relay| {
            Arc::new(Link {
                from: self.from.clone(),
                to: node.id.clone(),
                relay,
                cluster: self.cluster.clone(),
            })
        };
        PeerGateways {
            own: link(false),
            relay: link(true),
        }
    }

    async fn look_for(&self, node: &NodeInfo) -> Sight {
        self.cluster.count_look();
        if self.cluster.is_cut(&self.from, &node.id) {
            return Sight::Unknown;
        }
        if self.cluster.is_refused(&self.from, &node.id) {
            return Sight::Gone;
        }
        let there = self.cluster.find(&node.id);
        match there.as_ref().and_then(|there| there.death()) {
            Some(Death::Killed) => Sight::Gone,
            Some(Death::Silent) => {
                tokio::time::sleep(LOOKED_FOR).await;
                Sight::Unknown
            }
            Some(Death::Unrouted) => Sight::Unknown,
            None => Sight::There,
        }
    }
}

fn broken(why: &str) -> GatewayError {
    GatewayError::Unreachable {
        reason: why.to_owned(),
    }
}

impl Link {
    async fn far(&self) -> Result<(Arc<ScriptedNode>, Arc<dyn SessionGateway>), GatewayError> {
        if self.cluster.is_cut(&self.from, &self.to) {
            return Err(broken("the network is cut"));
        }
        if self.cluster.is_refused(&self.from, &self.to) {
            return Err(broken("connection refused"));
        }
        let node = self
            .cluster
            .find(&self.to)
            .ok_or_else(|| broken("unknown"))?;
        match node.death() {
            Some(Death::Silent) => {
                tokio::time::sleep(DIALLED_FOR).await;
                return Err(broken("nothing was heard"));
            }
            Some(Death::Killed) => return Err(broken("connection refused")),
            Some(Death::Unrouted) => return Err(broken("no route to host")),
            None => {}
        }
        let gateway: Arc<dyn SessionGateway> = if self.relay {
            node.joined().routed.relay()
        } else {
            node.clone()
        };
        Ok((node, gateway))
    }

    async fn answer<T>(
        node: &ScriptedNode,
        answer: impl Future<Output = Result<T, GatewayError>>,
    ) -> Result<T, GatewayError> {
        tokio::select! {
            biased;
            () = node.dies() => Err(broken("connection reset")),
            answer = answer => answer,
        }
    }
}

#[async_trait]
impl SessionGateway for Link {
    async fn open(&self, open: OpenSession) -> Result<Opened, GatewayError> {
        let (node, gateway) = self.far().await?;
        Self::answer(&node, gateway.open(open)).await
    }

    async fn deliver(&self, to: &SessionRef, post: Post) -> Result<Delivered, GatewayError> {
        let (node, gateway) = self.far().await?;
        Self::answer(&node, gateway.deliver(to, post)).await
    }

    async fn listen(
        &self,
        to: &SessionRef,
        cursor: Option<EventId>,
    ) -> Result<EventStream, GatewayError> {
        let (node, gateway) = self.far().await?;
        Self::answer(&node, gateway.listen(to, cursor)).await
    }

    async fn close(&self, to: &SessionRef) -> Result<(), GatewayError> {
        let (node, gateway) = self.far().await?;
        Self::answer(&node, gateway.close(to)).await
    }

    fn new_task(&self) -> Result<SessionId, GatewayError> {
        Ok(SessionId::of_task_opened_by(&self.to))
    }

    async fn adopt(&self, to: &SessionRef, call: AdoptCall) -> Result<Task, GatewayError> {
        let (node, gateway) = self.far().await?;
        Self::answer(&node, gateway.adopt(to, call)).await
    }

    async fn ask_task(&self, to: &SessionRef, request: TaskRequest) -> Result<Task, GatewayError> {
        let (node, gateway) = self.far().await?;
        Self::answer(&node, gateway.ask_task(to, request)).await
    }

    async fn until_over(
        &self,
        to: &SessionRef,
        requests: Option<&[RequestId]>,
    ) -> Result<(), GatewayError> {
        let (node, gateway) = self.far().await?;
        Self::answer(&node, gateway.until_over(to, requests)).await
    }

    async fn tasks_of(&self, session: &SessionRef) -> Result<Option<SessionTasks>, GatewayError> {
        let (node, gateway) = self.far().await?;
        Self::answer(&node, gateway.tasks_of(session)).await
    }
}
