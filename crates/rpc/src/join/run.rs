use std::sync::Arc;
use std::time::Duration;

use shoal_ports::{Backoff, NodeId, NodeInfo};
use shoal_telemetry::metrics::LinkKind;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::chores::Chores;
use super::connect::{WelcomedWorker, connect};
use super::drive::{JoinDrive, JoinEnd};
use super::served_calls::ServedCalls;
use super::{JoinState, Joining};
use crate::LinkConfig;
use crate::convert::node::node_in;
use crate::error::LinkError;
use crate::link::meter::Up;

const LOOK: Duration = Duration::from_millis(100);
const TIDY: Duration = Duration::from_secs(1);

/// A link must live this long to reset the backoff, because a node may refuse this worker after
/// each welcome.
const LASTED: Duration = Duration::from_secs(1);

pub(super) struct Runner {
    pub(super) joining: Arc<Joining>,
    pub(super) address: String,
    pub(super) config: LinkConfig,
    pub(super) state: watch::Sender<JoinState>,
    pub(super) nodes: watch::Sender<Vec<NodeInfo>>,
    pub(super) stop: CancellationToken,
    pub(super) leave: watch::Receiver<Option<Instant>>,
}

type Memory = (String, u64);

impl Runner {
    /// Returns whether the worker left with no open call.
    pub(super) async fn run(mut self) -> bool {
        let mut chores = Chores::new(Arc::clone(&self.joining));
        let mut backoff = Backoff::new(self.config.backoff, self.config.backoff_max);
        let mut memory = None;
        let mut alone_since = Instant::now();
        let idle = loop {
            if self.is_done_leaving() {
                break self.joining.worker.open_calls() == 0;
            }
            let connected = tokio::select! {
                connected = connect(&self.joining, &self.address, &self.config) => connected,
                () = self.stop.cancelled() => break false,
                () = self.left() => continue,
                () = chores.run() => continue,
            };
            let began = Instant::now();
            let error = match connected {
                Ok(connected) => match self.drive(&mut chores, connected, &mut memory).await {
                    JoinEnd::Broke(error) => {
                        if began.elapsed() >= LASTED {
                            backoff.reset();
                        }
                        alone_since = Instant::now();
                        error
                    }
                    JoinEnd::Stopped => break false,
                    JoinEnd::Left(idle) => break idle,
                },
                Err(error) => error,
            };
            self.failed(&error);
            if alone_since.elapsed() > 2 * self.config.cluster.rejoin.get() {
                chores.unsubscribe_all();
            }
            if !self.wait(&mut chores, backoff.pause()).await {
                break false;
            }
        };
        self.state.send_modify(|state| state.connected = false);
        chores.unsubscribe_all();
        let _ = timeout(TIDY, chores.finish()).await;
        idle
    }

    fn is_done_leaving(&self) -> bool {
        let is_done =
            |deadline| self.joining.worker.open_calls() == 0 || Instant::now() >= deadline;
        self.leave.borrow().is_some_and(is_done)
    }

    /// Waits for the worker to leave and for its calls, until the deadline. Cancellation safe.
    async fn left(&self) {
        let mut leave = self.leave.clone();
        if leave.wait_for(Option::is_some).await.is_err() {
            return std::future::pending().await;
        }
        while !self.is_done_leaving() {
            sleep(LOOK).await;
        }
    }

    async fn drive(
        &self,
        chores: &mut Chores,
        welcomed: WelcomedWorker,
        memory: &mut Option<Memory>,
    ) -> JoinEnd {
        let WelcomedWorker {
            welcome,
            peer,
            inbox,
            outbox,
        } = welcomed;
        let node = NodeId::new(welcome.node.clone());
        tracing::info!(worker = %self.joining.id(), %node, address = self.address, "a worker joined a node");
        let now = Some((welcome.node, welcome.memory));
        if *memory != now {
            chores.unsubscribe_all();
            *memory = now;
        }
        let nodes = welcome.nodes.into_iter().map(node_in).collect();
        self.nodes.send_replace(nodes);
        self.state.send_replace(JoinState {
            connected: true,
            node: Some(node),
            last_error: None,
        });
        let up = Up::new(LinkKind::Worker);
        let drive = JoinDrive::new(
            ServedCalls::new(Arc::clone(&self.joining), Arc::clone(&outbox), &peer),
            chores,
            &self.config,
            &self.nodes,
            &self.stop,
            self.leave.clone(),
            inbox,
        );
        let end = drive.run().await;
        if let JoinEnd::Broke(error) = &end {
            up.ended(error);
            outbox.close(Some(&error.to_string()));
        }
        end
    }

    fn failed(&self, error: &LinkError) {
        self.state.send_modify(|state| {
            let first = state.connected || state.last_error.is_none();
            if first {
                tracing::warn!(worker = %self.joining.id(), address = self.address, %error, "no link to a node");
            }
            state.connected = false;
            state.last_error = Some(error.to_string());
        });
    }

    async fn wait(&mut self, chores: &mut Chores, wait: Duration) -> bool {
        tokio::select! {
            () = sleep(wait) => true,
            Ok(()) = self.leave.changed() => true,
            () = self.stop.cancelled() => false,
            () = chores.run() => true,
        }
    }
}
