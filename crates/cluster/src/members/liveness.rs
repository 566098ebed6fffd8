use std::sync::Weak;

use async_trait::async_trait;
use shoal_ports::{Evidence, Liveness, NodeId};
use tokio::time::Instant;

use super::MembersInner;
use crate::view::Node;

pub(super) struct Watched(pub(super) Weak<MembersInner>);

#[async_trait]
impl Liveness for Watched {
    fn is_certain(&self) -> bool {
        let shared = self.0.upgrade();
        shared.is_some_and(|shared| shared.certainty.holds(Instant::now()))
    }

    fn is_present(&self, node: &NodeId) -> bool {
        // A node that has left learns nothing of the others, so it counts every node as present.
        self.0.upgrade().is_none_or(|shared| {
            let view = shared.view.borrow();
            view.node(node).is_some_and(Node::is_present)
        })
    }

    async fn evidence_against(&self, node: &NodeId) -> Option<Evidence> {
        let shared = self.0.upgrade()?;
        let view = shared.view.borrow().clone();
        let gone = shared.is_gone(view.node(node)?).await;
        gone.then(|| Evidence {
            against: node.clone(),
            lease: shared.config.lease,
        })
    }
}

impl MembersInner {
    pub(super) async fn is_gone(&self, node: &Node) -> bool {
        if node.info().id == self.id {
            return false;
        }
        let looking = self.peers.look_for(node.info());
        node.peer.is_gone(looking, self.config.lease).await
    }
}
