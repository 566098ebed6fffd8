//! The public face: a [`Dispatcher`] over workers that come and go.

use std::sync::Arc;

use async_trait::async_trait;
use futures::future::join_all;
use serde_json::Value;
use shoal_ports::{
    Bus, Call, CallFailure, CallId, CallOutcome, Dispatcher, Durability, RunningCall, ServerFacts,
    SessionId, Worker, WorkerId,
};
use shoal_protocol::{Era, KeyRing, Method, RawJson, RawObject, RpcError, code};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::bridge::{
    LegacyBridge, Modern, ModernBridge, Purpose, Resumed, answered, resume, running,
};
use crate::catalog::{Conflict, OfferedTool};
use crate::config::Config;
use crate::durability;
use crate::line::Line;
use crate::pools::View;
use crate::route::{Refused, check_members, route, unknown_resource};
use crate::shared::Shared;
use crate::status::Status;

/// Runs calls on any number of workers; a cheap handle.
#[derive(Clone)]
pub struct Dispatch {
    shared: Arc<Shared>,
}

impl Dispatch {
    /// A dispatcher without workers. `keys` seal what multi round-trip requests carry through clients;
    /// every node must have the same.
    pub fn new(config: Config, keys: KeyRing, bus: Arc<dyn Bus>) -> Self {
        Self {
            shared: Arc::new(Shared::new(config, keys, bus)),
        }
    }

    /// Takes a worker in, and follows what it says until it is removed. A worker of the same id is
    /// replaced; its running calls go on.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub fn add_worker(&self, worker: Arc<dyn Worker>) {
        let mut announcements = worker.announcement();
        let news = worker.news();
        let said = announcements.borrow_and_update().clone();
        let (id, pool) = (said.worker.clone(), said.pool.clone());
        tracing::info!(worker = %id, %pool, "a worker joined");
        let ready = said.catalog.is_some();
        // Registered before it is followed, so that no announcement is heard of a stranger.
        self.shared.add(worker.clone(), said);
        let weak = Arc::downgrade(&self.shared);
        let forward = tokio::spawn(crate::watch::news(weak.clone(), news));
        let follow = tokio::spawn(async move {
            if let (true, Some(shared)) = (ready, weak.upgrade()) {
                shared.subscriptions.restore(&pool, worker.as_ref()).await;
            }
            crate::watch::announcements(weak, worker, announcements).await;
        });
        let tasks = [follow.abort_handle(), forward.abort_handle()];
        self.shared.keep(&id, tasks);
    }

    /// Lets a worker go; nothing new is started on it. Returns whether it was there.
    pub fn remove_worker(&self, worker: &WorkerId) -> bool {
        let removed = self.shared.remove(worker);
        if removed {
            tracing::info!(%worker, "a worker left");
        }
        removed
    }

    /// What two pools both claim, for `/readyz` and the status.
    pub fn conflicts(&self) -> Vec<Conflict> {
        self.shared.view().catalog.conflicts.clone()
    }

    /// What an operator can see.
    pub fn status(&self) -> Status {
        let Shared {
            lot, subscriptions, ..
        } = &*self.shared;
        Status::of(&self.shared.view(), lot.len(), subscriptions.len())
    }

    /// A page of a list.
    fn list(&self, view: &View, call: &Call) -> Result<RunningCall, CallFailure> {
        let era = call.caller.revision.era();
        let Some(pages) = view.catalog.list(&call.method) else {
            return match view.unannounced() {
                Some(failure) => Err(failure),
                None => Ok(answered(CallOutcome::Error(RpcError::method_not_found(
                    call.method.as_str(),
                )))),
            };
        };
        let page = pages.get(era, call.params.as_ref());
        Ok(answered(match page {
            Ok(page) => CallOutcome::Result(page),
            Err(error) => CallOutcome::Error(error),
        }))
    }

    async fn start_legacy(&self, view: &View, call: Call) -> Result<RunningCall, CallFailure> {
        let shaping = view.catalog.shaping.clone();
        let purpose = Purpose {
            method: call.method.clone(),
            caller: call.caller.clone(),
            deadline: call.deadline,
            started: Instant::now(),
            max_rounds: self.shared.config.max_rounds,
        };
        match self.line(view, call).await? {
            Ok(line) => Ok(running(line, 0, |line| {
                LegacyBridge::new(line, shaping, Some(purpose))
            })),
            Err(outcome) => {
                let outcome = shaping.outcome(Era::Legacy, &purpose.method, outcome);
                Ok(answered(outcome))
            }
        }
    }

    async fn start_modern(&self, view: &View, mut call: Call) -> Result<RunningCall, CallFailure> {
        let mut request = Modern {
            shared: self.shared.clone(),
            shaping: view.catalog.shaping.clone(),
            method: call.method.clone(),
            params: call.params.clone(),
            caller: call.caller.clone(),
            started: Instant::now(),
            deadline: None,
            retry: None,
        };
        match resume(&self.shared, &call) {
            Ok(None) => {}
            Ok(Some(Resumed::Parked(waking))) => {
                request.deadline = Some(call.deadline);
                return Ok(waking.wake(request));
            }
            Ok(Some(Resumed::Backend(params))) => call.params = Some(params),
            Err(error) => return Ok(answered(CallOutcome::Error(error))),
        }
        if call.method.may_require_input() && can_be_asked(&call.caller.capabilities) {
            // A parked call outlives its request: the worker's deadline must leave room for that.
            request.deadline = Some(call.deadline);
            call.deadline += self.shared.config.parking_time();
        }
        match self.line(view, call).await? {
            Ok(line) => Ok(running(line, 0, |line| {
                ModernBridge::started(request, line)
            })),
            Err(outcome) => {
                let shaping = &request.shaping;
                let outcome = shaping.outcome(Era::Modern, &request.method, outcome);
                Ok(answered(outcome))
            }
        }
    }

    /// Checks a call and starts it; the inner error is the answer to a call that is at fault itself.
    async fn line(
        &self,
        view: &View,
        mut call: Call,
    ) -> Result<Result<Line, CallOutcome>, CallFailure> {
        let config = &self.shared.config;
        let revision = call.caller.revision;
        let route = match route(view, config, revision, &call.method, call.params.as_ref()) {
            Ok(route) => route,
            Err(Refused::Answer(outcome)) => return Ok(Err(outcome)),
            Err(Refused::NotReady(failure)) => return Err(failure),
        };
        call.params = route.params;
        Line::start(self.shared.clone(), route.pool, call)
            .await
            .map(Ok)
    }
}

