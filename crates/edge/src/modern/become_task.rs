//! Turns a call that outlasts `tasks.after` into a task: a new session takes the call over at its
//! worker, as a session's next owner does.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::future::BoxFuture;
use shoal_ports::{
    Bound, Call, CallControl, CallId, CallPlan, ClientInfo, Delivered, ForwardedHeaders,
    GatewayError, OpenSession, Post, Principal, Repeat, RequestPlan, Route, RunningCall,
    SessionGateway, SessionRef, SessionTransport,
};
use shoal_protocol::task::created;
use shoal_protocol::{
    Body, CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, Message, Method, PROTOCOL_VERSION, RawJson,
    RawObject, Request, RequestId, Revision, TraceContext,
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
    origin: Origin,
}

struct Origin {
    gateway: Arc<dyn SessionGateway>,
    principal: Principal,
    trace: Option<TraceContext>,
    headers: ForwardedHeaders,
    client_info: Option<ClientInfo>,
    capabilities: RawJson,
    params: Option<RawJson>,
    deadline: Instant,
    repeat: Repeat,
    /// The call's route. `None` for a request that continues an earlier one.
    route: Option<Route>,
}

pub(super) enum Became {
    Task(RawJson, TaskHandle),
    Nothing(RunningCall),
}

pub(super) struct TaskHandle {
    gateway: Arc<dyn SessionGateway>,
    to: SessionRef,
}

impl Candidate {
    pub(super) fn of(visit: &Visit<'_>, call: &Call) -> Box<Self> {
        let edge = visit.edge;
        let caller = &call.caller;
        Box::new(Self {
            due: Box::pin(sleep_until(Instant::now() + edge.config.tasks.after)),
            bound: None,
            origin: Origin {
                gateway: Arc::clone(&edge.gateway),
                principal: caller.principal.clone(),
                trace: call.trace.clone(),
                headers: caller.headers.clone(),
                client_info: caller.client_info.clone(),
                capabilities: caller.capabilities.clone(),
                params: call.params.clone(),
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

    /// Waits until the call should become a task and its answers have arrived at the worker. Returns the
    /// call's worker, if known.
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

    /// Makes the call a task, even if the returned handle is dropped.
    pub(super) fn begin(self, running: RunningCall, bound: Option<Bound>) -> JoinHandle<Became> {
        tokio::spawn(async move {
            let origin = self.origin;
            match origin.enter(bound).await {
                Some((told, task)) => {
                    metrics().tasks.created(TaskOutcome::Created);
                    Became::Task(told, task)
                }
                None => {
                    metrics().tasks.created(TaskOutcome::Refused);
                    Became::Nothing(running)
                }
            }
        })
    }
}

impl Origin {
    async fn enter(self, bound: Option<Bound>) -> Option<(RawJson, TaskHandle)> {
        let bound = bound?;
        let call = bound.call;
        let plan = self.plan_at(bound)?;
        let open = OpenSession {
            principal: self.principal.clone(),
            transport: SessionTransport::Task,
            initialize: Some(self.initialize()),
            trace: self.trace.clone(),
        };
        let opened = self.gateway.open(open).await;
        let opened = opened
            .inspect_err(|error| tracing::debug!(%error, "a call could not become a task"))
            .ok()?;
        let task = TaskHandle {
            gateway: Arc::clone(&self.gateway),
            to: SessionRef {
                trace: self.trace.clone(),
                headers: self.headers.clone(),
                ..SessionRef::new(opened.session, self.principal.clone())
            },
        };
        // A session node of an earlier release does not know tasks and creates an ordinary session.
        if task.to.session.is_task()
            && let Some(told) = self.hand_over(&task, call, plan).await
        {
            return Some((told, task));
        }
        task.end().await;
        None
    }

    /// Hands the call to the task's session, which answers once it has journaled the call.
    async fn hand_over(
        &self,
        task: &TaskHandle,
        call: CallId,
        plan: RequestPlan,
    ) -> Option<RawJson> {
        let runs_once = plan.repeat == Repeat::Never;
        let request = |id: &str, method, params| {
            let id = RequestId::from_string(id);
            Body::Single(Message::Request(Request { id, method, params }))
        };
        let post = Post {
            body: request("call", Method::ToolsCall, self.params_of_call()),
            delivery: call.into(),
            // After the first attempt, the worker may know the call under the task.
            repeated: runs_once,
            plan: Some(Arc::new(Ok(plan))),
        };
        match self.gateway.deliver(&task.to, post).await {
            Ok(Delivered::Stream(_)) => {}
            Ok(_) => return None,
            Err(error) => {
                tracing::debug!(%error, "a call could not become a task");
                return None;
            }
        }
        let mut named = RawObject::default();
        named.set("taskId", RawJson::of(task.to.session.as_str()));
        let named = named.to_json();
        loop {
            let get = Post::new(request("get", Method::TasksGet, Some(named.clone())));
            match self.gateway.deliver(&task.to, get).await {
                Ok(Delivered::Json(text)) => {
                    let answer = RawJson::from_valid(text);
                    return answer.member("result").map(|task| created(&task));
                }
                // The task may already have the call, so the call cannot continue here.
                Err(error) if may_pass(&error) && Instant::now() < self.deadline => {
                    tracing::debug!(%error, "a new task does not respond yet");
                    sleep(AGAIN).await;
                }
                Ok(_) | Err(_) => return None,
            }
        }
    }

    /// Plans the task's call for the worker where it runs. Returns `None` if the worker could not tell
    /// whether it had the call before.
    fn plan_at(&self, bound: Bound) -> Option<RequestPlan> {
        let runs_once = self.repeat == Repeat::Never;
        let Bound { pool, worker, .. } = bound;
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
        let plan = RequestPlan {
            repeat: self.repeat,
            route,
            worker,
        };
        (!runs_once || plan.worker.ledger.is_some()).then_some(plan)
    }

    /// Writes the `initialize` that a legacy client with the same capabilities would send.
    fn initialize(&self) -> Request {
        let mut params = RawObject::default();
        let revision = Revision::LATEST_LEGACY.as_str();
        params.set("protocolVersion", RawJson::of(revision));
        let unnamed = || RawJson::from_static(r#"{"name":"","version":""}"#);
        let client_info = self.client_info.as_ref();
        let client_info = client_info.map_or_else(unnamed, |info| info.as_json().clone());
        params.set("clientInfo", client_info);
        params.set("capabilities", self.capabilities.clone());
        Request {
            id: RequestId::from_string("initialize"),
            method: Method::Initialize,
            params: Some(params.to_json()),
        }
    }

    fn params_of_call(&self) -> Option<RawJson> {
        let params = self.params.as_ref()?;
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
}

fn may_pass(error: &GatewayError) -> bool {
    matches!(
        error,
        GatewayError::Unavailable { .. }
            | GatewayError::Unreachable { .. }
            | GatewayError::Unsent { .. }
            | GatewayError::Moved { .. }
            | GatewayError::Overloaded { .. }
    )
}

impl TaskHandle {
    pub(super) fn hold(&self, places: CallPlaces) {
        places.becomes(Arc::clone(&self.gateway), self.to.clone());
    }

    pub(super) async fn end(&self) {
        if let Err(error) = self.gateway.close(&self.to).await {
            tracing::debug!(%error, "cannot end a task whose client does not know it");
        }
    }
}
