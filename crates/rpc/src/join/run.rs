//! The life of a worker's link to one address: dialled, driven, and dialled again.

use std::sync::Arc;
use std::time::Duration;

use shoal_ports::{Backoff, NodeId, NodeInfo};
use shoal_telemetry::metrics::LinkKind;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::connect::{Connected, connect};
use super::drive::{Drive, End};
use super::node_peer::NodePeer;
use super::{JoinState, Joining};
use crate::LinkConfig;
use crate::convert::node::node_in;
use crate::error::LinkError;
use crate::link::meter::Up;

/// How often a worker that leaves looks whether it still has calls.
const LOOK: Duration = Duration::from_millis(100);
/// How long the backend may take to end subscriptions when a link stops.
const TIDY: Duration = Duration::from_secs(1);

/// What keeps a link.
pub(super) struct Runner {
    pub(super) joining: Arc<Joining>,
    pub(super) address: String,
    pub(super) config: LinkConfig,
    pub(super) state: watch::Sender<JoinState>,
    pub(super) nodes: watch::Sender<Vec<NodeInfo>>,
    pub(super) stop: CancellationToken,
    pub(super) leave: watch::Receiver<Option<Instant>>,
}

/// What a node remembers of this worker.
type Memory = (String, u64);

impl Runner {
    /// Keeps the link until it is stopped or has left; whether all calls had ended.
    pub(super) async fn run(mut self) -> bool {
        let mut node_peer = NodePeer::new(Arc::clone(&self.joining));
        let mut backoff = Backoff::new(self.config.backoff, self.config.backoff_max);
        let mut memory = None;
        let mut alone_since = Instant::now();
        let idle = loop {
            if self.is_done_leaving(&node_peer) {
                break node_peer.is_idle();
            }
            let nobody_waits = node_peer.is_idle();
            let connected = tokio::select! {
                connected = connect(&self.joining, &self.address, &self.config) => connected,
                () = self.stop.cancelled() => break false,
                () = self.left(), if nobody_waits => continue,
                () = node_peer.idle() => continue,
            };
            let error = match connected {
                Ok(connected) => match self.drive(&mut node_peer, connected, &mut memory).await {
                    End::Broke(error) => {
                        backoff.reset();
                        alone_since = Instant::now();
                        error
                    }
                    End::Stopped => break false,
                    End::Left(idle) => break idle,
                },
                Err(error) => error,
            };
            self.failed(&error);
            // By now the node has given up too, whenever it saw the link break.
            if alone_since.elapsed() > 2 * self.config.rejoin {
                node_peer.clear();
            }
            if !self.wait(&mut node_peer, backoff.pause()).await {
                break false;
            }
        };
        self.state.send_modify(|state| state.connected = false);
        node_peer.clear();
        let _ = timeout(TIDY, node_peer.chores.finish()).await;
        idle
    }

    fn is_done_leaving(&self, node_peer: &NodePeer) -> bool {
        let leaving = *self.leave.borrow();
        leaving.is_some_and(|deadline| node_peer.is_done() || Instant::now() >= deadline)
    }

    /// Waits until the worker leaves and has nothing left that anybody could come for, or must go. Cancellation safe.
    async fn left(&self) {
        let mut leave = self.leave.clone();
        let Ok(Some(deadline)) = leave.wait_for(Option::is_some).await.map(|leave| *leave) else {
            return std::future::pending().await;
        };
        while self.joining.worker.open_calls() > 0 && Instant::now() < deadline {
            sleep(LOOK).await;
        }
    }

    async fn drive(
        &self,
        node_peer: &mut NodePeer,
        connected: Connected,
        memory: &mut Option<Memory>,
    ) -> End {
        let Connected {
            welcome,
            peer,
            inbox,
            outbox,
        } = connected;
        let node = NodeId::new(welcome.node.clone());
        tracing::info!(worker = %self.joining.id(), %node, address = self.address, "a worker joined a node");
        let of_node = welcome.memory;
        let now = Some((welcome.node, welcome.memory));
        if *memory == now {
            node_peer.keep(&welcome.flights);
        } else {
            node_peer.clear();
            *memory = now;
        }
        let nodes = welcome.nodes.into_iter().map(node_in).collect();
        self.nodes.send_replace(nodes);
        self.state.send_replace(JoinState {
            connected: true,
            node: Some(node),
            last_error: None,
        });
        node_peer.link(Arc::clone(&outbox), &peer, of_node);
        let up = Up::new(LinkKind::Worker);
        let drive = Drive::new(
            node_peer,
            &self.config,
            &self.nodes,
            &self.stop,
            self.leave.clone(),
            inbox,
            Arc::clone(&outbox),
        );
        let end = drive.run().await;
        if let End::Broke(error) = &end {
            up.ended(error);
            outbox.close(Some(&error.to_string()));
        }
        node_peer.unlink();
        end
    }

    fn failed(&self, error: &LinkError) {
        self.state.send_modify(|state| {
            let first = state.connected || state.last_error.is_none();
            if first {
                // Once, and not for each attempt.
                tracing::warn!(worker = %self.joining.id(), address = self.address, %error, "no link to a node");
            }
            state.connected = false;
            state.last_error = Some(error.to_string());
        });
    }

    /// Waits before the next attempt, while what was started goes on; `false` when it is to stop.
    async fn wait(&mut self, node_peer: &mut NodePeer, wait: Duration) -> bool {
        tokio::select! {
            () = sleep(wait) => true,
            Ok(()) = self.leave.changed() => true,
            () = self.stop.cancelled() => false,
            () = node_peer.idle() => true,
        }
    }
}
