mod link;
mod log;
mod node;
mod store;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use shoal_cluster::{Members, MembersConfig, RoutedGateway, RoutingConfig};
use shoal_ports::memory::MemoryStore;
use shoal_ports::{
    Delivered, GatewayError, NewSession, NodeId, NodeInfo, Post, Principal, Repeat,
    SessionGateway as _, SessionId, SessionRef, Store, StreamSettings,
};
use shoal_protocol::Body;

pub(crate) use self::link::ScriptedPeers;
pub(crate) use self::node::{Death, Reply, ScriptedNode};
pub(crate) use self::store::StoreAccess;

pub(crate) const LEASE: Duration = Duration::from_secs(6);
const DAY: Duration = Duration::from_secs(86_400);

pub(crate) fn waiting(patience: Duration) -> RoutingConfig {
    let mut config = RoutingConfig::default();
    config.cluster.patience = patience.into();
    config
}

#[derive(Clone)]
pub(crate) struct TestCluster {
    pub(crate) store: Store,
    nodes: Arc<Mutex<Vec<Arc<ScriptedNode>>>>,
    cut: Arc<Mutex<HashSet<(NodeId, NodeId)>>>,
    refused: Arc<Mutex<HashSet<(NodeId, NodeId)>>>,
    looks: Arc<AtomicUsize>,
    pub(crate) log: log::Log,
    config: RoutingConfig,
}

#[derive(Clone)]
pub(crate) struct TestNode {
    pub(crate) members: Members,
    pub(crate) routed: RoutedGateway,
    pub(crate) access: Arc<StoreAccess>,
}

impl TestCluster {
    pub(crate) fn new() -> Self {
        Self::with(RoutingConfig::default())
    }

    pub(crate) fn with(config: RoutingConfig) -> Self {
        Self {
            store: MemoryStore::new(StreamSettings::default()).into_store(),
            nodes: Arc::default(),
            cut: Arc::default(),
            refused: Arc::default(),
            looks: Arc::default(),
            log: log::Log::default(),
            config,
        }
    }

    pub(crate) async fn edge(&self, id: &str) -> TestNode {
        self.join(id, None).await
    }

    pub(crate) async fn node(&self, id: &str) -> Arc<ScriptedNode> {
        let node = ScriptedNode::new(NodeId::new(id), self.store.clone(), self.log.clone());
        let joined = self.join(id, Some(node.clone())).await;
        node.has_joined(joined);
        self.nodes.lock().push(node.clone());
        node
    }

    async fn join(&self, id: &str, local: Option<Arc<ScriptedNode>>) -> TestNode {
        let access = Arc::new(StoreAccess::new(self.store.clone()));
        let info = info(id, local.is_some());
        let peers = ScriptedPeers {
            from: info.id.clone(),
            cluster: self.clone(),
        };
        let config = MembersConfig {
            lease: LEASE,
            ..MembersConfig::default()
        };
        let store = access.clone().store();
        let members = Members::join(config, info, &store, Arc::new(peers))
            .await
            .unwrap();
        let local = local.map(|local| local as Arc<dyn shoal_ports::SessionGateway>);
        let routed =
            RoutedGateway::new(self.config.clone(), members.clone(), store.directory, local);
        TestNode {
            members,
            routed,
            access,
        }
    }

    pub(crate) fn find(&self, id: &NodeId) -> Option<Arc<ScriptedNode>> {
        let nodes = self.nodes.lock();
        nodes.iter().find(|node| node.id == *id).cloned()
    }

    pub(crate) async fn session(&self, owner: &ScriptedNode) -> SessionRef {
        self.session_called(SessionId::random(), owner).await
    }

    pub(crate) async fn session_called(
        &self,
        session: SessionId,
        owner: &ScriptedNode,
    ) -> SessionRef {
        let principal = Principal::anonymous();
        let new = NewSession {
            session: session.clone(),
            principal: principal.clone(),
            owner: owner.id.clone(),
            record: Bytes::new(),
            idle: DAY,
        };
        self.store.directory.create(new).await.unwrap();
        SessionRef::new(session, principal)
    }

    pub(crate) fn cut(&self, one: &str, other: &str) {
        let (one, other) = (NodeId::new(one), NodeId::new(other));
        self.cut.lock().insert((one.clone(), other.clone()));
        self.cut.lock().insert((other, one));
    }

    pub(crate) fn refuse(&self, from: &str, to: &str) {
        let way = (NodeId::new(from), NodeId::new(to));
        self.refused.lock().insert(way);
    }

    pub(crate) fn mend(&self) {
        self.cut.lock().clear();
        self.refused.lock().clear();
    }

    fn is_refused(&self, from: &NodeId, to: &NodeId) -> bool {
        self.refused.lock().contains(&(from.clone(), to.clone()))
    }

    fn count_look(&self) {
        self.looks.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn looks(&self) -> usize {
        self.looks.load(Ordering::SeqCst)
    }

    fn is_cut(&self, from: &NodeId, to: &NodeId) -> bool {
        self.cut.lock().contains(&(from.clone(), to.clone()))
    }

    pub(crate) async fn owner(&self, to: &SessionRef) -> Option<NodeId> {
        let placement = self.store.directory.lookup(&to.session).await.unwrap();
        placement.and_then(|placement| placement.owner)
    }
}

impl TestNode {
    pub(crate) async fn answer(&self, to: &SessionRef) -> Result<String, GatewayError> {
        match self.routed.deliver(to, post()).await? {
            Delivered::Json(text) => Ok(String::from_utf8(text.to_vec()).unwrap()),
            other => panic!("expected JSON, got {other:?}"),
        }
    }

    pub(crate) async fn sees(&self, count: usize) {
        let mut views = self.members.watch();
        let seen =
            views.wait_for(|view| view.nodes().filter(|node| node.is_present()).count() == count);
        seen.await.unwrap();
    }
}

pub(crate) fn info(id: &str, session: bool) -> NodeInfo {
    NodeInfo {
        id: NodeId::new(id),
        address: format!("{id}:7000"),
        session,
        edge: !session,
        draining: false,
        starting: false,
        pools: Vec::new(),
        sessions: 0,
        in_flight: 0,
        version: "1".to_owned(),
    }
}

pub(crate) fn post() -> Post {
    let text = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    Post::new(Body::parse(&Bytes::from_static(text), 8).unwrap())
}

pub(crate) fn calling(repeat: Repeat) -> Post {
    let text = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#;
    Post {
        repeat,
        ..Post::new(Body::parse(&Bytes::from_static(text), 8).unwrap())
    }
}
