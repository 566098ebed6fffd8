//! The backend that calls an MCP server over Streamable HTTP.
//!
//! | file | part |
//! |---|---|
//! | `endpoint` | the server's URL and client |
//! | `channel`, `cookies` | one connection; its cookies |
//! | `http_sse` | the transport before Streamable HTTP |
//! | `exchange`, `listen`, `stream` | one request and its answer; the server's own messages; events |
//! | `refusal` | the meaning of error responses |
//! | `tools` | arguments that travel in headers |
//! | `presence` | whether the server is reachable |

use std::sync::Arc;

use async_trait::async_trait;
use shoal_outbound::Outbound;
use shoal_ports::{Call, CallFailure, CallOutcome, OwnLists, ResourceUpdated, SessionId};
use shoal_protocol::{Era, Method, RawJson, RawObject, RpcError};
use shoal_telemetry::metrics::Transport as Network;
use tokio::sync::{broadcast, mpsc, watch};
use tokio_util::sync::CancellationToken;

use self::channel::{HttpChannel, SharedByConnections};
use self::endpoint::HttpEndpoint;
use self::presence::{Presence, Way};
use self::tools::Tools;
use crate::backend::BackendPatience;
use crate::http_client::{EqualServers, NoToken, Reachability};
use crate::upstream::{
    ConnectionBinding, Launcher, QUEUE, Server, ServerConnection, ServerLink, ServerSessions,
    ServerSubscriptions, SessionOwner, StartError, Transport, carry, catch_up,
};
use crate::{Backend, BackendState, CallContext};

mod channel;
mod config;
mod cookies;
mod endpoint;
mod exchange;
mod http_sse;
mod listen;
mod presence;
mod refusal;
mod stream;
mod tools;

pub use self::config::{HttpConfig, HttpIsolation};

const AWAY: &str = "the server cannot be reached";
/// Maximum sessions that a server may forget during one call before the call fails.
const FORGOTTEN: usize = 2;

/// A backend for an existing MCP server of either era, reached by URL.
///
/// # Sessions
/// A legacy server gets a session for each Shoal session, principal or single call, and for each
/// set of forwarded headers, which may be credentials. If the server forgets its session, the
/// backend opens a new one and resends the refused call.
///
/// # Questions to clients
/// A question on a call's stream goes to that call. Other questions go to the newest call, if the connection
/// belongs to one Shoal session.
///
/// # Outcomes
/// A call ends as `OutcomeUnknown` if its answer breaks off and cannot be resumed, or if its server
/// is away while another server can repeat the call. An unsent call waits for its server if the
/// pool has no other; otherwise it ends as `NotExecuted`.
pub struct HttpBackend {
    server: Server,
    endpoint: Arc<HttpEndpoint>,
    presence: Arc<Presence>,
    sessions: Arc<ServerSessions>,
    tools: Arc<Tools>,
    isolation: HttpIsolation,
}

