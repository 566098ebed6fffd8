//! A node: its parts, built in order and wired together.

mod gauges;
mod peer_check;
mod watch;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use shoal_cluster::{Fleet, Members, Peers, RoutedGateway, WorkerJoins};
use shoal_dispatch::Dispatch;
use shoal_edge::{Edge, EdgeService};
use shoal_policy::RulesInForce;
use shoal_ports::{Authenticator, ClusterBus, Inspector, NodeId, SessionGateway, StoreError};
use shoal_rpc::Tls;
use shoal_session::Sessions;
use shoal_telemetry::metrics::Registration;
use tokio_util::sync::DropGuard;
use tokio_util::task::AbortOnDropHandle;

pub(crate) use watch::Watch;

use crate::cluster::{self, ClusterListener};
use crate::config::{Role, Settings};
use crate::inspect::{self, LocalInspector};
use crate::policies;
use crate::pools::Pools;
use crate::program::PoolHandler;
use crate::reload::ConfigurationState;
use crate::roles;
use crate::scaled_pools::ScaledPools;
use crate::starting::Starting;
use crate::storage::{self, Storage};

/// A node whose parts run.
pub struct Node {
    pub(crate) settings: Settings,
    /// Those that run here.
    pub(crate) pools: Pools,
    pub(crate) configuration: Arc<ConfigurationState>,
    _changing: DropGuard,
    pub(crate) watch: Arc<Watch>,
    /// All nodes, as operators see them from here.
    pub(crate) fleet: Arc<Fleet>,
    /// What other processes reach, where they can.
    pub(crate) listener: Option<ClusterListener>,
    /// Keeps this process's workers linked to the other nodes.
    pub(crate) joins: Option<Arc<WorkerJoins>>,
    bus: Arc<dyn ClusterBus>,
    _counted: Vec<Registration>,
    /// The policy rules, where clients are served.
    pub(crate) rules: Option<Arc<RulesInForce>>,
    _rereading: Option<AbortOnDropHandle<()>>,
}

/// The legacy sessions as an edge reaches them, and what keeps this process among the nodes.
pub(crate) struct Membership {
    pub(crate) members: Members,
    pub(crate) gateway: RoutedGateway,
    /// Those of this process.
    pub(crate) sessions: Option<Sessions>,
    /// Whether no other process can hold sessions of this deployment.
    pub(crate) alone: bool,
}

impl Node {
    /// Builds the parts of the node `id`: store, dispatcher, workers, sessions, the links to other processes.
    /// `cluster` is where those are listened for, `tls` what is shown to them, and `handler` the server that the program brings. Waits for a store that is away or takes
    /// no writes, and says so in `starting`.
    ///
    /// # Errors
    /// When a part cannot be built from its settings.
    pub async fn build(
        settings: Settings,
        id: NodeId,
        cluster: Option<cluster::BoundCluster>,
        tls: Option<Tls>,
        starting: &Starting,
        handler: Option<PoolHandler>,
    ) -> anyhow::Result<Self> {
        let links = cluster::link_config(&settings, tls);
        let storage = Storage::open(&settings, starting).await?;
        let policies = policies::open(&settings)?;
        let rules = policies.rules.clone();
        let dispatch = roles::dispatch(&settings, policies.rules.clone())?;
        let rereading = policies.reread(&settings, &dispatch);
        let pools = Pools::start(&settings, &id, dispatch.clone(), handler).await?;
        let address = cluster.as_ref().map(|bound| bound.advertised(&settings));
        let membership = match settings.node.is(Role::Edge) || settings.node.is(Role::Session) {
            true => {
                let peers = cluster::peers(&id, links.clone());
                let starting = (&settings, starting);
                Some(join(starting, &id, address, &storage, &dispatch, peers).await?)
            }
            false => None,
        };
        let watch = Watch::new(
            &settings,
            id.clone(),
            dispatch,
            membership,
            &storage,
            &links,
        );
        let watch = Arc::new(watch);
        let configuration = Arc::new(ConfigurationState::new());
        watch.see_configuration(&configuration, &pools);
        tokio::spawn(inspect::sample(Arc::downgrade(&watch)));
        let inspector: Arc<dyn Inspector> = Arc::new(LocalInspector::new(watch.clone()));
        let membership = watch.membership.as_ref();
        let listener = match (cluster, membership) {
            (Some(bound), Some(membership)) => {
                let local = Arc::clone(&inspector);
                let links = links.clone();
                Some(bound.serve(&id, membership, &watch.dispatch, local, links)?)
            }
            _ => None,
        };
        let joins = cluster::joins(&settings, membership, &links).map(Arc::new);
        if let Some(joins) = &joins {
            pools.join(joins);
            watch.see_joins(joins);
        }
        let counted = gauges::observe(&watch, &configuration, &storage, links.tls.clone());
        let fleet = cluster::fleet(&id, inspector, &watch, links);
        Ok(Self {
            settings,
            _changing: pools.stop_with(),
            pools,
            configuration,
            watch,
            _counted: counted,
            rules,
            _rereading: rereading,
            fleet,
            listener,
            joins,
            bus: storage.store().bus,
        })
    }

