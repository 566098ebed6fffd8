use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use shoal_ports::{
    Announcement, Attach, Call, CallFailure, CallId, CallOutcome, Epoch, LedgerNumber, OwnLists,
    PoolCatalog, ResourceUpdated, RunningCall, SessionId, Worker, WorkerId, WorkerLoad,
};
use shoal_protocol::{RawJson, RpcError};
use tokio::sync::{broadcast, watch};

use crate::record::Record;

type Script = dyn Fn(&Call) -> Plan + Send + Sync;

pub(crate) enum Plan {
    Run,
    End(CallOutcome),
    Refuse(CallFailure),
    Stall,
    StallAndRefuse,
}

pub(crate) struct ScriptedWorker {
    pub(crate) id: WorkerId,
    pub(crate) announcement: watch::Sender<Announcement>,
    pub(crate) updates: broadcast::Sender<ResourceUpdated>,
    pub(crate) own_lists: watch::Sender<OwnLists>,
    pub(crate) load: Mutex<WorkerLoad>,
    calls: watch::Sender<HashMap<CallId, Arc<Record>>>,
    pub(crate) started: Mutex<Vec<Call>>,
    pub(crate) attached: Mutex<Vec<(CallId, u64)>>,
    pub(crate) epochs: Mutex<Vec<Option<Epoch>>>,
    pub(crate) log: watch::Sender<Vec<String>>,
    pub(crate) let_start: watch::Sender<bool>,
    script: Box<Script>,
}

impl ScriptedWorker {
    pub(crate) fn new(
        id: &str,
        script: impl Fn(&Call) -> Plan + Send + Sync + 'static,
    ) -> Arc<Self> {
        let id = WorkerId::new(id);
        Arc::new(Self {
            announcement: watch::Sender::new(Announcement {
                worker: id.clone(),
                pool: "tools".into(),
                catalog: Some(Arc::new(PoolCatalog::default())),
                detail: None,
            }),
            id,
            updates: broadcast::Sender::new(16),
            own_lists: watch::Sender::default(),
            load: Mutex::new(WorkerLoad {
                running: 0,
                queued: 0,
                capacity: 8,
            }),
            calls: watch::Sender::default(),
            started: Mutex::default(),
            attached: Mutex::default(),
            epochs: Mutex::default(),
            log: watch::Sender::default(),
            let_start: watch::Sender::new(false),
            script: Box::new(script),
        })
    }

    pub(crate) fn running(id: &str) -> Arc<Self> {
        Self::new(id, |_| Plan::Run)
    }

    pub(crate) fn echoing(id: &str) -> Arc<Self> {
        Self::new(id, |call| {
            let params = call.params.clone();
            Plan::End(CallOutcome::Result(
                params.unwrap_or(RawJson::from_static("null")),
            ))
        })
    }

    pub(crate) async fn call(&self, id: CallId) -> Arc<Record> {
        let mut calls = self.calls.subscribe();
        let calls = calls.wait_for(|calls| calls.contains_key(&id)).await;
        Arc::clone(&calls.unwrap()[&id])
    }

    pub(crate) fn starts(&self, id: CallId) -> usize {
        self.started
            .lock()
            .iter()
            .filter(|call| call.id == id)
            .count()
    }

    pub(crate) async fn logged(&self, line: &str) {
        let mut log = self.log.subscribe();
        log.wait_for(|log| log.iter().any(|known| known == line))
            .await
            .unwrap();
    }

    async fn stall(&self) {
        let mut let_start = self.let_start.subscribe();
        let _ = let_start.wait_for(|start| *start).await;
    }

    fn note(&self, line: String) {
        self.log.send_modify(|log| log.push(line));
    }
}

#[async_trait]
impl Worker for ScriptedWorker {
    fn announcement(&self) -> watch::Receiver<Announcement> {
        self.announcement.subscribe()
    }

    fn resource_updates(&self) -> broadcast::Receiver<ResourceUpdated> {
        self.updates.subscribe()
    }

    fn own_lists(&self) -> watch::Receiver<OwnLists> {
        self.own_lists.subscribe()
    }

    fn load(&self) -> WorkerLoad {
        *self.load.lock()
    }

    async fn start(&self, call: Call, _: Option<LedgerNumber>) -> Result<RunningCall, CallFailure> {
        let id = call.id;
        self.started.lock().push(call.clone());
        let known = self.calls.borrow().get(&id).map(Arc::clone);
        if let Some(record) = known {
            return Ok(record.read(0, &self.id));
        }
        let record = Arc::new(Record(watch::Sender::default()));
        match (self.script)(&call) {
            Plan::Refuse(failure) => return Err(failure),
            Plan::End(outcome) => record.finish(outcome),
            Plan::Stall => self.stall().await,
            Plan::StallAndRefuse => {
                self.stall().await;
                let reason = "on second thoughts".to_owned();
                return Err(CallFailure::NotExecuted { reason });
            }
            Plan::Run => {}
        }
        self.calls.send_modify(|calls| {
            calls.insert(id, Arc::clone(&record));
        });
        Ok(record.read(0, &self.id))
    }

    async fn start_known(
        &self,
        call: Call,
        _: Option<LedgerNumber>,
    ) -> Result<RunningCall, CallFailure> {
        let known = self.calls.borrow().get(&call.id).map(Arc::clone);
        let record = known.ok_or_else(CallFailure::worker_left)?;
        Ok(record.read(0, &self.id))
    }

    async fn attach(&self, attach: Attach) -> Result<RunningCall, CallFailure> {
        let Attach { call, after, .. } = attach;
        self.attached.lock().push((call, after));
        self.epochs.lock().push(attach.epoch);
        let known = self.calls.borrow().get(&call).map(Arc::clone);
        match (known, attach.reader) {
            (Some(record), Some(reader)) => Ok(record.read_as(reader, after, &self.id)),
            (Some(record), None) => Ok(record.read(after, &self.id)),
            (None, _) => Err(CallFailure::OutcomeUnknown {
                reason: "never heard of it".to_owned(),
            }),
        }
    }

    fn acknowledge(&self, call: CallId) {
        self.note(format!("acknowledged {call}"));
    }

    async fn subscribe(&self, uri: &str) -> Result<(), RpcError> {
        self.note(format!("subscribe {uri}"));
        if uri.starts_with("no:") {
            return Err(RpcError::invalid_params("no such resource"));
        }
        Ok(())
    }

    async fn unsubscribe(&self, uri: &str) {
        self.note(format!("unsubscribe {uri}"));
    }

    async fn end_session(&self, session: &SessionId) {
        self.note(format!("end {session}"));
    }
}
