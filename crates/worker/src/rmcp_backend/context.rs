use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::ProgressNotificationParam;
use rmcp::service::{RequestContext, RoleServer};
use serde::Serialize;
use serde::de::DeserializeOwned;
use shoal_ports::{Call, Caller, SessionState};
use shoal_protocol::{RpcError, TraceContext};
use tokio::time::Instant;

use super::wire;

#[derive(Clone)]
pub(super) struct CallInfo {
    caller: Arc<Caller>,
    deadline: Instant,
    trace: Option<TraceContext>,
}

impl CallInfo {
    pub(super) fn of(call: &Call) -> Self {
        Self {
            caller: Arc::clone(&call.caller),
            deadline: call.deadline,
            trace: call.trace.clone(),
        }
    }
}

/// Shoal's additions to rmcp's [`RequestContext`].
///
/// Without Shoal, for example in a handler's test, there is no principal, deadline or trace, and the session
/// refuses every access. rmcp's own members work under Shoal: `ct` fires on cancellation or at the deadline,
/// and `peer` reaches the call's client.
pub trait RequestContextExt {
    /// Returns the authenticated principal: `anonymous` without authentication, `None` without Shoal.
    fn principal(&self) -> Option<&str>;

    /// Returns the time when the caller gets a timeout and the tool must stop.
    fn deadline(&self) -> Option<Instant>;

    /// Returns the trace context (`traceparent`, `tracestate`) for the tool's own requests. `None` if the
    /// caller sent none and Shoal exports no traces.
    fn trace_context(&self) -> Option<&TraceContext>;

    /// Returns the state kept in the caller's session.
    fn session(&self) -> CallerSession;

    /// Reports progress if the caller wants it. `progress` must grow; `total` is its final value,
    /// if known.
    fn report_progress(
        &self,
        progress: f64,
        total: Option<f64>,
        message: Option<&str>,
    ) -> impl Future<Output = ()> + Send;
}

impl RequestContextExt for RequestContext<RoleServer> {
    fn principal(&self) -> Option<&str> {
        let info = self.extensions.get::<CallInfo>()?;
        Some(info.caller.principal.as_str())
    }

    fn deadline(&self) -> Option<Instant> {
        Some(self.extensions.get::<CallInfo>()?.deadline)
    }

    fn trace_context(&self) -> Option<&TraceContext> {
        self.extensions.get::<CallInfo>()?.trace.as_ref()
    }

    fn session(&self) -> CallerSession {
        CallerSession(self.extensions.get::<SessionState>().cloned())
    }

    async fn report_progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let Some(token) = self.meta.get_progress_token() else {
            return;
        };
        let mut report = ProgressNotificationParam::new(token, progress);
        report.total = total;
        report.message = message.map(str::to_owned);
        if let Err(error) = self.peer.notify_progress(report).await {
            tracing::debug!(%error, "nobody takes the call's progress");
        }
    }
}

/// The state that tools keep in the caller's session: small JSON values by key, which later calls
/// see on any worker and after node failures.
///
/// Callers of 2026-07-28 have no session, so every access fails; pass a handle as a tool argument
/// instead. `[session]` of the configuration sets the limits.
#[derive(Clone, Debug)]
pub struct CallerSession(Option<SessionState>);

impl CallerSession {
    /// Returns a key's value, if any.
    ///
    /// # Errors
    /// The caller has no session, the key is empty or too long, the session is unreachable, or the value is
    /// not a `T`.
    pub async fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, ErrorData> {
        self.state()?.get(key).await.map_err(wire::error_data)
    }

    /// Writes a value. When this returns, the store has it.
    ///
    /// # Errors
    /// As [`get`](Self::get), or a limit is reached, or the store is unavailable. The error's data says
    /// `{"kept": false}` if the value was not written, `{"kept": null}` if this is unknown.
    pub async fn set(&self, key: &str, value: &(impl Serialize + Sync)) -> Result<(), ErrorData> {
        let kept = self.state()?.set(key, value).await;
        kept.map_err(wire::error_data)
    }

    /// Removes a value from the store before this returns.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub async fn remove(&self, key: &str) -> Result<(), ErrorData> {
        self.state()?.remove(key).await.map_err(wire::error_data)
    }

    /// Lists the keys with values, sorted.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn keys(&self) -> Result<Vec<String>, ErrorData> {
        self.state()?.keys().await.map_err(wire::error_data)
    }

    fn state(&self) -> Result<&SessionState, ErrorData> {
        let missing =
            || RpcError::invalid_request("there is no session: Shoal does not run this server");
        self.0
            .as_ref()
            .ok_or_else(missing)
            .map_err(wire::error_data)
    }
}
