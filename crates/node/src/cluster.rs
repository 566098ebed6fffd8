//! This process in the cluster: its listener, links and node information.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use shoal_cluster::{
    Fleet, JoinConfig, Members, MembersConfig, NodeLoad, Ownership, Peers, PoolsHere,
    RoutedGateway, RoutingConfig, RpcPeers, WorkerJoins,
};
use shoal_dispatch::Dispatch;
use shoal_ports::{Inspector, NodeId, NodeInfo, SessionGateway, StoreError};
use shoal_rpc::{
    ClusterServer, Gateways, LinkConfig, Tls, serve_gateway, serve_inspector, serve_workers,
};
use shoal_session::Sessions;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::config::{Role, Settings};
use crate::node::{ClusterMembership, NodeWatch};

const LAST_WORDS: Duration = Duration::from_secs(1);

/// A bound listener that does not serve yet.
#[derive(Debug)]
pub struct BoundCluster {
    listener: std::net::TcpListener,
    address: SocketAddr,
}

pub(crate) struct ClusterListener {
    address: SocketAddr,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

impl BoundCluster {
    /// Binds an address; port 0 takes a free port.
    ///
    /// # Errors
    /// The operating system's error, with the setting's name.
    pub fn bind(address: SocketAddr) -> anyhow::Result<Self> {
        let bind = || -> io::Result<Self> {
            let listener = std::net::TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            Ok(Self { listener, address })
        };
        bind().map_err(|error| {
            anyhow::Error::new(error)
                .context(format!("cannot listen on {address} (cluster.listen)"))
        })
    }

    pub(crate) fn advertised(&self, settings: &Settings) -> String {
        let advertised = settings.cluster.advertise.clone();
        advertised.unwrap_or_else(|| self.address.to_string())
    }

    pub(crate) fn serve(
        self,
        id: &NodeId,
        membership: &ClusterMembership,
        dispatch: &Dispatch,
        inspector: Arc<dyn Inspector>,
        config: LinkConfig,
    ) -> anyhow::Result<ClusterListener> {
        let nodes = membership.members.announced();
        let set = Arc::new(dispatch.clone());
        let workers = serve_workers(id.clone(), set, nodes, config.clone());
        let gateway = membership.sessions.as_ref().map(|sessions| {
            let gateways = Gateways {
                local: Arc::new(sessions.clone()),
                routing: membership.gateway.relay(),
            };
            serve_gateway(id.clone(), gateways, config.clone())
        });
        let server = ClusterServer {
            workers: Some(workers),
            gateway,
            console: Some(serve_inspector(id.clone(), inspector)),
            config,
        };
        let listener = TcpListener::from_std(self.listener)?;
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        let serving = tokio::spawn(async move {
            if let Err(error) = server.serve(listener, stopped).await {
                tracing::error!(%error, "other processes cannot reach this one any more");
            }
        });
        Ok(ClusterListener {
            address: self.address,
            stop,
            serving,
        })
    }
}

impl ClusterListener {
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) async fn close(self) {
        self.stop.cancel();
        if timeout(LAST_WORDS, self.serving).await.is_err() {
            tracing::debug!("some links did not end in time");
        }
    }
}

pub(crate) fn fleet(
    id: &NodeId,
    inspector: Arc<dyn Inspector>,
    watch: &NodeWatch,
    config: LinkConfig,
) -> Arc<Fleet> {
    let membership = watch.membership.as_ref();
    let members = membership.map(|membership| membership.members.clone());
    let history = watch.history.clone();
    let fleet = Arc::new(Fleet::new(id.clone(), inspector, members, history, config));
    if watch.shared_membership().is_some() {
        tokio::spawn(Fleet::follow(Arc::downgrade(&fleet)));
    }
    fleet
}

