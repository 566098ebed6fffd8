use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use shoal_ports::{NodeId, NodeInfo, WorkerId, WorkerSet};
use shoal_telemetry::metrics::LinkKind;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::drive::{WorkerDrive, WorkerNews};
use super::peer::WorkerPeer;
use super::remote::RemoteWorker;
use crate::LinkConfig;
use crate::convert::catalog::announcement_in;
use crate::error::LinkError;
use crate::link::meter::Up;
use crate::presence::PresenceProbe;
use crate::proto::worker::v1 as wire;
use crate::tls::Standing;

/// Accepts workers through a [`ClusterServer`](crate::ClusterServer). Adds a worker to `set` when it announces itself.
/// Removes it at its goodbye, at the end of its process, or after [`LinkConfig::rejoin`] without a link. Reports
/// `nodes` to the workers.
pub fn serve_workers(
    node: NodeId,
    set: Arc<dyn WorkerSet>,
    nodes: watch::Receiver<Vec<NodeInfo>>,
    config: LinkConfig,
) -> WorkerLinks {
    WorkerLinks {
        shared: Arc::new(WorkerLinksInner {
            node,
            set,
            nodes,
            config,
            peers: Mutex::default(),
            closing: CancellationToken::new(),
        }),
    }
}

/// The worker links of a node; a cheap handle.
#[derive(Clone)]
pub struct WorkerLinks {
    pub(super) shared: Arc<WorkerLinksInner>,
}

pub(super) struct WorkerLinksInner {
    pub(super) node: NodeId,
    set: Arc<dyn WorkerSet>,
    pub(super) nodes: watch::Receiver<Vec<NodeInfo>>,
    pub(super) config: LinkConfig,
    peers: Mutex<HashMap<WorkerId, LinkedWorker>>,
    pub(super) closing: CancellationToken,
}

struct LinkedWorker {
    peer: Arc<WorkerPeer>,
    added: bool,
}

impl WorkerLinks {
    /// Returns the ids of the linked workers, sorted.
    pub fn connected(&self) -> Vec<WorkerId> {
        let peers = self.shared.peers.lock();
        let up = peers.values().filter(|entry| entry.peer.link().is_some());
        let mut workers: Vec<_> = up.map(|entry| entry.peer.id.clone()).collect();
        workers.sort_unstable();
        workers
    }

    /// Ends every link and accepts no more. Running calls continue at their workers.
    pub fn close(&self) {
        self.shared.closing.cancel();
    }
}

impl WorkerLinksInner {
    pub(super) fn pool_of(&self, id: &WorkerId) -> Option<Arc<str>> {
        let peers = self.peers.lock();
        let known = peers.get(id).filter(|entry| entry.added)?;
        let pool = Arc::clone(&known.peer.announcement.borrow().pool);
        Some(pool)
    }

    /// If the worker has restarted, gives up its former state, because the worker has forgotten its calls.
    pub(super) fn peer(&self, id: &WorkerId, incarnation: u64) -> Arc<WorkerPeer> {
        let mut peers = self.peers.lock();
        if let Some(entry) = peers.get(id)
            && entry.peer.incarnation == incarnation
            && !entry.peer.is_gone()
        {
            return Arc::clone(&entry.peer);
        }
        let peer = WorkerPeer::new(id.clone(), incarnation, self.config.clone());
        let entry = LinkedWorker {
            peer: Arc::clone(&peer),
            added: false,
        };
        let former = peers.insert(id.clone(), entry);
        if let Some(former) = former {
            former.peer.give_up(None);
            if former.added {
                self.set.remove(id);
            }
        }
        peer
    }

    /// Gives the worker up if the worker's process is gone or the worker does not link again in time.
    pub(super) async fn run(
        self: Arc<Self>,
        mut drive: WorkerDrive,
        standing: Standing,
        presence: PresenceProbe,
    ) {
        let up = Up::new(LinkKind::Worker);
        let (peer, link) = (Arc::clone(&drive.peer), drive.link.number);
        let ended = loop {
            match drive.next().await {
                Ok(WorkerNews::Announce(said)) => {
                    if let Err(error) = self.announced(&peer, &standing, *said) {
                        break error;
                    }
                }
                Ok(WorkerNews::Goodbye) => {
                    self.part(&mut drive).await;
                    return;
                }
                Err(error) => break error,
            }
        };
        tracing::info!(worker = %peer.id, reason = %ended, "the link of a worker ended");
        up.ended(&ended);
        drive.link.outbox.close(Some(&ended.to_string()));
        drop(drive);
        if peer.broke(Some(link)) {
            let reason = tokio::select! {
                () = sleep(self.config.cluster.rejoin.get()) => "it did not reconnect in time",
                () = presence.gone() => "its process is gone",
                () = self.closing.cancelled() => "this node is leaving",
            };
            if peer.give_up(Some(link)) {
                tracing::info!(worker = %peer.id, reason, "a worker was given up");
                self.remove(&peer);
            }
        }
    }

    fn announced(
        &self,
        peer: &Arc<WorkerPeer>,
        standing: &Standing,
        said: wire::Announce,
    ) -> Result<(), LinkError> {
        if let Some(why) = standing.refuses(&said.pool) {
            tracing::warn!(worker = %peer.id, why, "a worker was refused");
            return Err(LinkError::Forbidden(why));
        }
        let announcement = announcement_in(&peer.id, said)?;
        peer.announcement.send_replace(announcement);
        let mut peers = self.peers.lock();
        if let Some(entry) = peers.get_mut(&peer.id)
            && Arc::ptr_eq(&entry.peer, peer)
            && !std::mem::replace(&mut entry.added, true)
        {
            // Under the lock, so that the worker is not removed before it is added.
            self.set.add(Arc::new(RemoteWorker::new(Arc::clone(peer))));
        }
        Ok(())
    }

    /// Reads the worker's refusals of late calls. This side ends the link last, because the worker's process exits
    /// once the link has ended.
    async fn part(&self, drive: &mut WorkerDrive) {
        drive.peer.part();
        self.remove(&drive.peer);
        drive.link.outbox.finish("goodbye");
        // A failure is harmless: giving the worker up fails the unanswered calls.
        let _ = timeout(self.config.handshake_timeout, drive.hear_out()).await;
        drive.link.outbox.close(None);
        drive.peer.give_up(None);
    }

    fn remove(&self, peer: &Arc<WorkerPeer>) {
        let mut peers = self.peers.lock();
        let known = peers.get(&peer.id);
        if known.is_some_and(|entry| Arc::ptr_eq(&entry.peer, peer))
            && peers.remove(&peer.id).is_some_and(|entry| entry.added)
        {
            self.set.remove(&peer.id);
        }
    }
}
