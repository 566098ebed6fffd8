use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use shoal_ports::{
    AdoptCall, Delivered, DeliveryId, Epoch, EventStream, GatewayError, NodeId, OpenSession,
    Opened, Post, SessionGateway, SessionId, SessionRef, SessionTasks, Store, StoreError,
    TaskRequest,
};
use shoal_protocol::task::{Task, TaskState};
use shoal_protocol::{EventId, RequestId};
use tokio::sync::watch;

use super::log::Log;
use super::{DAY, TestNode};

#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Hang,
    Error(GatewayError),
    Stream,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Death {
    /// The process died: its machine refuses connections.
    Killed,
    /// The machine died: connections time out.
    Silent,
    /// The address disappeared: there is no route, so the node may be alive.
    Unrouted,
}

pub(crate) struct ScriptedNode {
    pub(crate) id: NodeId,
    store: Store,
    log: Log,
    joined: OnceLock<TestNode>,
    script: Mutex<VecDeque<Reply>>,
    posts: Mutex<Vec<(DeliveryId, bool)>>,
    adopts: Mutex<Vec<(SessionId, bool)>>,
    opens: Mutex<usize>,
    refuses_to_open: Mutex<Option<GatewayError>>,
    refuses_to_take: Mutex<Option<GatewayError>>,
    epochs: Mutex<HashMap<SessionId, Epoch>>,
    futile: Mutex<usize>,
    listens: Mutex<usize>,
    hinted: Mutex<usize>,
    dead: watch::Sender<bool>,
    death: Mutex<Option<Death>>,
    moved: watch::Sender<u64>,
    draining: Mutex<bool>,
}

impl ScriptedNode {
    pub(crate) fn new(id: NodeId, store: Store, log: Log) -> Arc<Self> {
        Arc::new(Self {
            id,
            store,
            log,
            joined: OnceLock::new(),
            script: Mutex::default(),
            posts: Mutex::default(),
            adopts: Mutex::default(),
            opens: Mutex::default(),
            refuses_to_open: Mutex::default(),
            refuses_to_take: Mutex::default(),
            epochs: Mutex::default(),
            futile: Mutex::default(),
            listens: Mutex::default(),
            hinted: Mutex::default(),
            dead: watch::Sender::new(false),
            death: Mutex::new(None),
            moved: watch::Sender::new(0),
            draining: Mutex::new(false),
        })
    }

    pub(crate) fn has_joined(&self, joined: TestNode) {
        assert!(self.joined.set(joined).is_ok());
    }

    pub(crate) fn joined(&self) -> &TestNode {
        self.joined.get().unwrap()
    }

    pub(crate) fn then(&self, reply: Reply) {
        self.script.lock().push_back(reply);
    }

    pub(crate) fn refuse_to_open(&self, error: GatewayError) {
        *self.refuses_to_open.lock() = Some(error);
    }

    pub(crate) fn refuse_to_take(&self, error: GatewayError) {
        *self.refuses_to_take.lock() = Some(error);
    }

    pub(crate) fn take_again(&self) {
        *self.refuses_to_take.lock() = None;
    }

    pub(crate) fn posts(&self) -> Vec<(DeliveryId, bool)> {
        self.posts.lock().clone()
    }

    pub(crate) fn adopts(&self) -> Vec<(SessionId, bool)> {
        self.adopts.lock().clone()
    }

    pub(crate) async fn has_adopt(&self) {
        while self.adopts.lock().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }

    pub(crate) fn opens(&self) -> usize {
        *self.opens.lock()
    }

    pub(crate) fn let_go(&self, listeners: usize) {
        *self.futile.lock() = listeners;
    }

    pub(crate) fn listens(&self) -> usize {
        *self.listens.lock()
    }

    pub(crate) fn hinted(&self) -> usize {
        *self.hinted.lock()
    }

    pub(crate) async fn has_post(&self) {
        while self.posts.lock().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }

    pub(crate) fn die(&self) {
        self.die_by(Death::Killed);
    }

    pub(crate) fn die_by(&self, death: Death) {
        self.joined().access.set_away(true);
        *self.death.lock() = Some(death);
        self.dead.send_replace(true);
    }

    pub(crate) fn death(&self) -> Option<Death> {
        *self.death.lock()
    }

    pub(crate) async fn dies(&self) {
        let _ = self.dead.subscribe().wait_for(|dead| *dead).await;
    }

    pub(crate) async fn drain(&self) {
        self.joined().members.drain().await;
        *self.draining.lock() = true;
        self.release().await;
    }

    pub(crate) async fn release(&self) {
        let epochs: Vec<_> = self.epochs.lock().drain().collect();
        for (session, epoch) in epochs {
            let directory = &self.store.directory;
            let released = directory.release(&session, epoch, Bytes::new(), DAY).await;
            assert!(matches!(released, Ok(()) | Err(StoreError::Stale)));
        }
        self.moved.send_modify(|count| *count += 1);
    }

    pub(crate) fn drop_readers(&self) {
        self.moved.send_modify(|count| *count += 1);
    }

