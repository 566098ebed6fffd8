use std::sync::{Arc, Weak};
use std::time::Duration;

use shoal_telemetry::metrics::{NodeState, Registration, Role, metrics};
use tokio::time::Instant;

use super::MembersInner;
use crate::view::Node;

pub(super) fn observe(shared: &Arc<MembersInner>) -> Vec<Registration> {
    let nodes = &metrics().nodes;
    let seen = Arc::downgrade(shared);
    let mut all = vec![nodes.observe_nodes(move |report| {
        let Some(shared) = Weak::upgrade(&seen) else {
            return;
        };
        let view = shared.view.borrow().clone();
        for node in view.nodes() {
            let state = state_of(node);
            let info = node.info();
            let roles = [(info.edge, Role::Edge), (info.session, Role::Session)];
            for (_, role) in roles.into_iter().filter(|(has, _)| *has) {
                report(role, state, 1);
            }
        }
    })];
    if shared.me.lock().session {
        let leased = Arc::downgrade(shared);
        all.extend(nodes.observe_lease(move || remaining(&leased)));
    }
    all
}

fn state_of(node: &Node) -> NodeState {
    if !node.is_present() || !node.is_reachable() {
        NodeState::Unreachable
    } else if node.info().starting {
        NodeState::Starting
    } else if node.info().draining {
        NodeState::Draining
    } else {
        NodeState::Reachable
    }
}

fn remaining(shared: &Weak<MembersInner>) -> Option<Duration> {
    let shared = shared.upgrade()?;
    let left = shared.lease.lock().remaining(Instant::now());
    (!left.is_zero()).then_some(left)
}
