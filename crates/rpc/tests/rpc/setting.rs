use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use shoal_ports::{ClusterSettings, NodeId, NodeInfo, Period, Worker, WorkerId, WorkerSet};
use shoal_rpc::{
    ClusterServer, GatewayLinks, Gateways, JoiningWorker, LinkConfig, WorkerJoin, WorkerLinks,
    serve_gateway, serve_workers,
};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::proxy::Proxy;
use crate::scripted_gateway::ScriptedGateway;
use crate::scripted_worker::ScriptedWorker;

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) async fn within<T>(test: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(PATIENCE, test).await;
    done.expect("the test did not end in time")
}

pub(crate) fn config() -> LinkConfig {
    LinkConfig {
        backoff: Duration::from_millis(5),
        backoff_max: Duration::from_millis(20),
        cluster: ClusterSettings {
            rejoin: PATIENCE.into(),
            silence: Period::seconds(40),
            ..ClusterSettings::default()
        },
        ..LinkConfig::default()
    }
}

#[derive(Clone, Default)]
pub(crate) struct Set(Arc<watch::Sender<HashMap<WorkerId, Arc<dyn Worker>>>>);

impl WorkerSet for Set {
    fn add(&self, worker: Arc<dyn Worker>) {
        let id = worker.announcement().borrow().worker.clone();
        self.0.send_modify(|set| {
            set.insert(id, worker);
        });
    }

    fn remove(&self, worker: &WorkerId) {
        self.0.send_modify(|set| {
            set.remove(worker);
        });
    }
}

impl Set {
    pub(crate) async fn worker(&self, id: &str) -> Arc<dyn Worker> {
        let id = WorkerId::new(id);
        let mut set = self.0.subscribe();
        let set = set.wait_for(|set| set.contains_key(&id)).await.unwrap();
        Arc::clone(&set[&id])
    }

    pub(crate) async fn gone(&self, id: &str) {
        let id = WorkerId::new(id);
        let mut set = self.0.subscribe();
        set.wait_for(|set| !set.contains_key(&id)).await.unwrap();
    }
}

pub(crate) struct Node {
    pub(crate) address: SocketAddr,
    pub(crate) set: Set,
    pub(crate) nodes: watch::Sender<Vec<NodeInfo>>,
    pub(crate) workers: WorkerLinks,
    pub(crate) links: GatewayLinks,
    pub(crate) local: Arc<ScriptedGateway>,
    pub(crate) routing: Arc<ScriptedGateway>,
    pub(crate) shutdown: CancellationToken,
}

impl Node {
    pub(crate) async fn start(config: LinkConfig) -> Self {
        let id = NodeId::new("node-1");
        let set = Set::default();
        let nodes = watch::Sender::new(vec![node_info("node-1")]);
        let (local, routing) = (
            ScriptedGateway::new("local"),
            ScriptedGateway::new("routing"),
        );
        let gateways = Gateways {
            local: local.clone(),
            routing: routing.clone(),
        };
        let workers = serve_workers(
            id.clone(),
            Arc::new(set.clone()),
            nodes.subscribe(),
            config.clone(),
        );
        let links = serve_gateway(id, gateways, config.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let server = ClusterServer {
            workers: Some(workers.clone()),
            gateway: Some(links.clone()),
            console: None,
            config,
        };
        let stopped = shutdown.clone().cancelled_owned();
        tokio::spawn(async move { server.serve(listener, stopped).await.unwrap() });
        Self {
            address,
            set,
            nodes,
            workers,
            links,
            local,
            routing,
            shutdown,
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

pub(crate) struct Pair {
    pub(crate) node: Node,
    pub(crate) proxy: Proxy,
    pub(crate) worker: Arc<ScriptedWorker>,
    pub(crate) joining: JoiningWorker,
    pub(crate) join: WorkerJoin,
    pub(crate) remote: Arc<dyn Worker>,
}

impl Pair {
    pub(crate) async fn new(worker: Arc<ScriptedWorker>) -> Self {
        Self::configured(worker, config(), config()).await
    }

    pub(crate) async fn configured(
        worker: Arc<ScriptedWorker>,
        node: LinkConfig,
        joined: LinkConfig,
    ) -> Self {
        let node = Node::start(node).await;
        let proxy = Proxy::start(node.address).await;
        let joining = JoiningWorker::new(worker.clone());
        let join = WorkerJoin::start(&joining, &proxy.address(), joined);
        let remote = node.set.worker(worker.id.as_str()).await;
        Self {
            node,
            proxy,
            worker,
            joining,
            join,
            remote,
        }
    }

    pub(crate) async fn connected(&self, connected: bool) {
        let mut state = self.join.state();
        state
            .wait_for(|state| state.connected == connected)
            .await
            .unwrap();
    }

    pub(crate) async fn seen(&self, up: bool) {
        until(|| self.node.workers.connected().is_empty() != up).await;
    }
}

pub(crate) async fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

pub(crate) fn node_info(id: &str) -> NodeInfo {
    NodeInfo {
        id: NodeId::new(id),
        address: format!("{id}.example:7000"),
        session: true,
        edge: true,
        draining: false,
        starting: false,
        pools: Vec::new(),
        sessions: 3,
        in_flight: 4,
        version: "0.1.0".to_owned(),
    }
}
