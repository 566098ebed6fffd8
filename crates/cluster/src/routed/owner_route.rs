//! Routes to a session: to its owner, through another node, or to the node that takes it.

use std::sync::Arc;

use rand::seq::IteratorRandom as _;
use shoal_ports::{GatewayError, NodeId, SessionGateway, SessionId};

use super::Routes;
use crate::peers::PeerNode;
use crate::view::{Node, View};

pub(crate) struct OwnerRoute {
    pub(crate) owner: NodeId,
    pub(crate) asked: NodeId,
    pub(crate) gateway: Arc<dyn SessionGateway>,
    /// Whether only the hint in the session ID names this owner.
    pub(crate) is_hinted: bool,
    peer: Arc<PeerNode>,
}

impl OwnerRoute {
    pub(crate) fn is_relayed(&self) -> bool {
        self.asked != self.owner
    }

    pub(crate) fn worked(&self) {
        self.peer.worked();
    }

    /// Ignores relayed requests, because the link behind the relay may be at fault.
    pub(crate) fn broke(&self) {
        if !self.is_relayed() {
            self.peer.broke();
        }
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.peer.is_broken()
    }

    pub(crate) fn placed(&self) {
        self.peer
            .placed
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}

impl Routes {
    /// With `insists`, only a direct route counts: a stream would stay on a relay, and a relay must not use another
    /// relay.
    pub(crate) fn remembered_route(
        &self,
        session: &SessionId,
        insists: bool,
    ) -> Option<OwnerRoute> {
        let owner = self.cache.fresh(session)?;
        let view = self.members.view();
        let there = |node: &&Node| node.is_present() && !self.members.was_gone(node);
        let node = view.node(&owner).filter(there)?;
        if insists {
            return self.straight(node);
        }
        self.toward(&view, node, &[])
    }

    /// If the owner cannot be reached, the route leads through a relay that is not in `tried`.
    pub(crate) fn route_to(&self, owner: &NodeId, tried: &[NodeId]) -> Option<OwnerRoute> {
        let view = self.members.view();
        if let Some(node) = view.node(owner) {
            return self.toward(&view, node, tried);
        }
        self.members.refresh_soon();
        self.around(&view, owner, tried)
    }

    fn toward(&self, view: &View, node: &Node, tried: &[NodeId]) -> Option<OwnerRoute> {
        let detour = self
            .is_suspect(node)
            .then(|| self.around(view, &node.info().id, tried));
        detour.flatten().or_else(|| self.straight(node))
    }

    pub(crate) fn straight(&self, node: &Node) -> Option<OwnerRoute> {
        let id = &node.info().id;
        let gateway = if *id == *self.members.me() {
            Arc::clone(self.local.as_ref()?)
        } else {
            Arc::clone(&node.peer.gateways.as_ref()?.own)
        };
        Some(OwnerRoute {
            owner: id.clone(),
            asked: id.clone(),
            gateway,
            is_hinted: false,
            peer: Arc::clone(&node.peer),
        })
    }

    /// Only a direct route counts, because a relay would ask the store, which the hint is to avoid.
    pub(crate) fn hinted_route(&self, session: &SessionId) -> Option<OwnerRoute> {
        let tag = session.hint()?;
        let view = self.members.view();
        let route = self.straight(view.tagged(tag)?)?;
        (!route.is_broken()).then_some(OwnerRoute {
            is_hinted: true,
            ..route
        })
    }

    fn around(&self, view: &View, owner: &NodeId, tried: &[NodeId]) -> Option<OwnerRoute> {
        let between = view
            .nodes()
            .filter(|node| node.is_present() && node.info().id != *owner)
            .filter(|node| !tried.contains(&node.info().id) && !self.is_suspect(node))
            .filter_map(|node| Some((node, node.peer.gateways.as_ref()?)));
        let (node, gateways) = between.choose(&mut rand::rng())?;
        Some(OwnerRoute {
            owner: owner.clone(),
            asked: node.info().id.clone(),
            gateway: Arc::clone(&gateways.relay),
            is_hinted: false,
            peer: Arc::clone(&node.peer),
        })
    }

    /// Prefers nodes that have not failed recently.
    pub(crate) fn taker(&self, session: &SessionId, tried: &[NodeId]) -> Option<OwnerRoute> {
        let view = self.members.view();
        let untried = |node: &Node| !tried.contains(&node.info().id);
        let node = view
            .taker(session, |node| untried(node) && !self.is_suspect(node))
            .or_else(|| view.taker(session, untried))?;
        self.straight(node)
    }

    pub(crate) async fn finds_gone(&self, owner: &NodeId) -> bool {
        let view = self.members.view();
        match view.node(owner) {
            Some(node) if node.peer.is_broken() => self.members.is_gone(node).await,
            _ => false,
        }
    }

    /// Stops waiting when the owner's announcement lapses, because dialling a vanished node takes longer.
    pub(crate) async fn while_it_owns<T>(
        &self,
        route: &OwnerRoute,
        answer: impl Future<Output = Result<T, GatewayError>>,
    ) -> Result<T, GatewayError> {
        tokio::select! {
            biased;
            answer = answer => answer,
            () = self.goes(route) => {
                let reason = format!("its node {} is gone", route.owner);
                Err(GatewayError::Unreachable { reason })
            }
        }
    }

    /// Returns when the owner's announcement lapses. If it lapsed earlier, returns after a short time if the link is
    /// broken, because the store may soon name the next owner, and otherwise never.
    async fn goes(&self, route: &OwnerRoute) {
        let mut views = self.members.watch();
        let mut seen = false;
        loop {
            let present = {
                let view = views.borrow_and_update();
                view.node(&route.owner).map(Node::is_present)
            };
            match present {
                Some(true) => seen = true,
                _ if seen => return,
                Some(false) if route.is_broken() => {
                    return tokio::time::sleep(self.config.resolve_every).await;
                }
                Some(false) | None => return std::future::pending().await,
            }
            if views.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    pub(crate) fn is_suspect(&self, node: &Node) -> bool {
        node.peer.is_suspect(self.members.suspicion())
    }
}
