//! Turns a call that outlasts `tasks.after` into a task: a new session takes the call over at its
//! worker, as a session's next owner does.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::future::BoxFuture;
use shoal_ports::{
    AdoptCall, Bound, Call, CallControl, CallPlan, GatewayError, Repeat, Route, RunningCall,
    SessionGateway, SessionId, SessionRef, TaskClient,
};
use shoal_protocol::task::Task;
use shoal_protocol::{
    CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROTOCOL_VERSION, RawJson, RawObject, Request,
    RequestId,
};
use shoal_telemetry::metrics::{TaskOutcome, metrics};
use tokio::task::JoinHandle;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use crate::held_places::CallPlaces;
use crate::visit::Visit;

const AGAIN: Duration = Duration::from_millis(100);

pub(super) struct Candidate {
    due: Pin<Box<Sleep>>,
    bound: Option<BoxFuture<'static, Option<Bound>>>,
    origin: TaskOrigin,
}

struct TaskOrigin {
    gateway: Arc<dyn SessionGateway>,
    /// The caller's session is set when the task gets its id.
    caller: SessionRef,
    client: TaskClient,
    request: Request,
    deadline: Instant,
    repeat: Repeat,
    /// `None` for a request that continues an earlier one.
    route: Option<Route>,
}

pub(super) enum BecameTask {
    Task(Box<Task>, TaskHandle),
    Nothing(RunningCall),
}

pub(super) struct TaskHandle {
    gateway: Arc<dyn SessionGateway>,
    to: SessionRef,
}

impl Candidate {
    pub(super) fn of(visit: &Visit<'_>, id: &RequestId, call: &Call) -> Box<Self> {
        let edge = visit.edge;
        let caller = &call.caller;
        Box::new(Self {
            due: Box::pin(sleep_until(Instant::now() + edge.config.tasks.after.get())),
            bound: None,
            origin: TaskOrigin {
                gateway: Arc::clone(&edge.gateway),
                caller: SessionRef {
                    trace: call.trace.clone(),
                    headers: caller.headers.clone(),
                    ..SessionRef::new(SessionId::new(""), caller.principal.clone())
                },
                client: TaskClient {
                    client_info: caller.client_info.clone(),
                    capabilities: caller.capabilities.clone(),
                },
                request: Request {
                    id: id.clone(),
                    method: call.method.clone(),
                    params: call.params.clone(),
                },
                deadline: call.deadline,
                repeat: Repeat::Never,
                route: None,
            },
        })
    }

    pub(super) fn planned(&mut self, plan: &CallPlan) {
        self.origin.repeat = plan.call.repeat;
        self.origin.route.clone_from(&plan.route);
    }

    /// Ready once the call's answers have arrived at the worker. Returns the call's worker, if known.
    pub(super) fn poll_due(
        &mut self,
        control: &dyn CallControl,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Bound>> {
        if !self.due.is_elapsed() {
            ready!(self.due.as_mut().poll(cx));
        }
        let bound = self.bound.get_or_insert_with(|| control.bound());
        bound.as_mut().poll(cx)
    }

    /// Completes even if the returned handle is dropped.
    pub(super) fn begin(
        self,
        running: RunningCall,
        bound: Option<Bound>,
    ) -> JoinHandle<BecameTask> {
        tokio::spawn(async move {
            let origin = self.origin;
            match origin.enter(bound).await {
                Some((task, handle)) => {
                    metrics().tasks.created(TaskOutcome::Created);
                    BecameTask::Task(Box::new(task), handle)
                }
                None => {
                    metrics().tasks.created(TaskOutcome::Refused);
                    BecameTask::Nothing(running)
                }
            }
        })
    }
}

impl TaskOrigin {
    async fn enter(mut self, bound: Option<Bound>) -> Option<(Task, TaskHandle)> {
        let call = self.adopted(bound?)?;
        let session = self.gateway.new_task();
        self.caller.session = session.inspect_err(not_begun).ok()?;
        let handle = TaskHandle {
            gateway: self.gateway,
            to: self.caller,
        };
        let task = handle.adopt(call, self.deadline).await?;
        Some((task, handle))
    }

    /// `None` if a run-once call has no ledger number, because the worker could not tell whether it had the call
    /// before, or if a repeatable call has no route.
    fn adopted(&self, bound: Bound) -> Option<AdoptCall> {
        let runs_once = self.repeat == Repeat::Never;
        let Bound { call, pool, worker } = bound;
        let attached = || Route {
            pool,
            tool: None,
            params: None,
            hold: None,
            rule: None,
        };
        let route = match &self.route {
            Some(route) => route.clone(),
            None if runs_once => attached(),
            None => return None,
        };
        let adopted = AdoptCall {
            call,
            request: Request {
                params: params_of_call(self.request.params.as_ref()),
                ..self.request.clone()
            },
            repeat: self.repeat,
            route,
            binding: worker,
            client: self.client.clone(),
            repeated: false,
        };
        (!runs_once || adopted.binding.ledger.is_some()).then_some(adopted)
    }
}

fn params_of_call(params: Option<&RawJson>) -> Option<RawJson> {
    let params = params?;
    let (Some(mut params), Some(meta)) = (RawObject::of(params), params.member("_meta")) else {
        return Some(params.clone());
    };
    let mut meta = RawObject::of(&meta).unwrap_or_default();
    for modern in [
        PROTOCOL_VERSION,
        CLIENT_INFO,
        CLIENT_CAPABILITIES,
        LOG_LEVEL,
    ] {
        meta.remove(modern);
    }
    match meta.is_empty() {
        true => drop(params.remove("_meta")),
        false => params.set("_meta", meta.to_json()),
    }
    Some(params.to_json())
}

fn not_begun(error: &GatewayError) {
    tracing::debug!(%error, "a call could not become a task");
}

impl TaskHandle {
    /// Repeats the request while the session may have the call, because the call then cannot continue here.
    async fn adopt(&self, mut call: AdoptCall, deadline: Instant) -> Option<Task> {
        loop {
            match self.gateway.adopt(&self.to, call.clone()).await {
                Ok(task) => return Some(task),
                Err(error @ GatewayError::Unreachable { .. }) => {
                    not_begun(&error);
                    if Instant::now() >= deadline {
                        self.end().await;
                        return None;
                    }
                    call.repeated = true;
                    sleep(AGAIN).await;
                }
                Err(error) => {
                    not_begun(&error);
                    // An earlier attempt may still make the task.
                    if call.repeated {
                        self.end().await;
                    }
                    return None;
                }
            }
        }
    }

    pub(super) fn hold(&self, places: CallPlaces) {
        places.becomes(Arc::clone(&self.gateway), self.to.clone());
    }

    pub(super) async fn end(&self) {
        if let Err(error) = self.gateway.close(&self.to).await {
            tracing::debug!(%error, "cannot end a task whose client does not know it");
        }
    }
}
