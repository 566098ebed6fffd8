//! The interface of the dispatcher to edges and sessions.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use serde_json::Value;
use shoal_ports::{
    Binding, Call, CallFailure, CallId, CallPlan, Caller, Dispatcher, Drawn, Expected, ListScope,
    Planning, ResourceUpdated, RunningCall, ServerFacts, SessionId, SessionRef, SettledFacts,
    Starting, WorkerId, at_once,
};
use shoal_protocol::task::TaskSupport;
use shoal_protocol::{Body, Era, Method, RawJson, Request, RpcError, code};
use shoal_telemetry::metrics;
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

use crate::access::Access;
use crate::asker::Asker;
use crate::bridge::instead;
use crate::catalog::OfferedTool;
use crate::coerce;
use crate::dispatch::Dispatch;
use crate::pools::{PoolMember, View, WantedWorker};
use crate::route::unknown_resource;
use crate::start::Resumed;
use crate::subscriptions::Subscriptions;

const LISTS_WITHIN: Duration = Duration::from_secs(10);

#[async_trait]
impl Dispatcher for Dispatch {
    fn facts(&self) -> watch::Receiver<Arc<ServerFacts>> {
        self.shared.facts.subscribe()
    }

    async fn settled_facts(&self) -> Result<SettledFacts, CallFailure> {
        self.facts_in_time().await
    }

    fn resource_updates(&self) -> broadcast::Receiver<ResourceUpdated> {
        self.shared.updates.subscribe()
    }

