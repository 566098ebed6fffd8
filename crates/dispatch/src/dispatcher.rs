//! What edges and sessions ask of the dispatcher.

use std::sync::Arc;

use async_trait::async_trait;
use futures::future::join_all;
use serde_json::Value;
use shoal_ports::{
    Binding, Call, CallFailure, CallOutcome, Dispatcher, Durability, RunningCall, ServerFacts,
    SessionId, WorkerId,
};
use shoal_protocol::{Era, Method, RawJson, Revision, RpcError, code};
use shoal_telemetry::metrics;
use tokio::sync::watch;

use crate::bridge::answered;
use crate::catalog::OfferedTool;
use crate::dispatch::Dispatch;
use crate::durability;
use crate::pools::{AffinityKey, View, Wanted};
use crate::route::{Arguments, check_members, route, unknown_resource};
use crate::subscriptions::Subscriptions;

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
                durability::of_tool(self.shared.config.pool(pool), &tool.name, tool.hints)
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

    fn choose(
        &self,
        method: &Method,
        params: Option<&RawJson>,
        session: Option<&SessionId>,
        tried: &[WorkerId],
    ) -> Option<Binding> {
        if tried.len() >= self.shared.config.start_attempts.max(1) {
            return None;
        }
        let view = self.shared.view();
        // Only the place is wanted here; what is wrong with the call, its start will say.
        let members = params.map(RawJson::index);
        let given = members.as_ref();
        let route = route(&view, Arguments::Trusted, Revision::LATEST, method, given).ok()?;
        let affinity = &self.shared.config.pool(&route.pool).affinity;
        let wanted = Wanted {
            tool: route.tool.as_ref().map(|tool| tool.name.as_str()),
            key: AffinityKey::of(affinity, params, session, None),
        };
        let member = view.choose(&route.pool, &wanted, tried).ok()?;
        Some(Binding {
            worker: member.id.clone(),
            ledger: member.worker.ledger(),
        })
    }

    async fn start(&self, call: Call) -> Result<RunningCall, CallFailure> {
        if !call.method.runs_on_backend() {
            return self.list_in_time(&call).await;
        }
        let view = self.shared.view();
        let place = self.shared.in_flight.enter(&call);
        let running = self.begin(&view, call).await?;
        let pool = self.counted(&running);
        Ok(place.follow(running, pool))
    }

    fn start_now(&self, call: &Call) -> Option<Result<RunningCall, CallFailure>> {
        self.begin_now(call)
    }

    async fn resume(&self, call: Call, after: u64) -> Result<RunningCall, CallFailure> {
        match (call.method.runs_on_backend(), call.caller.revision.era()) {
            (true, Era::Legacy) => {
                let place = self.shared.in_flight.enter(&call);
                let running = self.resume_legacy(call, after).await?;
                let pool = self.counted(&running);
                Ok(place.follow(running, pool))
            }
            // Nobody owns such a call: whoever has it begins it.
            _ => self.start(call).await,
        }
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
    /// The pool that a call is counted for, if anybody counts.
    pub(crate) fn counted(&self, running: &RunningCall) -> Option<Arc<str>> {
        let worker = running.worker.as_ref().filter(|_| metrics::enabled())?;
        let view = self.shared.view();
        // A worker that has left meanwhile took its pool's name along.
        Some(view.member(worker)?.pool.clone())
    }

    async fn begin(&self, view: &View, call: Call) -> Result<RunningCall, CallFailure> {
        let members = call.params.as_ref().map(RawJson::index);
        if let Err(error) = check_members(members.as_ref()) {
            return Ok(answered(CallOutcome::Refused(error)));
        }
        match call.caller.revision.era() {
            Era::Legacy => self.start_legacy(view, call).await,
            Era::Modern => self.start_modern(view, call).await,
        }
    }
}

/// The tool that a call names.
fn tool<'v>(view: &'v View, method: &Method, params: Option<&RawJson>) -> Option<&'v OfferedTool> {
    if *method != Method::ToolsCall {
        return None;
    }
    let name = params?.member("name")?.string()?;
    view.catalog.tool(&name)
}
