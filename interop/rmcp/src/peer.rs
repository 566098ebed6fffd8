//! The client's side of a conversation: answers questions, records notifications.
#![expect(
    deprecated,
    reason = "sampling, roots and logging are what is to be checked"
)]

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result};
use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
        ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability,
        FormElicitationCapability, Implementation, ListRootsResult,
        LoggingMessageNotificationParam, ProgressNotificationParam, ProtocolVersion,
        ResourceUpdatedNotificationParam, Root, SamplingMessage, UrlElicitationCapability,
    },
    service::{NotificationContext, RequestContext},
};
use serde_json::Value;
use tokio::{sync::Notify, time::timeout};

pub const SAMPLED: &str = "a sampled text";
pub const ROOTS: [&str; 2] = ["file:///workspace/one", "file:///workspace/two"];

const ARRIVAL_TIME: Duration = Duration::from_secs(10);

/// Gives scripted answers, and records all questions and notifications.
#[derive(Clone)]
pub struct Peer {
    version: ProtocolVersion,
    state: Arc<Mutex<State>>,
    news: Arc<Notify>,
}

pub struct State {
    pub form_answer: ElicitResult,
    pub forms: Vec<Value>,
    pub urls: Vec<String>,
    pub samples: Vec<CreateMessageRequestParams>,
    pub logs: Vec<LoggingMessageNotificationParam>,
    pub progress: Vec<f64>,
    /// The resources that have changed.
    pub updated: Vec<String>,
    pub tool_list_changes: usize,
}

impl Peer {
    pub fn new(version: ProtocolVersion) -> Self {
        let state = State {
            form_answer: ElicitResult::new(ElicitationAction::Cancel),
            forms: Vec::new(),
            urls: Vec::new(),
            samples: Vec::new(),
            logs: Vec::new(),
            progress: Vec::new(),
            updated: Vec::new(),
            tool_list_changes: 0,
        };
        Self {
            version,
            state: Arc::new(Mutex::new(state)),
            news: Arc::default(),
        }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a notification makes `arrived` true.
    pub async fn wait_for(&self, what: &str, arrived: impl Fn(&State) -> bool) -> Result<()> {
        let arrival = async {
            loop {
                let news = self.news.notified();
                if arrived(&self.state()) {
                    break;
                }
                news.await;
            }
        };
        timeout(ARRIVAL_TIME, arrival)
            .await
            .with_context(|| format!("{what} did not arrive within {ARRIVAL_TIME:?}"))
    }

    fn hear(&self, note: impl FnOnce(&mut State)) {
        note(&mut self.state());
        self.news.notify_waiters();
    }
}

impl ClientHandler for Peer {
    fn get_info(&self) -> ClientConfig {
        let elicitation = ElicitationCapability::new()
            .with_form(FormElicitationCapability::new())
            .with_url(UrlElicitationCapability::new());
        let capabilities = ClientCapabilities::builder()
            .enable_roots()
            .enable_roots_list_changed()
            .enable_sampling()
            .enable_elicitation_with(elicitation)
            .build();
        ClientConfig::new(capabilities, Implementation::new("interop-rmcp", "1.0.0"))
            .with_protocol_version(self.version.clone())
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.state().samples.push(params);
        let message = SamplingMessage::assistant_text(SAMPLED);
        Ok(CreateMessageResult::new(message, "scripted".to_owned()))
    }

    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(
            ROOTS.into_iter().map(Root::new).collect(),
        ))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let mut state = self.state();
        match request {
            ElicitRequestParams::FormElicitationParams {
                requested_schema, ..
            } => {
                let schema = serde_json::to_value(requested_schema)
                    .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
                state.forms.push(schema);
                Ok(state.form_answer.clone())
            }
            ElicitRequestParams::UrlElicitationParams { url, .. } => {
                state.urls.push(url);
                Ok(ElicitResult::new(ElicitationAction::Accept))
            }
            _ => Err(ErrorData::invalid_params("no such mode", None)),
        }
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.hear(|state| state.progress.push(params.progress));
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.hear(|state| state.logs.push(params));
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.hear(|state| state.updated.push(params.uri));
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.hear(|state| state.tool_list_changes += 1);
    }
}
