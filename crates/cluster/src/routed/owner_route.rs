//! Where a message can be sent: to the owner itself, by way of another node, or to who takes the session.

use std::sync::Arc;

use rand::seq::IteratorRandom as _;
use shoal_ports::{GatewayError, NodeId, SessionGateway, SessionId};

use super::Routes;
use crate::peers::Peer;
use crate::view::{Node, View};

/// One route to a session's owner, or to the node that may become it.
pub(crate) struct OwnerRoute {
    /// The owner, or who may become it.
    pub(crate) owner: NodeId,
    /// Who is asked: the owner, or the node in between.
    pub(crate) asked: NodeId,
    pub(crate) gateway: Arc<dyn SessionGateway>,
    /// Whether only the hint in the session's id leads there.
    pub(crate) is_hinted: bool,
    peer: Arc<Peer>,
}

impl OwnerRoute {
    /// Whether another node is in between.
    pub(crate) fn is_relayed(&self) -> bool {
        self.asked != self.owner
    }

    /// Notes that the node that was asked answered.
    pub(crate) fn worked(&self) {
        self.peer.worked();
    }

    /// Notes that the route broke. Of a relayed message it is not known on which side of the node in between.
    pub(crate) fn broke(&self) {
        if !self.is_relayed() {
            self.peer.broke();
        }
    }

    /// Whether the node that is asked could not be reached when that was last tried.
    pub(crate) fn is_broken(&self) -> bool {
        self.peer.is_broken()
    }

    /// Notes that a session is being opened there.
    pub(crate) fn placed(&self) {
        self.peer
            .placed
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}

impl Routes {
    /// The route to the owner that is remembered, unless its node has gone since. Who `insists` on the straight route
    /// gets no other: a stream lasts, and would stay on a detour for as long; and a node in between makes
    /// none.
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

    /// The route to the owner, by way of a node that was not `tried` if it must be.
    pub(crate) fn route_to(&self, owner: &NodeId, tried: &[NodeId]) -> Option<OwnerRoute> {
        let view = self.members.view();
        if let Some(node) = view.node(owner) {
            return self.toward(&view, node, tried);
        }
        self.members.refresh_soon();
        self.around(&view, owner, tried)
    }

    /// The straight route, unless that failed just now and another node can pass the message on.
    fn toward(&self, view: &View, node: &Node, tried: &[NodeId]) -> Option<OwnerRoute> {
        let detour = self
            .is_suspect(node)
            .then(|| self.around(view, &node.info().id, tried));
        detour.flatten().or_else(|| self.straight(node))
    }

    /// The route to a node's own sessions.
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

    /// The route to the node that the session's id hints at, if it is there and could be reached when that was last tried.
    /// Never a detour: a node in between would ask the store.
    pub(crate) fn hinted_route(&self, session: &SessionId) -> Option<OwnerRoute> {
        let tag = session.hint()?;
        let view = self.members.view();
        let route = self.straight(view.tagged(tag)?)?;
        (!route.is_broken()).then_some(OwnerRoute {
            is_hinted: true,
            ..route
        })
    }

    /// A route to the owner by a node that passes it on.
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

    /// The route to the node that takes a session that nobody owns; those that were tried, or that failed
    /// just now, only if there is nobody else.
    pub(crate) fn taker(&self, session: &SessionId, tried: &[NodeId]) -> Option<OwnerRoute> {
        let view = self.members.view();
        let untried = |node: &Node| !tried.contains(&node.info().id);
        let node = view
            .taker(session, |node| untried(node) && !self.is_suspect(node))
            .or_else(|| view.taker(session, untried))?;
        self.straight(node)
    }

    /// Whether an owner that could not be reached is gone, as this node finds by looking for it.
    pub(crate) async fn finds_gone(&self, owner: &NodeId) -> bool {
        let view = self.members.view();
        match view.node(owner) {
            Some(node) if node.peer.is_broken() => self.members.is_gone(node).await,
            _ => false,
        }
    }

    /// Waits for an answer no longer than the owner can be the owner. One that vanished without a word is dialled in vain
    /// for seconds, and its lease lapses with its announcement.
    pub(crate) async fn while_it_owns<T>(
        &self,
        route: &OwnerRoute,
        answer: impl Future<Output = Result<T, GatewayError>>,
    ) -> Result<T, GatewayError> {
        tokio::select! {
            biased;
            answer = answer => answer,
            () = self.goes(route) => {
                let reason = format!("its node {} is not there any more", route.owner);
                Err(GatewayError::Unreachable { reason })
            }
        }
    }

    /// Returns when the owner's announcement has lapsed. If that was so before, the store is about to say who owns the
    /// session, so a node that could not be reached has only a moment to answer.
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
