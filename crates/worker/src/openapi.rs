//! A backend that calls an HTTP service described by an OpenAPI document.
//!
//! | file | content |
//! |---|---|
//! | `config`, `choice` | the settings, and the chosen operations |
//! | `loader`, `source`, `document` | reads the document, its parts and objects |
//! | `base`, `security` | the service's URL; credentials |
//! | `api`, `operation`, `path`, `responses`, `names` | operations as tools |
//! | `inputs`, `schema` | input schemas; schemas as JSON Schema |
//! | `size` | the tool list's size in a model's context |
//! | `text` | descriptions without markup |
//! | `request`, `style`, `body`, `media` | turns a call's arguments into a request |
//! | `answer` | turns an answer into a result |
//! | `monitor` | follows the document and the service's health |
//! | `preview` | a document's tools without its service |

use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use http::StatusCode;
use serde_json::{Map, Value};
use shoal_outbound::Outbound;
use shoal_ports::{Call, CallFailure, CallOutcome, ResourceUpdated};
use shoal_protocol::{Method, RawJson, RpcError, Token, Tokens, is_rounded, shown};
use shoal_telemetry::metrics::Transport;
use tokio::sync::{broadcast, watch};

use self::api::Api;
use self::monitor::{Monitor, OpenApiService};
use self::security::{CredentialLocation, RequestCredential};
use crate::backend::BackendPatience;
use crate::http_client::{HttpClient, NoToken, RequestUnanswered, send};
use crate::{Backend, BackendState, CallContext};

mod answer;
mod api;
mod base;
mod body;
mod choice;
mod config;
mod document;
#[cfg(fuzzing)]
pub(crate) mod fuzz;
mod inputs;
mod loader;
mod media;
mod monitor;
mod names;
mod operation;
mod path;
mod preview;
mod request;
mod responses;
mod schema;
mod security;
mod size;
mod source;
mod style;
mod text;

pub use self::choice::ToolChoice;
pub use self::config::{CredentialConfig, DeepLists, OpenApiConfig};
pub use self::preview::DocumentPreview;

/// Maximum attempts to start a call while the service is flapping.
const BEGUN: usize = 4;
const AWAY: &str = "the service cannot be reached";

/// A backend whose tools are the operations of an HTTP service's OpenAPI document.
///
/// # Outcomes
/// Every answer of the service is a result, and an error status sets `isError`. A call whose answer broke off
/// ends as `OutcomeUnknown`. An unsent call ends as `NotExecuted`; if the pool has no other service, it first
/// waits for this one.
pub struct OpenApiBackend {
    service: Arc<OpenApiService>,
    state: watch::Receiver<BackendState>,
    updates: broadcast::Sender<ResourceUpdated>,
}