    async fn own(&self, to: &SessionRef) -> Result<(), GatewayError> {
        let directory = &self.store.directory;
        let placement = directory.lookup(&to.session).await.unwrap();
        if to.hinted {
            *self.hinted.lock() += 1;
            let owner = placement.as_ref().and_then(|held| held.owner.as_ref());
            if owner != Some(&self.id) {
                return Err(GatewayError::Moved { owner: None });
            }
        }
        let placement = placement.ok_or(GatewayError::NotFound)?;
        if placement.principal != to.principal {
            return Err(GatewayError::NotFound);
        }
        match placement.owner {
            Some(owner) if owner == self.id => {
                let session = to.session.clone();
                self.epochs.lock().insert(session, placement.epoch);
            }
            None if !*self.draining.lock() => {
                let refused = self.refuses_to_take.lock().clone();
                if let Some(refusal) = refused {
                    return Err(refusal);
                }
                let claim = directory.claim(&to.session, &self.id).await;
                let claim = claim.map_err(|_| GatewayError::Moved { owner: None })?;
                self.epochs.lock().insert(to.session.clone(), claim.epoch);
            }
            Some(owner) if !*self.draining.lock() => {
                let liveness = self.joined().members.liveness();
                let Some(evidence) = liveness.evidence_against(&owner).await else {
                    return Err(GatewayError::Moved { owner: Some(owner) });
                };
                let claim = directory.claim_on_evidence(&to.session, &self.id, &evidence);
                let claim = claim.await;
                let claim = claim.map_err(|_| GatewayError::Moved { owner: None })?;
                self.epochs.lock().insert(to.session.clone(), claim.epoch);
            }
            owner => return Err(GatewayError::Moved { owner }),
        }
        Ok(())
    }

    fn read(&self, cursor: EventId) -> EventStream {
        self.log
            .read(cursor, self.moved.subscribe(), self.dead.subscribe())
    }
}

#[async_trait]
impl SessionGateway for ScriptedNode {
    async fn open(&self, open: OpenSession) -> Result<Opened, GatewayError> {
        *self.opens.lock() += 1;
        tokio::task::yield_now().await;
        let refused = self.refuses_to_open.lock().clone();
        if let Some(refusal) = refused {
            return Err(refusal);
        }
        let session = SessionId::opened_by(&self.id);
        let new = shoal_ports::NewSession {
            session: session.clone(),
            principal: open.principal,
            owner: self.id.clone(),
            record: Bytes::new(),
            idle: DAY,
        };
        self.store.directory.create(new).await.unwrap();
        Ok(Opened {
            session,
            revision: None,
            response: None,
        })
    }

    async fn deliver(&self, to: &SessionRef, post: Post) -> Result<Delivered, GatewayError> {
        self.own(to).await?;
        self.posts.lock().push((post.delivery, post.repeated));
        let reply = self.script.lock().pop_front();
        match reply {
            None => Ok(Delivered::Json(Bytes::from(self.id.to_string()))),
            Some(Reply::Hang) => std::future::pending().await,
            Some(Reply::Error(error)) => Err(error),
            Some(Reply::Stream) => Ok(Delivered::Stream(self.read(Log::id(0)))),
        }
    }

    async fn listen(
        &self,
        to: &SessionRef,
        cursor: Option<EventId>,
    ) -> Result<EventStream, GatewayError> {
        self.own(to).await?;
        *self.listens.lock() += 1;
        let stream = self.read(cursor.unwrap_or(Log::id(0)));
        let mut futile = self.futile.lock();
        if *futile > 0 {
            *futile -= 1;
            self.drop_readers();
        }
        Ok(stream)
    }

    async fn close(&self, to: &SessionRef) -> Result<(), GatewayError> {
        self.own(to).await?;
        let epoch = self.epochs.lock().remove(&to.session).unwrap();
        self.store
            .directory
            .remove(&to.session, epoch)
            .await
            .unwrap();
        let reply = self.script.lock().pop_front();
        match reply {
            Some(Reply::Hang) => std::future::pending().await,
            Some(Reply::Error(error)) => Err(error),
            _ => Ok(()),
        }
    }

    fn new_task(&self) -> Result<SessionId, GatewayError> {
        Ok(SessionId::of_task_opened_by(&self.id))
    }

    async fn adopt(&self, to: &SessionRef, call: AdoptCall) -> Result<Task, GatewayError> {
        let adopted = (to.session.clone(), call.repeated);
        self.adopts.lock().push(adopted);
        let reply = self.script.lock().pop_front();
        if let Some(Reply::Error(error)) = reply {
            return Err(error);
        }
        let new = shoal_ports::NewSession {
            session: to.session.clone(),
            principal: to.principal.clone(),
            owner: self.id.clone(),
            record: Bytes::new(),
            idle: DAY,
        };
        if let Err(StoreError::Held) = self.store.directory.create(new).await {
            self.own(to).await?;
        }
        if let Some(Reply::Hang) = reply {
            std::future::pending::<()>().await;
        }
        Ok(task(&self.id))
    }

    async fn ask_task(&self, to: &SessionRef, _: TaskRequest) -> Result<Task, GatewayError> {
        self.own(to).await?;
        let reply = self.script.lock().pop_front();
        match reply {
            Some(Reply::Hang) => std::future::pending().await,
            Some(Reply::Error(error)) => Err(error),
            _ => Ok(task(&self.id)),
        }
    }

    async fn until_over(
        &self,
        to: &SessionRef,
        _: Option<&[RequestId]>,
    ) -> Result<(), GatewayError> {
        self.own(to).await
    }

    async fn tasks_of(&self, session: &SessionRef) -> Result<Option<SessionTasks>, GatewayError> {
        self.own(session).await?;
        Ok(None)
    }
}

fn task(node: &NodeId) -> Task {
    Task {
        id: node.to_string(),
        state: TaskState::Working,
        created_at: 0,
        updated_at: 0,
        ttl_ms: 0,
        poll_interval_ms: 0,
    }
}