#[async_trait]
impl Dispatcher for Dispatch {
    fn facts(&self) -> watch::Receiver<Arc<ServerFacts>> {
        self.shared.facts.subscribe()
    }

    fn durability(&self, method: &Method, params: Option<&RawJson>) -> Durability {
        let view = self.shared.view();
        match tool(&view, method, params) {
            None => Durability::Repeatable,
            Some(OfferedTool { pool, tool }) => {
                let settings = self.shared.config.pools.get(pool.as_ref());
                durability::of_tool(settings, &tool.name, tool.hints)
            }
        }
    }

    fn check_param_headers(
        &self,
        params: Option<&RawJson>,
        header: &dyn Fn(&str) -> Option<Vec<u8>>,
    ) -> Result<(), RpcError> {
        let view = self.shared.view();
        let headers = tool(&view, &Method::ToolsCall, params)
            .and_then(|offered| offered.tool.headers.as_ref().ok())
            .filter(|headers| !headers.is_empty());
        let Some(headers) = headers else {
            return Ok(());
        };
        let arguments = params.and_then(RawObject::of);
        let arguments = arguments.and_then(|params| params.get("arguments"));
        let arguments: Value = arguments
            .and_then(|arguments| arguments.read().ok())
            .unwrap_or_default();
        let sent: Vec<(&str, Vec<u8>)> = headers
            .iter()
            .filter_map(|param| Some((param.name.as_str(), header(&param.name)?)))
            .collect();
        headers
            .check(&arguments, |name| {
                let found = sent.iter().find(|(sent, _)| *sent == name);
                found.map(|(_, value)| value.as_slice())
            })
            .map_err(RpcError::from)
    }

    async fn start(&self, call: Call) -> Result<RunningCall, CallFailure> {
        let view = self.shared.view();
        if !call.method.runs_on_backend() {
            return self.list(&view, &call);
        }
        if let Err(error) = check_members(call.params.as_ref()) {
            return Ok(answered(CallOutcome::Error(error)));
        }
        match call.caller.revision.era() {
            Era::Legacy => self.start_legacy(&view, call).await,
            Era::Modern => self.start_modern(&view, call).await,
        }
    }

    async fn attach(
        &self,
        call: CallId,
        worker: &WorkerId,
        after: u64,
    ) -> Result<RunningCall, CallFailure> {
        let view = self.shared.view();
        let Some(found) = view.worker(worker) else {
            return Err(CallFailure::OutcomeUnknown {
                reason: format!("its worker {worker} is gone"),
            });
        };
        let mut attached = found.attach(call, after).await?;
        attached.worker.get_or_insert_with(|| worker.clone());
        let line = Line::attached(self.shared.clone(), call, attached, after);
        let shaping = view.catalog.shaping.clone();
        Ok(running(line, after, |line| {
            LegacyBridge::new(line, shaping, None)
        }))
    }

    async fn subscribe(&self, uri: &str) -> Result<(), RpcError> {
        let view = self.shared.view();
        let Some(pool) = view.catalog.resource(uri) else {
            return Err(match view.unannounced() {
                Some(failure) => failure.to_rpc(),
                None if !view.catalog.supports(&Method::ResourcesRead) => {
                    RpcError::method_not_found(Method::ResourcesSubscribe.as_str())
                }
                None => unknown_resource(code::RESOURCE_NOT_FOUND, uri),
            });
        };
        self.shared.subscriptions.add(&view, pool, uri).await
    }

    async fn unsubscribe(&self, uri: &str) {
        let view = self.shared.view();
        self.shared.subscriptions.remove(&view, uri).await;
    }

    async fn end_session(&self, session: &SessionId) {
        let view = self.shared.view();
        join_all(view.members().map(|m| m.worker.end_session(session))).await;
    }
}

/// The tool that a call names.
fn tool<'v>(view: &'v View, method: &Method, params: Option<&RawJson>) -> Option<&'v OfferedTool> {
    if *method != Method::ToolsCall {
        return None;
    }
    let name = RawObject::of(params?)?.get("name")?.string()?;
    view.catalog.tool(&name)
}

/// Whether a client declared anything that a call could ask it for.
fn can_be_asked(capabilities: &RawJson) -> bool {
    RawObject::of(capabilities).is_some_and(|declared| {
        ["elicitation", "sampling", "roots"]
            .iter()
            .any(|capability| declared.has(capability))
    })
}
