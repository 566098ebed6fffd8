//! What a handler's [`RequestContext`] has in reach: its caller, its deadline, its trace, its session.

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

/// What the context's extensions hold of a call.
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

/// What Shoal adds to rmcp's [`RequestContext`].
///
/// It can be asked wherever the handler runs. Under another server, as in a test of the handler alone, there is no
/// principal, no deadline and no trace, and the session refuses everything. What rmcp's context has itself is the same under
/// Shoal: `ct` fires when the client cancels or the deadline passes, and `peer` reaches the call's client.
pub trait RequestContextExt {
    /// Who is calling, as the server authenticated them: `anonymous` where nobody is asked who they are. `None` where Shoal does
    /// not run the handler.
    fn principal(&self) -> Option<&str>;

    /// When the caller is told that the call took too long, and the tool is told to stop.
    fn deadline(&self) -> Option<Instant>;

    /// The span that requests of the tool to others continue: its `traceparent` and `tracestate`. `None` where the caller sent
    /// none and Shoal exports no traces.
    fn trace_context(&self) -> Option<&TraceContext>;

    /// What the tools keep in the caller's session.
    fn session(&self) -> CallerSession;

    /// Tells the caller how far the call is, if it wants to know. `progress` grows with each report; `total` is what it reaches, if
    /// that is known.
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

/// What tools keep in their caller's session: small JSON values under keys, which every later call of the session finds, on
/// whichever worker, whatever node was lost in between.
///
/// Callers of 2026-07-28 have no session, and everything is refused: hand out a handle instead, and take it as an argument.
/// The limits stand in `[session]` of the configuration.
#[derive(Clone, Debug)]
pub struct CallerSession(Option<SessionState>);

impl CallerSession {
    /// The value of a key; `None` when there is none.
    ///
    /// # Errors
    /// When the caller has no session, the key is empty or too long, the session cannot be reached, or the value is not a `T`.
    pub async fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, ErrorData> {
        self.state()?.get(key).await.map_err(wire::error_data)
    }

    /// Writes a value, over the one before. It is stored when this returns.
    ///
    /// # Errors
    /// As [`get`](Self::get); and when a limit is reached, or the store is away. The error's data says whether the value was
    /// kept: `{"kept": false}`, or `{"kept": null}` where that is not known.
    pub async fn set(&self, key: &str, value: &(impl Serialize + Sync)) -> Result<(), ErrorData> {
        let kept = self.state()?.set(key, value).await;
        kept.map_err(wire::error_data)
    }

    /// Removes a value, if there is one. It is gone from the store when this returns.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub async fn remove(&self, key: &str) -> Result<(), ErrorData> {
        self.state()?.remove(key).await.map_err(wire::error_data)
    }

    /// The keys that have a value, sorted.
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