impl HttpBackend {
    /// Starts a backend for each configured server, in order. [`Backend::state`] reports its readiness.
    /// Dropping it ends its sessions in the background.
    ///
    /// # Errors
    /// A URL or header is unusable.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(config: HttpConfig, outbound: &Outbound) -> Result<Vec<Self>, String> {
        let config = Arc::new(config);
        let urls = config.endpoints()?;
        let all = EqualServers::of(urls.len());
        let started = (urls.iter().enumerate())
            .map(|(place, url)| Self::start_one(config.clone(), url, all.at(place), outbound));
        started.collect()
    }

    fn start_one(
        config: Arc<HttpConfig>,
        url: &str,
        reachability: Reachability,
        outbound: &Outbound,
    ) -> Result<Self, String> {
        let alone = reachability.is_alone();
        let (settings, isolation) = (config.settings(alone), config.isolation);
        let presence = Arc::new(Presence::new(config.health_interval.get(), reachability));
        let endpoint = Arc::new(HttpEndpoint::new(url, config, outbound)?);
        let tools = Arc::new(Tools::default());
        let common = SharedByConnections {
            endpoint: endpoint.clone(),
            tools: tools.clone(),
            presence: presence.clone(),
            speaks_http_sse: Arc::default(),
        };
        let launcher = Arc::new(Launcher::new(settings, StreamableHttp(common)));
        Ok(Self {
            sessions: Arc::new(ServerSessions::new(launcher.clone())),
            server: Server::start(launcher, presence.clone()),
            endpoint,
            presence,
            tools,
            isolation,
        })
    }

    async fn admit(&self, call: &Call, context: &CallContext) -> Result<(), CallOutcome> {
        let admitted = tokio::select! {
            biased;
            admitted = self.endpoint.http.admit(&call.caller) => admitted,
            () = context.cancelled().cancelled() => Err(NoToken::Away("no token came in time".to_owned())),
        };
        admitted.map_err(CallOutcome::from)
    }

    async fn run_here(
        &self,
        call: &Call,
        context: &CallContext,
    ) -> Result<CallOutcome, CallFailure> {
        let mut forgotten = 0;
        loop {
            let (ended, was_forgotten) = self.run_once(call, context).await;
            forgotten += usize::from(was_forgotten);
            let Err(CallFailure::NotExecuted { .. }) = &ended else {
                return ended;
            };
            if context.cancelled().is_cancelled() || self.server.launcher.closing.is_cancelled() {
                return ended;
            }
            if self.presence.reachability.is_waited_for() {
                let back = async {
                    tokio::select! {
                        () = self.presence.reachability.back() => Ok(()),
                        () = self.server.launcher.closing.cancelled() => {
                            Err(CallFailure::not_executed("the server is shutting down"))
                        }
                    }
                };
                context.wait(BackendPatience::OfPool(AWAY), back).await?;
            } else if !was_forgotten || forgotten == FORGOTTEN {
                return ended;
            }
        }
    }

    fn learn(&self, call: &Call, outcome: CallOutcome) -> CallOutcome {
        let era = self.server.launcher.era();
        let (CallOutcome::Result(result), Method::ToolsList, Some(Era::Modern)) =
            (&outcome, &call.method, era)
        else {
            return outcome;
        };
        let Some(mut tools) = result.member("tools").and_then(|tools| tools.read().ok()) else {
            return outcome;
        };
        self.tools.add(Era::Modern, &mut tools);
        let mut listed = RawObject::of(result).unwrap_or_default();
        listed.set("tools", RawJson::of(&tools));
        CallOutcome::Result(listed.to_json())
    }

    /// Also returns whether the server had forgotten the session.
    async fn run_once(
        &self,
        call: &Call,
        context: &CallContext,
    ) -> (Result<CallOutcome, CallFailure>, bool) {
        let lead = match self.presence.way() {
            Ok(Way::Lead(lead)) => {
                let greeting = lead.link.greeting();
                if greeting.era == Era::Modern || lead.link.is_stateless() {
                    return over(&lead, call, context).await;
                }
                Some(lead)
            }
            Ok(Way::OfCallers) => None,
            Err(failure) => return (Err(failure), false),
        };
        let owner = self.owner(call);
        let _ending = matches!(owner, SessionOwner::Call(_)).then(|| SessionEnding {
            sessions: self.sessions.clone(),
            owner: owner.clone(),
        });
        match self.sessions.hold(&owner, call, context).await {
            Ok(hold) => {
                if let (SessionOwner::Session(_), Some(lead)) = (&owner, &lead) {
                    let watched = &self.server.launcher.subscriptions;
                    catch_up(&hold.connection.link, &lead.link, watched).await;
                }
                over(&hold.connection, call, context).await
            }
            Err(not_held) => (not_held.into(), false),
        }
    }

    fn owner(&self, call: &Call) -> SessionOwner {
        let principal = SessionOwner::principal_of(&call.caller);
        if self.server.launcher.era() == Some(Era::Modern) {
            // A modern server has no sessions. If it refuses Shoal's credentials, each caller has its own
            // connection.
            return principal;
        }
        match (&self.isolation, &call.caller.session) {
            (HttpIsolation::Principal, _) => principal,
            (HttpIsolation::Session, Some(session)) => SessionOwner::Session(session.clone()),
            // In a shared server session, a question outside the call's stream could belong to any
            // caller.
            (HttpIsolation::Session, None) if can_be_asked(call) => SessionOwner::Call(call.id),
            (HttpIsolation::Session, None) => principal,
        }
    }
}

