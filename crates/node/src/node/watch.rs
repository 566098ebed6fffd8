use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use shoal_auth::{IssuerReport, OAuth};
use shoal_cluster::{History, WorkerJoins};
use shoal_dispatch::{Dispatch, Status};
use shoal_edge::{Load, Quotas, Recorder};
use shoal_ports::{NodeId, NodeInfo, NodeReport};
use shoal_rpc::LinkConfig;
use shoal_session::SessionsStatus;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::ClusterMembership;
use super::peer_check::{PeerCheck, PeerVerdict};
use crate::admin::{EdgeReport, Observed, Readiness, StatusReport, StoreHealth};
use crate::config::{Role, Settings};
use crate::pools::Pools;
use crate::reload::{ConfigurationReport, ConfigurationState};
use crate::storage::Storage;

/// How long a starting worker stays unready while it is not linked to every node. A node that is still missing after
/// this time may be dead.
const JOINED_WITHIN: Duration = Duration::from_secs(10);

pub(crate) struct NodeWatch {
    pub(crate) load: Load,
    pub(crate) recorder: Recorder,
    pub(crate) quotas: Quotas,
    pub(crate) history: History,
    pub(crate) drain: CancellationToken,
    pub(crate) dispatch: Dispatch,
    pub(crate) membership: Option<ClusterMembership>,
    roles: Vec<Role>,
    discovers: bool,
    leaving: AtomicBool,
    served: AtomicBool,
    joins: OnceLock<Weak<WorkerJoins>>,
    oauth: OnceLock<Weak<OAuth>>,
    configuration: OnceLock<(Weak<ConfigurationState>, Pools)>,
    storage: Storage,
    peers: Option<Arc<PeerCheck>>,
    node: NodeId,
    started: Instant,
}

impl NodeWatch {
    pub(super) fn new(
        settings: &Settings,
        node: NodeId,
        dispatch: Dispatch,
        membership: Option<ClusterMembership>,
        storage: &Storage,
        links: &LinkConfig,
    ) -> Self {
        let shared = membership.as_ref().filter(|membership| !membership.alone);
        let members = shared.map(|membership| membership.members.clone());
        let peers = PeerCheck::new(links, members).map(Arc::new);
        if let Some(peers) = &peers {
            tokio::spawn(PeerCheck::follow(Arc::downgrade(peers)));
        }
        Self {
            load: Load::default(),
            recorder: Recorder::default(),
            quotas: quotas(settings, storage, membership.as_ref()),
            history: History::default(),
            drain: CancellationToken::new(),
            dispatch,
            membership,
            roles: settings.node.roles.clone(),
            discovers: settings.discovery.file.is_some(),
            leaving: AtomicBool::new(false),
            served: AtomicBool::new(false),
            joins: OnceLock::new(),
            oauth: OnceLock::new(),
            configuration: OnceLock::new(),
            storage: storage.clone(),
            peers,
            node,
            started: Instant::now(),
        }
    }

    pub(super) fn see_joins(&self, joins: &Arc<WorkerJoins>) {
        let _ = self.joins.set(Arc::downgrade(joins));
        if let Some(peers) = &self.peers {
            peers.see_joins(Arc::downgrade(joins));
        }
    }

    pub(super) fn see_configuration(&self, known: &Arc<ConfigurationState>, pools: &Pools) {
        let _ = (self.configuration).set((Arc::downgrade(known), pools.clone()));
    }

    fn configuration(&self) -> ConfigurationReport {
        let known = self.configuration.get().and_then(|(known, pools)| {
            let known = known.upgrade()?;
            Some(known.report(pools.waiting()))
        });
        known.unwrap_or_default()
    }

    /// Also returns whether the configuration has no other pools.
    fn discovered(&self) -> (BTreeSet<String>, bool) {
        let known = self.configuration.get();
        let known = known.and_then(|(known, pools)| Some((known.upgrade()?.discovered(), pools)));
        let Some((discovered, pools)) = known.filter(|_| self.discovers) else {
            return (BTreeSet::new(), false);
        };
        let empty = pools.wants_only(&discovered);
        (discovered, empty)
    }

    pub(crate) fn see_oauth(&self, oauth: &Arc<OAuth>) {
        let _ = self.oauth.set(Arc::downgrade(oauth));
    }

    fn issuers(&self) -> Option<Vec<IssuerReport>> {
        Some(self.oauth.get()?.upgrade()?.report())
    }

    pub(crate) fn roles(&self) -> &[Role] {
        &self.roles
    }

    pub(crate) fn leave(&self) {
        self.leaving.store(true, Ordering::Relaxed);
    }

    pub(crate) fn unanswered(&self) -> usize {
        // The edge and the session both count a legacy request, so the sum would be wrong. If the client's connection
        // is gone, only the session counts the request.
        let in_flight = self.sessions().map_or(0, |sessions| sessions.in_flight);
        self.load.requests_in_flight().max(in_flight)
    }

    pub(crate) fn busy(&self) -> Vec<String> {
        let status: Status = self.dispatch.status();
        status
            .pools
            .iter()
            .filter_map(|pool| {
                let running: usize = pool.workers.iter().map(|worker| worker.running).sum();
                let queued: usize = pool.workers.iter().map(|worker| worker.queued).sum();
                (running + queued > 0)
                    .then(|| format!("pool {}: {running} running, {queued} waiting", pool.name))
            })
            .collect()
    }

    /// `None` without other nodes, and for a process that only has workers.
    pub(crate) fn shared_membership(&self) -> Option<&ClusterMembership> {
        let membership = self.membership.as_ref()?;
        (!membership.alone).then_some(membership)
    }

