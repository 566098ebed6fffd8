mod subscriptions;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use shoal_ports::{
    Announcement, CallId, LedgerNumber, OwnLists, ResourceUpdated, SessionId, WorkerId, WorkerLoad,
};
use tokio::sync::{broadcast, watch};

use self::subscriptions::Request;
use super::acknowledged::Acknowledged;
use super::gauge::Gauge;
use super::link::LinkToWorker;
use crate::LinkConfig;
use crate::link::outbox::Outbox;
use crate::proto::worker::v1::node_frame::Frame;
use crate::proto::worker::v1::{NodeFrame, Welcome};

const BACKLOG: usize = 1024;

pub(super) struct WorkerPeer {
    pub(super) id: WorkerId,
    pub(super) incarnation: u64,
    pub(super) config: LinkConfig,
    pub(super) announcement: watch::Sender<Announcement>,
    pub(super) updates: broadcast::Sender<ResourceUpdated>,
    pub(super) own_lists: watch::Sender<OwnLists>,
    pub(super) gauge: Arc<Gauge>,
    acknowledged: Acknowledged,
    /// The worker's last reported ledger number; `None` without a ledger.
    ledger: Mutex<Option<u64>>,
    memory: u64,
    last: AtomicU64,
    state: Mutex<PeerState>,
}

struct PeerState {
    link_state: LinkState,
    links: u64,
    requests: HashMap<u64, Request>,
    subscribed: BTreeSet<String>,
    /// Resources to unsubscribe from when the worker returns.
    unsubscribed: BTreeSet<String>,
    ended_sessions: Vec<SessionId>,
}

enum LinkState {
    Up(Arc<LinkToWorker>),
    Down,
    /// The worker has said goodbye, so no new calls start.
    Parting(Arc<LinkToWorker>),
    Gone,
}

impl WorkerPeer {
    pub(super) fn new(id: WorkerId, incarnation: u64, config: LinkConfig) -> Arc<Self> {
        let nothing = Announcement {
            worker: id.clone(),
            pool: Arc::from(""),
            catalog: None,
            detail: None,
        };
        Arc::new(Self {
            id,
            incarnation,
            config,
            announcement: watch::Sender::new(nothing),
            updates: broadcast::Sender::new(BACKLOG),
            own_lists: watch::Sender::default(),
            gauge: Arc::default(),
            acknowledged: Acknowledged::default(),
            ledger: Mutex::default(),
            memory: rand::random(),
            last: AtomicU64::new(0),
            state: Mutex::new(PeerState {
                link_state: LinkState::Down,
                links: 0,
                requests: HashMap::new(),
                subscribed: BTreeSet::new(),
                unsubscribed: BTreeSet::new(),
                ended_sessions: Vec::new(),
            }),
        })
    }

    pub(super) fn load(&self) -> WorkerLoad {
        match self.state.lock().link_state {
            LinkState::Up(_) => self.gauge.read(),
            _ => WorkerLoad::default(),
        }
    }

    pub(super) fn reports(&self, load: WorkerLoad) {
        if self.gauge.report(load) {
            self.reachable();
        }
    }

    fn reachable(&self) {
        self.announcement.send_modify(|_| ());
    }

    pub(super) fn ledger(&self) -> Option<LedgerNumber> {
        let number = (*self.ledger.lock())?;
        Some(LedgerNumber {
            incarnation: self.incarnation,
            number,
        })
    }

    pub(super) fn counts(&self, number: Option<u64>) {
        *self.ledger.lock() = number;
    }

    pub(super) fn number(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(super) fn acknowledge(&self, call: CallId) {
        if let Some(frame) = self.acknowledged.add(call) {
            self.tell(frame);
        }
    }

    pub(super) fn tell_acknowledged(&self) {
        if let Some(frame) = self.acknowledged.take() {
            self.tell(frame);
        }
    }

    fn tell(&self, frame: Frame) {
        if let Some(link) = self.link() {
            link.outbox.push_now(frame);
        }
    }

    pub(super) fn is_gone(&self) -> bool {
        matches!(self.state.lock().link_state, LinkState::Gone)
    }

    pub(super) fn link(&self) -> Option<Arc<LinkToWorker>> {
        match &self.state.lock().link_state {
            LinkState::Up(link) => Some(Arc::clone(link)),
            _ => None,
        }
    }

    /// `None` if the node has given the worker up.
    pub(super) fn join(
        &self,
        outbox: Arc<Outbox<NodeFrame>>,
        mut welcome: Welcome,
    ) -> Option<Arc<LinkToWorker>> {
        self.broke(None);
        let mut state = self.state.lock();
        if !matches!(state.link_state, LinkState::Down) {
            return None;
        }
        state.links += 1;
        let gauge = Arc::clone(&self.gauge);
        let (id, version) = (self.id.clone(), welcome.version);
        let link = LinkToWorker::new(id, state.links, outbox, gauge, &self.config, version);
        welcome.memory = self.memory;
        link.send(0, Frame::Welcome(welcome));
        self.resume_subscriptions(&mut state, &link);
        state.link_state = LinkState::Up(Arc::clone(&link));
        drop(state);
        self.reachable();
        Some(link)
    }

    /// `None` ends any link. Returns whether the worker had such a link.
    pub(super) fn broke(&self, number: Option<u64>) -> bool {
        let mut state = self.state.lock();
        let link = match &state.link_state {
            LinkState::Up(up) if number.is_none_or(|number| number == up.number) => Arc::clone(up),
            _ => return false,
        };
        state.link_state = LinkState::Down;
        state.end_requests();
        drop(state);
        link.over();
        true
    }

    /// Keeps a worker that has linked again since link `number`. Returns whether this call gave it
    /// up.
    pub(super) fn give_up(&self, number: Option<u64>) -> bool {
        let mut state = self.state.lock();
        let goes = match &state.link_state {
            LinkState::Up(_) | LinkState::Parting(_) => number.is_none(),
            LinkState::Down => number.is_none_or(|number| number == state.links),
            LinkState::Gone => false,
        };
        if !goes {
            return false;
        }
        let link_state = std::mem::replace(&mut state.link_state, LinkState::Gone);
        state.requests.clear();
        drop(state);
        if let LinkState::Up(link) | LinkState::Parting(link) = link_state {
            link.over();
        }
        true
    }

    pub(super) fn part(&self) {
        let mut state = self.state.lock();
        state.link_state = match std::mem::replace(&mut state.link_state, LinkState::Gone) {
            LinkState::Up(link) => LinkState::Parting(link),
            other => other,
        };
    }
}