fn can_be_asked(call: &Call) -> bool {
    let declared = &call.caller.capabilities;
    let asks = ["sampling", "elicitation", "roots"];
    call.method.may_require_input() && asks.iter().any(|name| declared.member(name).is_some())
}

struct SessionEnding {
    sessions: Arc<ServerSessions>,
    owner: SessionOwner,
}

impl Drop for SessionEnding {
    fn drop(&mut self) {
        let (sessions, owner) = (self.sessions.clone(), self.owner.clone());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { sessions.end(&owner).await });
        }
    }
}

async fn over(
    connection: &Arc<ServerConnection>,
    call: &Call,
    context: &CallContext,
) -> (Result<CallOutcome, CallFailure>, bool) {
    let ended = match carry(&connection.link, call, context, None).await {
        Ok(CallOutcome::Failed(failure)) => Err(failure),
        Ok(outcome) => Ok(outcome),
        Err(never_written) => Err(never_written.into()),
    };
    (ended, connection.link.lost().is_some())
}

#[async_trait]
impl Backend for HttpBackend {
    fn state(&self) -> watch::Receiver<BackendState> {
        self.server.state()
    }

    fn resource_updates(&self) -> broadcast::Receiver<ResourceUpdated> {
        self.server.resource_updates()
    }

    fn own_lists(&self) -> watch::Receiver<OwnLists> {
        self.server.own_lists()
    }

    async fn run(&self, call: &Call, context: &CallContext) -> CallOutcome {
        if let Err(ended) = self.admit(call, context).await {
            return ended;
        }
        // Boxed, because only one of them runs in most calls.
        let here = async { Box::pin(self.run_here(call, context)).await };
        let modern = async { Box::pin(self.server.run_modern(call, context)).await };
        let outcome = self.server.run(call, here, modern).await;
        self.learn(call, outcome)
    }

    async fn subscribe(&self, uri: &str) -> Result<(), RpcError> {
        self.server.subscribe(uri, self.presence.lead().ok()).await
    }

    async fn unsubscribe(&self, uri: &str) {
        self.server.unsubscribe(uri);
    }

    fn has_session(&self, session: &SessionId) -> bool {
        self.sessions.has(session)
    }

    fn sessions(&self) -> usize {
        self.sessions.count()
    }

    async fn end_session(&self, session: &SessionId) {
        self.sessions
            .end(&SessionOwner::Session(session.clone()))
            .await;
    }

    fn restarts(&self) -> u64 {
        self.server.restarts()
    }

    fn transport(&self) -> Network {
        Network::Tcp
    }

    async fn shutdown(&self) {
        let sessions = self.sessions.end_all();
        let lead = async {
            if let Ok(lead) = self.presence.lead() {
                lead.shutdown().await;
            }
        };
        let all = async {
            tokio::join!(sessions, lead);
        };
        self.server.shutdown(all).await;
    }
}

struct StreamableHttp(SharedByConnections);

impl Transport for StreamableHttp {
    fn open(
        &self,
        binding: ConnectionBinding,
        subscriptions: Arc<ServerSubscriptions>,
        closing: &CancellationToken,
    ) -> Result<ServerConnection, StartError> {
        let endpoint = &self.0.endpoint;
        let client = endpoint.http.prepare().map_err(StartError::NoWay)?;
        let (sender, queue) = mpsc::channel(QUEUE);
        let timeout = endpoint.config().request_timeout.get();
        let name = endpoint.url().as_str().into();
        let link = Arc::new(ServerLink::new(
            name,
            sender,
            binding,
            subscriptions,
            timeout,
        ));
        Ok(HttpChannel::open(&self.0, client, link, queue, closing))
    }

    fn has_servers_of_their_own(&self) -> bool {
        false
    }

    fn learn(&self, era: Era, tools: &mut Vec<RawJson>) {
        self.0.tools.learn(era, tools);
    }
}

#[cfg(test)]
mod tests;