    fn sees_sessions(&self) -> bool {
        self.membership.as_ref().is_none_or(|membership| {
            let view = membership.members.view();
            let takes = |info: &NodeInfo| info.session && !info.draining;
            view.nodes().any(|node| takes(node.info()))
        })
    }

    pub(crate) fn wants(&self) -> Readiness {
        let leaving = self.leaving.load(Ordering::Relaxed);
        let mut wants = {
            let (discovered, empty) = self.discovered();
            Readiness::of(leaving, self.dispatch.status(), &discovered, empty)
        };
        if !self.sees_sessions() {
            wants.wait_for("no node takes sessions yet");
        }
        if !leaving && !self.is_open() {
            wants.wait_for("the tools of all pools may not be known yet");
        }
        match self.joins.get().and_then(Weak::upgrade) {
            Some(joins) if !leaving => match joins.is_complete() {
                // The workers of a node with another role serve that node without a link.
                None if self.membership.is_some() => {}
                None => wants.wait_for("a worker is linked to no node"),
                Some(false) if self.started.elapsed() < JOINED_WITHIN && !self.has_served() => {
                    wants.wait_for("a worker is not linked to every node yet");
                }
                Some(_) => {}
            },
            _ => {}
        }
        if let Some(oauth) = self.oauth.get().and_then(Weak::upgrade) {
            match oauth.waits_for() {
                Some(why) if !leaving => wants.wait_for(&why),
                _ => {}
            }
            if let Some(away) = oauth.trouble() {
                wants.note(away);
            }
        }
        wants.see_store(self.store());
        if let Some(away) = self.quotas.trouble() {
            wants.note(away);
        }
        self.see_peers(&mut wants);
        wants
    }

    /// A node that TLS cuts off from all others becomes unready, even if it has served (see `PeerCheck::verdict`),
    /// because the others can replace it.
    fn see_peers(&self, wants: &mut Readiness) {
        let Some(peers) = &self.peers else {
            return;
        };
        match peers.verdict(self.has_served()) {
            PeerVerdict::Good => {}
            PeerVerdict::Unasked => wants.wait_for("the other nodes have not been dialled yet"),
            PeerVerdict::Partly(why) => wants.note(why),
            PeerVerdict::CutOff(why) => wants.refuse(why),
        }
    }

    fn has_served(&self) -> bool {
        self.served.load(Ordering::Relaxed)
    }

    pub(super) fn distrusted(&self) -> Option<u64> {
        Some(self.peers.as_ref()?.distrusted())
    }

    /// Judges the store by the node's own requests and heartbeats.
    pub(crate) fn store(&self) -> StoreHealth {
        let membership = self.membership.as_ref();
        let unwritten = membership.and_then(|membership| membership.members.heartbeat_failure());
        self.storage.health(unwritten)
    }

    fn is_open(&self) -> bool {
        let shared = self.shared_membership();
        shared.is_none_or(|membership| membership.members.is_open())
    }

    pub(crate) fn about(&self) -> NodeReport {
        let uptime = self.started.elapsed().as_millis();
        NodeReport {
            id: self.node.to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            roles: self.roles.iter().map(ToString::to_string).collect(),
            uptime_ms: u64::try_from(uptime).unwrap_or(u64::MAX),
            draining: self.leaving.load(Ordering::Relaxed),
            ..NodeReport::default()
        }
    }

    pub(crate) fn sessions(&self) -> Option<SessionsStatus> {
        let sessions = self.membership.as_ref()?.sessions.as_ref()?;
        Some(sessions.status())
    }
}

/// All edges count quotas together.
fn quotas(
    settings: &Settings,
    storage: &Storage,
    membership: Option<&ClusterMembership>,
) -> Quotas {
    let others = membership.map(|membership| membership.members.announced());
    let edges = move || {
        let others = others.as_ref().map(|others| others.borrow());
        others.map_or(1, |nodes| nodes.iter().filter(|node| node.edge).count())
    };
    let quotas = Quotas::new(storage.quota_cells(), edges);
    if settings.node.is(Role::Edge) {
        quotas.set(&settings.quotas);
    }
    quotas
}

impl Observed for NodeWatch {
    /// A node is ready when it is a member, knows the pools' tools, sees a session node, and its workers are linked. A
    /// rollout therefore keeps the old process until the new one can replace it. In a cluster, later outages elsewhere
    /// do not make a node without workers unready: all nodes would leave the balancer at once, and clients would get no
    /// helpful error.
    fn readiness(&self) -> Readiness {
        let wants = self.wants();
        let leaving = self.leaving.load(Ordering::Relaxed);
        if wants.is_ready() {
            self.served.store(true, Ordering::Relaxed);
        }
        let shared = self.shared_membership().is_some() && !self.roles.contains(&Role::Worker);
        match shared && !leaving && self.has_served() {
            true => wants.all_the_same(),
            false => wants,
        }
    }

    fn report(&self) -> StatusReport {
        StatusReport {
            version: env!("CARGO_PKG_VERSION"),
            node: self.node.to_string(),
            roles: self.roles.clone(),
            uptime_seconds: self.started.elapsed().as_secs(),
            draining: self.leaving.load(Ordering::Relaxed),
            clock_skew_ms: shoal_rpc::clock_skew()
                .map(|skew| u64::try_from(skew.as_millis()).unwrap_or(u64::MAX)),
            cluster: self
                .shared_membership()
                .map(|membership| membership.gateway.status()),
            sessions: self.sessions(),
            edge: self.roles.contains(&Role::Edge).then(|| EdgeReport {
                requests: self.load.requests_in_flight(),
                streams: self.load.open_streams(),
                websockets: self.load.open_websockets(),
            }),
            issuers: self.issuers(),
            configuration: self.configuration(),
            store: self.storage.report(self.store()),
            dispatch: self.dispatch.status(),
        }
    }
}
