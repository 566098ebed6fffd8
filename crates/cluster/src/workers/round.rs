use std::sync::Arc;

use parking_lot::Mutex;
use shoal_ports::NodeInfo;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::JoinStatus;
use super::link::{JoinLink, Links};
use super::plan::{self, Joined, Roll};

pub(super) struct JoinRound {
    links: Box<dyn Links>,
    joins: Mutex<Vec<Join>>,
    changed: Arc<Notify>,
    joined: Notify,
}

struct Join {
    address: String,
    link: Arc<dyn JoinLink>,
    leaving: bool,
    _watching: AbortOnDropHandle<()>,
}

impl JoinRound {
    pub(super) fn new(links: Box<dyn Links>) -> Arc<Self> {
        Arc::new(Self {
            links,
            joins: Mutex::default(),
            changed: Arc::default(),
            joined: Notify::new(),
        })
    }

    pub(super) async fn keep(
        self: Arc<Self>,
        mut roll: Roll,
        mut told: Option<watch::Receiver<Vec<NodeInfo>>>,
    ) {
        loop {
            let members = told.as_mut().map(|told| told.borrow_and_update().clone());
            self.revise(&mut roll, members);
            tokio::select! {
                () = self.changed.notified() => {}
                () = tokio::time::sleep(plan::LOOK_EVERY) => {}
                () = changes(&mut told) => {}
            }
        }
    }

    fn revise(&self, roll: &mut Roll, members: Option<Vec<NodeInfo>>) {
        let mut joins = self.joins.lock();
        let joined: Vec<Joined> = joins.iter().map(Join::look).collect();
        let plan = roll.revise(Instant::now(), &joined, members);
        let mut kept = plan.keep.into_iter();
        joins.retain(|join| {
            let keep = kept.next().unwrap_or(true);
            if !keep {
                tracing::debug!(address = %join.address, "a node is no longer joined");
                join.link.stop();
            }
            keep
        });
        for address in plan.start {
            tracing::debug!(%address, "joining a node");
            joins.push(self.join(address));
            self.joined.notify_one();
        }
    }

    /// Like [`WorkerJoins::leave`](super::WorkerJoins::leave). Calls of unreachable nodes count as ended.
    pub(super) async fn leave(&self, deadline: Instant) -> bool {
        let mut ended = true;
        let mut leaving = JoinSet::new();
        loop {
            for link in self.to_leave() {
                leaving.spawn(async move { (link.leave(deadline).await, link) });
            }
            tokio::select! {
                left = leaving.join_next() => match left {
                    Some(Ok((left, link))) => ended &= left || !self.has(&link),
                    Some(Err(_)) => ended = false,
                    None => return ended,
                },
                () = self.joined.notified() => {}
            }
        }
    }

    fn has(&self, link: &Arc<dyn JoinLink>) -> bool {
        let joins = self.joins.lock();
        joins.iter().any(|join| Arc::ptr_eq(&join.link, link))
    }

    fn to_leave(&self) -> Vec<Arc<dyn JoinLink>> {
        let mut joins = self.joins.lock();
        let staying = joins.iter_mut().filter(|join| !join.leaving);
        staying
            .map(|join| {
                join.leaving = true;
                Arc::clone(&join.link)
            })
            .collect()
    }

    fn join(&self, address: String) -> Join {
        let link: Arc<dyn JoinLink> = self.links.join(&address).into();
        let (mut state, mut nodes) = (link.state(), link.nodes());
        let changed = Arc::clone(&self.changed);
        let watching = tokio::spawn(async move {
            // The link may have come up before this watch began.
            changed.notify_one();
            loop {
                let alive = tokio::select! {
                    alive = state.changed() => alive,
                    alive = nodes.changed() => alive,
                };
                changed.notify_one();
                if alive.is_err() {
                    return;
                }
            }
        });
        Join {
            address,
            link,
            leaving: false,
            _watching: AbortOnDropHandle::new(watching),
        }
    }

    pub(super) fn status(&self) -> Vec<JoinStatus> {
        let joins = self.joins.lock();
        let status = joins.iter().map(|join| {
            let state = join.link.state().borrow().clone();
            JoinStatus {
                address: join.address.clone(),
                node: state.node.map(|node| node.to_string()),
                connected: state.connected,
                last_error: state.last_error,
            }
        });
        status.collect()
    }
}

impl Join {
    fn look(&self) -> Joined {
        let state = self.link.state().borrow().clone();
        Joined {
            address: self.address.clone(),
            node: state.node,
            connected: state.connected,
            nodes: self.link.nodes().borrow().clone(),
        }
    }
}

async fn changes(told: &mut Option<watch::Receiver<Vec<NodeInfo>>>) {
    let changed = match told {
        Some(told) => told.changed().await.is_ok(),
        None => false,
    };
    if !changed {
        std::future::pending::<()>().await;
    }
}