impl OpenApiBackend {
    /// Starts a backend for the configured service `base`, or for the document's server if `None`,
    /// with the tools of `choice`. [`Backend::state`] shows whether it is ready. Dropping the
    /// backend ends it.
    ///
    /// # Errors
    /// The settings are unusable.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(
        config: OpenApiConfig,
        choice: ToolChoice,
        base: Option<&str>,
        outbound: &Outbound,
    ) -> Result<Self, String> {
        let service = Arc::new(OpenApiService::new(config, choice, base, outbound)?);
        let (publish, state) = watch::channel(BackendState {
            catalog: None,
            detail: Some("starting".to_owned()),
        });
        tokio::spawn(Monitor::new(service.clone(), publish).run());
        Ok(Self {
            service,
            state,
            updates: broadcast::Sender::new(1),
        })
    }

    async fn run_here(
        &self,
        call: &Call,
        context: &CallContext,
    ) -> Result<CallOutcome, CallFailure> {
        let service = &self.service;
        let mut begun = 0;
        loop {
            begun += 1;
            let ended = tokio::select! {
                biased;
                ended = self.run_once(call) => ended,
                // Dropping the request cancels it at the service.
                () = context.cancelled().cancelled() => Err(CallFailure::Cancelled),
            };
            let Err(CallFailure::NotExecuted { .. }) = &ended else {
                return ended;
            };
            let is_over = begun >= BEGUN || service.closing.is_cancelled();
            if is_over || !service.reachability.is_waited_for() {
                return ended;
            }
            let back = async {
                tokio::select! {
                    () = service.reachability.back() => Ok(()),
                    () = service.closing.cancelled() => {
                        Err(CallFailure::not_executed("the server is shutting down"))
                    }
                }
            };
            context.wait(BackendPatience::OfPool(AWAY), back).await?;
        }
    }

    async fn run_once(&self, call: &Call) -> Result<CallOutcome, CallFailure> {
        let Some(api) = self.service.api() else {
            return Err(CallFailure::not_executed(
                "its document has not been read yet",
            ));
        };
        let limit = self.service.config.call_timeout.get();
        let calling = self.call(&api, call);
        if limit.is_zero() {
            return calling.await;
        }
        let called = tokio::time::timeout(limit, calling).await;
        called.unwrap_or_else(|_| {
            let reason = format!(
                "the service did not answer within {} s",
                limit.as_secs_f32()
            );
            Err(CallFailure::OutcomeUnknown { reason })
        })
    }

    async fn call(&self, api: &Api, call: &Call) -> Result<CallOutcome, CallFailure> {
        let params = call.params.as_ref();
        let name = params.and_then(|params| params.member("name")?.string());
        let name = name.unwrap_or_default();
        let Some(operation) = api.operations.get(&name) else {
            let unknown = RpcError::invalid_params(format!("unknown tool: {name}"));
            return Ok(CallOutcome::Error(unknown));
        };
        let arguments = params.and_then(|params| params.member("arguments"));
        if let Some(number) = arguments.as_ref().and_then(first_rounded) {
            let why = format!("{number} has more digits than a request to this service can carry");
            return Ok(CallOutcome::Result(answer::wrong(&why)));
        }
        let arguments: Map<String, Value> = match arguments.map(|arguments| arguments.read()) {
            Some(Ok(arguments)) => arguments,
            Some(Err(_)) => {
                let wrong = RpcError::invalid_params("arguments must be an object");
                return Ok(CallOutcome::Error(wrong));
            }
            None => Map::new(),
        };
        let arguments = match operation.inputs.request_arguments(arguments) {
            Ok(arguments) => arguments,
            Err(why) => return Ok(CallOutcome::Result(answer::wrong(&why))),
        };
        let credentials: Vec<(CredentialLocation, String)> = match read(&operation.credentials)
            .await
        {
            Ok(credentials) => credentials,
            // The call's error, not a failure of the worker: other operations may not need these
            // credentials.
            Err(why) => {
                tracing::warn!(target: "shoal::openapi", why, "a credential cannot be read");
                let told = "the server cannot read its credentials; its operator finds the reason in the log";
                return Ok(CallOutcome::Error(RpcError::internal(told)));
            }
        };
        let outgoing = match request::build(operation, &api.base, &arguments, &credentials) {
            Ok(outgoing) => outgoing,
            Err(why) => return Ok(CallOutcome::Result(answer::wrong(&why))),
        };
        let answer = match self.send(call, outgoing, &credentials).await {
            Ok(answer) => answer,
            Err(RequestUnanswered::NotSent(reason)) => {
                self.service.reachability.doubt();
                return Err(CallFailure::not_executed(reason));
            }
            Err(RequestUnanswered::Lost(reason)) => {
                return Err(CallFailure::OutcomeUnknown { reason });
            }
            Err(RequestUnanswered::NoToken(none)) => return Ok(none.into()),
        };
        if answer.status() == StatusCode::UNAUTHORIZED {
            let http = &self.service.http;
            http.not_accepted(Some(&call.caller));
            if http.is_operators(Some(&call.caller)) || !credentials.is_empty() {
                let status = answer.status();
                let (told, said) = answer::unauthorized(answer).await;
                let server = api.base.host_str().unwrap_or_default();
                http.log_refusal(server, status, &said);
                return Ok(CallOutcome::Result(told));
            }
        }
        let limit = self.service.config.answer_bytes;
        let read = answer::read(&name, operation, answer, limit, call.repeat);
        Ok(read.await)
    }

    async fn send(
        &self,
        call: &Call,
        outgoing: request::OperationRequest,
        credentials: &[(CredentialLocation, String)],
    ) -> Result<reqwest::Response, RequestUnanswered> {
        let http: &HttpClient = &self.service.http;
        let client = http.prepare().map_err(RequestUnanswered::NotSent)?;
        let own = http.headers(&client, Some(&call.caller)).await;
        let own = own.map_err(RequestUnanswered::NoToken)?;
        let mut headers = outgoing.headers;
        // Arguments cannot replace configured or forwarded headers.
        for (name, value) in own {
            if let Some(name) = name {
                headers.insert(name, value);
            }
        }
        let authorized = request::authorize(&mut headers, credentials);
        authorized.map_err(|why| RequestUnanswered::NoToken(NoToken::Refused(why)))?;
        request::trace(&mut headers, call.trace.as_ref());
        let request = client.request(outgoing.method, &outgoing.url);
        let request = request.map_err(RequestUnanswered::NotSent)?;
        send(request.headers(headers).body(outgoing.body)).await
    }
}

async fn read(
    credentials: &[RequestCredential],
) -> Result<Vec<(CredentialLocation, String)>, String> {
    let mut all = Vec::with_capacity(credentials.len());
    for credential in credentials {
        all.push((credential.place().clone(), credential.value().await?));
    }
    Ok(all)
}

impl Drop for OpenApiBackend {
    fn drop(&mut self) {
        self.service.closing.cancel();
    }
}

#[async_trait]
impl Backend for OpenApiBackend {
    fn state(&self) -> watch::Receiver<BackendState> {
        self.state.clone()
    }

    fn resource_updates(&self) -> broadcast::Receiver<ResourceUpdated> {
        self.updates.subscribe()
    }

    async fn run(&self, call: &Call, context: &CallContext) -> CallOutcome {
        if call.method != Method::ToolsCall {
            return CallOutcome::Error(RpcError::method_not_found(call.method.as_str()));
        }
        let ended = self.run_here(call, context).await;
        ended.unwrap_or_else(CallOutcome::Failed)
    }

    async fn subscribe(&self, _uri: &str) -> Result<(), RpcError> {
        let method = Method::ResourcesSubscribe;
        Err(RpcError::method_not_found(method.as_str()))
    }

    async fn unsubscribe(&self, _uri: &str) {}

    fn restarts(&self) -> u64 {
        self.service.restarts.load(Ordering::Relaxed)
    }

    fn transport(&self) -> Transport {
        Transport::Tcp
    }

    async fn shutdown(&self) {
        self.service.closing.cancel();
    }
}

/// The first number that would lose digits in `serde_json::Value`, from which requests are written.
fn first_rounded(arguments: &RawJson) -> Option<String> {
    let mut numbers = Tokens::of(arguments.as_bytes()).filter_map(|token| match token {
        Token::Number(written) => std::str::from_utf8(written).ok(),
        _ => None,
    });
    let number = numbers.find(|number| is_rounded(number))?;
    Some(shown(number, LONGEST_NUMBER))
}

/// Maximum characters of a number in an error message.
const LONGEST_NUMBER: usize = 40;

#[cfg(test)]
mod tests;
