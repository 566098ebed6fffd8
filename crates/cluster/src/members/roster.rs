use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use shoal_ports::{Backoff, ClusterEvent, ClusterSubscription, NodeInfo, StoreError};
use tokio::time::Instant;

use super::MembersInner;
use crate::view::PresenceRules;

/// Minimum time between two reads of the list of nodes.
const SETTLE: Duration = Duration::from_millis(50);

/// Above this number of nodes, each node reads the list of nodes less often than `refresh`, because the store's work
/// grows with the square of their number (docs/scaling.md).
const CLOSE: usize = 100;

/// Interval of reads of the list of nodes while a request waits for a node to come or go.
const CLOSELY: Duration = Duration::from_millis(100);

fn look_every(refresh: Duration, nodes: usize) -> Duration {
    refresh.mul_f64(nodes.max(CLOSE) as f64 / CLOSE as f64)
}

pub(super) async fn follow(shared: Arc<MembersInner>, news: ClusterSubscription) {
    let every = shared.config.refresh;
    let mut backoff = Backoff::new(every, every * 4);
    let mut news = Some(news);
    let mut due = Instant::now() + every;
    let mut failing = false;
    loop {
        let look = tokio::select! {
            () = shared.stop.cancelled() => return,
            () = tokio::time::sleep_until(due) => true,
            () = shared.refresh_now.notified() => true,
            matters = next(&mut news) => matters,
        };
        if !look {
            continue;
        }
        let pause = match shared.refresh().await {
            Ok(()) => {
                if std::mem::take(&mut failing) {
                    tracing::info!("the nodes can be read from the store again");
                }
                backoff.reset();
                let waits = shared.waiting.load(Ordering::Relaxed) > 0;
                let every = if waits { CLOSELY.min(every) } else { every };
                look_every(every, shared.view.borrow().nodes().count())
            }
            Err(error) => {
                if !std::mem::replace(&mut failing, true) {
                    tracing::warn!(%error, "cannot read the nodes from the store; using the known ones");
                }
                backoff.pause()
            }
        };
        due = Instant::now() + pause;
        tokio::select! {
            () = shared.stop.cancelled() => return,
            () = tokio::time::sleep(SETTLE) => {}
        }
    }
}

async fn next(news: &mut Option<ClusterSubscription>) -> bool {
    let Some(open) = news else {
        return std::future::pending().await;
    };
    match open.next().await {
        Some(Ok(ClusterEvent::NodeLeft { .. }) | Err(_)) => true,
        None => {
            *news = None;
            false
        }
    }
}

impl MembersInner {
    pub(super) async fn refresh(&self) -> Result<(), StoreError> {
        let listed = self.in_time(self.membership.nodes()).await?;
        self.see(listed);
        Ok(())
    }

    pub(super) fn look_at_me(&self) {
        let view = self.view.borrow().clone();
        let present = view.nodes().filter(|node| node.is_present());
        self.see(present.map(|node| node.info().clone()).collect());
    }

    fn see(&self, listed: Vec<NodeInfo>) {
        let rules = PresenceRules {
            now: Instant::now(),
            keep_missing: self.config.keep_missing,
            announced_every: self.beat(),
            peers: &*self.peers,
        };
        let me = self.myself();
        self.view.send_modify(|view| {
            let next = view.refreshed(listed, me, &rules);
            tell(view, &next);
            if next.generation() != view.generation() || self.announced.borrow().is_empty() {
                let present = next.nodes().filter(|node| node.is_present());
                self.announced
                    .send_replace(present.map(|node| node.info().clone()).collect());
            }
            *view = Arc::new(next);
        });
    }
}

fn tell(before: &crate::view::View, after: &crate::view::View) {
    if before.generation() == after.generation() {
        return;
    }
    for node in after.nodes() {
        let info = node.info();
        let was = before.node(&info.id);
        if was.is_none() {
            tracing::info!(node = %info.id, address = %info.address, "a node has joined");
        } else if info.draining && !was.is_some_and(|was| was.info().draining) {
            tracing::info!(node = %info.id, "a node drains");
        } else if !node.is_present() && was.is_some_and(crate::view::Node::is_present) {
            tracing::info!(node = %info.id, "a node is gone");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::look_every;

    #[test]
    fn many_nodes_look_less_often_each() {
        let second = Duration::from_secs(1);
        for (nodes, every) in [(1, 1.0), (100, 1.0), (150, 1.5), (1000, 10.0)] {
            assert_eq!(look_every(second, nodes), second.mul_f64(every));
        }
    }
}