    /// Where other processes reach this one.
    pub(crate) fn cluster_address(&self) -> Option<SocketAddr> {
        self.listener.as_ref().map(ClusterListener::address)
    }

    /// The edge's service for callers whom `authenticator` names; `None` without the role.
    pub fn edge(&self, authenticator: Arc<dyn Authenticator>) -> Option<EdgeService> {
        if !self.settings.node.is(Role::Edge) {
            return None;
        }
        let membership = self.watch.membership.as_ref()?;
        let edge = Edge {
            gateway: gateway(membership),
            dispatcher: Arc::new(self.watch.dispatch.clone()),
            bus: Arc::clone(&self.bus),
            authenticator,
            config: roles::edge_config(&self.settings),
            drain: self.watch.drain.clone(),
            load: self.watch.load.clone(),
            recorder: self.watch.recorder.clone(),
        };
        Some(edge.service_with(self.watch.quotas.clone()))
    }
}

/// Where all sessions are in this process, nobody has to look for their owner.
fn gateway(membership: &Membership) -> Arc<dyn SessionGateway> {
    match &membership.sessions {
        Some(sessions) if membership.alone => Arc::new(sessions.clone()),
        _ => Arc::new(membership.gateway.clone()),
    }
}

async fn join(
    (settings, starting): (&Settings, &Starting),
    id: &NodeId,
    address: Option<String>,
    storage: &Storage,
    dispatch: &Dispatch,
    peers: Arc<dyn Peers>,
) -> anyhow::Result<Membership> {
    let store = storage.store();
    let me = cluster::node_info(settings, id, address);
    let members = loop {
        let config = cluster::members_config(settings);
        match Members::join(config, me.clone(), &store, peers.clone()).await {
            Ok(members) => break members,
            // It answers, and cannot do its part: it loads, has no replica, has a former master's data.
            Err(error) if error.is_outage() || matches!(error, StoreError::Full(_)) => {
                starting.wait_for(storage::REDIS, &error.to_string()).await;
            }
            Err(error) => {
                return Err(error).context("cannot take the node's place in the cluster");
            }
        }
    };
    starting.go_on();
    let sessions = settings
        .node
        .is(Role::Session)
        .then(|| roles::sessions(settings, store.clone(), dispatch, id.clone()));
    if let Some(sessions) = &sessions {
        sessions.rely_on(members.liveness());
        members.guard(Arc::new(cluster::Owned::new(sessions.clone(), settings)));
        let sessions = sessions.clone();
        members.report_load(move || cluster::load_of(&sessions));
    }
    if !settings.node.store.is_memory() {
        let (here, waiting) = (dispatch.clone(), dispatch.clone());
        members.share_pools(
            move || cluster::pools_of(&here),
            move |elsewhere| {
                waiting.agree(&elsewhere.settled);
                waiting.expect(&elsewhere.known);
            },
        );
        let scaled = ScaledPools::recall(store.membership.clone(), dispatch.clone()).await;
        members.spawn(scaled.follow());
        let opening = cluster::open_when_ready(members.clone(), dispatch.clone());
        tokio::spawn(opening);
    }
    let gateway = cluster::routed(settings, &members, store.directory, sessions.as_ref());
    Ok(Membership {
        members,
        gateway,
        sessions,
        alone: settings.node.store.is_memory(),
    })
}

/// What a process is called that has these settings: the configured name with something that no other
/// process has.
pub fn node_id(settings: &Settings) -> NodeId {
    let random = uuid::Uuid::new_v4().simple().to_string();
    match &settings.node.name {
        Some(name) => NodeId::new(format!("{name}-{}", &random[..6])),
        None => NodeId::new(&random[..12]),
    }
}
