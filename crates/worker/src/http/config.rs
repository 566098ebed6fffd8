use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_ports::{ListScope, Period, Secret, settings};

use crate::http_client::{
    CallersWithoutToken, ClientCredentialsConfig, HttpClientConfig, HttpTls, TokenExchangeConfig,
    client_of, endpoints,
};
use crate::upstream::{ConnectionBinding, EraChoice, UpstreamSettings};

/// The name of the server in messages about its URL.
pub(super) const WHAT: &str = "an MCP endpoint";

settings! {
    /// An MCP server that speaks Streamable HTTP.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table with url, or with urls")]
    #[schemars(rename = "Http")]
    pub struct HttpConfig {
        /// URL of the MCP endpoint ([allowed addresses](backends.md#where-requests-may-go)). Shoal prints it, so put
        /// secrets in `headers`.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub url: String = String::new(),
        /// URLs of equal servers, instead of `url`. Each is a worker.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub urls: Vec<String> = Vec::new(),
        /// Callers that share a session at a legacy server.
        pub isolation: HttpIsolation = HttpIsolation::Session,
        /// Maximum sessions of each worker at the server.
        pub sessions: usize = 1024,
        /// How long an unused session keeps its process or its session at the server.
        pub session_idle: Period = Period::seconds(300),
        /// Era in which Shoal opens the server ([backends](backends.md#servers-of-both-eras)).
        pub era: EraChoice = EraChoice::Auto,
        /// Headers of every request.
        pub headers: BTreeMap<String, Secret> = BTreeMap::new(),
        /// File with more `Name: value` lines, read again on change.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub headers_file: Option<PathBuf> = None,
        /// Headers of the client's request that Shoal passes on. In calls, they replace those of the same name in
        /// `headers`.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub forward: Vec<String> = Vec::new(),
        /// Callers that share the server's [lists](server-credentials.md#lists-of-each-caller).
        pub lists: ListScope = ListScope::Shared,
        /// Callers without a token, if `forward` has `authorization`.
        pub callers_without_token: CallersWithoutToken = CallersWithoutToken::Refuse,
        /// [Shoal's own token](server-credentials.md#a-token-of-shoals-own) for the server, instead of `authorization`
        /// in `headers`.
        pub client_credentials: ClientCredentialsConfig = ClientCredentialsConfig::default(),
        /// Exchanges the callers' tokens for tokens that the server accepts (RFC 8693), instead of `authorization` in
        /// `forward`.
        pub token_exchange: TokenExchangeConfig = TokenExchangeConfig::default(),
        /// Certificates for `https` connections.
        pub tls: HttpTls = HttpTls::default(),
        /// Time limit to open a connection.
        pub connect_timeout: Period = Period::seconds(10),
        /// Time limit of the handshake.
        pub start_timeout: Period = Period::seconds(30),
        /// How long the server may ignore `initialize` before Shoal sends `server/discover`.
        pub probe_timeout: Period = Period::seconds(5),
        /// Time limit of a list, subscription or ping request.
        pub request_timeout: Period = Period::seconds(30),
        /// How long a call's stream may be silent; 0 is as long as the call lasts.
        pub stream_idle: Period = Period::ZERO,
        /// How long Shoal tries to resume a broken stream of the server.
        pub resume_for: Period = Period::seconds(60),
        /// How long Shoal keeps an unused connection. Stay below the other side's idle timeout.
        pub connection_idle: Period = Period::seconds(4),
        /// How often Shoal checks the server.
        pub health_interval: Period = Period::seconds(10),
        /// Time to end a session. A process gets this time after Shoal closes its input, and again after `SIGTERM`.
        pub shutdown_grace: Period = Period::seconds(2),
        /// Maximum bytes of a message.
        pub message_bytes: usize = 16 * 1024 * 1024,
        /// First pause before a restart or reconnection. Each failure doubles the pause.
        pub restart_delay: Period = Period::millis(100),
        /// Maximum pause before a restart or reconnection.
        pub max_restart_delay: Period = Period::seconds(5),
    }
}

/// Callers that share a session of a legacy server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HttpIsolation {
    /// Each legacy session has its own. So does each modern call that may ask; a principal's other modern calls share
    /// one.
    #[default]
    Session,
    /// All calls of a principal share one.
    Principal,
}

impl HttpConfig {
    /// Creates the settings of one server, with defaults.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            ..Self::default()
        }
    }

    /// Lists the URLs of the servers.
    ///
    /// # Errors
    /// Describes the faulty settings.
    pub fn endpoints(&self) -> Result<Vec<&str>, String> {
        endpoints(("url", &self.url), ("urls", &self.urls), WHAT)
    }

    /// Checks the settings without contacting the server.
    ///
    /// # Errors
    /// The setting, and its fault.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let setting = if self.urls.is_empty() { "url" } else { "urls" };
        self.endpoints().map_err(|wrong| (setting, wrong))?;
        self.client().check()?;
        if self.lists == ListScope::Principal && self.client().wanted().is_empty() {
            let told = "\"principal\" reads the lists with what callers bring: set forward, or token_exchange";
            return Err(("lists", told.to_owned()));
        }
        if self.sessions == 0 {
            return Err(("sessions", "must be at least 1".to_owned()));
        }
        if self.message_bytes == 0 {
            return Err(("message_bytes", "must be at least 1".to_owned()));
        }
        Ok(())
    }

    pub(crate) fn client(&self) -> HttpClientConfig {
        HttpClientConfig {
            client_credentials: self.client_credentials.clone(),
            ..client_of!(self)
        }
    }

    pub(super) fn settings(&self, alone: bool) -> UpstreamSettings {
        UpstreamSettings {
            era: self.era,
            // Servers put a question on its call's stream, so Shoal can answer on the shared
            // connection. Servers keep one client's roots, so Shoal sends no roots there. The shared
            // connection declares roots nevertheless if sessions have their own connections, which
            // use the shared connection's lists and may declare roots.
            shared: ConnectionBinding::shared(
                true,
                self.isolation == HttpIsolation::Session,
                false,
            ),
            sessions_have_own: self.isolation == HttpIsolation::Session,
            lists: self.lists,
            sessions: self.sessions,
            session_idle: self.session_idle.get(),
            start_timeout: self.start_timeout.get(),
            probe_timeout: self.probe_timeout.get(),
            restart_delay: self.restart_delay.get(),
            max_restart_delay: self.max_restart_delay.get(),
            headers: self.client().wanted(),
            waits_to_reopen: if alone { Duration::MAX } else { Duration::ZERO },
        }
    }
}