    fn check_param_headers(
        &self,
        caller: &Caller,
        params: Option<&RawJson>,
        header: &dyn Fn(&str) -> Option<Vec<u8>>,
    ) -> Result<(), RpcError> {
        let view = self.view_of_tool(caller, params);
        let headers_of = |access: &Access| {
            let headers = tool(&view, access, params)?.tool.headers.as_ref().ok();
            headers.filter(|headers| !headers.is_empty())
        };
        // Evaluates the rules last, because few tools mirror arguments into headers.
        let Some(headers) = headers_of(&Access::granted())
            .and_then(|_| headers_of(&Access::of(&self.shared.config, caller)))
        else {
            return Ok(());
        };
        let arguments = params.and_then(|params| params.member("arguments"));
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

    fn requires_task(&self, caller: &Caller, params: Option<&RawJson>) -> bool {
        let view = self.view_of_tool(caller, params);
        view.catalog.requires_tasks
            && tool(&view, &Access::of(&self.shared.config, caller), params)
                .is_some_and(|offered| offered.tool.task_support == Some(TaskSupport::Required))
    }

    fn may_be_task(&self, params: Option<&RawJson>) -> bool {
        let view = self.shared.view();
        // Ignores rules and the caller's own tools, which planning checks.
        tool(&view, &Access::granted(), params).map_or(!view.own.is_empty(), |offered| {
            offered.tool.task_support != Some(TaskSupport::Forbidden)
        })
    }

    fn says_may_be_task(&self, caller: &Caller, params: Option<&RawJson>) -> bool {
        let view = self.view_of_tool(caller, params);
        let access = Access::of(&self.shared.config, caller);
        tool(&view, &access, params).is_none_or(|offered| {
            let said = offered.tool.task_support;
            matches!(said, Some(TaskSupport::Optional | TaskSupport::Required))
        })
    }

    fn plan(&self, call: Call) -> Planning {
        self.plan_call(&self.access(&call), call)
    }

    fn draw(&self, to: &SessionRef, request: &Request, tried: &[WorkerId]) -> Drawn {
        self.draw_worker(to, request, tried)
    }

    fn expect(&self, worker: &WorkerId) -> Option<Expected> {
        self.shared.view().member(worker)?.worker.expect()
    }

    fn takes(&self, worker: &WorkerId, plan: &CallPlan) -> bool {
        let view = self.shared.view();
        let wanted = WantedWorker {
            tool: plan.route.as_ref().and_then(|route| route.tool.as_deref()),
            key: None,
            by: Some((Asker::from(&plan.call.caller), &plan.call.method)),
        };
        let is_let_in = |member: &PoolMember| member.enter(&wanted) || wanted.is_anybodys();
        let member = view.member(worker);
        member.is_some_and(|member| member.is_reachable() && is_let_in(member))
    }

    fn replan(&self, plan: &CallPlan, tried: &[WorkerId]) -> Option<Binding> {
        self.place_again(plan, tried)
    }

    fn start(&self, plan: &CallPlan) -> Starting {
        if let Some(running) = self.start_here(plan) {
            return at_once(Ok(running));
        }
        self.start_later(plan)
    }

    async fn resume(&self, call: Call, after: u64) -> Result<RunningCall, CallFailure> {
        match (call.method.runs_on_backend(), call.caller.revision.era()) {
            (true, Era::Legacy) => {
                let place = self.shared.in_flight.enter(&call);
                let running = self.resume_legacy(call, after).await;
                let running = match place.unless_failed(running)? {
                    Resumed::Running(running) => running,
                    Resumed::Asking(running) => {
                        place.is_told_elsewhere();
                        return Ok(running);
                    }
                };
                let pool = self.counted(&running);
                Ok(place.follow(running, pool))
            }
            // Lists and modern calls have no earlier run to resume, so they start anew.
            _ => match self.plan(call).await {
                Ok(plan) => self.start(&plan).await,
                Err(outcome) => instead(outcome),
            },
        }
    }

    fn acknowledge(&self, worker: &WorkerId, call: CallId) {
        if let Some(member) = self.shared.view().member(worker) {
            member.worker.acknowledge(call);
        }
    }

    fn coerce(&self, body: &mut Body) {
        let view = self.shared.view();
        if view.settings.coerces() {
            coerce::body(&view, body);
        }
    }

    // Rules in a file may start to read grants at any time, and not on all nodes at once.
    fn asks_of_grants(&self) -> bool {
        self.shared.config.policies.is_some()
    }

    async fn subscribe(&self, caller: Option<&Caller>, uri: &str) -> Result<(), RpcError> {
        let (view, access) = match caller {
            Some(caller) => (
                self.learnt_view_of(caller, Instant::now() + LISTS_WITHIN)
                    .await,
                Access::of(&self.shared.config, caller),
            ),
            None => (self.shared.view(), Access::granted()),
        };
        let pool = view.catalog.resource(uri);
        let Some(pool) = pool.filter(|pool| access.resource(&view.catalog, uri, pool)) else {
            return Err(match view.unannounced(access.has_rules()) {
                Some(failure) => failure.to_rpc(),
                None if !view.catalog.supports(&Method::ResourcesRead) => {
                    RpcError::method_not_found(Method::ResourcesSubscribe.as_str())
                }
                None => unknown_resource(code::RESOURCE_NOT_FOUND, uri),
            });
        };
        if view.own.scope(pool) == ListScope::Principal {
            return Err(not_to_be_watched());
        }
        Subscriptions::add(&self.shared, pool, uri).await
    }

    async fn unsubscribe(&self, uri: &str) {
        Subscriptions::remove(&self.shared, uri).await;
    }

    async fn end_session(&self, session: &SessionId) {
        let view = self.shared.view();
        join_all(view.members().map(|m| m.worker.end_session(session))).await;
    }
}

impl Dispatch {
    pub(crate) fn counted(&self, running: &RunningCall) -> Option<Arc<str>> {
        let worker = running.worker.as_ref().filter(|_| metrics::enabled())?;
        let view = self.shared.view();
        Some(view.member(worker)?.pool.clone())
    }
}

/// Workers subscribe once for all callers, so one caller's resources and changes would reach
/// others.
fn not_to_be_watched() -> RpcError {
    let told = "this server lists to each caller its own resources (lists = \"principal\"), and Shoal cannot subscribe in one \
                caller's name: read the resource again instead";
    RpcError::new(code::METHOD_NOT_FOUND, told)
}

fn tool<'v>(view: &'v View, access: &Access, params: Option<&RawJson>) -> Option<&'v OfferedTool> {
    let name = params?.member("name")?.string()?;
    let offered = view.catalog.tool(&name);
    offered.filter(|offered| access.shows_tool(&view.catalog, &name, offered))
}
