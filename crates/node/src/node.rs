//! Builds and wires the parts of a node.

mod gauges;
mod membership;
mod peer_check;
mod watch;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use shoal_cluster::{Fleet, Members, Peers, WorkerJoins};
use shoal_dispatch::Dispatch;
use shoal_edge::{Edge, EdgeService};
use shoal_policy::RulesInForce;
use shoal_ports::{Authenticator, Inspector, NodeId, SessionGateway, StoreError};
use shoal_rpc::Tls;
use shoal_telemetry::metrics::Registration;
use tokio_util::sync::DropGuard;
use tokio_util::task::AbortOnDropHandle;

pub use crate::node_id::node_id;
pub(crate) use membership::ClusterMembership;
pub(crate) use watch::NodeWatch;

use crate::cluster::{self, ClusterListener};
use crate::config::{Role, Settings};
use crate::inspect::{self, LocalInspector};
use crate::pool_handler::PoolHandler;
use crate::pools::Pools;
use crate::reload::ConfigurationState;
use crate::scaled_pools::ScaledPools;
use crate::starting::Starting;
use crate::storage::{self, Storage};
use crate::{policies, roles};

/// A running node.
pub struct Node {
    pub(crate) settings: Settings,
    pub(crate) pools: Pools,
    pub(crate) configuration: Arc<ConfigurationState>,
    _changing: DropGuard,
    pub(crate) watch: Arc<NodeWatch>,
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) listener: Option<ClusterListener>,
    pub(crate) joins: Option<Arc<WorkerJoins>>,
    _counted: Vec<Registration>,
    pub(crate) rules: Option<Arc<RulesInForce>>,
    _rereading: Option<AbortOnDropHandle<()>>,
}

impl Node {
    /// Builds the parts of the node `id`. `cluster` is the listener for other processes, `tls` secures the links,
    /// `handler` is the embedded server. Waits while the store is unavailable or read-only, and reports that in
    /// `starting`.
    ///
    /// # Errors
    /// If a part cannot be built from its settings.
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
        let watch = NodeWatch::new(
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
        })
    }

    pub(crate) fn cluster_address(&self) -> Option<SocketAddr> {
        self.listener.as_ref().map(ClusterListener::address)
    }

    /// `None` without the edge role. `authenticator` identifies callers.
    pub fn edge(&self, authenticator: Arc<dyn Authenticator>) -> Option<EdgeService> {
        if !self.settings.node.is(Role::Edge) {
            return None;
        }
        let membership = self.watch.membership.as_ref()?;
        let edge = Edge {
            gateway: gateway(membership),
            dispatcher: Arc::new(self.watch.dispatch.clone()),
            authenticator,
            config: roles::edge_config(&self.settings),
            drain: self.watch.drain.clone(),
            load: self.watch.load.clone(),
            recorder: self.watch.recorder.clone(),
        };
        Some(edge.service_with(self.watch.quotas.clone()))
    }
}

/// If there are no other processes, the edge calls this process's sessions without looking for their owner.
fn gateway(membership: &ClusterMembership) -> Arc<dyn SessionGateway> {
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
) -> anyhow::Result<ClusterMembership> {
    let store = storage.store();
    let me = cluster::node_info(settings, id, address);
    let members = loop {
        let config = cluster::members_config(settings);
        match Members::join(config, me.clone(), &store, peers.clone()).await {
            Ok(members) => break members,
            // Redis may recover: it may be loading, full or without a replica, or may have a former master's data.
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
        members.guard(Arc::new(cluster::OwnedSessions::new(
            sessions.clone(),
            settings,
        )));
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
    Ok(ClusterMembership {
        members,
        gateway,
        sessions,
        alone: settings.node.store.is_memory(),
    })
}