pub(crate) fn joins(
    settings: &Settings,
    membership: Option<&ClusterMembership>,
    links: &LinkConfig,
) -> Option<WorkerJoins> {
    let alone = membership.is_some_and(|membership| membership.alone);
    if alone || !settings.node.is(Role::Worker) {
        return None;
    }
    let config = JoinConfig {
        cluster: settings.cluster.clone(),
        ..JoinConfig::default()
    };
    let members = membership.map(|membership| membership.members.clone());
    Some(WorkerJoins::new(config, links.clone(), members))
}

pub(crate) fn node_info(settings: &Settings, id: &NodeId, address: Option<String>) -> NodeInfo {
    NodeInfo {
        id: id.clone(),
        address: address.unwrap_or_default(),
        session: settings.node.is(Role::Session),
        edge: settings.node.is(Role::Edge),
        // With Redis, the node drains until it knows the pools' tools.
        draining: !settings.node.store.is_memory(),
        starting: !settings.node.store.is_memory(),
        pools: Vec::new(),
        sessions: 0,
        in_flight: 0,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

pub(crate) fn members_config(settings: &Settings) -> MembersConfig {
    let lease = settings.node.lease.get();
    MembersConfig {
        lease,
        keep_missing: lease,
        ..MembersConfig::default()
    }
}

pub(crate) fn peers(id: &NodeId, links: LinkConfig) -> Arc<dyn Peers> {
    Arc::new(RpcPeers::new(id.clone(), links))
}

pub(crate) fn routed(
    settings: &Settings,
    members: &Members,
    directory: Arc<dyn shoal_ports::Directory>,
    sessions: Option<&Sessions>,
) -> RoutedGateway {
    let idle = settings.session.idle.get();
    let usual = RoutingConfig::default();
    let config = RoutingConfig {
        cached_for: usual.cached_for.min(idle),
        cached_idle: idle,
        cluster: settings.cluster.clone(),
        calls: settings.calls.clone(),
        lookup_within: settings.redis.response_timeout.get(),
        ..usual
    };
    let local = sessions.map(|sessions| Arc::new(sessions.clone()) as Arc<dyn SessionGateway>);
    RoutedGateway::new(config, members.clone(), directory, local)
}

pub(crate) fn link_config(settings: &Settings, tls: Option<Tls>) -> LinkConfig {
    LinkConfig {
        cluster: settings.cluster.clone(),
        max_frame: LinkConfig::default()
            .max_frame
            .max(settings.limits.body_bytes * 2),
        tls,
        ..LinkConfig::default()
    }
}

pub(crate) struct OwnedSessions {
    sessions: Sessions,
    lease: Duration,
}

impl OwnedSessions {
    pub(crate) fn new(sessions: Sessions, settings: &Settings) -> Self {
        let lease = settings.node.lease.get();
        Self { sessions, lease }
    }
}

#[async_trait]
impl Ownership for OwnedSessions {
    /// Checks twice, a lease apart, because another node that read this node's lease before its renewal may still claim
    /// sessions after the first check.
    async fn revalidate(&self) -> Result<(), StoreError> {
        self.sessions.revalidate().await?;
        sleep(self.lease).await;
        self.sessions.revalidate().await
    }
}

/// Lets this node take sessions once it knows the tools, because a moved session must find the same tools here.
pub(crate) async fn open_when_ready(members: Members, dispatch: Dispatch) {
    let began = Instant::now();
    dispatch.settled().await;
    if dispatch.known_pools().is_empty() {
        tracing::warn!("taking sessions although no worker has joined");
    }
    tracing::info!(after = ?began.elapsed(), "taking sessions");
    members.open().await;
}

pub(crate) fn pools_of(dispatch: &Dispatch) -> PoolsHere {
    PoolsHere {
        known: dispatch.known_pools(),
        is_whole: dispatch.is_whole(),
        contested: dispatch.contested(),
    }
}

pub(crate) fn load_of(sessions: &Sessions) -> NodeLoad {
    let status = sessions.status();
    let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    NodeLoad {
        sessions: count(status.live + status.passive),
        in_flight: count(status.in_flight),
    }
}
