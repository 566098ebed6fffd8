//! What can be seen of a node while it runs and while it ends.

use std::sync::atomic::{AtomicBool, Ordering};

use shoal_dispatch::{Dispatch, Status};
use shoal_edge::{Load, Recorder};
use shoal_ports::{NodeId, NodeInfo, NodeReport};
use shoal_session::SessionsStatus;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Membership;
use crate::admin::{EdgeReport, Observed, Readiness, StatusReport};
use crate::config::{Role, Settings};
use crate::storage::Storage;

/// What can be seen of a node while it runs and while it ends.
pub(crate) struct Watch {
    pub(crate) load: Load,
    pub(crate) recorder: Recorder,
    pub(crate) drain: CancellationToken,
    pub(crate) dispatch: Dispatch,
    pub(crate) membership: Option<Membership>,
    roles: Vec<Role>,
    leaving: AtomicBool,
    storage: Storage,
    node: NodeId,
    started: Instant,
}

impl Watch {
    pub(super) fn new(
        settings: &Settings,
        node: NodeId,
        dispatch: Dispatch,
        membership: Option<Membership>,
        storage: &Storage,
    ) -> Self {
        Self {
            load: Load::default(),
            recorder: Recorder::default(),
            drain: CancellationToken::new(),
            dispatch,
            membership,
            roles: settings.node.roles.clone(),
            leaving: AtomicBool::new(false),
            storage: storage.clone(),
            node,
            started: Instant::now(),
        }
    }

    /// What the node does.
    pub(crate) fn roles(&self) -> &[Role] {
        &self.roles
    }

    /// From now on the node says that it wants no traffic.
    pub(crate) fn leave(&self) {
        self.leaving.store(true, Ordering::Relaxed);
    }

    /// Requests that have not been answered.
    pub(crate) fn unanswered(&self) -> usize {
        // A legacy request counts at both; one that waits for a client's answer may have lost its
        // connection and counts at the session alone.
        let in_flight = self.sessions().map_or(0, |sessions| sessions.in_flight);
        self.load.requests_in_flight().max(in_flight)
    }

    /// Who is still busy, for the log: pools with their calls.
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

    /// The part in a cluster of several processes; `None` where this process is the whole server.
    pub(crate) fn shared_membership(&self) -> Option<&Membership> {
        let membership = self.membership.as_ref()?;
        (!membership.alone).then_some(membership)
    }

    /// Whether there is somebody to take the sessions of this edge's clients.
    fn sees_sessions(&self) -> bool {
        self.membership.as_ref().is_none_or(|membership| {
            let view = membership.members.view();
            let takes = |info: &NodeInfo| info.session && !info.draining;
            view.nodes().any(|node| takes(node.info()))
        })
    }

    /// What the node is; the rest is left open.
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

impl Observed for Watch {
    fn readiness(&self) -> Readiness {
        let mut readiness =
            Readiness::of(self.leaving.load(Ordering::Relaxed), self.dispatch.status());
        if !self.sees_sessions() {
            readiness.wait_for("no node takes sessions yet");
        }
        if let Some(away) = self.storage.trouble() {
            readiness.note(away);
        }
        readiness
    }

    fn report(&self) -> StatusReport {
        let status = self.dispatch.status();
        StatusReport {
            version: env!("CARGO_PKG_VERSION"),
            node: self.node.to_string(),
            roles: self.roles.clone(),
            uptime_seconds: self.started.elapsed().as_secs(),
            draining: self.leaving.load(Ordering::Relaxed),
            cluster: self
                .shared_membership()
                .map(|membership| membership.gateway.status()),
            sessions: self.sessions(),
            edge: self.roles.contains(&Role::Edge).then(|| EdgeReport {
                requests: self.load.requests_in_flight(),
                streams: self.load.open_streams(),
            }),
            store: self.storage.report(),
            pools: status.pools,
            conflicts: status.conflicts,
            degraded: status.degraded,
            parked: status.parked,
            subscriptions: status.subscriptions,
        }
    }
}
